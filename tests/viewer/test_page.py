"""The viewer's page: one file, with a policy that allows no connection, from which every map can be read."""

import gzip
import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from html import unescape
from itertools import pairwise

import numpy as np
import pytest

import headscope as hs
from headscope.core.errors import InputError, OutputError
from headscope.viewer import page
from headscope.viewer.encode import decode_weights
from headscope.viewer.source import make_source
from tests.models import tiny

TEXT = "the cat sat on a mat and then it slept"
ELEMENT = re.compile(
    r'<script type="application/octet-stream" id="([^"]+)" data-offsets="([\d ]+)"(?: data-width="(\d)")?>'
    r"([^<]*)</script>"
)


@pytest.fixture(scope="module")
def maps():
    trace = hs.capture(tiny("bert"), TEXT)
    return [hs.view(trace, name) for name in ("raw", "effective")]


@pytest.fixture(scope="module")
def text(maps, tmp_path_factory):
    return hs.save(maps, tmp_path_factory.mktemp("page") / "page.html").read_text(encoding="utf-8")


def read_elements(text):
    """Return the blocks of each element, as the browser cuts them out."""
    blocks = {}
    for name, offsets, width, content in ELEMENT.findall(text):
        places = list(map(int, offsets.split()))
        pieces = [content[start:end] for start, end in pairwise(places)]
        blocks[name] = [read_piece(piece, int(width or 1)) if piece else None for piece in pieces]
    return blocks


def read_piece(piece, width):
    planes = gzip.decompress(b64decode(piece))
    count = len(planes) // width
    return bytes(planes[plane * count + number] for number in range(count) for plane in range(width))


def read_header(text):
    return json.loads(re.search(r'id="headscope-header">(.*?)</script>', text)[1])


def test_every_map_is_in_the_page(text, maps):
    blocks, header = read_elements(text), read_header(text)
    for lens, item in enumerate(maps):
        facts = header["sheets"][0]["lenses"][lens]
        for layer, head in np.ndindex(2, 4):
            content, scale = blocks[f"0/{lens}/map/{layer}"][head], facts["scales"][layer][head]
            weights = decode_weights(content, facts["codec"], scale, signed=facts["signed"])
            expected = item.layer(layer)[0, head].numpy().ravel()
            np.testing.assert_allclose(weights, expected, atol=5e-4)


@pytest.mark.parametrize(("codec", "width"), [("sqrt8", ""), ("float16", "2"), ("float32", "4")])
def test_a_page_holds_the_bytes_that_the_source_gives_in_every_codec(maps, tmp_path, codec, width):
    source = make_source(maps, codec=codec)
    page.write_viewer_page(source, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for layer, head in np.ndindex(2, 4):
        assert read_elements(text)[f"0/1/map/{layer}"][head] == source.block(f"0/1/map/{layer}/{head}")
    assert {found[2] for found in ELEMENT.findall(text) if "/map/" in found[0]} == {width}
    assert {found[2] for found in ELEMENT.findall(text) if "/thumbs" in found[0]} == {""}


def test_last_digits_that_are_noise_do_not_spoil_the_code_of_exponents():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.full(128, 0.3), 128).astype("<f2").tobytes()
    high, low = weights[1::2], weights[::2]
    together = len(page.compress_numbers(weights, 1))
    assert len(page.compress_numbers(weights, 2)) < 0.95 * together
    assert gzip.decompress(page.compress_numbers(weights, 2)) == low + high


def test_thumbnails_come_before_all_maps(text):
    names = [name for name, _, _, _ in ELEMENT.findall(text)]
    assert names[:2] == ["0/0/thumbs", "0/1/thumbs"]
    assert text.index('<script type="module" async>') < text.index('id="0/0/thumbs"')


def test_the_policy_allows_this_script_and_style_and_no_connection(text):
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1])
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert not {"connect-src", "frame-src", "object-src"} & set(rules)  # those of default-src
    for rule, pattern in (
        ("script-src", r'<script type="module" async>(.*?)</script>'),
        ("style-src", r"<style>(.*?)</style>"),
    ):
        content = re.search(pattern, text, re.DOTALL)[1]
        assert rules[rule] == f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def test_the_page_says_what_made_it(text):
    made = dict(read_header(text)["made"])
    assert made["made with"] == f"headscope {hs.__version__}"
    assert len(made["weights hash"]) >= 16


def test_tokens_cannot_end_the_script_around_them(tmp_path):
    evil = "</script><script>alert(1)</script><!--"
    trace = hs.Trace.of([np.full((1, 1, 2, 2), 0.5)], [evil, "<img src=x onerror=alert(1)>"])
    text = hs.save(hs.view(trace, "raw"), tmp_path / "page.html").read_text(encoding="utf-8")
    assert read_header(text)["sheets"][0]["queries"]["text"][0] == evil
    assert "<script>alert" not in text
    assert "<img" not in text


def test_the_same_maps_give_the_same_bytes(maps, tmp_path):
    first, second = (hs.save(maps, tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert first == second


def test_too_many_weights_are_refused_with_a_way_out(maps, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "MAX_WEIGHTS", 1000)
    with pytest.raises(InputError, match=r"a page holds at most 1,000\. Choose layers or heads with maps\.sel"):
        hs.save(maps, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_result_is_a_page_too(tmp_path):
    data = hs.measure(tiny("bert"), [TEXT, "it slept"], statistics=["entropy"], progress=False)
    text = hs.save(data, tmp_path / "result.html").read_text(encoding="utf-8")
    header = read_header(text)
    assert header["result"]["kind"] == "measurement"
    assert read_elements(text)[header["result"]["figures"][0]["block"]][0].startswith(b"<?xml")


def test_what_has_a_page_of_its_own_is_saved_as_one(tmp_path):
    class Shown:
        def write_page(self, path):
            path.write_text("shown")

    assert hs.save(Shown(), tmp_path / "shown.html").read_text() == "shown"
    with pytest.raises(OutputError, match=r"A viewer is saved as \.html, but 'shown\.pdf' ends in '\.pdf'"):
        hs.save(Shown(), tmp_path / "shown.pdf")
