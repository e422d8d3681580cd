"""Layers whose maps differ in shape: windows of pictures, and pictures laid end to end."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from torch.nn import functional
from transformers import ViTImageProcessorPil
from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl

from headscope.ablation.average_heads import average_heads
from headscope.core.errors import CaptureError, DataWarning, InputError
from headscope.core.lens import view
from headscope.engine.capture import by_layer, capture, stream
from headscope.engine.edited import edited
from headscope.engine.load import load
from headscope.engine.recording.layout import Arguments
from headscope.engine.recording.recorder import AttentionCall, Recorder
from headscope.measuring.measure import measure
from headscope.plotting.draw import draw
from headscope.viewer.source import make_source
from tests.head_atlas.data import make_atlas

pytestmark = pytest.mark.filterwarnings("ignore:The maps of these layers differ")
WINDOW = 4
SWINS = ("swin", "swinv2", "donut-swin", "maskformer-swin")
STAGES = {"depths": [2, 2], "num_heads": [2, 4], "embed_dim": 16, "window_size": WINDOW, "patch_size": 2}


def build(kind, size=32, **config):
    torch.manual_seed(0)
    options = {**STAGES, "image_size": size} | config
    network = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(kind, **options)).eval()
    for weight in network.parameters():
        if weight.ndim > 1:
            weight.data.mul_(4)
    return network


def random_pixels(size=32, width=None, rows=2):
    return torch.randn(rows, 3, size, width or size, generator=torch.Generator().manual_seed(1))


def list_shapes(trace):
    return sorted((trace, *trace.other_layers), key=lambda part: part.layers)


def partition(grid, shift, fill=-1, window=WINDOW):
    """The numbers of the tokens of each window: plain code for what Swin does to its tokens."""
    rows, columns = grid
    numbers = torch.arange(rows * columns).view(rows, columns)
    numbers = functional.pad(numbers, (0, -columns % window, 0, -rows % window), value=fill)
    height, width = numbers.shape
    windows = []
    for top in range(0, height, window):
        for left in range(0, width, window):
            places = [
                ((top + row + shift) % height, (left + column + shift) % width)
                for row in range(window)
                for column in range(window)
            ]
            windows.append([int(numbers[place]) for place in places])
    return windows


def name(number, columns):
    return "[pad]" if number < 0 else f"{number // columns},{number % columns}"


@pytest.mark.parametrize("kind", SWINS)
@pytest.mark.parametrize(("size", "width", "grids"), [(32, 32, (16, 8)), (28, 44, ((14, 22), (7, 11)))])
def test_windows_are_rows_that_name_their_tokens_by_the_places_in_the_picture(kind, size, width, grids):
    trace = capture(load(build(kind, size)), {"pixel_values": random_pixels(size, width)})
    assert [part.layers for part in list_shapes(trace)] == [(0,), (1,), (2,), (3,)]
    for part, grid, shift in zip(list_shapes(trace), np.repeat(np.array(grids), 2, axis=0), (0, 2, 0, 2), strict=True):
        rows, columns = (grid, grid) if np.ndim(grid) == 0 else grid
        windows = partition((rows, columns), shift)
        assert part.keys.text == [[name(number, columns) for number in window] for window in windows] * 2
        assert part.queries.text == part.keys.text
        assert [example.id for example in part.examples] == [f"{p}.{w}" for p in (0, 1) for w in range(len(windows))]
        assert [example.part_of for example in part.examples] == ["0"] * len(windows) + ["1"] * len(windows)
        assert part.keys.real.all()  # what fills a window up is attended to


def hook_attention(network, pixels):
    """The weights that the attention modules of a Swin return with eager attention, in order."""
    weights, hidden = [], []
    network.set_attn_implementation("eager")

    def note(module, args, options, output):
        found = [part for part in output if torch.is_tensor(part) and part.ndim == 4] if len(output) > 1 else []
        weights.extend(found)

    def note_input(module, args, options):
        hidden.append((args or tuple(options.values()))[0].detach().clone())

    handles = []
    for path, module in network.named_modules():
        if type(module).__name__ == "SwinAttention":
            handles.append(module.register_forward_hook(note, with_kwargs=True))
        if type(module).__name__.endswith("SelfAttention"):
            forward = module.forward
            module.forward = lambda states, mask=None, _=False, forward=forward: forward(states, mask, True)
            handles.append(module.register_forward_hook(note, with_kwargs=True))
        if "blocks" in path and path.split(".")[-1].isdigit():
            handles.append(module.register_forward_pre_hook(note_input, with_kwargs=True))
    with torch.no_grad():
        network(pixel_values=pixels)
    for handle in handles:
        handle.remove()
    return weights, hidden


@pytest.mark.parametrize("kind", SWINS)
@pytest.mark.parametrize("size", [32, 28])
def test_attention_is_that_of_the_models_own_modules_in_all_layers(kind, size):
    trace = capture(load(build(kind, size)), {"pixel_values": random_pixels(size)})
    expected, _ = hook_attention(build(kind, size), random_pixels(size))
    parts = list_shapes(trace)
    assert len(expected) == len(parts) == 4
    for part, theirs in zip(parts, expected, strict=True):
        torch.testing.assert_close(part.attention[0], theirs, atol=1e-6, rtol=0)
        product = part.attention[0].double() @ part.values[0].double()
        torch.testing.assert_close(product.float(), part.context[0], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("size", [32, 28])
def test_attention_follows_from_the_tokens_that_the_names_say(size):
    network = build("swin", size)
    _, hidden = hook_attention(build("swin", size), random_pixels(size))
    trace = capture(load(network), {"pixel_values": random_pixels(size)})
    blocks = [block for stage in network.encoder.layers for block in stage.blocks]
    for part, block, states in zip(list_shapes(trace), blocks, hidden, strict=True):
        attention, columns = block.attention, math.isqrt(states.shape[1])
        for row in (0, 5 % len(part.examples), len(part.examples) - 1):
            places = [None if text == "[pad]" else tuple(map(int, text.split(","))) for text in part.keys.text[row]]
            picture = int(part.examples[row].part_of)
            tokens = torch.stack(
                [
                    torch.zeros(states.shape[-1])
                    if place is None
                    else block.layernorm_before(states[picture, place[0] * columns + place[1]])
                    for place in places
                ]
            )
            heads = (len(tokens), attention.num_attention_heads, -1)
            query, key = (layer(tokens).view(heads).transpose(0, 1) for layer in (attention.q_proj, attention.k_proj))
            scores = query @ key.mT * attention.scaling + attention.relative_position_bias()[0]
            scores = scores.masked_fill(~part.visible[0][row], -torch.inf)
            torch.testing.assert_close(part.attention[0][row], scores.softmax(-1), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", SWINS)
def test_shifted_windows_hide_tokens_that_are_no_neighbors(kind):
    trace = capture(load(build(kind)), {"pixel_values": random_pixels()})
    for part, shift in zip(list_shapes(trace), (0, 2, 0, 2), strict=True):
        places = torch.tensor([[[int(word) for word in text.split(",")] for text in row] for row in part.keys.text])
        apart = (places[:, :, None] - places[:, None]).abs().amax(-1)
        assert torch.equal(part.visible[0], apart < WINDOW)
        assert bool(part.visible[0].all()) == (shift == 0)
        assert part.attention[0].masked_fill(part.visible[0][:, None], 0).max() < 1e-40


def project(weights, values):
    left, sizes, _ = torch.linalg.svd(values.double(), full_matrices=False)
    basis = left[:, sizes > sizes.max() * max(values.shape) * torch.finfo(torch.float32).eps]
    return basis @ (basis.T @ weights.double())


@pytest.mark.parametrize("kind", ["swin", "swinv2"])
def test_effective_attention_is_a_projection_among_the_keys_that_a_query_sees(kind):
    trace = capture(load(build(kind, embed_dim=8)), {"pixel_values": random_pixels()})
    for part in list_shapes(trace):
        weights = view(part, "effective").weights[:, 0]
        for row, head, query in ((0, 0, 0), (len(weights) - 1, 1, 3), (len(weights) - 1, 0, 15)):
            seen = part.visible[0][row, query]
            expected = project(part.attention[0][row, head, query, seen], part.values[0][row, head, seen])
            torch.testing.assert_close(weights[row, head, query, seen].double(), expected, atol=1e-5, rtol=0)
            assert not weights[row, head, query, ~seen].any()


def test_the_output_projection_makes_of_a_window_what_the_layer_writes():
    network = build("swin")
    written = []
    for stage in network.encoder.layers:
        for block in stage.blocks:
            block.attention.o_proj.register_forward_hook(lambda layer, _, out: written.append(out - layer.bias))
    trace = capture(load(network), {"pixel_values": random_pixels()})
    for part, theirs in zip(list_shapes(trace), written[:4], strict=True):
        ours = torch.einsum("bhqv,hvx->bqx", part.context[0], part.output[0])
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
        assert view(part, "norm").weights.shape[:3] == (len(part.examples), 1, len(part.heads))


def test_an_edit_of_a_window_is_made_in_its_layer_only():
    network = build("swin")
    model, inputs = load(network), {"pixel_values": random_pixels()}
    with torch.no_grad():
        plain = network(**inputs).last_hidden_state
    before = capture(model, inputs)
    with edited(model, "zero_heads:heads=L2H3"):
        during = capture(model, inputs)
    assert all(
        torch.equal(old.attention[0], new.attention[0])
        for old, new in zip(list_shapes(before)[:3], list_shapes(during)[:3], strict=True)
    )
    assert not torch.equal(list_shapes(before)[3].attention[0], list_shapes(during)[3].attention[0])
    with torch.no_grad():
        assert torch.equal(network(**inputs).last_hidden_state, plain)


def test_layers_of_one_shape_can_be_chosen_and_the_warning_says_so():
    model, inputs = load(build("swin")), {"pixel_values": random_pixels()}
    said = (
        r"this trace is of layers \[0\], and trace\.other_layers holds \[1\], \[2\] and \[3\].* layers=\[1\] captures"
    )
    with pytest.warns(DataWarning, match=said):
        trace = capture(model, inputs)
    assert "other_layers: [1], [2] and [3]" in repr(trace)
    chosen = capture(model, inputs, layers=-1, heads=3)
    assert (chosen.layers, chosen.heads, chosen.other_layers) == ((3,), (3,), ())
    assert torch.equal(chosen.attention[0][:, 0], list_shapes(trace)[3].attention[0][:, 3])
    with pytest.raises(InputError, match="There is no head 3 here"):
        capture(model, inputs, heads=3)
    assert by_layer(model, inputs, see=lambda part: (part.layers, len(part.heads))) == [
        ((0,), 2),
        ((1,), 2),
        ((2,), 4),
        ((3,), 4),
    ]


@pytest.mark.parametrize("lens", ["rollout", "flow"])
def test_windows_are_not_followed_from_layer_to_layer(lens):
    model, inputs = load(build("swin")), {"pixel_values": random_pixels()}
    with pytest.raises(InputError, match=r"maps of layers \[0\] hold windows of a picture"):
        view(capture(model, inputs), lens)
    pyramid = load(transformers.AutoModel.from_config(small_segformer()).eval())
    with pytest.raises(InputError, match=r"maps of layers \[0\] differ from those of \[1\]"):
        view(capture(pyramid, inputs), lens)


def small_segformer():
    return transformers.SegformerConfig(
        num_encoder_blocks=2,
        depths=[1, 1],
        hidden_sizes=[16, 32],
        num_attention_heads=[1, 2],
        sr_ratios=[2, 1],
        patch_sizes=[7, 3],
        strides=[4, 2],
        mlp_ratios=[2, 2],
        decoder_hidden_size=16,
    )


def test_keys_that_a_pyramid_merges_are_numbered_and_its_queries_named():
    network = transformers.AutoModel.from_config(small_segformer()).eval()
    first, second = list_shapes(capture(load(network), {"pixel_values": random_pixels()}))
    assert first.queries.text[0][:3] == ["0,0", "0,1", "0,2"]
    assert first.keys.text[0][:3] == ["#0", "#1", "#2"]
    assert first.attention[0].shape == (2, 1, 64, 16)
    assert (
        second.keys.text[1] == second.queries.text[1] == [f"{row},{column}" for row in range(4) for column in range(4)]
    )
    assert [example.part_of for example in first.examples] == [None, None]


SAM2 = {
    "hidden_size": 16,
    "num_attention_heads": 1,
    "blocks_per_stage": [1, 2, 1, 1],
    "embed_dim_per_stage": [16, 32, 48, 64],
    "num_attention_heads_per_stage": [1, 2, 2, 2],
    "window_size_per_stage": [4, 2, 6, 3],
    "global_attention_blocks": [2],
    "num_query_pool_stages": 3,
    "window_positional_embedding_background_size": [4, 4],
    "image_size": [64, 64],
}


def test_sam2_has_windows_with_padding_pooled_queries_and_whole_pictures():
    torch.manual_seed(0)
    network = transformers.AutoModel.from_config(
        transformers.AutoConfig.for_model("sam2_hiera_det_model", **SAM2)
    ).eval()
    parts = list_shapes(capture(load(network), {"pixel_values": random_pixels(64)}))
    grids = {0: (16, 4), 1: (16, 4), 3: (8, 2), 4: (4, 6)}  # by layer: tokens a side, and the window
    for part in parts:
        for layer in part.layers:
            if layer in grids:
                side, window = grids[layer]
                numbers = partition((side, side), 0, window=window)
                assert part.keys.text == [[name(number, side) for number in row] for row in numbers] * 2
    pooled = next(part for part in parts if 1 in part.layers)
    assert pooled.queries.text[0] == ["#0", "#1", "#2", "#3"]
    assert pooled.keys.text[0][:5] == ["0,0", "0,1", "0,2", "0,3", "1,0"]
    whole = next(part for part in parts if 2 in part.layers)
    assert whole.keys.text[0][:10] == [*(f"0,{column}" for column in range(8)), "1,0", "1,1"]
    assert [example.part_of for example in whole.examples] == [None, None]
    for part in parts:
        for attention, values, context in zip(part.attention, part.values, part.context, strict=True):
            torch.testing.assert_close(attention @ values, context, atol=1e-5, rtol=0)


def mean_entropy(trace):
    """The mean over the rows of each window, over the windows of each picture, and over pictures, in plain code."""
    weights = trace.attention[0].double()
    rows = -(weights * weights.clamp_min(1e-300).log()).sum(-1).mean(-1)
    pictures = {example.part_of or example.id for example in trace.examples}
    means = [
        rows[[(example.part_of or example.id) == picture for example in trace.examples]].mean(0) for picture in pictures
    ]
    return torch.stack(means).mean(0).numpy()


def swin_of_pictures():
    return load(build("swin"), processor=ViTImageProcessorPil(size={"height": 32, "width": 32}))


def pictures(count):
    numbers = np.random.default_rng(0)
    return [Image.fromarray(numbers.integers(0, 256, (40, 50, 3), dtype=np.uint8)) for _ in range(count)]


@pytest.mark.parametrize("options", [{}, {"layers": [0, 3]}])
def test_a_measurement_averages_the_windows_of_each_picture(options):
    model = swin_of_pictures()
    data = measure(
        model, pictures(3), lens="raw", statistics="entropy", batch_size=2, progress=False, rows=True, **options
    )
    table = data.isel(lens=0, site=0)
    for part in list_shapes(capture(model, pictures(3), **options)):
        measured = table.sel(layer=part.layers[0])
        heads = len(part.heads)
        np.testing.assert_allclose(measured["entropy"].values[:heads], mean_entropy(part), rtol=1e-5)
        assert measured["entropy_n"].values.tolist() == [3] * heads + [0] * (4 - heads)
        assert measured["entropy"].isnull().values.tolist() == [False] * heads + [True] * (4 - heads)
    assert data["entropy_rows"].sizes["example"] == 3


def test_what_needs_all_layers_at_once_is_refused_for_layers_of_different_shapes():
    model = swin_of_pictures()
    with pytest.raises(
        InputError, match=r"differ in shape, so only statistics and lenses that need one layer at a time"
    ):
        measure(model, pictures(2), statistics="head_distance", progress=False)
    with pytest.raises(InputError, match="Means of heads are a table of layers that are alike"):
        average_heads(model, pictures(2))


def test_an_atlas_of_windows_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"maps of layers \[0\] are of windows of pictures, or differ in shape"):
        make_atlas(swin_of_pictures(), tmp_path / "atlas", pictures(2), lens=["raw"])


@pytest.mark.filterwarnings("ignore:The model was given 2 example")
def test_rows_of_which_nothing_says_the_picture_are_not_averaged():
    small = {"image_size": 32, "patch_size": 2, "hidden_sizes": [16, 16, 16], "neck_hidden_sizes": [16] * 7}
    config = transformers.AutoConfig.for_model("mobilevit", **small, num_attention_heads=2)
    network = transformers.AutoModel.from_config(config).eval()
    model = load(network, processor=ViTImageProcessorPil(size={"height": 32, "width": 32}))
    with pytest.raises(InputError, match=r"rows for 2 examples, and nothing says of which example each is"):
        measure(model, pictures(2), statistics="entropy", progress=False, lens="raw")


def test_windows_lie_on_their_picture():
    trace = capture(swin_of_pictures(), pictures(2))
    part = list_shapes(trace)[3]
    maps = view(part, "raw").sel(example=3)  # the last window of the first picture, of shifted tokens
    data = maps.dataset()
    assert data["key_row"].values.tolist() == [int(text.split(",")[0]) for text in part.keys.text[3]]
    assert data["key_column"].values.tolist() == [int(text.split(",")[1]) for text in part.keys.text[3]]
    assert list(data["picture"].attrs["patches"]) == [8, 8]
    colors = draw(maps, "overlay", layer=3, head=0, query=0).axes[0].images[0].get_array()
    assert colors.shape == (32, 32, 3)
    grey = np.ptp(np.asarray(colors), axis=-1) < 1e-6
    covered = np.zeros((8, 8), dtype=bool)
    covered[data["key_row"].values, data["key_column"].values] = part.visible[0][3, 0].numpy()
    assert np.array_equal(~grey, np.kron(covered, np.ones((4, 4), dtype=bool)))


def test_the_viewer_shows_the_layers_of_each_shape_of_one_picture():
    trace = capture(swin_of_pictures(), pictures(2))
    sheets = make_source(trace, example=len(trace.examples) - 1).header()["sheets"]
    windows = [len(trace.examples) // 2 - 1, 0, 0, 0]  # the chosen one, and the first of the same picture
    assert [sheet["site"] for sheet in sheets] == [
        f"self, layer {layer}, window {windows[layer]}" for layer in range(4)
    ]
    assert [len(sheet["heads"]) for sheet in sheets] == [2, 2, 4, 4]
    assert [(sheet["picture"]["rows"], sheet["picture"]["columns"]) for sheet in sheets] == [(16, 16)] * 2 + [
        (8, 8)
    ] * 2
    assert {sheet["text"] for sheet in sheets} == {"image"}
    assert "layers=[2]" in sheets[2]["python"]


def test_a_picture_that_is_not_cut_evenly_has_names_and_no_overlay():
    model = load(build("swin", 30), processor=ViTImageProcessorPil(size={"height": 30, "width": 30}))
    first, *_, last = list_shapes(capture(model, pictures(1)))
    assert "picture" in first.examples[0].columns
    assert "picture" not in last.examples[0].columns  # 8 × 8 tokens of 30 pixels
    assert last.keys.text[0][5] == "3,3"


def test_gradients_of_windows_are_those_of_their_picture():
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model("swin", **STAGES, image_size=32, num_labels=3)
    model = load(transformers.AutoModelForImageClassification.from_config(config).eval())
    together = capture(model, {"pixel_values": random_pixels()}, target="predicted")
    alone = capture(model, {"pixel_values": random_pixels()[1:]}, target="predicted")
    for part, single in zip(list_shapes(together), list_shapes(alone), strict=True):
        torch.testing.assert_close(part.gradient[0][len(single.examples) :], single.gradient[0], atol=1e-6, rtol=1e-4)
        assert part.gradient[0].any()


def qwen_tower():
    torch.manual_seed(0)
    config = transformers.models.qwen2_5_vl.configuration_qwen2_5_vl.Qwen2_5_VLVisionConfig(
        depth=3,
        hidden_size=32,
        out_hidden_size=32,
        intermediate_size=48,
        num_heads=4,
        patch_size=4,
        window_size=16,
        fullatt_block_indexes=[2],
    )
    network = modeling_qwen2_5_vl.Qwen2_5_VisionTransformerPretrainedModel._from_config(config).eval()
    for weight in network.parameters():
        if weight.ndim > 1:
            weight.data.mul_(3)
    return network


GRIDS = torch.tensor([[1, 8, 12], [1, 6, 6]])


def patches():
    return torch.randn(int(GRIDS.prod(-1).sum()), 3 * 2 * 16, generator=torch.Generator().manual_seed(3))


def test_sequences_that_lie_end_to_end_are_rows(monkeypatch):
    inputs = {"hidden_states": patches(), "grid_thw": GRIDS}
    weights, eager = [], modeling_qwen2_5_vl.eager_attention_forward

    def note(*args, **options):
        output = eager(*args, **options)
        weights.append(output[1])
        return output

    plain = qwen_tower()
    plain.set_attn_implementation("eager")
    with monkeypatch.context() as patched, torch.no_grad():
        patched.setattr(modeling_qwen2_5_vl, "eager_attention_forward", note)
        plain(**inputs)
    trace = capture(load(qwen_tower()), inputs)
    windows, whole = list_shapes(trace)
    assert (windows.layers, whole.layers) == ((0, 1), (2,))
    lengths = [16] * 6 + [16, 8, 8, 4]
    assert windows.keys.counts.tolist() == lengths
    assert [example.part_of for example in windows.examples] == ["0"] * 6 + ["1"] * 4
    for index, layer in enumerate(windows.attention):
        for row, length in enumerate(lengths):
            theirs = weights[index * len(lengths) + row][0]
            torch.testing.assert_close(layer[row, :, :length, :length], theirs, atol=1e-6, rtol=0)
            assert not layer[row, :, length:].any()
            assert not layer[row, :, :, length:].any()
    assert whole.keys.counts.tolist() == [96, 36]
    assert [example.part_of for example in whole.examples] == [None, None]
    for row, length in enumerate((96, 36)):
        torch.testing.assert_close(
            whole.attention[0][row, :, :length, :length], weights[-2 + row][0], atol=1e-6, rtol=0
        )
    for part in (windows, whole):
        assert part.output is not None
        assert view(part, "effective").weights.isfinite().all()


def test_a_head_of_sequences_that_lie_end_to_end_can_be_edited():
    model, inputs, read = load(qwen_tower()), {"hidden_states": patches(), "grid_thw": GRIDS}, []
    before = capture(model, inputs)
    model.network.blocks[1].attn.proj.register_forward_pre_hook(lambda _, args: read.append(args[0].detach()))
    with edited(model, "zero_heads:heads=L1H2"), torch.no_grad():
        model.network(**inputs)
    assert not read[0].view(-1, 4, 8)[:, 2].any()
    others = torch.cat(
        [before.context[1][row, :, :length] for row, length in enumerate(before.keys.counts.tolist())], 1
    )
    torch.testing.assert_close(read[0].view(-1, 4, 8)[:, 0], others[0], atol=1e-6, rtol=0)


def test_a_gradient_of_several_sequences_is_refused():
    model = load(qwen_tower())
    with pytest.raises(CaptureError, match=r"attention of 10 sequences one after the other"):
        capture(
            model,
            {"hidden_states": patches(), "grid_thw": GRIDS},
            target=lambda output: output[0].sum()[None].repeat(2),
        )


def test_what_is_followed_is_left_as_it_was():
    network = build("swin")
    hooks = SimpleNamespace(before=[len(module._forward_hooks) for module in network.modules()])
    list(stream(load(network, processor=ViTImageProcessorPil(size={"height": 32, "width": 32})), pictures(2)))
    assert [len(module._forward_hooks) for module in network.modules()] == hooks.before
    assert not any(len(module._forward_pre_hooks) for module in network.modules())


def test_an_interrupt_leaves_nothing_that_follows_tokens():
    network = build("swin")

    def interrupt(*_):
        raise KeyboardInterrupt

    handle = network.encoder.layers[0].blocks[1].mlp.register_forward_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        capture(load(network), {"pixel_values": random_pixels()})
    handle.remove()
    assert torch.overrides._len_torch_function_stack() == 0
    assert list_shapes(capture(load(network), {"pixel_values": random_pixels()}))[0].layers == (0,)


@pytest.mark.parametrize("lengths", [[6, 6, 5], [6, 7, 4]])
def test_sequences_of_other_lengths_than_were_said_are_refused(lengths):
    recorder = Recorder({}, lambda _: "self", "self", marks_forwards=True)
    recorder.begin(Arguments(lengths=(6, 6, 4)))
    with pytest.raises(CaptureError, match="tower computes attention several times in one call"):
        for length in lengths:
            numbers = torch.ones(1, 2, length, 3)
            recorder.record(
                AttentionCall("tower", torch.full((1, 2, length, length), 1 / length), numbers, numbers, None)
            )
        recorder.check_sequences_are_complete()


@pytest.mark.parametrize("kind", ["swin", "swinv2"])
def test_edits_know_which_tokens_of_a_shifted_window_see_each_other(kind):
    model, inputs = load(build(kind)), {"pixel_values": random_pixels()}
    trace = list_shapes(capture(model, inputs))[1]
    written = []
    layer = model.network.encoder.layers[0].blocks[1].attention
    projection = layer.o_proj if kind == "swin" else layer.output.dense
    handle = projection.register_forward_pre_hook(lambda _, args: written.append(args[0].detach()))
    with edited(model, "uniform_heads:heads=L1H1"), torch.no_grad():
        model.network(**inputs)
    handle.remove()
    uniform = trace.visible[0] / trace.visible[0].sum(-1, keepdim=True)
    torch.testing.assert_close(
        written[0].unflatten(-1, (2, 8))[:, :, 1], uniform @ trace.values[0][:, 1], atol=1e-5, rtol=0
    )
    with torch.no_grad(), edited(model, "effective_attention"):
        changed = model.network(**inputs).last_hidden_state
    torch.testing.assert_close(changed, trace.model_output.last_hidden_state, atol=1e-3, rtol=1e-3)
