"""Laws that every statistic obeys with any parameters."""

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
from hypothesis import strategies as st

from headscope.core.batch import Batch
from headscope.core.catalog import lenses, statistics
from headscope.core.errors import InputError
from headscope.core.spec import entry_name, to_spec
from headscope.core.state import State
from headscope.maps import divergences
from headscope.maps.per_example import PerExample, make_state
from headscope.maps.rows import BLOCK_CELLS
from tests.batches import build_maps, capture_tiny, mark_words, pair_words
from tests.oracles.statistics import oracle
from tests.tiers import spread

PLACES = [("bert", "self"), ("llama", "self"), ("modernbert", "self"), ("gpt_oss", "self"), ("t5", "cross")]
LENSES = ["raw", "effective", "norm:merge=true"]
WORDS = ["noun", "pron", "verb", "punct", "propn", "aux", ".", "[CLS]", "[SEP]", "[MASK]", "[E]"]
OTHERS = {
    "smoothing": [0.0, 0.01],
    "reach": [0],
    "other": [lenses.make("raw")],
    "types": [("sep", "period_comma", "other_text", "word", "verb")],
}
OTHERS |= {"threshold": [0.5]}
OTHERS |= {"classifier": ["rules", "both"], "roles": [("sep", "cls")], "names": [("nsubj", "det", "all")]}
few = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def variants():
    """Yield every statistic with its defaults, with each parameter changed, and with all of them changed."""
    for kind in statistics:
        plain, hints, changes = kind(), get_type_hints(kind), {}
        for name in (field.name for field in fields(kind)):
            hint, default = hints[name], getattr(plain, name)
            choices = get_args(hint) if get_origin(hint) is Literal else (False, True) if hint is bool else ()
            changes[name] = [other for other in choices or OTHERS.get(name, ()) if other != default]
        yield plain
        yield from (kind(**{name: other}) for name, others in changes.items() for other in others)
        if len(changes) > 1:
            yield kind(**{name: others[-1] for name, others in changes.items() if others})


EVERY = list(variants())
DEFAULTS = [kind() for kind in statistics]


def fits(statistic, place, *_):
    return all(place[1] not in lens.breaks for lens in statistic.lenses(lenses.make("raw")))


IN_BERT = [each for each in DEFAULTS if fits(each, ("bert", "self"))]


def real(*lists, names=()):
    """Test the statistics in tiny models: each in one in turn, the others in `make soak`."""
    cases = []
    for case in spread(DEFAULTS, PLACES, *lists, where=fits):
        statistic, place, *others = case.values
        name = " ".join([to_spec(statistic), *place, *others])
        cases.append(pytest.param(statistic, *place, *others, id=name, marks=case.marks))
    return pytest.mark.parametrize(("statistic", "kind", "site", *names), cases)


def parametrize(entries):
    return pytest.mark.parametrize("statistic", entries, ids=to_spec)


