"""One head in Chromium: every cell has the color and the number that Python computed."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import headscope as hs
from tests.browser import browser
from tests.models import tiny
from tests.viewer.known import (
    PAIR,
    TEXT,
    Known,
    find_cells,
    read_number,
    rounded,
    write_maps,
    write_picture,
    write_text,
)
from tests.viewer.pages import COLORS, colors_of, is_color

pytestmark = browser
HEAT = "Attention map"
HEAT_CANVAS = f'canvas[aria-label^="{HEAT}"]'
SIDES = ("clientWidth", "clientHeight")
SPLIT = "The footballer Severson understood bodyboarding pioneers, and nobody saw it near Honolulu."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def bert(folder):
    return write_text(folder / "bert.html")


@pytest.fixture(scope="module")
def split(folder):
    """A text with words of several tokens."""
    trace = hs.capture(hs.load(), SPLIT)
    return write_maps(folder / "split.html", [hs.view(trace, name) for name in ("raw", "effective")])


def check_cells(shown, known, lens, layer, head, theme="light"):
    """Compare the color and the tooltip of every cell with Python."""
    weights, limit = known.weights(lens, layer, head), known.limit(lens, layer, head)
    cells = find_cells(shown.scan(HEAT), known.tokens, known.keys)
    assert len(cells) == weights.size
    signed = known.maps[lens].signed
    for place, spot in cells.items():
        if np.isnan(weights[place]):
            assert spot.lines[1] == "masked: this query cannot see this key"
            continue
        expected = colors_of(weights[place], limit, signed=signed, theme=theme)
        assert is_color(spot.color, expected), (place, spot, expected)
        assert abs(read_number(spot.lines[1]) - weights[place]) <= rounded(weights[place])


@pytest.mark.parametrize(
    ("lens", "theme"),
    [("raw", "light"), ("raw", "dark"), ("effective", "light"), ("effective", "dark"), ("norm", "light")],
)
def test_every_cell_has_its_color_and_its_number(shown, bert, lens, theme):
    shown.open(bert.path, view="head", lens=lens, layer=1, head=2, theme=theme)
    check_cells(shown, bert, lens, 1, 2, theme)


def test_a_lens_with_one_map_per_layer_shows_it(shown, bert):
    shown.open(bert.path, view="head", lens="rollout", layer=1, head=3)
    assert shown.reading.startswith("layer 1, rollout: ")
    check_cells(shown, bert, "rollout", 1, 0)


def test_masked_cells_are_drawn_as_masked_and_not_as_zero(shown, folder):
    for kind in ("llama", "mistral"):
        known = write_text(folder / f"{kind}.html", kind, lenses=("raw",))
        shown.open(known.path, view="head", layer=1, head=2)
        check_cells(shown, known, "raw", 1, 2)
        masked = [tuple(int(COLORS["light"][name][i : i + 2], 16) for i in (1, 3, 5)) for name in ("masked", "hatch")]
        low, high = np.sort(masked, axis=0)
        for (query, key), spot in find_cells(shown.scan(HEAT), known.tokens, known.keys).items():
            if np.isnan(known.weights("raw", 1, 2)[query, key]):
                assert (low - 1 <= spot.color).all()
                assert (spot.color <= high + 1).all()


def test_the_mouse_points_at_what_is_drawn_below_it(shown, bert):
    shown.open(bert.path, view="head", lens="raw", layer=0, head=1)
    frame = shown.page.locator(HEAT_CANVAS).bounding_box()
    cells = find_cells(shown.scan(HEAT), bert.tokens, bert.keys)
    left, top, right, bottom = cells[3, 5].box
    shown.page.mouse.move(frame["x"] + (left + right) / 2, frame["y"] + (top + bottom) / 2)
    tip = shown.page.locator(".hs-tip")
    assert "“sat” → “a”" in tip.inner_text()
    assert read_number(tip.inner_text().splitlines()[1]) == pytest.approx(bert.weights("raw", 0, 1)[3, 5], abs=6e-5)
    shown.act(lambda: shown.page.mouse.click(frame["x"] + (left + right) / 2, frame["y"] + (top + bottom) / 2))
    assert shown.state["tokens"] == "3"


def test_one_byte_a_weight_is_shown_with_an_error_that_holds(shown, folder, bert):
    known = write_maps(folder / "bytes.html", [bert.maps["raw"], bert.maps["effective"]], codec="sqrt8")
    for lens in ("raw", "effective"):
        weights = known.weights(lens, 1, 3)
        shown.open(known.path, view="head", lens=lens, layer=1, head=3)
        for place, spot in find_cells(shown.scan(HEAT), known.tokens, known.keys).items():
            value, error = spot.lines[1].split(" ± ")
            assert abs(read_number(value) - weights[place]) <= float(error) + 10 ** -(len(error) - 2)
            around = [weights[place] - float(error), weights[place] + float(error)]
            low, high = np.sort(colors_of(around, known.limit(lens, 1, 3), signed=lens == "effective"), axis=0)
            assert (low - 4 <= spot.color).all()
            assert (spot.color <= high + 4).all()


def read_matrix(rows, quantity):
    """Return the tokens and the weights of a CSV of one head."""
    queries, keys = (
        list(dict.fromkeys((row[side], row[f"{side} token"]) for row in rows)) for side in ("query", "key")
    )
    weights = np.array([float(row[quantity] or "nan") for row in rows]).reshape(len(queries), len(keys))
    return [text for _, text in queries], [text for _, text in keys], weights


def test_words_are_those_of_python(shown, split):
    words = hs.to_words(split.maps["effective"])
    shown.open(split.path, view="head", lens="effective", layer=3, head=4, words=1)
    queries, keys, weights = read_matrix(shown.export_csv(), "effective attention")
    assert queries == keys == words.queries.text[0]
    assert len(queries) < len(split.tokens)
    np.testing.assert_allclose(weights, words.layer(3)[0, 4].numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("words", [0, 1])
def test_hiding_special_tokens_states_the_hidden_mass(shown, split, words):
    shown.open(split.path, view="head", lens="effective", layer=3, head=4, words=words)
    shown.press("s")
    assert shown.state["special"] == "0"
    special = split.maps["effective"].queries.special[0].numpy()
    rows = np.abs(split.weights("effective", 3, 4))[~special]
    mass = rows[:, special].sum() / rows.sum()
    assert f"{100 * mass:.0f} % of the weight of the rows shown goes to hidden special tokens." in shown.reading
    queries, _, _ = read_matrix(shown.export_csv(), "effective attention")
    assert not {"[CLS]", "[SEP]"} & set(queries)


@pytest.mark.parametrize(("chosen", "rows"), [([3, 4], "these rows"), ([6], "this row")])
def test_hiding_special_tokens_states_the_mass_of_the_chosen_rows(shown, split, chosen, rows):
    tokens = ",".join(map(str, chosen))
    shown.open(split.path, view="head", lens="effective", layer=3, head=4, tokens=tokens, special=0)
    special = split.maps["effective"].queries.special[0].numpy()
    weights = np.abs(split.weights("effective", 3, 4))
    shares = [part[:, special].sum() / part.sum() for part in (weights[chosen], weights[~special])]
    assert abs(shares[0] - shares[1]) > 0.02
    assert f"{100 * shares[0]:.0f} % of the weight of {rows} goes to hidden special tokens." in shown.reading


@pytest.mark.parametrize("side", ["query", "key"])
def test_several_tokens_are_summed(shown, bert, side):
    chosen = [2, 5, 9]
    shown.open(bert.path, view="head", lens="raw", layer=1, head=0, tokens=",".join(map(str, chosen)), side=side)
    weights = bert.weights("raw", 1, 0)
    sums = weights[chosen].sum(0) if side == "query" else weights[:, chosen].sum(1)
    verb = "together attend to" if side == "query" else "together are attended to by"
    names = [bert.tokens[index] for index in np.argsort(-sums)[:3]]
    (said,) = re.findall(f"“cat”, “a” and “it” {verb} (.*?)\\. ", shown.reading)
    found = re.findall("“([^”]+)” ([0-9]+[.][0-9]+)", said)
    assert [name for name, _ in found] == names
    assert [float(number) for _, number in found] == pytest.approx(sorted(sums)[:-4:-1], abs=6e-3)
    strip = {spot.lines[0]: spot for spot in shown.scan("Query tokens", [0, 1000, 1], [12, 13, 1])}
    limit = max(sums.max(), bert.limit("raw", 1, 0))
    for index in set(range(len(sums))) - set(chosen):
        left = strip[f"“{bert.tokens[index]}” · token {index}"].box[0]
        assert is_color(shown.pixel("Query tokens", left + 3, 13), colors_of(sums[index], limit))


def test_links_are_the_largest_weights_of_each_row_up_to_the_mass(shown, bert):
    shown.open(bert.path, view="head", lens="raw", layer=1, head=2, tokens=4, mass=0.6)
    row = np.sort(bert.weights("raw", 1, 2)[4])[::-1]
    count = 1 + int((np.cumsum(row) < 0.6 * row.sum() - 1e-6).sum())
    svg = shown.export("Vectors (SVG)").decode()
    assert svg.count("C") >= count
    assert len(re.findall(r'<path[^>]* d="M[^"]*C', svg)) == count


def test_the_difference_is_shown_while_d_is_held(shown, bert):
    shown.open(bert.path, view="head", lens="effective", layer=1, head=2)
    shown.act(lambda: shown.page.keyboard.down("d"))
    difference = bert.weights("effective", 1, 2) - bert.weights("raw", 1, 2)
    cells = find_cells(shown.scan(HEAT), bert.tokens, bert.keys)
    for place, spot in cells.items():
        found = float(re.search(" = ([−0-9.e-]+)", spot.lines[1])[1].replace("−", "-"))
        assert abs(found - difference[place]) <= rounded(difference[place]) + 1e-4
    shown.act(lambda: shown.page.keyboard.up("d"))
    check_cells(shown, bert, "effective", 1, 2)


@pytest.mark.parametrize("lens", ["raw", "effective"])
def test_a_difference_is_read_as_one(shown, bert, lens):
    shown.open(bert.path, view="head", lens=lens, layer=1, head=2, tokens=4)
    assert " attends to " in shown.reading
    shown.act(lambda: shown.page.keyboard.down("d"))
    row = (bert.weights("effective", 1, 2) - bert.weights("raw", 1, 2))[4]
    said = re.match(
        r"L1H2, effective − raw: the largest differences from “\S+” are to “(\S+)” ([−\d.]+)", shown.reading
    )
    largest = int(np.abs(row).argmax())
    assert said[1] == bert.keys[largest]
    assert float(said[2].replace("−", "-")) == pytest.approx(row[largest], abs=6e-3)
    shown.act(lambda: shown.page.keyboard.up("d"))
    assert " attends to " in shown.reading


def test_lenses_of_other_units_have_no_difference(shown, bert):
    shown.open(bert.path, view="head", lens="norm", layer=1, head=2)
    shown.page.keyboard.down("d")
    assert shown.reading.startswith("norm and raw have different units")
    shown.page.keyboard.up("d")
    check_cells(shown, bert, "norm", 1, 2)


def test_the_csv_holds_the_whole_map_or_what_is_selected(shown, bert):
    shown.open(bert.path, view="head", lens="raw", layer=1, head=2)
    cells = find_cells(shown.scan(HEAT), bert.tokens, bert.keys)
    frame = shown.page.locator(HEAT_CANVAS).bounding_box()
    shown.page.mouse.move(frame["x"] + cells[3, 5].box[0] + 2, frame["y"] + cells[3, 5].box[1] + 2)
    shown.page.keyboard.press("Shift+ArrowDown")
    assert len(shown.export_csv()) == len(cells)
    shown.open(bert.path, view="head", lens="raw", layer=1, head=2, tokens="2,5")
    rows = shown.export_csv()
    assert {row["query"] for row in rows} == {"2", "5"}
    shown.wait("document.querySelector('.hs-reading').textContent.endsWith('only from the 2 selected tokens.')")


def test_equal_weights_are_said_to_tie(shown, folder):
    weights = np.full((1, 1, 8, 8), 1 / 8, np.float32)
    known = write_maps(folder / "equal.html", [hs.view(hs.Trace.of([weights], list("abcdefgh")), "raw")])
    shown.open(known.path, view="head")
    assert "all 8 tokens, which tie at 0.13" in shown.reading


def test_nothing_left_is_said_with_its_reason(shown, bert):
    shown.open(bert.path, view="head", special=0, start=0, count=1)
    assert "No token is left: the window has special tokens only, and these are hidden." in shown.reading
    assert not shown.page.locator(HEAT_CANVAS).is_visible()
    assert not shown.problems


def test_a_new_reading_is_spoken(shown, bert):
    shown.open(bert.path, view="head", lens="raw", layer=0, head=0)
    assert not shown.text("[aria-live]")
    shown.press("ArrowDown", "s")
    shown.wait("document.querySelector('[aria-live]').textContent.startsWith('L1H0, raw')")
    assert shown.text("[aria-live]") == shown.reading


def test_bars_beside_the_map_have_their_numbers(shown, bert):
    shown.open(bert.path, view="head", lens="raw", layer=1, head=2)
    weights = bert.weights("raw", 1, 2)
    cells = find_cells(
        shown.scan(HEAT)[:0] or [s for s in shown.scan(HEAT) if "→" in s.lines[0]], bert.tokens, bert.keys
    )
    left, _, right, bottom = cells[18, 4].box
    (spot,) = shown.scan(HEAT, [(left + right) // 2, (left + right) // 2 + 1, 1], [bottom + 14, bottom + 15, 1])
    assert spot.lines[1].startswith("mean weight to it: ")
    assert read_number(spot.lines[1]) == pytest.approx(weights[:, 4].mean(), rel=6e-3)


@pytest.fixture(scope="module")
def sites(folder):
    """All attention of an encoder-decoder model: one page, whose sheets are known."""
    maps = [hs.view(hs.capture(tiny("t5"), TEXT, PAIR, site=site), "raw") for site in ("encoder", "decoder", "cross")]
    path = hs.save(maps, folder / "t5.html")
    return [Known(path, {"raw": each}) for each in maps]


def test_encoder_decoder_and_cross_attention_of_one_input(shown, sites):
    shown.open(sites[0].path, view="head", layer=1, head=3)
    for index, (known, site) in enumerate(zip(sites, ("encoder", "decoder", "cross"), strict=True)):
        if index:
            shown.act(lambda index=index: shown.page.get_by_label("Maps").select_option(str(index)))
        assert f"{site} attention" in shown.text(".hs-facts")
        sides = [each.inner_text() for each in shown.page.locator(".hs-side").all() if each.is_visible()]
        assert sides == (["queries", "keys"] if site == "cross" else [])
        check_cells(shown, known, "raw", 1, 3)


def test_a_picture_shows_the_weights_of_its_patches(shown, folder):
    known, pixels = write_picture(folder / "vit.html")
    shown.open(known.path, view="head", layer=1, head=2, tokens=5)
    row = known.weights("raw", 1, 2)[5]
    side = shown.page.locator("canvas[aria-label^='Weights of the patches']").bounding_box()["width"]
    light = pixels[1::4, 1::4] @ np.array([0.3, 0.59, 0.11])
    for patch, weight in enumerate(row[1:]):
        if patch == 4:
            continue  # framed, as it is chosen
        down, across = divmod(patch, 3)
        x, y = (across + 1.5 / 4) / 3 * side, (down + 1.5 / 4) / 3 * side  # the second pixel of four
        assert is_color(shown.pixel("The picture", x, y), pixels[4 * down + 1, 4 * across + 1], 1)
        expected = 0.68 * colors_of(weight, row[1:].max()) + 0.32 * (110 + 0.57 * light[down, across])
        assert is_color(shown.pixel("Weights of the patches", x, y), expected)
    caption = shown.text(".hs-picture figcaption")
    assert f"{100 * row[0]:.0f} % of the weight is on “[CLS]”, which is no patch." in caption
    assert "“row,column”" in caption


def test_a_long_text_has_a_window_and_is_searched(shown, folder):
    weights = np.random.default_rng(0).dirichlet(np.ones(300), (1, 2, 300)).astype(np.float32)
    trace = hs.Trace.of([weights], [f"w{index}" for index in range(300)])
    known = write_maps(folder / "long.html", [hs.view(trace, "raw")])
    shown.open(known.path, view="head", head=1, start=40, count=16)
    outside = 1 - weights[0, 1, 40:56, 40:56].sum() / 16
    assert (
        f"{100 * outside:.0f} % of the weight of the rows shown goes to tokens outside of the window." in shown.reading
    )
    queries, _, found = read_matrix(shown.export_csv(), "attention weight")
    assert queries == [f"w{index}" for index in range(40, 56)]
    np.testing.assert_allclose(found, weights[0, 1, 40:56, 40:56], rtol=1e-3, atol=1e-6)
    shown.press("]")
    assert shown.state["start"] == "48"
    shown.page.keyboard.press("/")
    shown.page.keyboard.type("w250")
    shown.wait("document.querySelector('.hs-reading').textContent.includes('“w250” attends')")
    assert shown.state["tokens"] == "250"
    assert int(shown.state["start"]) <= 250 < int(shown.state["start"]) + 16
    cells = find_cells(shown.scan(HEAT), known.tokens, known.keys)
    assert len(cells) == 16**2
    assert read_number(cells[250, 251].lines[1]) == pytest.approx(weights[0, 1, 250, 251], abs=6e-5)


def test_no_large_weight_is_lost_where_cells_are_smaller_than_pixels(shown, folder):
    weights = np.zeros((1, 1, 900, 900), np.float32)
    weights[0, 0, 300, 600] = 0.7
    known = write_maps(folder / "peak.html", [hs.view(hs.Trace.of([weights], [f"w{i}" for i in range(900)]), "raw")])
    shown.open(known.path, view="head")
    width, height = (shown.page.evaluate(f"() => document.querySelector('{HEAT_CANVAS}').{side}") for side in SIDES)
    row = next(spot.box[1] for spot in shown.scan(HEAT, [300, 301, 1], [0, height, 1]) if "“w300”" in spot.lines[0])
    column = next(spot.box[0] for spot in shown.scan(HEAT, [0, width, 1], [300, 301, 1]) if "“w600”" in spot.lines[0])
    near = [shown.pixel(HEAT, column + right, row + down) for right in (-1, 0, 1) for down in (-1, 0, 1)]
    assert any(is_color(color, colors_of(0.7, 0.7)) for color in near)


def test_a_drag_shows_a_part_of_the_map_and_a_double_click_the_whole(shown, bert):
    shown.open(bert.path, view="head", lens="raw", layer=1, head=2)
    frame = shown.page.locator(HEAT_CANVAS).bounding_box()
    cells = find_cells(shown.scan(HEAT), bert.tokens, bert.keys)
    for place, act in (((4, 6), shown.page.mouse.down), ((9, 12), shown.page.mouse.up)):
        left, top, right, bottom = cells[place].box
        shown.page.mouse.move(frame["x"] + (left + right) / 2, frame["y"] + (top + bottom) / 2)
        act()
    zoomed = find_cells(shown.scan(HEAT), bert.tokens, bert.keys)
    assert zoomed.keys() == {(row, column) for row in range(4, 10) for column in range(6, 13)}
    weights, limit = bert.weights("raw", 1, 2), bert.limit("raw", 1, 2)
    assert all(is_color(spot.color, colors_of(weights[place], limit)) for place, spot in zoomed.items())
    shown.page.get_by_role("button", name="Whole map").click()
    assert len(find_cells(shown.scan(HEAT), bert.tokens, bert.keys)) == weights.size


def test_some_layers_and_heads_keep_their_names(shown, folder, bert):
    some = bert.maps["raw"].sel(layer=[1], head=[0, 2])
    path = hs.save(some, folder / "some.html")
    shown.open(path)
    assert {spot.lines[0] for spot in shown.scan("All heads")} == {"L1H0", "L1H2"}
    shown.press("ArrowRight", "Enter")
    assert shown.reading.startswith("L1H2, raw: ")
    check_cells(shown, bert, "raw", 1, 2)


def test_a_head_without_numbers_says_so(shown, folder, bert):
    maps = bert.maps["raw"]
    parts = [layer.clone() for layer in maps.parts]
    parts[1][0, 2] = torch.nan
    shown.open(hs.save(replace(maps, parts=parts), folder / "broken.html"), view="head", layer=1, head=2)
    assert "L1H2 has no map: it was pruned, or its attention is not a number." in shown.reading
    assert not shown.page.locator(HEAT_CANVAS).is_visible()
    shown.press("ArrowRight")
    check_cells(shown, bert, "raw", 1, 3)


def test_what_attends_to_a_token_of_the_other_text(shown, sites):
    known = sites[2]
    shown.open(known.path, view="head", sheet=2, layer=1, head=3, side="key", tokens=4)
    column = known.weights("raw", 1, 3)[:, 4]
    names = [known.tokens[index] for index in np.argsort(-column)[:3]]
    said = re.findall("“([^”]+)” ([0-9]+[.][0-9]+)", shown.reading.partition("is attended to by")[2])
    assert [name for name, _ in said] == names
    assert [float(number) for _, number in said] == pytest.approx(sorted(column)[:-4:-1], abs=6e-3)
