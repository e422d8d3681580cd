"""Many heads and long texts: all of them are visible, and one head's map is read when it is looked at."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import headscope as hs
from headscope.viewer import long_input
from headscope.viewer.encode import THUMB_BYTES, decode_thumbnail, decode_weights
from headscope.viewer.long_input import open_long_input
from tests.browser import browser
from tests.models import SIZE, text, tokenizer
from tests.viewer.known import Known, find_cells, read_number


@browser
def test_144_heads_of_512_tokens_are_one_page_that_shows_them_all(shown, tmp_path):
    generator = torch.Generator().manual_seed(0)
    attention = [torch.softmax(3 * torch.randn(1, 12, 512, 512, generator=generator), -1) for _ in range(12)]
    maps = hs.view(hs.Trace.of(attention, [f"w{index}" for index in range(512)]), "raw")
    known = Known(hs.save(maps, tmp_path / "page.html"), {"raw": maps})
    assert known.path.stat().st_size < 30e6
    shown.open(known.path)
    names = {spot.lines[0] for spot in shown.scan("All heads", [0, 1200, 12], [0, 1300, 12])}
    assert names == {f"L{layer}H{head}" for layer in range(12) for head in range(12)}
    assert shown.page.evaluate("() => document.querySelectorAll('*').length") < 2000
    shown.open(known.path, view="head", layer=11, head=7)
    cells = find_cells(shown.scan("Attention map", [200, 260, 9], [200, 260, 9]), known.tokens, known.keys)
    assert len(cells) > 40
    weights = known.weights("raw", 11, 7)
    for place, spot in cells.items():
        value, error = spot.lines[1].split(" ± ")
        assert abs(read_number(value) - weights[place]) <= float(error) + 10 ** -(len(error) - 2)


def build_llama(layers, heads):
    """Build a narrow decoder with many heads."""
    torch.manual_seed(0)
    shape = {"num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": heads // 4}
    sizes = {"hidden_size": 64, "head_dim": 4, "intermediate_size": 64, "max_position_embeddings": 4096}
    network = transformers.LlamaModel(transformers.LlamaConfig(**SIZE, **sizes, **shape)).eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(6 if weight.ndim > 1 else 1)
    return hs.load(network, tokenizer=tokenizer())


def run_eagerly(model, words, layer):
    """Return the attention of one layer, `head query key`, as transformers computes it."""
    kept = []
    keep = model.network.layers[layer].self_attn.register_forward_hook(lambda *call: kept.append(call[2][1][0]))
    model.network.set_attn_implementation("eager")
    with torch.no_grad():
        model.network(**model.tokenizer(words, return_tensors="pt", return_token_type_ids=False))
    keep.remove()
    return kept[0].numpy()


def check_long_input(layers, heads, tokens):
    """Compare the thumbnails of all heads and the map of one with what transformers computes."""
    model, words = build_llama(layers, heads), text(tokens - 2)
    source = open_long_input(model, words)
    sheet = source.header()["sheets"][0]
    assert (len(sheet["layers"]), len(sheet["heads"]), len(sheet["queries"]["text"])) == (layers, heads, tokens)
    facts = sheet["lenses"][0]
    shape = (layers, heads, facts["thumbs"]["rows"], facts["thumbs"]["columns"])
    thumbs = decode_thumbnail(source.block("0/0/thumbs"), signed=False).reshape(shape)
    assert (np.isnan(thumbs) == np.isnan(thumbs[0, 0])).all()
    assert np.isnan(thumbs[0, 0, 0, -1])  # of keys that the first queries cannot see
    layer, head = layers - 1, heads // 2
    weights, scale = run_eagerly(model, words, layer)[head], facts["scales"][layer][head]
    assert scale == pytest.approx(weights.max(), rel=1e-4)
    shown = decode_weights(source.block(f"0/0/map/{layer}/{head}"), "sqrt8", scale, signed=False)
    assert np.abs(shown - weights.ravel()).max() <= scale / 255 * 1.01
    np.testing.assert_allclose(np.nanmax(thumbs[layer, head]) * scale, scale)
    return source


def test_the_maps_of_a_long_text_are_read_one_by_one(monkeypatch):
    monkeypatch.setattr(long_input, "MAX_WEIGHTS", 2**16)  # four heads at a time
    check_long_input(6, 8, 200)


@browser
def test_1024_heads_are_all_visible(shown, tmp_path):
    attention = [torch.softmax(torch.randn(1, 32, 24, 24), -1) for _ in range(32)]
    maps = hs.view(hs.Trace.of(attention, [f"w{index}" for index in range(24)]), "raw")
    shown.open(hs.save(maps, tmp_path / "page.html"))
    spots = {spot.lines[0]: spot for spot in shown.scan("All heads", [0, 1280, 8], [0, 1400, 8])}
    assert spots.keys() == {f"L{layer}H{head}" for layer in range(32) for head in range(32)}
    assert len({spot.color for spot in spots.values()}) > 100
    assert read_number(spots["L17H5"].lines[1]) == pytest.approx(float(attention[17][0, 5].max()), rel=6e-3)


def read_peak() -> int:
    """Return the most memory that this process held since `forget_peak`, in bytes."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells the peak of memory")
def test_1024_heads_of_2048_tokens_never_hold_all_weights():
    forget_peak()
    before = read_peak()
    source = check_long_input(32, 32, 2048)
    assert len(source.block("0/0/thumbs")) <= THUMB_BYTES
    assert read_peak() - before < 2.5e9  # all weights are 17 GB for each lens