@st.composite
def samples(draw, *, examples=4):
    """Draw the weights of a batch per example, by role and lens, of any length and sign."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=examples))
    rows = [draw(st.lists(st.sampled_from(WORDS), min_size=length, max_size=length)) for length in lengths]
    layers, heads = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    signed, ties, blank = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())

    def weights(length, heads, signed):
        values = torch.randn(layers, heads, length, length, generator=random)
        values = values.mul(2).round().div(4) if ties else values
        values = values if signed else values.abs()
        return values * (torch.rand(layers, heads, length, 1, generator=random) > 0.3) if blank else values

    focus = "effective" if signed else "raw"
    merged = draw(st.booleans())
    parts = {
        ("model", focus): [weights(length, heads, signed) for length in lengths],
        ("model", "norm"): [weights(length, 1 if merged else heads, False) for length in lengths],
        ("model", "norm:residual=true"): [weights(length, 1, False) for length in lengths],
        ("model", "logit:of=keys"): [weights(length, heads, False) for length in lengths],
        ("against", focus): [weights(length, heads, signed) for length in lengths],
    }
    parts |= {
        ("model", lens): [weights(length, heads, lens == "effective") for length in lengths]
        for lens in ("raw", "effective")
        if lens != focus
    }
    return {"rows": rows, "parts": parts, "lens": focus, "causal": draw(st.booleans()), "merged": merged}


def build_batch(sample, indices=None, **padding):
    """Build the batch of the selected examples, in that order."""
    indices = range(len(sample["rows"])) if indices is None else indices
    rows = [sample["rows"][index] for index in indices]
    maps = {}
    for (role, lens), parts in sample["parts"].items():
        options = {"signed": lens == "effective", "merged": (sample["merged"] and lens == "norm") or "residual" in lens}
        weights = [parts[index] for index in indices]
        stack = build_maps(weights, rows, lens=lens, causal=sample["causal"], **options, **padding)
        examples = zip(stack.examples, indices, strict=True)
        maps[role, lens] = replace(stack, examples=tuple(replace(each, id=f"{index:03d}") for each, index in examples))
    return Batch(maps["model", sample["lens"]].examples, maps, sample["lens"])


def make_rows_state(statistic, batch, *, rows=True):
    labels = {"layer": batch.focus.layers, "head": batch.focus.heads, **statistic.axes(batch)}
    return make_state(statistic, statistic.values(batch), [example.id for example in batch.examples], labels, rows=rows)


def assert_same_values(values, expected, **tolerance):
    assert list(values) == list(expected)
    for name in expected:
        np.testing.assert_allclose(np.asarray(values[name]), np.asarray(expected[name]), err_msg=name, **tolerance)


FLOAT32 = {"rtol": 1e-5, "atol": 2e-6}  # sums over a few float32 numbers
MODEL = {"rtol": 1e-3, "atol": 2e-5}  # two float32 forward passes in different batches


@parametrize(EVERY)
def test_a_statistic_is_rebuilt_from_its_spec(statistic):
    assert statistics.make(to_spec(statistic)) == statistic


@parametrize(EVERY)
@given(samples())
@few
def test_a_statistic_equals_its_slow_literal_version(statistic, sample):
    batch = build_batch(sample)
    assert_same_values(statistic.values(batch), oracle(statistic, batch), **FLOAT32)


@contextmanager
def block_size(cells):
    """Let statistics process this many cells at a time, wherever they cut maps into blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.maps.rows.BLOCK_CELLS", cells)
        patch.setattr("headscope.patterns.classify.classify.BLOCK_CELLS", cells)
        patch.setattr("headscope.patterns.classify.profiles.CACHE_CELLS", cells)
        patch.setitem(divergences.CELLS, "cpu", cells)
        patch.setattr(divergences, "_has_compiler", lambda: False)  # compiled code has no blocks
        yield


@parametrize(EVERY)
@given(samples(), st.integers(1, 40))
@few
def test_in_blocks_of_any_size_a_statistic_equals_its_slow_literal_version(statistic, sample, cells):
    batch = build_batch(sample)
    with block_size(cells):
        values = statistic.values(batch)
    assert_same_values(values, oracle(statistic, batch), **FLOAT32)


def large_batch():
    """Two texts whose maps have more cells than are processed at a time."""
    random, lengths = torch.Generator().manual_seed(0), (230, 150)
    rows = [["[CLS]", *itertools.islice(itertools.cycle(WORDS[:6]), length - 2), "[SEP]"] for length in lengths]
    keys = [("model", "effective"), ("model", "norm"), ("model", "raw"), ("against", "effective")]
    parts = {key: [torch.randn(1, 6, each, each, generator=random) for each in lengths] for key in keys}
    parts["model", "norm:residual=true"] = [part[:, :1] for part in parts["model", "norm"]]
    parts["model", "logit:of=keys"] = parts["model", "norm"]
    return build_batch({"rows": rows, "parts": parts, "lens": "effective", "causal": False, "merged": False})


