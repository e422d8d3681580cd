"""Laws that hold for every statistic and every variant of it."""

import io
import itertools
from contextlib import contextmanager
from dataclasses import MISSING, fields, replace
from functools import reduce
from operator import add
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from headscope.core.batch import Batch
from headscope.core.catalog import lenses, statistics
from headscope.core.errors import InputError
from headscope.core.spec import file_name, to_spec
from headscope.core.state import State
from headscope.maps.per_example import PerExample, make_state
from headscope.maps.rows import BLOCK_CELLS
from headscope.statistics import head_distance
from tests.batches import build_maps, capture_tiny
from tests.oracles.statistics import oracle

PLACES = [("bert", "self"), ("llama", "self"), ("modernbert", "self"), ("gpt_oss", "self"), ("t5", "cross")]
LENSES = ["raw", "effective", "norm:merge=true"]
WORDS = ["noun", "pron", "verb", "punct", "propn", "aux", "[CLS]", "[SEP]", "[MASK]", "[E]"]
OTHERS = {"smoothing": [0.0, 0.01], "reach": [0], "other": [lenses.make("raw")], "types": [("sep", "verb")]}
OTHERS |= {"classifier": ["rules", "both"]}
few = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def variants():
    """Every statistic as it is, with each of its parameters changed, and with all of them changed."""
    for kind in statistics:
        plain, hints, changes = kind(), get_type_hints(kind), {}
        for each in fields(kind):
            hint, usual = hints[each.name], getattr(plain, each.name)
            choices = get_args(hint) if get_origin(hint) is Literal else (False, True) if hint is bool else ()
            changes[each.name] = [other for other in choices or OTHERS.get(each.name, ()) if other != usual]
        yield plain
        yield from (kind(**{name: other}) for name, others in changes.items() for other in others)
        if len(changes) > 1:
            yield kind(**{name: others[-1] for name, others in changes.items() if others})


EVERY = list(variants())
DEFAULTS = [kind() for kind in statistics]


def each_of(entries):
    return pytest.mark.parametrize("statistic", entries, ids=to_spec)


@some.composite
def drawn(draw, *, examples=4):
    """What a batch is made of: weights per example, by role and lens, with any lengths and signs."""
    lengths = draw(some.lists(some.integers(1, 6), min_size=1, max_size=examples))
    rows = [draw(some.lists(some.sampled_from(WORDS), min_size=each, max_size=each)) for each in lengths]
    layers, heads = draw(some.integers(1, 2)), draw(some.integers(1, 3))
    random = torch.Generator().manual_seed(draw(some.integers(0, 2**31)))
    signed, ties, blank = draw(some.booleans()), draw(some.booleans()), draw(some.booleans())

    def weights(length, heads, signed):
        made = torch.randn(layers, heads, length, length, generator=random)
        made = made.mul(2).round().div(4) if ties else made
        made = made if signed else made.abs()
        return made * (torch.rand(layers, heads, length, 1, generator=random) > 0.3) if blank else made

    focus = "effective" if signed else "raw"
    merged = draw(some.booleans())
    parts = {
        ("model", focus): [weights(each, heads, signed) for each in lengths],
        ("model", "norm"): [weights(each, 1 if merged else heads, False) for each in lengths],
        ("against", focus): [weights(each, heads, signed) for each in lengths],
    }
    parts |= {
        ("model", lens): [weights(each, heads, lens == "effective") for each in lengths]
        for lens in ("raw", "effective")
        if lens != focus
    }
    return {"rows": rows, "parts": parts, "lens": focus, "causal": draw(some.booleans()), "merged": merged}


def made(drawn, which=None, **padding):
    """The batch of some of the drawn examples, in that order."""
    which = range(len(drawn["rows"])) if which is None else which
    rows = [drawn["rows"][place] for place in which]
    maps = {}
    for (role, lens), parts in drawn["parts"].items():
        options = {"signed": lens == "effective", "merged": drawn["merged"] and lens == "norm"}
        found = build_maps(
            [parts[each] for each in which], rows, lens=lens, causal=drawn["causal"], **options, **padding
        )
        names = [f"{place:03d}" for place in which]
        found = replace(found, examples=tuple(map(renamed, found.examples, names)))
        maps[role, lens] = found
    return Batch(maps["model", drawn["lens"]].examples, maps, drawn["lens"])


def renamed(example, name):
    return replace(example, id=name)


def observed(statistic, batch, *, rows=True):
    labels = {"layer": batch.focus.layers, "head": batch.focus.heads, **statistic.axes(batch)}
    return make_state(statistic, statistic.values(batch), [each.id for each in batch.examples], labels, rows=rows)


def assert_same_values(found, wanted, **tolerance):
    assert list(found) == list(wanted)
    for name in wanted:
        np.testing.assert_allclose(np.asarray(found[name]), np.asarray(wanted[name]), err_msg=name, **tolerance)


