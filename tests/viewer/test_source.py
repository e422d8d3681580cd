"""What the viewer is sent: a header and blocks, of maps and of results of any kind."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from PIL import Image
from transformers import GPT2LMHeadModel, ViTImageProcessorPil

import headscope as hs
from headscope.core.errors import InputError, UnknownName
from headscope.plotting.scales import find_quantile
from headscope.viewer import long_input
from headscope.viewer.encode import decode_weights
from headscope.viewer.long_input import open_long_input
from headscope.viewer.source import make_source
from tests.laws.test_kinds import MAKE
from tests.models import network, tiny

TEXT = "the cat sat on a mat and then it slept because it was tired"
PAIR = "the dog ran fast"


@pytest.fixture(scope="module")
def trace():
    return hs.capture(tiny("bert"), TEXT)


@pytest.fixture(scope="module")
def maps(trace):
    return [hs.view(trace, name) for name in ("raw", "effective", "norm", "rollout")]


def read_map(source, sheet, lens, layer, head):
    """Read a map as the browser does."""
    facts = source.header()["sheets"][sheet]
    lens_facts = facts["lenses"][lens]
    content = source.block(f"{sheet}/{lens}/map/{layer}/{head}")
    scale = lens_facts["scales"][layer][head]
    weights = decode_weights(content, lens_facts["codec"], scale, signed=lens_facts["signed"])
    keys = facts["keys"] or facts["queries"]
    return weights.reshape(len(facts["queries"]["text"]), len(keys["text"]))


@pytest.mark.parametrize(("codec", "tolerance"), [("float32", 1e-7), ("float16", 5e-4), ("sqrt8", 0.008)])
def test_the_browser_reads_the_weights_of_every_head(maps, codec, tolerance):
    source = make_source(maps, codec=codec)
    for index, item in enumerate(maps):
        for layer in range(len(item.layers)):
            for head in range(len(item.heads)):
                expected = item.layer(layer)[0, head].numpy()
                shown = read_map(source, 0, index, layer, head)
                assert np.abs(shown - expected).max() <= tolerance * max(1, np.abs(expected).max())


def test_the_header_is_json_and_holds_no_weights(maps):
    header = make_source(maps).header()
    text = json.dumps(header, allow_nan=False)
    assert len(text) < 30_000
    sheet = header["sheets"][0]
    assert [lens["name"] for lens in sheet["lenses"]] == ["raw", "effective", "norm", "rollout"]
    assert [lens["merged"] for lens in sheet["lenses"]] == [False, False, False, True]
    assert sheet["lenses"][3]["graph"] == "edges"
    assert sheet["queries"]["text"][:3] == ["[CLS]", "the", "cat"]
    assert sheet["queries"]["special"] == [0, len(sheet["queries"]["text"]) - 1]
    assert sheet["keys"] is None
    assert sheet["visible"] == "all"


def test_the_colors_end_where_those_of_the_figures_do(maps):
    header = make_source(maps).header()
    for item, lens in zip(maps, header["sheets"][0]["lenses"], strict=True):
        assert lens["limit"] == pytest.approx(find_quantile(item.weights[0].numpy())[1], rel=1e-6)


def test_edges_of_rollout_are_sent_by_layer(maps):
    content = make_source(maps).block("0/3/graph/1")
    edges = decode_weights(content, "float16", None, signed=False)
    np.testing.assert_allclose(edges, maps[3].graph.layers[1][0, 0].numpy().ravel(), atol=5e-4)


def test_numbers_by_head_are_those_of_the_diagnostics_and_statistics(maps, trace):
    scalars = {(s["name"], s["lens"]): s for s in make_source(maps).header()["sheets"][0]["scalars"]}
    shares = np.array(scalars["share", "effective"]["values"])
    np.testing.assert_allclose(shares, maps[1].diagnostics["share"][0].numpy(), rtol=1e-6)
    weights = maps[0].weights[0].double()
    entropy = -(weights * weights.log()).sum(-1).mean(-1)
    np.testing.assert_allclose(scalars["entropy", "raw"]["values"], entropy.numpy(), rtol=1e-5)


def test_padding_is_cut_away_and_examples_are_chosen():
    model = tiny("bert")
    trace = hs.capture(model, [PAIR, TEXT])
    source = make_source(hs.view(trace, "raw"), codec="float32", example=0)
    alone = hs.view(hs.capture(model, PAIR), "raw")
    np.testing.assert_allclose(read_map(source, 0, 0, 1, 2), alone.layer(1)[0, 2].numpy(), atol=1e-6)
    longer = make_source(hs.view(trace, "raw"), example=1).header()["sheets"][0]
    assert len(longer["queries"]["text"]) > len(alone.keys.text[0])


def test_a_causal_mask_is_named_and_a_window_is_sent():
    causal = make_source(hs.view(hs.capture(tiny("llama"), TEXT), "raw")).header()["sheets"][0]
    assert causal["visible"] == "causal"
    trace = hs.capture(tiny("mistral"), TEXT)
    source = make_source(hs.view(trace, "raw"))
    assert source.header()["sheets"][0]["visible"] == "blocks"
    mask = np.frombuffer(source.block("0/visible/1"), np.uint8).reshape(trace.visible[1][0].shape)
    np.testing.assert_array_equal(mask, trace.visible[1][0].numpy())


def test_all_sites_of_one_input_are_sheets():
    model = tiny("t5")
    traces = [hs.capture(model, TEXT, PAIR, site=site) for site in ("encoder", "decoder", "cross")]
    source = make_source([hs.view(trace, "raw") for trace in traces], codec="float32")
    sheets = source.header()["sheets"]
    assert [sheet["site"] for sheet in sheets] == ["encoder", "decoder", "cross"]
    assert sheets[2]["keys"]["text"] == sheets[0]["queries"]["text"]
    np.testing.assert_allclose(read_map(source, 2, 0, 1, 3), traces[2].attention[1][0, 3].numpy(), atol=1e-6)


def test_two_models_are_two_sheets_with_the_cosine_of_every_head(trace):
    other = hs.capture(tiny("electra"), TEXT)
    source = make_source({"first": hs.view(trace, "raw"), "second": hs.view(other, "raw")})
    header = source.header()
    assert [sheet["model"] for sheet in header["sheets"]] == ["first", "second"]
    (comparison,) = header["comparisons"]
    one, two = trace.attention[1][0, 2].flatten(), other.attention[1][0, 2].flatten()
    assert comparison["values"][1][2] == pytest.approx(float(torch.cosine_similarity(one, two, dim=0)), rel=1e-5)


def test_models_on_other_tokens_are_not_compared(trace):
    other = hs.capture(tiny("bert"), PAIR)
    assert make_source({"a": hs.view(trace, "raw"), "b": hs.view(other, "raw")}).header()["comparisons"] == []


def test_a_trace_is_shown_through_the_lenses_that_it_can_be(trace):
    names = [lens["name"] for lens in make_source(trace).header()["sheets"][0]["lenses"]]
    assert names == ["raw", "effective", "norm"]
    bare = hs.capture(tiny("bert"), TEXT, keep=("attention",))
    assert [lens["name"] for lens in make_source(bare).header()["sheets"][0]["lenses"]] == ["raw"]


def test_a_saved_file_shows_the_same_maps(maps, tmp_path):
    data = hs.open_result(hs.save(maps[:2], tmp_path / "maps.nc"))
    source, direct = make_source(data, codec="float32"), make_source(maps[:2], codec="float32")
    for lens in (0, 1):
        np.testing.assert_allclose(read_map(source, 0, lens, 1, 2), read_map(direct, 0, lens, 1, 2), atol=1e-7)
    assert source.header()["sheets"][0]["queries"] == direct.header()["sheets"][0]["queries"]


def test_a_picture_is_sent_with_the_place_of_every_patch():
    processor = ViTImageProcessorPil(size={"height": 12, "width": 12})
    pixels = np.random.default_rng(0).integers(0, 255, (12, 12, 3), dtype=np.uint8)
    trace = hs.capture(hs.load(network("vit"), processor=processor), Image.fromarray(pixels))
    source = make_source(hs.view(trace, "raw"))
    picture = source.header()["sheets"][0]["picture"]
    assert (picture["rows"], picture["columns"]) == (3, 3)
    assert picture["keyRow"][:3] == [-1, 0, 0]
    assert picture["keyColumn"][1:4] == [0, 1, 2]
    assert len(source.block("0/picture")) == 3 * picture["width"] * picture["height"]


@pytest.fixture(scope="module")
def measured():
    return hs.measure(
        tiny("bert"), [TEXT, PAIR, "it was tired"], statistics=["entropy", "patterns"], lens=["raw", "effective"],
        progress=False,
    )  # fmt: skip


def test_a_measurement_has_numbers_with_intervals_and_its_tables(measured):
    source = make_source(measured)
    header = source.header()
    (sheet,) = header["sheets"]
    assert sheet["lenses"] == []
    scalar = next(s for s in sheet["scalars"] if (s["name"], s["lens"]) == ("entropy", "raw"))
    assert scalar["n"] == "n = 3"
    for key, name in (("values", "entropy"), ("low", "entropy_low"), ("high", "entropy_high")):
        np.testing.assert_allclose(scalar[key], measured[name].sel(lens="raw").isel(site=0).values, rtol=1e-6)
    classes = next(s for s in sheet["scalars"] if s["classes"])
    assert "vertical" in classes["classes"]
    assert header["result"]["kind"] == "measurement"
    assert {"entropy"} <= {table["name"] for table in header["result"]["tables"]}
    assert source.block(header["result"]["figures"][0]["block"]).startswith(b"<?xml")


def test_measured_numbers_join_the_maps_of_the_same_heads(maps, measured):
    (sheet,) = make_source([*maps[:2], measured]).header()["sheets"]
    assert any(s["name"] == "entropy" and s["n"] == "n = 3" for s in sheet["scalars"])


def test_measured_numbers_of_another_model_have_a_sheet_of_their_own(maps, measured):
    other = hs.view(hs.capture(tiny("roberta"), TEXT), "raw")
    assert (other.layers, other.heads) == (maps[0].layers, maps[0].heads)
    sheets = make_source([other, measured]).header()["sheets"]
    assert [sheet["model"] for sheet in sheets] == ["RobertaModel", "BertModel"]
    assert all(scalar["n"] is None for scalar in sheets[0]["scalars"])


def test_measured_special_tokens_are_saved_beside_maps(maps, tmp_path):
    """Their axis `source` is no model that could be described."""
    measured = hs.measure(tiny("bert"), [TEXT, PAIR], statistics="special_tokens", progress=False)
    assert hs.save([maps[0], measured], tmp_path / "page.html").is_file()


def test_a_truncated_text_is_said_and_its_lines_make_the_same_maps():
    with pytest.warns(hs.DataWarning, match="truncated"):
        short = hs.capture(tiny("bert"), TEXT, max_length=6)
    header = make_source(short).header()
    assert header["messages"] == ["The text was truncated: it has 16 tokens, of which the model read 6."]
    assert f"hs.capture(model, {TEXT!r}, max_length=6)" in header["sheets"][0]["python"]
    assert make_source(hs.capture(tiny("bert"), TEXT, PAIR)).header()["messages"] == []


def test_the_example_that_is_shown_is_said():
    source = make_source(hs.view(hs.capture(tiny("bert"), [TEXT, PAIR]), "raw"), example=1)
    (message,) = source.header()["messages"]
    assert message.startswith("These maps are of 2 examples; the one at position 1 is shown.")


def test_lines_of_edited_pruned_and_averaged_maps_say_so():
    model = tiny("bert")
    with hs.edited(model, "zero_heads:heads=L0H1") as edited:
        lines = make_source(hs.view(hs.capture(edited, TEXT), "raw")).header()["sheets"][0]["python"]
    assert "with hs.edited(model, 'zero_heads:heads=L0H1') as edited:\n    trace = hs.capture(edited, " in lines
    pruned = make_source(hs.view(hs.capture(hs.prune(model, "L0H1"), TEXT), "raw").mean("head"))
    lines = pruned.header()["sheets"][0]["python"]
    assert "# network: the BertModel without L0H1 that is shown" in lines
    assert "hs.view(trace, 'raw').mean('head')" in lines
    named = make_source({"base": hs.view(hs.capture(model, TEXT), "raw")}).header()["sheets"][0]["python"]
    assert "# network: the BertModel of 'base'" in named


def test_lines_name_the_target_and_generated_tokens():
    model = hs.load(GPT2LMHeadModel(network("gpt2").config).eval(), tokenizer=tiny("gpt2").tokenizer)
    traces = hs.capture(model, TEXT, target="predicted"), hs.generate(model, TEXT, max_new_tokens=1)
    lines = [make_source(hs.view(trace, "raw")).header()["sheets"][0]["python"] for trace in traces]
    assert f"hs.capture(model, {TEXT!r}, target='predicted')" in lines[0]
    assert f"hs.generate(model, {TEXT!r}, max_new_tokens=1)" in lines[1]


def test_a_file_of_maps_is_shown(maps, tmp_path):
    path = hs.save(maps[:2], tmp_path / "maps.nc")
    assert [lens["name"] for lens in make_source(path).header()["sheets"][0]["lenses"]] == ["raw", "effective"]


def test_half_a_character_is_written(tmp_path):
    attention = torch.full((1, 1, 2, 2), 0.5)
    trace = hs.Trace.of([attention], ["a\ud800", "b"])
    page = hs.save(hs.view(trace, "raw"), tmp_path / "page.html").read_text(encoding="utf-8")
    assert "a\\ud800" in page


@pytest.mark.parametrize(
    "name",
    ["", "0", "0/0", "9/0/thumbs", "0/9/thumbs", "0/0/map/9/0", "0/0/map/-1/0", "0/0/map/0", "../x", "0/visible/99",
     "result/x.svg", "0/0/graph/0", "0/picture", "0/0/map/0/0/0", "٠/0/thumbs/x"],
)  # fmt: skip
def test_an_unknown_block_is_named(maps, name):
    with pytest.raises(UnknownName, match="There is no block"):
        make_source(maps).block(name)


@pytest.mark.parametrize("what", [3, "text", [], {}, ["text"], {"a": 3}, None])
def test_what_cannot_be_shown_is_said(what):
    with pytest.raises(InputError, match="The viewer shows Maps, a Trace, a Dataset"):
        make_source(what).header()


def test_heads_without_numbers_have_no_scale(maps):
    broken = [layer.clone() for layer in maps[0].parts]
    broken[1][0, 2] = torch.nan
    scales = make_source(replace(maps[0], parts=broken)).header()["sheets"][0]["lenses"][0]["scales"]
    assert scales[1][2] is None
    assert [scale is None for scale in scales[1]].count(True) == 1
    assert None not in scales[0]


class TestLongInputs:
    def test_maps_layer_by_layer_are_those_of_a_capture(self):
        model = tiny("llama")
        source = open_long_input(model, TEXT, lenses=("raw", "effective"))
        trace = hs.capture(model, TEXT)
        for index, name in enumerate(("raw", "effective")):
            whole = hs.view(trace, name)
            for layer, head in ((1, 3), (0, 0), (1, 1)):
                expected = whole.layer(layer)[0, head].numpy()
                shown = read_map(source, 0, index, layer, head)
                assert np.abs(shown - expected).max() < 0.01  # one byte a weight

    @pytest.mark.parametrize(("kind", "weights"), [("bert", 2**24), ("bert", 1), ("llama", 1)])
    def test_numbers_and_thumbnails_are_those_of_a_capture(self, kind, weights, monkeypatch):
        monkeypatch.setattr(long_input, "MAX_WEIGHTS", weights)  # 1: a head at a time, or those that share their values
        model = tiny(kind)
        long, whole = open_long_input(model, TEXT), make_source(
            [hs.view(hs.capture(model, TEXT), name) for name in ("raw", "effective")], codec="sqrt8"
        )  # fmt: skip
        one, two = long.header()["sheets"][0], whole.header()["sheets"][0]
        assert [s["name"] for s in one["scalars"]] == [s["name"] for s in two["scalars"]]
        for a, b in zip(one["scalars"], two["scalars"], strict=True):
            np.testing.assert_allclose(np.array(a["values"], float), np.array(b["values"], float), rtol=1e-5, atol=1e-6)
        assert one["lenses"][0]["limit"] == pytest.approx(two["lenses"][0]["limit"], rel=1e-6)
        thumbs = [np.frombuffer(source.block("0/0/thumbs"), np.uint8).astype(int) for source in (long, whole)]
        assert np.abs(thumbs[0] - thumbs[1]).max() <= 1  # rounding of a code

    def test_a_lens_of_all_layers_is_refused(self):
        with pytest.raises(InputError, match="The lens 'rollout' reads all layers together"):
            open_long_input(tiny("bert"), TEXT, lenses=("raw", "rollout"))

    def test_only_one_layer_is_kept(self):
        source = open_long_input(tiny("bert"), TEXT)
        source.block("0/0/map/0/0")
        reader = source.sheets[0].lenses[0].read_head.__closure__
        (held,) = [cell.cell_contents for cell in reader if hasattr(cell.cell_contents, "maps")]
        source.block("0/1/map/1/0")
        assert held.layer == 1
        assert [layer.shape[0] for layer in held.maps] == [4, 4]


@pytest.mark.parametrize("kind", MAKE)
def test_a_result_of_any_kind_has_a_header(kind):
    header = make_source(MAKE[kind]()).header()
    assert json.loads(json.dumps(header, allow_nan=False)) == header
    assert bool(header["result"]) != any(sheet["lenses"] for sheet in header["sheets"])


def test_a_dataset_without_heads_shows_its_report():
    data = xr.Dataset({"score": 0.5}, attrs={"headscope": json.dumps({"kind": "numbers"})})
    header = make_source(data).header()
    assert header["sheets"] == []
    assert header["result"]["lead"]