@parametrize(EVERY)
def test_maps_larger_than_a_block_give_the_same_values(statistic):
    batch = large_batch()
    assert batch.focus.parts[0].numel() > 2 * BLOCK_CELLS
    values = statistic.values(batch)
    with block_size(2**40):
        whole = statistic.values(batch)
    assert_same_values(values, whole, **FLOAT32)


@parametrize(EVERY)
@given(samples(), st.randoms(use_true_random=False))
@few
def test_states_of_any_split_add_up_to_the_whole(statistic, sample, random):
    whole, order = make_rows_state(statistic, build_batch(sample)), list(range(len(sample["rows"])))
    random.shuffle(order)
    cuts = sorted(random.randint(0, len(order)) for _ in range(2))
    parts = [order[: cuts[0]], order[cuts[0] : cuts[1]], order[cuts[1] :]]
    added = reduce(add, [make_rows_state(statistic, build_batch(sample, part)) for part in parts if part])
    expected, values = statistic.finish(whole), statistic.finish(added)
    assert list(values.coords["example"].values) == list(expected.coords["example"].values)
    for name in expected:
        np.testing.assert_allclose(values[name], expected[name], rtol=1e-5, atol=2e-6, err_msg=name)
        if name.endswith("_n"):
            assert values[name].equals(expected[name])


@parametrize(EVERY)
@given(samples(), st.integers(0, 3), st.booleans())
@few
def test_wider_padding_on_either_side_changes_nothing(statistic, sample, more, left):
    width = max(map(len, sample["rows"])) + more
    narrow, wide = build_batch(sample), build_batch(sample, width=width, left=left)
    assert_same_values(statistic.values(wide), statistic.values(narrow), **FLOAT32)


@parametrize(EVERY)
@given(samples())
@few
def test_single_examples_have_the_values_of_the_batch(statistic, sample):
    together = statistic.values(build_batch(sample))
    for place in range(len(sample["rows"])):
        alone = statistic.values(build_batch(sample, [place]))
        assert_same_values({name: each[place : place + 1] for name, each in together.items()}, alone, **FLOAT32)