FLOAT32 = {"rtol": 1e-5, "atol": 2e-6}  # sums over a few float32 numbers
MODEL = {"rtol": 1e-3, "atol": 2e-5}  # two float32 forward passes in different batches


@each_of(EVERY)
def test_a_statistic_rebuilds_from_its_spec(statistic):
    assert statistics.make(to_spec(statistic)) == statistic


@each_of(EVERY)
@given(drawn())
@few
def test_a_statistic_equals_its_slow_literal_version(statistic, drawn):
    batch = made(drawn)
    assert_same_values(statistic.values(batch), oracle(statistic, batch), **FLOAT32)


@contextmanager
def block_size(cells):
    """Let statistics process this many cells at a time, wherever they cut maps into blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.maps.rows.BLOCK_CELLS", cells)
        patch.setattr("headscope.patterns.classify.classify.BLOCK_CELLS", cells)
        patch.setattr("headscope.patterns.classify.profiles.CACHE_CELLS", cells)
        patch.setitem(head_distance.CELLS, "cpu", cells)
        yield


@each_of(EVERY)
@given(drawn(), some.integers(1, 40))
@few
def test_in_blocks_of_any_size_a_statistic_equals_its_slow_literal_version(statistic, drawn, cells):
    batch = made(drawn)
    with block_size(cells):
        found = statistic.values(batch)
    assert_same_values(found, oracle(statistic, batch), **FLOAT32)


def large_batch():
    """Two texts whose maps have more cells than are processed at a time."""
    random, lengths = torch.Generator().manual_seed(0), (230, 150)
    rows = [["[CLS]", *itertools.islice(itertools.cycle(WORDS[:6]), length - 2), "[SEP]"] for length in lengths]
    keys = [("model", "effective"), ("model", "norm"), ("model", "raw"), ("against", "effective")]
    parts = {key: [torch.randn(1, 6, each, each, generator=random) for each in lengths] for key in keys}
    return made({"rows": rows, "parts": parts, "lens": "effective", "causal": False, "merged": False})


@each_of(EVERY)
def test_maps_larger_than_a_block_give_the_same_values(statistic):
    batch = large_batch()
    assert batch.focus.parts[0].numel() > 2 * BLOCK_CELLS
    found = statistic.values(batch)
    with block_size(2**40):
        whole = statistic.values(batch)
    assert_same_values(found, whole, **FLOAT32)


@each_of(EVERY)
@given(drawn(), some.randoms(use_true_random=False))
@few
def test_any_split_in_any_order_gives_the_same_answer(statistic, drawn, random):
    whole, order = observed(statistic, made(drawn)), list(range(len(drawn["rows"])))
    random.shuffle(order)
    cuts = sorted(random.randint(0, len(order)) for _ in range(2))
    parts = [order[: cuts[0]], order[cuts[0] : cuts[1]], order[cuts[1] :]]
    added = reduce(add, [observed(statistic, made(drawn, part)) for part in parts if part])
    wanted, found = statistic.finish(whole), statistic.finish(added)
    assert list(found.coords["example"].values) == list(wanted.coords["example"].values)
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=2e-6, err_msg=name)
        if name.endswith("_n"):
            assert found[name].equals(wanted[name])


@each_of(EVERY)
@given(drawn(), some.integers(0, 3), some.booleans())
@few
def test_wider_padding_on_either_side_changes_nothing(statistic, drawn, more, left):
    width = max(map(len, drawn["rows"])) + more
    narrow, wide = made(drawn), made(drawn, width=width, left=left)
    assert_same_values(statistic.values(wide), statistic.values(narrow), **FLOAT32)


@each_of(EVERY)
@given(drawn())
@few
def test_one_by_one_equals_together(statistic, drawn):
    together = statistic.values(made(drawn))
    for place in range(len(drawn["rows"])):
        alone = statistic.values(made(drawn, [place]))
        assert_same_values({name: each[place : place + 1] for name, each in together.items()}, alone, **FLOAT32)


@each_of(DEFAULTS)
@given(drawn())
@few
def test_a_state_comes_back_from_disk_as_it_was(statistic, drawn):
    state, file = observed(statistic, made(drawn)), io.BytesIO()
    np.savez(file, **state.arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        back = State.of_arrays(dict(arrays))
    assert statistic.finish(back).identical(statistic.finish(state))
    assert (back.spec, list(back.labels)) == (state.spec, list(state.labels))


@each_of(EVERY)
@given(drawn())
@few
def test_a_statistic_leaves_the_maps_unchanged(statistic, drawn):
    batch = made(drawn)
    before = [part.clone() for maps in batch.maps.values() for part in (*maps.parts, *maps.visible, maps.queries.real)]
    statistic.values(batch)
    after = [part for maps in batch.maps.values() for part in (*maps.parts, *maps.visible, maps.queries.real)]
    assert all(torch.equal(old, new) for old, new in zip(before, after, strict=True))


@each_of(DEFAULTS)
@given(drawn())
@few
def test_nothing_seen_is_nan_with_a_count_of_0(statistic, drawn):
    batch = made(drawn)
    labels = {"layer": batch.focus.layers, "head": batch.focus.heads, **statistic.axes(batch)}
    nothing = {name: each[:0] for name, each in statistic.values(batch).items()}
    result = statistic.finish(make_state(statistic, nothing, [], labels))
    for name in nothing:
        assert result[name].isnull().all()
        assert (result[f"{name}_n"] == 0).all()


@each_of(EVERY)
@given(drawn())
@few
def test_a_value_that_is_missing_is_not_counted(statistic, drawn):
    batch = made(drawn)
    result = statistic.finish(statistic.observe(batch))
    for name, each in statistic.values(batch).items():
        np.testing.assert_array_equal(result[f"{name}_n"], (~each.isnan()).sum(0))


@pytest.mark.parametrize("kind", [kind for kind in statistics if fields(kind)], ids=file_name)
@given(drawn())
@few
def test_different_parameters_do_not_add(kind, drawn):
    batch, alike = made(drawn), [each for each in EVERY if type(each) is kind]
    first = observed(alike[0], batch)
    for other in alike[1:]:
        with pytest.raises(InputError, match="Cannot add these states: one is of"):
            first + observed(other, batch)


@each_of(DEFAULTS)
def test_the_first_variable_has_the_statistics_name_and_others_begin_with_it(statistic):
    assert isinstance(statistic, PerExample)
    batch = capture_tiny("bert", "self", ["raw", "effective", "norm"], "raw")
    name = file_name(type(statistic))
    found = statistic.values(tagged(batch))
    assert next(iter(found)) == name
    assert all(each == name or each.startswith(f"{name}_") for each in found)


def tagged(batch):
    """The examples with a tag for each word of their text, which tiny models take as tokens."""
    tags = itertools.cycle(["NOUN", "VERB", "PRON", "PUNCT", "AUX", "PROPN"])
    examples = tuple(
        replace(each, columns={"tags": tuple(itertools.islice(tags, len(each.text.split())))})
        for each in batch.examples
    )
    return replace(batch, examples=examples)


def through(statistic, lens):
    """Every lens that must have been looked through."""
    return list(dict.fromkeys([lens, *map(to_spec, statistic.lenses(lenses.make(lens)))]))


@each_of(DEFAULTS)
@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize(("kind", "site"), PLACES)
def test_in_real_models_a_statistic_equals_its_slow_literal_version(statistic, lens, kind, site):
    batch = tagged(capture_tiny(kind, site, through(statistic, lens), lens))
    found = statistic.values(batch)
    assert_same_values(found, oracle(statistic, batch), **FLOAT32)
    labels = {"layer": batch.focus.layers, "head": batch.focus.heads, **statistic.axes(batch)}
    sizes = (len(batch.examples), *map(len, labels.values()))
    assert all(each.shape == sizes for each in found.values())


@each_of(DEFAULTS)
@pytest.mark.parametrize(("kind", "site"), PLACES)
def test_in_real_models_wider_padding_changes_nothing(statistic, kind, site):
    names = through(statistic, "effective")
    narrow, wide = (tagged(capture_tiny(kind, site, names, "effective", **each)) for each in ({}, {"pad_to": 23}))
    assert wide.focus.keys.real.shape[1] == 23
    assert_same_values(statistic.values(wide), statistic.values(narrow), **MODEL)


@each_of([each for each in DEFAULTS if each.scope == "layer"])
def test_layers_one_by_one_give_what_the_stack_gives(statistic):
    batch = tagged(capture_tiny("bert", "self", through(statistic, "effective"), "effective"))
    alone = [
        statistic.values(replace(batch, maps={key: only(maps, place) for key, maps in batch.maps.items()}))
        for place in range(len(batch.focus.layers))
    ]
    joined = {name: torch.cat([each[name] for each in alone], dim=1) for name in alone[0]}
    assert_same_values(joined, statistic.values(batch), rtol=1e-6, atol=1e-7)


def only(maps, place):
    """One layer of some maps, with the weights in full."""
    label = maps.layers[place]
    return replace(
        maps, parts=[maps.layer(label)], layers=(label,), visible=[maps.visible[place]],
        diagnostics={name: each[:, place : place + 1] for name, each in maps.diagnostics.items()},
    )  # fmt: skip


def test_every_parameter_has_a_default():
    assert all(
        each.default is not MISSING or each.default_factory is not MISSING
        for kind in statistics for each in fields(kind)
    )  # fmt: skip
