"""Indexing, selecting, averaging and converting maps."""

import numpy as np
import pytest
import torch
import xarray as xr

from headscope.core.errors import InputError, UnknownName
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.plotting.draw import draw
from headscope.plotting.selection import select_example
from tests.models import batch, text, tiny


@pytest.fixture(scope="module")
def maps():
    return view(capture(tiny("bert"), batch("bert")), "effective")  # 7, 16 and 11 tokens


@pytest.fixture(scope="module")
def single():
    return view(capture(tiny("bert"), text(9)), "effective")


def test_an_index_is_the_weights_of_a_layer_and_a_head_with_their_tokens(single):
    one = single[1, 2]
    assert isinstance(one, xr.DataArray)
    assert one.dims == ("query", "key")
    assert np.array_equal(one, single.weights[0, 1, 2])
    assert one.key_token.values.tolist() == ["[CLS]", *text(9).split(), "[SEP]"]
    assert (int(one.layer), int(one["head"]), str(one.lens.values)) == (1, 2, "effective")


def test_an_index_over_several_examples_keeps_their_axis(maps):
    assert maps[1, 2].dims == ("example", "query", "key")
    assert maps[1].dims == ("example", "head", "query", "key")
    assert maps[-1, -1].isel(example=1).equals(maps[1, 3].isel(example=1))


def test_slices_and_lists_keep_their_axis(single):
    assert single[:, 0].sizes["layer"] == 2
    assert single[0:1, [3, 1]]["head"].values.tolist() == [3, 1]
    assert single[0:1, [3, 1]].layer.values.tolist() == [0]
    assert single[:, 1:-1]["head"].values.tolist() == [1, 2]
    assert np.array_equal(single[:], single.weights[0])


def test_labels_are_those_of_the_model_not_positions():
    some = view(capture(tiny("bert"), text(5), layers=[1], heads=[2, 3]), "raw")
    whole = view(capture(tiny("bert"), text(5)), "raw")
    assert np.array_equal(some[1, 2], whole[1, 2])
    with pytest.raises(InputError, match="There is no layer 0 here, only layer 1"):
        some[0, 2]


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ((5, 0), "There is no layer 5 here, only layers 0 and 1"),
        ((0, 0, 0), r"indexed by a layer and a head, as in maps\[3, 7\], but got 3 indices"),
        ("raw", "A layer is an integer from 0 to 1, but got 'raw'"),
        (1.5, "A layer is an integer from 0 to 1, but got 1.5"),
        (([True, False],), "A layer is an integer from 0 to 1, but got True"),
        (slice(2, 9), "asks for no layer at all"),
    ],
)
def test_an_index_that_does_not_fit_is_an_error(single, key, problem):
    with pytest.raises(InputError, match=problem):
        single[key]


def test_maps_are_not_iterable(single):
    with pytest.raises(TypeError, match="not iterable"):
        list(single)


def test_numpy_integers_are_integers(single):
    assert single[np.int64(1), np.int64(2)].equals(single[1, 2])
    assert torch.equal(single.layer(np.int64(1)), single.layer(1))


def test_a_selection_is_maps_again(maps):
    part = maps.sel(example=[2, 0], layer=-1, head=[3, 1])
    assert (part.layers, part.heads, [example.id for example in part.examples]) == ((1,), (3, 1), ["2", "0"])
    assert torch.equal(part.weights, maps.weights[[2, 0]][:, [1]][:, :, [3, 1]])
    assert torch.equal(part.visible[0], maps.visible[1][[2, 0]])
    assert part.keys.text == [maps.keys.text[2], maps.keys.text[0]]
    assert torch.equal(part.diagnostics["share"], maps.diagnostics["share"][[2, 0]][:, [1]][:, :, [3, 1]])
    assert part.dataset(1).equals(maps.dataset(0).sel(layer=[1], head=[3, 1]))


def test_a_slice_of_a_selection_includes_its_end_as_in_xarray(single):
    assert single.sel(head=slice(1, 2)).heads == (1, 2)
    assert single.sel(head=slice(-2, None)).heads == (2, 3)
    assert single.to_dataset().sel(head=slice(1, 2))["head"].values.tolist() == [1, 2]


def test_an_example_is_selected_by_position_or_id(maps):
    assert maps.sel(example="1").examples == maps.sel(example=-2).examples == maps.examples[1:2]
    assert maps.sel(example=slice(0, 2)).examples == maps.examples[:2]
    with pytest.raises(UnknownName, match="No example is called 'x'"):
        maps.sel(example="x")
    with pytest.raises(InputError, match="There is no example 3 here, only examples 0 to 2"):
        maps.sel(example=3)