@parametrize(DEFAULTS)
@given(samples())
@few
def test_a_state_is_read_as_it_was_written(statistic, sample):
    state, file = make_rows_state(statistic, build_batch(sample)), io.BytesIO()
    np.savez(file, **state.arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        back = State.from_arrays(dict(arrays))
    assert statistic.finish(back).identical(statistic.finish(state))
    assert (back.spec, list(back.labels)) == (state.spec, list(state.labels))


@parametrize(EVERY)
@given(samples())
@few
def test_a_statistic_leaves_the_maps_unchanged(statistic, sample):
    batch = build_batch(sample)
    before = [part.clone() for maps in batch.maps.values() for part in (*maps.parts, *maps.visible, maps.queries.real)]
    statistic.values(batch)
    after = [part for maps in batch.maps.values() for part in (*maps.parts, *maps.visible, maps.queries.real)]
    assert all(torch.equal(old, new) for old, new in zip(before, after, strict=True))


@parametrize(DEFAULTS)
@given(samples())
@few
def test_no_example_gives_nan_with_a_count_of_0(statistic, sample):
    batch = build_batch(sample)
    labels = {"layer": batch.focus.layers, "head": batch.focus.heads, **statistic.axes(batch)}
    nothing = {name: each[:0] for name, each in statistic.values(batch).items()}
    result = statistic.finish(make_state(statistic, nothing, [], labels))
    for name in nothing:
        assert result[name].isnull().all()
        assert (result[f"{name}_n"] == 0).all()


@parametrize(EVERY)
@given(samples())
@few
def test_missing_values_are_not_counted(statistic, sample):
    batch = build_batch(sample)
    result = statistic.finish(statistic.observe(batch))
    for name, each in statistic.values(batch).items():
        np.testing.assert_array_equal(result[f"{name}_n"], (~each.isnan()).sum(0))


@pytest.mark.parametrize("kind", [kind for kind in statistics if fields(kind)], ids=entry_name)
@given(samples())
@few
def test_states_of_different_parameters_do_not_add(kind, sample):
    batch, alike = build_batch(sample), [each for each in EVERY if type(each) is kind]
    first = make_rows_state(alike[0], batch)
    for other in alike[1:]:
        with pytest.raises(InputError, match="Cannot add these states: one is of"):
            first + make_rows_state(other, batch)


@parametrize(IN_BERT)
def test_the_first_variable_has_the_statistics_name_and_others_begin_with_it(statistic):
    assert isinstance(statistic, PerExample)
    batch = capture_tiny("bert", "self", ["raw", "effective", "norm", "norm:residual=true"], "raw")
    name = entry_name(type(statistic))
    values = statistic.values(add_tags(batch))
    assert next(iter(values)) == name
    assert all(each == name or each.startswith(f"{name}_") for each in values)


def add_tags(batch):
    """Add a tag for each word of the examples, which tiny models use as tokens, and related pairs of them."""
    tags = itertools.cycle(["NOUN", "VERB", "PRON", "PUNCT", "AUX", "PROPN"])
    counts = [len(each.text.split()) for each in batch.examples]
    examples = []
    for each, count in zip(batch.examples, counts, strict=True):
        columns = {"tags": tuple(itertools.islice(tags, count)), "word_pairs": pair_words(count)}
        examples.append(replace(each, columns={**columns, "marked": mark_words(count)}))
    return replace(batch, examples=tuple(examples))


def required_lenses(statistic, lens):
    """Return the measured lens and those that a statistic needs."""
    return list(dict.fromkeys([lens, *map(to_spec, statistic.lenses(lenses.make(lens)))]))


@real(LENSES, names=["lens"])
def test_in_real_models_a_statistic_equals_its_slow_literal_version(statistic, kind, site, lens):
    batch = add_tags(capture_tiny(kind, site, required_lenses(statistic, lens), lens))
    values = statistic.values(batch)
    assert_same_values(values, oracle(statistic, batch), **FLOAT32)
    labels = {"layer": batch.focus.layers, "head": batch.focus.heads, **statistic.axes(batch)}
    sizes = (len(batch.examples), *map(len, labels.values()))
    assert all(each.shape == sizes for each in values.values())


@real()
def test_in_real_models_wider_padding_changes_nothing(statistic, kind, site):
    names = required_lenses(statistic, "effective")
    narrow, wide = (add_tags(capture_tiny(kind, site, names, "effective", **each)) for each in ({}, {"pad_to": 23}))
    assert wide.focus.keys.real.shape[1] == 23
    assert_same_values(statistic.values(wide), statistic.values(narrow), **MODEL)


@parametrize([each for each in IN_BERT if each.scope == "layer"])
def test_single_layers_have_the_values_of_the_stack(statistic):
    batch = add_tags(capture_tiny("bert", "self", required_lenses(statistic, "effective"), "effective"))
    alone = [
        statistic.values(replace(batch, maps={key: select_layer(maps, index) for key, maps in batch.maps.items()}))
        for index in range(len(batch.focus.layers))
    ]
    joined = {name: torch.cat([each[name] for each in alone], dim=1) for name in alone[0]}
    assert_same_values(joined, statistic.values(batch), rtol=1e-6, atol=1e-7)


def select_layer(maps, index):
    """Return the maps of one layer, with the weights in full."""
    label = maps.layers[index]
    return replace(
        maps,
        parts=[maps.layer(label)],
        layers=(label,),
        visible=[maps.visible[index]],
        diagnostics={name: each[:, index : index + 1] for name, each in maps.diagnostics.items()},
    )


def test_every_parameter_has_a_default():
    assert all(
        each.default is not MISSING or each.default_factory is not MISSING
        for kind in statistics
        for each in fields(kind)
    )
