"""Pictures inside texts: attention from a word to the patches of a picture lies on the picture."""

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from transformers import CLIPImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.load import load
from headscope.plotting.draw import draw
from headscope.viewer.source import make_source
from tests.engine.recording.test_sites import IMAGE, VISION, build, llava, qwen2_vl
from tests.models import GQA, SMALL, tokenizer

SQUARE = CLIPImageProcessorPil(size={"height": 16, "width": 16}, do_center_crop=False)
GRIDS = Qwen2VLImageProcessorPil(
    patch_size=4, merge_size=2, temporal_patch_size=2, size={"shortest_edge": 64, "longest_edge": 4096}
)


def picture(high=16, wide=16, seed=0):
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (high, wide, 3), dtype=np.uint8))


def write(*texts):
    """Token ids and their mask, padded on the left; -n in a text stands for n patches of a picture."""
    rows = [[token for part in text for token in ([part] if part > 0 else [IMAGE] * -part)] for text in texts]
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    return {"input_ids": ids, "attention_mask": mask}


def paligemma():
    vision = {**VISION, "model_type": "siglip_vision_model", "projection_dim": 32}
    text = {**GQA, "model_type": "gemma"}
    return build("paligemma", text_config=text, vision_config=vision, image_token_index=IMAGE, projection_dim=32)


