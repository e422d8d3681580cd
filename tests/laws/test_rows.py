"""Laws of blocks of queries: what is computed from them is what whole maps give."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import headscope as hs
from headscope.core.batch import Batch
from headscope.core.catalog import statistics
from headscope.core.errors import DataWarning, InputError
from headscope.core.lens import view
from headscope.engine.blocks import try_blocks
from headscope.engine.capture import capture, make_request, prepare_inputs
from headscope.engine.load import load
from headscope.maps.row_wise import RowWise
from headscope.measuring.row_sums import RowSums
from headscope.measuring.settings import make_measure_settings
from tests.laws.test_lenses import LENSES, fits
from tests.laws.test_statistics import EVERY, add_tags, assert_same_values, required_lenses
from tests.models import KINDS, batch, network, sites, text, tiny, tokenizer
from tests.tiers import spread

PLACES = [("bert", "self"), ("llama", "self"), ("mistral", "self"), ("modernbert", "self"), ("gpt_oss", "self")]
PLACES += [("t5", "cross")]
ROW_WISE = [lens for lens in LENSES if lens.row_wise]
SUMMED = [statistic for statistic in EVERY if isinstance(statistic, RowWise)]
BYPASSING = ("deberta-v2", "mpnet", "gptj", "gpt_neo", "bloom", "xlnet")
"""Kinds whose modules compute whole maps by themselves."""

TEXTS = [text(13, seed=1), text(4, seed=2), text(19, seed=3)]


@cache
def trace_of(kind, site, dtype=None):
    model = tiny(kind) if dtype is None else load(network(kind).to(dtype), tokenizer=tokenizer())
    return capture(model, batch(kind), site=site, keep=("attention", "values", "output", "pads"))


def split(trace, layer, size, *, all_keys=False):
    """Yield blocks of queries of one layer, with the keys that they see, and where they are; the layer comes first."""
    label = trace.layers[layer]
    names = ("attention", "visible", "values", "context", "output")
    whole = replace(trace, layers=(label,), **{name: [getattr(trace, name)[layer]] for name in names})
    yield cut(whole, slice(0, 0), trace.keys.real.shape[1])
    queries = trace.queries.real.shape[1]
    for start in range(0, queries, size):
        rows = slice(start, min(start + size, queries))
        seen = whole.visible[0][:, rows].flatten(0, 1).any(0).nonzero()
        yield cut(whole, rows, int(seen[-1]) + 1 if len(seen) and not all_keys else trace.keys.real.shape[1])


def cut(trace, rows, end):
    return replace(
        trace,
        attention=[trace.attention[0][:, :, rows, :end]],
        visible=[trace.visible[0][:, rows, :end]],
        values=[trace.values[0][:, :, :end]],
        context=[trace.context[0][:, :, rows]],
        queries=trace.queries.take(range(rows.start, rows.stop)),
        keys=trace.keys.take(range(end)),
    )


def join_blocks(lens, trace, layer, size):
    """Return the maps of a layer from blocks of its queries."""
    first, *blocks = split(trace, layer, size, all_keys="pads" in lens.needs)
    compute = lens.start_rows(first)
    parts = [compute(block).weights[:, 0] for block in blocks]
    width = trace.keys.real.shape[1]
    return torch.cat([torch.nn.functional.pad(part, (0, width - part.shape[-1])) for part in parts], dim=2)


@pytest.mark.parametrize(("lens", "place", "size"), spread(ROW_WISE, PLACES, [1, 3, 100], where=fits))
def test_maps_from_blocks_are_the_rows_of_whole_maps(lens, place, size):
    kind, site = place
    trace = trace_of(kind, site)
    whole = view(trace, lens)
    for index, label in enumerate(whole.layers):
        torch.testing.assert_close(join_blocks(lens, trace, index, size), whole.layer(label), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("lens", "place", "dtype"), spread(ROW_WISE, PLACES[:2], [torch.float16, torch.bfloat16], where=fits)
)
def test_in_half_precision_maps_from_blocks_are_the_rows_of_whole_maps(lens, place, dtype):
    trace = trace_of(*place, dtype)
    whole = view(trace, lens)
    torch.testing.assert_close(join_blocks(lens, trace, 1, 4), whole.layer(1), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("statistic", "place", "lens"), spread(SUMMED, PLACES, ["effective", "norm:merge=true"]))
def test_sums_of_blocks_give_the_values_of_whole_maps(statistic, place, lens):
    kind, site = place
    trace = trace_of(kind, site)
    trace = replace(trace, examples=add_tags(Batch(trace.examples, {}, lens)).examples)
    maps = {("model", name): view(trace, name) for name in required_lenses(statistic, lens)}
    whole = statistic.values(Batch(trace.examples, maps, lens))
    settings = make_measure_settings(lens, [statistic])
    layers = []
    for index in range(len(trace.layers)):
        first, *blocks = split(trace, index, size=2 + 3 * index)
        sums = RowSums(settings, first, trace.queries)
        start = 0
        for block in blocks:
            rows = slice(start, start + block.queries.real.shape[1])
            sums.add(block, rows)
            start = rows.stop
        ((values, _),) = sums.finish().values.values()
        layers.append(values)
    joined = {name: torch.cat([layer[name] for layer in layers], dim=1) for name in layers[0]}
    assert_same_values(joined, whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("vit", *BYPASSING)])
def test_captured_rows_are_those_of_whole_maps(kind):
    for site in sites(kind):
        options, rows = {"site": site, "keep": ("attention", "values", "pads")}, [5, 2, -1]
        whole = capture(tiny(kind), batch(kind), **options)
        some = capture(tiny(kind), batch(kind), rows=rows, **options)
        assert some.queries.real.shape[1] == 3
        for name, axis in (("attention", 2), ("context", 2), ("visible", 1)):
            for all_rows, few in zip(getattr(whole, name), getattr(some, name), strict=True):
                chosen = all_rows.index_select(axis, torch.tensor(rows) % all_rows.shape[axis])
                torch.testing.assert_close(few, chosen, atol=1e-5, rtol=1e-5)  # two passes in float32
        assert [len(row) for row in some.queries.text] == some.queries.real.sum(-1).tolist()


@pytest.mark.parametrize("kind", BYPASSING)
def test_a_model_that_computes_whole_maps_is_not_read_in_blocks(kind):
    with pytest.raises(InputError, match=rf"type '{kind}' computes whole maps in .* cannot be read in blocks"):
        capture(tiny(kind), batch(kind), rows=[0])


MEASURED = ["entropy", "distance", "offsets", "special_tokens", "sink", "effective_share", "relative_change"]


@pytest.mark.parametrize(("kind", "block"), spread(["bert", "llama", "mistral", "modernbert"], [5, 1]))
def test_measuring_in_blocks_gives_what_whole_maps_give(kind, block):
    lenses = ["raw", "effective", "norm"] + ["effective:keys=padded"] * (kind == "bert")
    options = {"statistics": MEASURED, "lens": lenses, "progress": False, "rows": True, "pad_to": 25}
    whole = hs.measure(tiny(kind), TEXTS, **options)
    some = hs.measure(tiny(kind), TEXTS, block=block, **options)
    assert set(some.data_vars) == set(whole.data_vars)
    for name in whole.data_vars:
        np.testing.assert_allclose(some[name], whole[name], rtol=1e-4, atol=2e-5, err_msg=name)  # two passes


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_in_other_precisions_measuring_in_blocks_gives_what_whole_maps_give(dtype):
    model = load(network("llama").to(dtype), tokenizer=tokenizer())
    options = {"statistics": ["entropy", "effective_share"], "progress": False}
    whole, some = (hs.measure(model, TEXTS, **options, **block) for block in ({}, {"block": 4}))
    tolerance = 1e-7 if dtype == torch.float64 else 2e-2  # roundings of the model's own
    for name in ("entropy", "effective_share"):
        np.testing.assert_allclose(some[name], whole[name], rtol=tolerance, atol=tolerance, err_msg=name)


class _Largest(TorchDispatchMode):
    """Notes the largest tensor that is made."""

    def __init__(self):
        super().__init__()
        self.cells, self.where = 0, ""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, torch.Tensor) and tensor.numel():  # views and expanded tensors take no memory
                cells = tensor.untyped_storage().nbytes() // tensor.element_size()
                self.cells, self.where = max((self.cells, self.where), (cells, f"{function} {tuple(tensor.shape)}"))
        return result


@pytest.mark.parametrize("kind", ["bert", "llama", "mistral"])
def test_no_tensor_of_queries_and_keys_is_made(kind):
    model = load(network(kind, max_position_embeddings=256), tokenizer=tokenizer())
    long, options = [text(250)], {"statistics": MEASURED, "progress": False, "block": 10}
    hs.measure(model, [text(60)], **options)  # tries blocks on the first tokens
    with _Largest() as largest:
        hs.measure(model, long, **options)
    assert largest.cells < 0.75 * 250**2, largest.where


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "mistral", "modernbert", "gpt_oss", "bart"])
def test_a_model_that_passes_masks_on_gets_descriptions_of_them(kind):
    model = tiny(kind)
    inputs = prepare_inputs(model, TEXTS[:1], None, max_length=None, pad_to=None)
    assert not try_blocks(model, inputs, make_request(model)).whole_masks


def test_texts_whose_maps_do_not_fit_are_measured_in_blocks(monkeypatch):
    monkeypatch.setattr("headscope.measuring.job.max_cells", lambda *_, **__: 30)
    options = {"statistics": ["entropy"], "progress": False, "batch_size": 1}
    with pytest.warns(DataWarning, match=r"3 batches of texts of up to \d+ tokens are measured in blocks of queries"):
        some = hs.measure(tiny("bert"), TEXTS, **options)
    monkeypatch.undo()
    np.testing.assert_allclose(some["entropy"], hs.measure(tiny("bert"), TEXTS, **options)["entropy"], rtol=1e-5)


def test_what_needs_whole_maps_says_how_large_they_are(monkeypatch):
    monkeypatch.setattr("headscope.measuring.job.max_cells", lambda *_, **__: 30)
    monkeypatch.setattr("headscope.measuring.long_texts.free_memory", lambda _: 100)
    with pytest.raises(
        InputError, match=r"The lens 'rollout' needs whole maps. Those of all layers take 7.2 kB for a text of 15"
    ):
        hs.measure(tiny("bert"), TEXTS[:1], lens="rollout", statistics=["entropy"], progress=False)
    with pytest.raises(InputError, match="The statistic 'patterns' needs whole maps. Those of a layer take"):
        hs.measure(tiny("bert"), TEXTS[:1], lens="raw", statistics=["patterns"], progress=False)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"lens": "rollout"}, "the lens 'rollout' needs whole maps"),
        ({"statistics": ["row_distance"]}, "the statistic 'row_distance' needs whole maps"),
        ({"units": "words"}, "units='words' needs whole maps"),
        ({"edit": "zero_heads:heads=L0H0"}, "an edit needs whole maps"),
    ],
)
def test_blocks_of_what_needs_whole_maps_are_refused(options, why):
    options = {"statistics": ["entropy"], "lens": "raw", "progress": False, **options}
    with pytest.raises(InputError, match=why):
        hs.measure(tiny("bert"), TEXTS, block=2, **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rows": [99]}, "There is no row 99 here, only rows 0 to 14"),
        ({"rows": [0], "target": "predicted"}, "Leave out rows or target"),
        ({"rows": [0], "keep": "model_output"}, "Leave model_output out of keep"),
    ],
)
def test_rows_that_cannot_be_captured_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        capture(tiny("bert"), TEXTS[0], **options)


def test_a_trace_of_some_queries_refuses_what_needs_whole_maps():
    trace = capture(tiny("bert"), TEXTS[0], rows=[3, 4])
    assert "2 of its queries" in repr(trace)
    with pytest.raises(InputError, match="'rollout' needs whole maps, but this trace holds 2 of its queries"):
        view(trace, "rollout")
    maps = view(trace, "raw")
    with pytest.raises(InputError, match="'row_distance' needs whole maps, but these hold 2 of their queries"):
        statistics.make("row_distance").observe(Batch(maps.examples, {("model", "raw"): maps}, "raw"))


def test_an_edited_model_is_not_read_in_blocks():
    with (
        hs.edited(tiny("bert"), "zero_heads:heads=L0H0") as model,
        pytest.raises(InputError, match="Leave out the edit"),
    ):
        capture(model, TEXTS[0], rows=[0])


def test_a_bias_of_the_model_s_own_is_said_before_it_is_made(monkeypatch):
    monkeypatch.setattr("headscope.engine.blocks.LARGE_BYTES", 10)
    with pytest.warns(
        DataWarning, match=r"makes tensors of queries × keys of its own \(position_bias\): 8.85 kB for 16"
    ):
        capture(tiny("t5"), batch("t5"), site="encoder", rows=[0])
    monkeypatch.setattr("headscope.engine.blocks.free_memory", lambda _: 10)
    with pytest.raises(InputError, match="Give shorter texts: max_length"):
        capture(tiny("t5"), batch("t5"), site="encoder", rows=[0])


def test_the_positions_of_captured_rows_are_those_in_the_text():
    whole, some = (capture(tiny("llama"), TEXTS[0], **rows) for rows in ({}, {"rows": range(6, 10)}))
    offsets = statistics.make("offsets")
    maps = view(some, "raw")
    values = offsets.values(Batch(maps.examples, {("model", "raw"): maps}, "raw"))["offsets"]
    expected = torch.stack([layer[:, :, 6:10].diagonal(5, dim1=2, dim2=3).mean(-1) for layer in whole.attention], dim=1)
    torch.testing.assert_close(values[..., 1].float(), expected, atol=1e-6, rtol=1e-5)
