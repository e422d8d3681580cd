"""Laws that hold for every lens and every variant of it."""

from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import torch

from headscope.core.catalog import lenses
from headscope.core.lens import view
from headscope.core.spec import entry_name, to_spec
from headscope.engine.capture import capture
from tests.models import batch, tiny
from tests.tiers import spread

EVERYTHING = ("attention", "values", "output", "pads", "blocks", "residual", "readout")
THROUGH = (
    "rollout:residual=measured",
    "rollout:residual=measured,inner=norm,heads=each",
    "rollout:inner=alti,residual=0",
    "rollout:inner=(norm:residual=true),residual=0",
    "flow:residual=measured,receptive_field=true",
)
PLACES = [
    ("bert", "self"),
    ("llama", "self"),
    ("modernbert", "self"),
    ("gpt_oss", "self"),
    ("t5", "encoder"),
    ("t5", "cross"),
]


def variants():
    """Yield every lens with its defaults, with each of its choices changed, and with all of them changed."""
    for kind in lenses:
        plain, hints, changes = kind(), get_type_hints(kind), {}
        for name in (field.name for field in fields(kind)):
            hint = hints[name]
            choices = get_args(hint) if get_origin(hint) is Literal else (False, True) if hint is bool else ()
            changes[name] = [other for other in choices if other != getattr(plain, name)]
        yield plain
        yield from (kind(**{name: other}) for name, others in changes.items() for other in others)
        if sum(map(bool, changes.values())) > 1:
            yield kind(**{name: others[-1] for name, others in changes.items() if others})


LENSES = [*variants(), *map(lenses.make, THROUGH)]


def fits(lens, place, *_):
    """Whether a lens works there; padding as keys is only defined where all queries see the same."""
    kind, site = place
    return site not in lens.breaks and ("pads" not in lens.needs or kind in ("bert", "t5"))


def lawful(law, *, everywhere=False):
    """Test every lens that keeps a law: each at one place in turn and the others in `make soak`, or everywhere."""
    kept = [lens for lens in LENSES if law not in lens.breaks]
    cases = []
    for case in spread(kept, PLACES, where=fits):
        lens, place = case.values
        name = f"{to_spec(lens)} {' '.join(place)}"
        cases.append(pytest.param(lens, *place, id=name, marks=() if everywhere else case.marks))
    return pytest.mark.parametrize(("lens", "kind", "site"), cases)


def score(output):
    """The target of lenses that need a gradient: the first token's hidden state along a fixed direction."""
    hidden = output.last_hidden_state[:, 0]
    return hidden @ torch.linspace(-1, 1, hidden.shape[-1]).to(hidden)


@cache
def trace_of(kind, site, only=None, pad_to=None):
    """Capture the whole batch, or one example of it; once for all laws, which leave it as it is."""
    texts = batch(kind) if only is None else [batch(kind)[only]]
    return capture(tiny(kind), texts, site=site, keep=EVERYTHING, target=score, pad_to=pad_to)


def assert_equal_maps(left, right):
    torch.testing.assert_close(left, right, atol=1e-5, rtol=1e-4)  # two float32 forward passes in different batches


def test_a_lens_rebuilds_from_its_spec():
    for lens in LENSES:
        assert lenses.make(to_spec(lens)) == lens


@lawful("purity")
def test_a_lens_leaves_the_trace_unchanged(lens, kind, site):
    trace = trace_of(kind, site)
    before = [
        [layer.clone() for layer in part] for part in (trace.attention, trace.values, trace.output, trace.visible)
    ]
    view(trace, lens)
    after = (trace.attention, trace.values, trace.output, trace.visible)
    assert all(torch.equal(a, b) for old, new in zip(before, after, strict=True) for a, b in zip(old, new, strict=True))


@lawful("oracle", everywhere=True)
def test_a_lens_equals_its_oracle(lens, kind, site):
    trace = trace_of(kind, site)
    maps, literal = view(trace, lens), import_module(f"tests.oracles.{entry_name(type(lens))}")
    for label in maps.layers:
        expected = literal.oracle(trace, trace.layers.index(label), lens)
        result = maps.layer(label).double()
        assert (result - expected).norm() <= 1e-5 * expected.norm() + 1e-7
        torch.testing.assert_close(result, expected, atol=2e-6, rtol=1e-5)


@lawful("visibility")
def test_hidden_keys_have_no_weight(lens, kind, site):
    trace = trace_of(kind, site)
    maps = view(trace, lens)
    assert lens.scope == "stack" or maps.visible is trace.visible
    for seen, label in zip(maps.visible, maps.layers, strict=True):
        assert not maps.layer(label).masked_fill(seen[:, None], 0).any()


@lawful("padding")
def test_padding_does_not_change_the_maps(lens, kind, site):
    narrow, wide = trace_of(kind, site), trace_of(kind, site, pad_to=23)
    queries, keys = narrow.queries.real.shape[1], narrow.keys.real.shape[1]
    result = view(wide, lens).weights
    assert result.shape[-1] == 23
    assert_equal_maps(result[..., :queries, :keys], view(narrow, lens).weights)
    for name, table in view(narrow, lens).diagnostics.items():
        torch.testing.assert_close(table, view(wide, lens).diagnostics[name], atol=1e-5, rtol=1e-3)


@lawful("batch")
def test_single_examples_equal_a_batch(lens, kind, site):
    together = view(trace_of(kind, site), lens).weights
    for index in range(len(batch(kind))):
        alone = view(trace_of(kind, site, index), lens).weights
        queries, keys = alone.shape[-2:]
        assert_equal_maps(together[index : index + 1, ..., :queries, :keys], alone)


@lawful("stamp")
def test_maps_name_their_lens(lens, kind, site):
    assert view(trace_of(kind, site), lens).lens == to_spec(lens)