def test_means_over_heads_and_layers(maps):
    heads = maps.mean("head")
    torch.testing.assert_close(heads.weights, maps.weights.mean(2, keepdim=True))
    assert repr(heads).endswith("2 layers × mean of 4 heads, up to 16 tokens)")
    both = maps.mean(("layer", "head"))
    torch.testing.assert_close(both.weights, maps.weights.mean((1, 2), keepdim=True))
    assert torch.equal(both.weights, maps.mean("head").mean("layer").weights)
    assert not both.diagnostics
    assert torch.equal(heads.mean("head").weights, heads.weights)


def test_the_mean_of_layers_with_different_masks_sees_what_any_of_them_sees():
    maps = view(capture(tiny("gemma2"), text(30)), "raw")
    masks = torch.stack(list(maps.visible))
    assert not torch.equal(masks[0], masks[-1])
    mean = maps.mean("layer")
    assert torch.equal(mean.visible[0], masks.any(0))
    assert not mean.weights[:, 0].masked_select(~mean.visible[0][:, None]).any()


@pytest.mark.parametrize(
    ("dim", "advice"),
    [("example", "hs.measure"), ("query", r"maps.to_dataset\(\)\['weights'\]"), ("heads", "other axes")],
)
def test_maps_have_no_mean_over_other_axes(maps, dim, advice):
    with pytest.raises(InputError, match=f"averaged over 'layer', 'head' or both, but got '{dim}'.*{advice}"):
        maps.mean(dim)


def test_a_figure_of_a_mean_says_so(single):
    def title(maps, figure):
        return " ".join(draw(maps, figure).axes[0].get_title().split())  # long titles are wrapped

    assert title(single.mean("head"), "matrix:layer=1") == "effective · L1, mean of 4 heads"
    assert title(single.mean("layer"), "matrix:head=2") == "effective · mean of 2 layers, H2"
    merged = view(capture(tiny("bert"), text(5), keep=("values", "output")), "norm:merge=true")
    assert title(merged, "matrix:layer=1") == "norm:merge=true · L1, heads merged"
    for both in ([single.mean("head"), merged], [merged, single.mean("head")]):
        assert title(both, "matrix:layer=1").endswith(" · L1, all heads")


def test_numpy_sees_the_weights(maps):
    assert np.array_equal(np.asarray(maps), maps.weights.numpy())
    assert np.asarray(maps, dtype="float64").dtype == np.float64
    assert np.max(maps) == maps.weights.max()
    with pytest.raises(ValueError, match="always a copy"):
        np.array(maps, copy=False)


@pytest.mark.parametrize(("dtype", "expected"), [(torch.bfloat16, "float32"), (torch.float64, "float64")])
def test_arrays_keep_double_precision_and_widen_half(dtype, expected):
    from headscope.core.trace import Trace

    maps = view(Trace.of([torch.full((1, 2, 3, 3), 1 / 3, dtype=dtype)], ["a", "b", "c"]), "raw")
    assert np.asarray(maps).dtype == maps[0, 0].dtype == maps.dataset()["weights"].dtype == expected
    assert np.array_equal(maps[0, 0], maps.weights[0, 0, 0].to(getattr(torch, expected)))


def test_a_dataset_of_all_examples_is_filled_up_at_the_end(maps):
    data = maps.to_dataset()
    assert data["weights"].dims == ("example", "lens", "layer", "head", "query", "key")
    assert data["key_count"].values.tolist() == data["query_count"].values.tolist() == [7, 16, 11]
    assert data["example"].values.tolist() == ["0", "1", "2"]
    assert data["text"].values.tolist() == [example.text for example in maps.examples]
    assert data["weights"].isel(example=0, key=slice(7, None)).isnull().all()
    assert data["key_token"].values[0, 7:].tolist() == [""] * 9
    assert not data["visible"].values[0, :, 7:].any()
    assert data["share"].dims == ("example", "lens", "layer", "head")


@pytest.mark.parametrize("example", [0, 1, 2, -1])
def test_one_example_of_a_dataset_of_all_is_its_own_dataset(maps, example):
    chosen, alone = select_example(maps.to_dataset(), example), maps.dataset(example)
    assert chosen["text"].item() == maps.examples[example].text
    xr.testing.assert_identical(chosen.drop_vars(("example", "text")).drop_attrs(), alone.drop_attrs())
    assert chosen.dtypes == alone.dtypes


