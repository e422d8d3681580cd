"""Pictures in, patches as tokens."""

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import ViTImageProcessorPil

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.load import load
from headscope.plotting.draw import draw
from headscope.results.store import open_result, save
from tests.models import network, text, tiny


def processor():
    """As `ViTImageProcessor` is where torchvision is not installed."""
    return ViTImageProcessorPil(size={"height": 12, "width": 12})


def picture(seed=0, high=20, wide=30):
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (high, wide, 3), dtype=np.uint8))


MODEL = load(network("vit"), processor=processor())


def test_patches_are_named_by_row_and_column():
    trace = capture(MODEL, picture())
    assert trace.keys.text == [["[CLS]", "0,0", "0,1", "0,2", "1,0", "1,1", "1,2", "2,0", "2,1", "2,2"]]
    assert trace.queries.special.tolist() == [[True, *[False] * 9]]
    assert trace.examples[0].text == "image"


def test_an_image_equals_its_pixel_values():
    pixels = processor()(picture(), return_tensors="pt")
    assert torch.equal(capture(MODEL, picture()).attention[1], capture(tiny("vit"), pixels).attention[1])


def test_paths_and_images_can_be_mixed(tmp_path):
    picture(1).save(tmp_path / "one.png")
    picture(2).convert("L").save(tmp_path / "grey.png")
    trace = capture(MODEL, [tmp_path / "one.png", str(tmp_path / "grey.png"), picture(1)])
    assert [example.text for example in trace.examples] == ["one.png", "grey.png", "image"]
    assert torch.equal(trace.attention[0][0], trace.attention[0][2])


def test_maps_hold_the_image_as_the_model_saw_it(tmp_path):
    data = view(capture(MODEL, picture(high=12, wide=12)), "raw").dataset()
    assert np.array_equal(data["picture"], np.asarray(picture(high=12, wide=12)))
    assert data["key_row"].values.tolist() == [-1, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert data["key_column"].values.tolist() == [-1, 0, 1, 2, 0, 1, 2, 0, 1, 2]
    assert open_result(save(data, tmp_path / "a.nc"))["picture"].dtype == np.uint8


def test_two_lenses_are_drawn_over_one_image():
    trace = capture(MODEL, picture())
    assert draw([view(trace, "raw"), view(trace, "effective")], "compare").axes


def test_the_image_processor_is_loaded_from_the_folder(tmp_path):
    network("vit").save_pretrained(tmp_path)
    processor().save_pretrained(tmp_path)
    model = load(tmp_path, device="cpu")
    assert model.tokenizer is None
    assert torch.equal(capture(model, picture()).attention[0], capture(MODEL, picture()).attention[0])


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        ([], r"There is no picture: the list is empty"),
        ("nowhere.png", r"There is no picture nowhere\.png\. Give the path of a file here"),
        (__file__, r"test_images\.py is not a picture that PIL can read\. Give a PNG or JPEG"),
        ([3], r"Cannot read item 0, a int: it must be a path or a PIL image"),
    ],
)
def test_invalid_images_are_an_error(images, sentence):
    with pytest.raises(InputError, match=sentence):
        capture(MODEL, images)


def test_without_a_processor_only_pixel_values_can_be_read():
    with pytest.raises(
        InputError, match=r"no image processor\. Give one to hs\.load.* hs\.capture, but not hs\.measure"
    ):
        capture(tiny("vit"), picture())


def test_text_options_with_images_are_an_error():
    with pytest.raises(InputError, match="A picture goes in whole and alone"):
        capture(MODEL, picture(), pad_to=9)


def test_an_image_for_a_language_model_is_an_error():
    with pytest.raises(InputError, match=r"BertModel reads texts, but this Image is a picture"):
        capture(tiny("bert"), [picture()])
    assert capture(tiny("bert"), text(3)).examples[0].columns == {}