@pytest.mark.parametrize("make", [llava, paligemma])
def test_tokens_of_a_picture_lie_on_it_and_words_do_not(make):
    model = load(make(), tokenizer=tokenizer(), processor=SQUARE)
    pixels = SQUARE([picture(seed=1), picture(seed=2)], return_tensors="pt")
    texts = write([5, -16, 6, 7], [-16, 6])
    extra = {"token_type_ids": torch.zeros_like(texts["input_ids"])} if make is paligemma else {}
    trace = capture(model, {**texts, **pixels, **extra})
    for row, (before, after) in enumerate([(1, 2), (0, 1)]):
        data = view(trace, "raw").sel(example=row).dataset()
        assert data["key_row"].values.tolist() == [-1] * before + [k // 4 for k in range(16)] + [-1] * after
        assert data["key_column"].values.tolist() == [-1] * before + [k % 4 for k in range(16)] + [-1] * after
        assert np.array_equal(data["picture"], np.asarray(picture(seed=row + 1)))


def test_pictures_of_several_sizes_lie_where_their_grid_says():
    model = load(qwen2_vl(), tokenizer=tokenizer(), processor=GRIDS)
    pixels = GRIDS([picture(32, 48, 1), picture(24, 24, 2)], return_tensors="pt")
    assert pixels["image_grid_thw"].tolist() == [[1, 8, 12], [1, 6, 6]]
    texts = write([5, 29, -24, 6], [29, -9, 7])
    trace = capture(model, {**texts, **pixels, "mm_token_type_ids": (texts["input_ids"] == IMAGE).long()})
    first, second = (view(trace, "raw").sel(example=row).dataset() for row in (0, 1))
    assert first["key_row"].values.tolist() == [-1, -1, *(k // 6 for k in range(24)), -1]
    assert first["key_column"].values.tolist() == [-1, -1, *(k % 6 for k in range(24)), -1]
    assert second["key_row"].values.tolist() == [-1, *(k // 3 for k in range(9)), -1]
    assert np.array_equal(first["picture"], np.asarray(picture(32, 48, 1)))
    assert np.array_equal(second["picture"], np.asarray(picture(24, 24, 2)))


def test_two_pictures_of_one_text_are_stacked():
    model = load(llava(), tokenizer=tokenizer(), processor=SQUARE)
    pixels = SQUARE([picture(seed=1), picture(seed=2)], return_tensors="pt")
    data = view(capture(model, {**write([-16, 6, -16, 7]), **pixels}), "raw").dataset()
    assert data["key_row"].values.tolist() == [*(k // 4 for k in range(16)), -1, *(4 + k // 4 for k in range(16)), -1]
    assert np.array_equal(data["picture"], np.vstack([picture(seed=1), picture(seed=2)]))
    assert list(data["picture"].attrs["patches"]) == [8, 4]


def test_of_two_pictures_of_different_widths_the_first_is_shown():
    model = load(qwen2_vl(), tokenizer=tokenizer(), processor=GRIDS)
    pixels = GRIDS([picture(32, 48, 1), picture(24, 24, 2)], return_tensors="pt")
    texts = write([29, -24, 29, -9, 6])
    trace = capture(model, {**texts, **pixels, "mm_token_type_ids": (texts["input_ids"] == IMAGE).long()})
    data = view(trace, "raw").dataset()
    assert data["key_row"].values.tolist() == [-1, *(k // 6 for k in range(24)), *[-1] * 11]
    assert np.array_equal(data["picture"], np.asarray(picture(32, 48, 1)))


def test_gemma_pools_squares_of_patches():
    text = {**GQA, "model_type": "gemma3_text", "query_pre_attn_scalar": 8}
    vision = {**SMALL, "model_type": "siglip_vision_model", "image_size": 16, "patch_size": 2}
    network = build("gemma3", text_config=text, vision_config=vision, image_token_index=IMAGE, mm_tokens_per_image=16)
    model = load(network, tokenizer=tokenizer(), processor=SQUARE)
    texts = {**write([5, -16, 6]), "token_type_ids": torch.zeros(1, 18, dtype=torch.long)}
    data = view(capture(model, {**texts, **SQUARE([picture()], return_tensors="pt")}), "raw").dataset()
    assert data["key_row"].values.tolist() == [-1, *(k // 4 for k in range(16)), -1]


def test_a_processor_of_texts_and_pictures_is_taken_apart():
    class Both:
        image_processor, tokenizer = SQUARE, tokenizer()

    model = load(llava(), processor=Both())
    assert model.processor is SQUARE
    assert model.tokenizer is Both.tokenizer


def test_without_an_image_processor_or_with_other_counts_nothing_is_placed():
    pixels = SQUARE([picture()], return_tensors="pt")
    plain = capture(load(llava(), tokenizer=tokenizer()), {**write([5, -16, 6]), **pixels})
    assert plain.examples[0].columns == {}
    with pytest.raises(
        InputError, match=r"needs a picture.* which tokens are their patches; not every model says that"
    ):
        draw(view(plain, "raw"), "overlay", layer=0, head=0)
    full = build(
        "llava",
        text_config={**GQA, "model_type": "llama"},
        vision_config={**VISION, "model_type": "clip_vision_model"},
        image_token_index=IMAGE,
        vision_feature_select_strategy="full",  # [CLS] is an image token, too
    )
    ids = torch.tensor([[5, *[IMAGE] * 17, 6]])
    trace = capture(load(full, tokenizer=tokenizer(), processor=SQUARE), {"input_ids": ids, **pixels})
    assert trace.examples[0].columns == {}


def test_the_overlay_shows_the_last_word_and_names_what_is_not_shown():
    model = load(llava(), tokenizer=tokenizer(), processor=SQUARE)
    trace = capture(model, {**write([5, -16, 8, 9]), **SQUARE([picture()], return_tensors="pt")})
    maps = view(trace, "raw")
    drawn = draw(maps, "overlay", layer=1, head=2)
    words = " ".join(text.get_text() for text in drawn.findobj(lambda artist: hasattr(artist, "get_text")))
    assert f"from {trace.keys.text[0][-1]}" in words
    weight = maps.weights[0, 1, 2, -1, [0, 17, 18]].sum()
    assert f"Not shown: {weight:.2g} to" in words
    outlined = draw(maps, "overlay", layer=1, head=2, query=7).axes[0].patches  # the patch in row 1, column 2
    assert (outlined[0].get_x(), outlined[0].get_y()) == (7.5, 3.5)


def test_the_viewer_lays_words_over_the_picture():
    model = load(llava(), tokenizer=tokenizer(), processor=SQUARE)
    trace = capture(model, {**write([5, -16, 8]), **SQUARE([picture()], return_tensors="pt")})
    shown = make_source(trace).header()["sheets"][0]["picture"]
    assert (shown["rows"], shown["columns"]) == (4, 4)
    assert shown["keyRow"] == [-1, *(k // 4 for k in range(16)), -1]


def test_keys_of_which_nothing_is_known_are_not_laid_over_a_picture():
    network = transformers.AutoModel.from_config(
        transformers.AutoConfig.for_model("vit", **SMALL, image_size=16, patch_size=4)
    )
    trace = capture(load(network.eval(), processor=SQUARE), picture())
    (example,) = trace.examples
    assert example.place_patches(17) is not None
    assert example.place_patches(16 + 16) is None  # patches and as many others