def test_left_padding_is_filled_up_at_the_end_too():
    model = tiny("bert")
    ids = model.tokenizer([text(3), text(9)], padding=True, padding_side="left", return_tensors="pt")
    maps = view(capture(model, ids), "raw")
    data = maps.to_dataset()
    assert data["key_token"].values[0, :5].tolist() == ["[CLS]", *text(3).split(), "[SEP]"]
    assert np.array_equal(select_example(data, 0)["weights"], maps.dataset(0)["weights"])


def test_an_example_that_a_dataset_does_not_have_is_an_error(maps):
    with pytest.raises(InputError, match="There is no example 3: these maps hold 3, counted from 0"):
        select_example(maps.to_dataset(), 3)


def test_a_dataset_of_all_examples_can_be_drawn(maps):
    for example in range(3):
        whole, alone = (draw(what, "matrix", example=example) for what in (maps.to_dataset(), maps))
        assert np.array_equal(whole.axes[0].images[0].get_array(), alone.axes[0].images[0].get_array())


def test_what_an_index_gives_can_be_drawn():
    maps = view(capture(tiny("llama"), text(9)), "raw")
    drawn = draw(maps[1, 2])
    same = draw(maps, "matrix:layer=1,head=2")
    assert drawn.axes[0].get_title() == same.axes[0].get_title() == "raw · L1H2"
    assert np.array_equal(drawn.axes[0].images[0].get_array(), same.axes[0].images[0].get_array(), equal_nan=True)


def test_pictures_are_kept_where_they_have_one_size():
    from tests.engine.test_images import MODEL, picture

    data = view(capture(MODEL, [picture(high=12, wide=12), picture(high=12, wide=12)]), "raw").to_dataset()
    assert data["picture"].dims == ("example", "row", "column", "colour")
    assert select_example(data, 1)["key_row"].dims == ("key",)


def test_a_table_has_a_row_for_each_visible_pair():
    maps = view(capture(tiny("llama"), [text(3), text(6)]), "raw")
    frame = maps.to_dataframe()
    pairs = int(sum(mask.sum() for mask in maps.visible)) * len(maps.heads)
    assert len(frame) == pairs
    assert frame.index.is_unique
    names = "lens example layer head query key query_token key_token weights"
    assert list(frame.columns) == names.split()
    row = frame.query("example == '1' and layer == 1 and head == 2 and query == 4 and key == 3").iloc[0]
    assert row["weights"] == maps.weights[1, 1, 2, 4, 3]
    assert (row.query_token, row.key_token) == (maps.keys.text[1][4], maps.keys.text[1][3])
    assert frame.groupby(["example", "layer", "head", "query"])["weights"].sum().values == pytest.approx(1)


@pytest.mark.parametrize("several", [np.array, torch.tensor])
def test_arrays_and_tensors_of_labels_keep_their_axis_as_lists_do(maps, several):
    assert maps[several([0, 1]), several([3, 1])].equals(maps[[0, 1], [3, 1]])
    assert maps[several([1])].equals(maps[[1]])
    assert maps[0, several(2)].equals(maps[0, 2])
    assert [example.id for example in maps.sel(example=several([2, 0])).examples] == ["2", "0"]


def test_slices_follow_the_order_of_heads_that_were_reordered(maps):
    reordered = maps.sel(head=[3, 0, 2])
    assert reordered[0, -1:]["head"].values.tolist() == [2]
    assert reordered[0, :-1]["head"].values.tolist() == [3, 0]
    assert reordered[0, 0:]["head"].values.tolist() == [0, 2]
    assert reordered.sel(head=slice(3, 0)).heads == (3, 0)  # as in xarray, the end is included
    with pytest.raises(InputError, match="There is no head 1 here"):
        reordered[0, 1:]


def test_the_graph_of_a_rollout_is_selected_with_its_maps_and_saved_with_them():
    whole = view(capture(tiny("bert"), batch("bert")), "rollout")
    assert whole.graph.kind == "edges"
    upper = whole.sel(example=[2, 0], layer=[1])
    assert torch.equal(upper.graph.layers[0], whole.graph.layers[1][[2, 0]])
    data = whole.dataset(2)
    assert data["edges"].dims == ("lens", "layer", "query", "key")
    assert np.allclose(data["edges"].values[0].sum(-1), 1)
    product = data["edges"].values[0, 1] @ data["edges"].values[0, 0]
    assert np.allclose(product, data["weights"].values[0, 1, 0], atol=1e-6)  # float32
    assert whole.to_dataset()["edges"].dims[0] == "example"
    assert whole.mean("layer").graph is None
