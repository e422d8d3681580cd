"""Every view in Chromium: a drawn value, the keyboard alone, its words and table, its address and its exports."""

import dataclasses
import json
import re
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from matplotlib.image import imread

import headscope as hs
from headscope.display.still import read_thumbs
from headscope.viewer.encode import THUMB_STEPS
from headscope.viewer.result import show_dataset
from headscope.viewer.source import make_source
from tests.browser import browser
from tests.laws.test_kinds import MAKE
from tests.models import tiny
from tests.viewer.known import LENSES, PAIR, TEXT, Known, find_cells, read_number, rounded
from tests.viewer.pages import COLORS, VIEWS, colors_of, is_color

pytestmark = browser
LONG = (
    "The unbelievable footballer Severson kicked a ball over the tall fence near Honolulu, and nobody in that crowded "
    "stadium understood how bodyboarding pioneers could possibly have celebrated it so quietly."
)
CANVAS = {
    "grid": "All heads",
    "head": "Attention map",
    "compare": "Attention map of effective − raw",
    "matrix": "One number of every head",
    "layers": "Attention through the layers",
    "models": "Attention map of electra − bert",
}
STATES = {
    "grid": {"lens": "effective", "scalar": "share", "sort": "scalar", "layer": 1, "head": 2},
    "head": {"lens": "effective", "layer": 1, "head": 2, "tokens": "3,4", "special": 0, "mass": 0.6},
    "compare": {"layer": 1, "head": 3, "tokens": "2", "side": "key"},
    "matrix": {"scalar": "share", "sort": "scalar"},
    "layers": {"tokens": "5", "mass": 0.5},
    "models": {"layer": 1, "head": 1, "lens": "effective"},
    "result": {},
}
LABELS = "() => [...document.querySelectorAll('canvas[aria-label]')].filter(each => each.getClientRects().length)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def traces():
    return {kind: hs.capture(tiny(kind), TEXT) for kind in ("bert", "electra")}


@pytest.fixture(scope="module")
def models(folder, traces):
    """Two models on one text, through all lenses: every view but that of a result."""
    maps = {kind: [hs.view(trace, lens) for lens in LENSES] for kind, trace in traces.items()}
    path = hs.save(maps, folder / "models.html")
    return [Known(path, {each.lens: each for each in group}) for group in maps.values()]


@pytest.fixture(scope="module")
def data():
    examples = [TEXT, PAIR, "it was tired", "dog ran"]
    return hs.measure(
        tiny("bert"), examples, statistics=["entropy", "patterns"], lens=["raw", "effective"], progress=False
    )


@pytest.fixture(scope="module")
def result(folder, data):
    return hs.save(data, folder / "result.html")


@pytest.fixture(scope="module")
def short(folder):
    """A text of fewer tokens than a head has value dimensions."""
    return hs.save(hs.capture(tiny("bert"), PAIR), folder / "short.html")


@pytest.fixture(scope="module")
def open_view(shown, models, result):
    """Open a view in a state of its own."""

    def open_view(view, **state):
        path = result if view == "result" else models[0].path
        return shown.open(path, view=view, **{**STATES[view], **state})

    return open_view


def find_spot(spots, name):
    """Return what has this first line."""
    (found,) = [spot for spot in spots if spot.lines[0] == name]
    return found


class TestDrawnValues:
    def test_a_small_picture_in_the_grid_has_the_colors_of_its_head(self, open_view, models):
        for lens, theme in (("raw", "light"), ("effective", "dark")):
            shown = open_view("grid", lens=lens, theme=theme, sort="layer", scalar="")
            source = make_source(list(models[0].maps.values()))
            facts = source.header()["sheets"][0]["lenses"][LENSES.index(lens)]
            thumbs = read_thumbs(source, 0, LENSES.index(lens))
            left, top, right, _ = find_spot(shown.scan("All heads"), "L1H2").box
            left, _, right, _ = find_spot(
                shown.scan("All heads", [left - 6, right + 6, 1], [top, top + 1, 1]), "L1H2"
            ).box
            spot = find_spot(shown.scan("All heads", [left, left + 1, 1], [top - 6, top + 1, 1]), "L1H2")
            assert read_number(spot.lines[1]) == pytest.approx(facts["scales"][1][2], rel=6e-3)
            top, side = spot.box[1], (right - left - 1) / 19  # a frame belongs to the cell
            for query, key in ((2, 3), (7, 11), (18, 0)):
                color = shown.pixel("All heads", left + (key + 0.5) * side, top + (query + 0.5) * side)
                weight = models[0].weights(lens, 1, 2)[query, key]
                roots = np.sqrt(np.abs([thumbs[1, 2, query, key], weight]) / facts["scales"][1][2])
                assert abs(roots[0] - roots[1]) <= 0.5 / THUMB_STEPS[lens != "raw"] + 1 / 127
                expected = colors_of(thumbs[1, 2, query, key], facts["limit"], signed=lens != "raw", theme=theme)
                assert is_color(color, expected)

    def test_a_number_covers_no_cell_of_the_diagonal(self, open_view):
        spots = open_view("grid", lens="raw", scalar="", sort="layer").scan("All heads")
        left, top, right, _ = find_spot(spots, "L1H2").box
        side = (right - left) / 19
        places = [(left + (index + 0.5) * side, top + (index + 0.5) * side) for index in range(1, 18)]
        shown = open_view("grid", lens="raw", scalar="share", sort="layer")
        numbered = [shown.pixel("All heads", x, y) for x, y in places]
        beside = shown.column("All heads", right - 8, top + 2, 14)
        shown = open_view("grid", lens="raw", scalar="", sort="layer")
        assert [shown.pixel("All heads", x, y) for x, y in places] == numbered
        assert (shown.column("All heads", right - 8, top + 2, 14) != beside).any()

    def test_heads_are_sorted_by_their_number(self, open_view, models):
        shown = open_view("grid", scalar="share", sort="scalar")
        share = models[0].maps["effective"].diagnostics["share"][0].numpy()
        order = [f"L{place // 4}H{place % 4}" for place in np.argsort(-share.ravel())]
        rows = [f"L{row['layer']}H{row['head']}" for row in shown.export_csv()]
        assert rows == order
        spots = shown.scan("All heads")
        assert [spot.lines[0] for spot in sorted(spots, key=lambda spot: (spot.box[1] // 20, spot.box[0]))] == order

    def test_lenses_and_their_difference_share_a_scale_and_a_cursor(self, open_view, models):
        shown = open_view("compare", lens="effective", layer=1, head=3)
        raw, effective = (models[0].weights(lens, 1, 3) for lens in ("raw", "effective"))
        limit = max(models[0].limit(lens, 1, 3) for lens in ("raw", "effective"))
        panels = {"raw": (raw, False), "effective": (effective, True), "effective − raw": (effective - raw, True)}
        for panel, (weights, signed) in panels.items():
            cells = find_cells(shown.scan(f"Attention map of {panel}"), models[0].tokens, models[0].keys)
            assert len(cells) == weights.size
            for place, spot in cells.items():
                assert is_color(spot.color, colors_of(weights[place], limit, signed=signed), 5)
                for line, expected in zip(spot.lines[1:], (raw, effective, None, effective - raw), strict=True):
                    if expected is not None:
                        assert abs(read_number(line) - expected[place]) <= rounded(expected[place]) + 1e-4
        assert [line.split(":")[0] for line in spot.lines[1:]] == ["raw", "effective", "norm", "effective − raw"]

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_a_number_of_every_head_has_its_color(self, open_view, models, theme):
        shown = open_view("matrix", scalar="share", sort="layer", theme=theme)
        share = models[0].maps["effective"].diagnostics["share"][0].numpy()
        spots = {spot.lines[0]: spot for spot in shown.scan(CANVAS["matrix"])}
        for layer, head in np.ndindex(share.shape):
            spot = spots[f"L{layer}H{head}"]
            color = shown.pixel(CANVAS["matrix"], spot.box[0] + 1, spot.box[1] + 1)
            expected = colors_of(share[layer, head] - share.min(), share.max() - share.min(), theme=theme)
            assert is_color(color, expected)
            assert abs(read_number(spot.lines[1]) - share[layer, head]) <= rounded(share[layer, head])

    def test_bars_through_the_layers_are_as_long_as_the_rollout(self, open_view, models):
        shown = open_view("layers", tokens=5)
        row = models[0].weights("rollout", 1)[5]
        spots = [spot for spot in shown.scan(CANVAS["layers"]) if len(spot.lines) == 3 and " to “a”: " in spot.lines[1]]
        assert len(spots) == 19
        positive = [int(COLORS["light"]["positive"][place : place + 2], 16) for place in (1, 3, 5)]
        lengths = {}
        for spot in spots:
            token = int(re.search("token ([0-9]+)", spot.lines[0])[1])
            assert abs(read_number(spot.lines[1]) - row[token]) <= rounded(row[token])
            x = (spot.box[0] + spot.box[2]) // 2
            colors = shown.column(CANVAS["layers"], x, spot.box[1] + 30, spot.box[3] - spot.box[1] - 30)
            lengths[token] = sum(is_color(color, positive, 1) for color in colors)
        longest = max(lengths.values())
        assert longest > 40
        for token, length in lengths.items():
            assert length == pytest.approx(longest * row[token] / row.max(), abs=2)

    def test_two_models_are_shown_with_the_cosine_of_every_head(self, open_view, models):
        shown = open_view("models", lens="raw", layer=1, head=1)
        first, second = (known.weights("raw", 1, 1) for known in models)
        limit = max(known.limit("raw", 1, 1) for known in models)
        panels = {"bert": (first, False), "electra": (second, False), "electra − bert": (second - first, True)}
        for panel, (weights, signed) in panels.items():
            for place, spot in find_cells(
                shown.scan(f"Attention map of {panel}"), models[0].tokens, models[0].keys
            ).items():
                assert is_color(spot.color, colors_of(weights[place], limit, signed=signed), 5)
                for line, expected in zip(spot.lines[1:], (first, second, second - first), strict=True):
                    assert abs(read_number(line) - expected[place]) <= rounded(expected[place]) + 1e-4
        spots = {spot.lines[0]: spot for spot in shown.scan("Cosine of every head")}
        for layer, head in np.ndindex(2, 4):
            one, two = (known.maps["raw"].layer(layer)[0, head].flatten() for known in models)
            cosine = float(torch.cosine_similarity(one, two, dim=0))
            assert read_number(spots[f"L{layer}H{head}"].lines[1]) == pytest.approx(cosine, abs=6e-3)

    def test_models_on_other_tokens_are_shown_without_a_difference(self, shown, folder, models):
        other = hs.view(hs.capture(tiny("electra"), PAIR), "raw")
        maps = {"first": models[0].maps["raw"], "second": other}
        shown.open(hs.save(maps, folder / "others.html"), view="models", layer=1, head=1)
        assert "different tokens (19 and 5)" in shown.reading
        tokens = list(other.queries.text[0])
        for place, spot in find_cells(shown.scan("Attention map of second"), tokens, tokens).items():
            weight = float(other.layer(1)[0, 1][place])
            assert abs(read_number(spot.lines[1]) - weight) <= rounded(weight)
        assert not shown.page.locator("canvas[aria-label='Attention map of second − first']").count()

    def test_models_with_other_layers_have_a_cosine_of_the_two_maps_only(self, shown, folder, models):
        first, second = models[0].maps["raw"], hs.view(hs.capture(tiny("albert"), TEXT), "raw")
        shown.open(hs.save({"a": first, "b": second}, folder / "layers.html"), view="models", layer=1, head=1)
        cosine = float(torch.cosine_similarity(*(maps.layer(1)[0, 1].flatten() for maps in (first, second)), dim=0))
        assert f"The cosine of these two maps is {cosine:.3f}." in shown.reading
        assert "(2 × 4 and 3 × 4), so there is no cosine of every head." in shown.reading

    def test_lenses_are_offered_beside_numbers_that_they_change(self, open_view):
        shown = open_view("matrix", scalar="share")
        assert not shown.page.get_by_role("radiogroup", name="Lens").is_visible()
        assert shown.reading.startswith("Effective share (norm ÷ norm of the raw map): largest ")

    def test_a_result_shows_its_sentence_tables_and_figures(self, open_view, data):
        shown = open_view("result")
        kept = show_dataset(data)
        facts = kept.describe()
        assert shown.reading.startswith(facts["lead"].replace("`", ""))
        shown.wait("[...document.querySelectorAll('.hs-figure img')].every(each => each.naturalWidth > 0)")
        assert shown.page.locator(".hs-figure img").count() == len(facts["figures"])
        for index, table in enumerate(facts["tables"]):
            place = shown.page.locator(".hs-result-table").nth(index)
            assert place.locator("th").all_inner_texts() == table["columns"]
            first = place.locator("tbody tr").first.locator("td").all_inner_texts()
            assert first == [cell or "–" for cell in table["rows"][0]]
            assert place.locator("tbody tr").count() == len(table["rows"])
        assert shown.export("Vectors (SVG)") == kept.draw(facts["figures"][0]["name"])


class TestNothingToSee:
    WHY = "5 tokens, rank 5: all of this attention reaches the output, so effective attention is the same as raw"

    def test_maps_that_are_the_same_are_one_picture_and_a_sentence(self, shown, short):
        shown.open(short, view="compare", layer=1, head=2)
        assert f"There is no difference between effective and raw in this head. {self.WHY}" in shown.reading
        labels = shown.page.evaluate(f"({LABELS})().map(canvas => canvas.ariaLabel)")
        assert labels == ["Attention map of raw", "Attention map of norm"]

    @pytest.mark.parametrize("state", [{"lens": "effective"}, {"lens": "raw", "scalar": "share"}])
    def test_a_grid_says_why_all_attention_is_effective(self, shown, short, state):
        shown.open(short, view="grid", **state)
        assert self.WHY in shown.reading

    def test_a_model_beside_itself_has_no_difference(self, shown, folder, models):
        raw = models[0].maps["raw"]
        shown.open(hs.save({"one": raw, "again": raw}, folder / "same.html"), view="models", layer=1, head=1)
        assert "Cosine 1; all 8 heads tie. There is no difference between one and again in this head." in shown.reading
        assert not shown.page.locator("canvas[aria-label='Attention map of again − one']").is_visible()

    def test_a_map_that_is_pale_beside_another_says_what_shows_it(self, shown, folder):
        maps = hs.view(hs.capture(tiny("bert"), TEXT), "raw")
        faint = dataclasses.replace(maps, parts=[0.05 * part for part in maps.parts], lens="effective")
        path = hs.save([maps, faint], folder / "faint.html")
        shown.open(path, view="compare", layer=1, head=1)
        assert "On one scale effective is pale; C gives each map its own." in shown.reading
        assert "pale" not in shown.press("c").reading


class TestResults:
    def test_patterns_are_counted_by_layer_and_filtered_by_a_click(self, shown, result, data):
        shown.open(result, view="matrix", scalar="patterns class")
        shares = data["patterns"].sel(lens="raw").isel(site=0).transpose("layer", "head", "pattern").values
        names = [str(name) for name in data["pattern"].values]
        winners = [[names[index] for index in row] for row in shares.argmax(-1)]
        rows = shown.export_csv()
        assert [row["most frequent pattern · raw"] for row in rows] == [
            name.replace("vertical_diagonal", "vertical + diagonal") for layer in winners for name in layer
        ]
        spot = find_spot(shown.scan(CANVAS["matrix"]), "L0H1")
        color = COLORS["light"]["classes"][names.index(winners[0][1])]
        found = shown.pixel(CANVAS["matrix"], spot.box[0] + 1, spot.box[1] + 1)
        assert found == tuple(int(color[place : place + 2], 16) for place in (1, 3, 5))
        count = sum(name == winners[0][1] for layer in winners for name in layer)
        button = shown.page.locator(".hs-classes button", has_text=re.compile(rf"{winners[0][1]} {count}$"))
        shown.act(lambda: button.click())
        said = shown.reading
        assert f"{count} of 8 heads: those of the class {winners[0][1]}." in said
        assert len(shown.export_csv()) == count
        assert shown.state["filter"] == f"class-{names.index(winners[0][1])}"
        shown.open(result, view="matrix", scalar="patterns class", filter=shown.state["filter"])
        assert shown.reading == said
        assert button.get_attribute("aria-pressed") == "true"

    def test_another_number_ends_a_filter(self, shown, result):
        shown.open(result, view="matrix", scalar="entropy", filter="highest")
        assert "Shown: 1 of 8 heads: the highest tenth." in shown.reading
        shown.act(lambda: shown.page.locator(".hs-view select").first.select_option("patterns class"))
        assert "filter" not in shown.state
        assert "Shown" not in shown.reading

    def test_a_measured_number_has_its_interval_and_count(self, shown, result, data):
        shown.open(result, view="matrix", scalar="entropy")
        spot = find_spot(shown.scan(CANVAS["matrix"]), "L1H2")
        found = data.sel(lens="raw").isel(site=0, layer=1, head=2)
        value, low, high = re.fullmatch(r"entropy: (\S+) \((\S+) to (\S+)\)", spot.lines[1]).groups()
        for text, name in ((value, "entropy"), (low, "entropy_low"), (high, "entropy_high")):
            assert read_number(text) == pytest.approx(float(found[name]), rel=6e-3)
        assert spot.lines[2] == "n = 4"

    @pytest.mark.parametrize("kind", MAKE)
    def test_a_result_of_any_kind_is_shown(self, shown, folder, kind):
        data = MAKE[kind]()
        shown.open(hs.save(data, folder / f"{kind}.html"))
        views = shown.page.locator("[role=tab]").evaluate_all("tabs => tabs.map(tab => tab.dataset.view)")
        if "result" in views:
            facts = show_dataset(data).describe()
            shown.open(folder / f"{kind}.html", view="result")
            assert shown.reading.startswith(facts["lead"].replace("`", ""))
            assert shown.page.locator(".hs-result-table").count() == len(facts["tables"])
            shown.wait("[...document.querySelectorAll('.hs-figure img')].every(each => each.naturalWidth > 0)")
            assert shown.page.locator(".hs-figure img").count() == len(facts["figures"])
        assert ("result" in views) != ("head" in views)
        assert not shown.problems

    def test_a_table_is_sorted_with_the_keyboard(self, shown, result):
        shown.open(result, view="result")
        heading = shown.page.locator(".hs-result-table th button").first
        for order, sign in (("ascending", "▴"), ("descending", "▾"), (None, "")):
            heading.press("Enter")
            cell = shown.page.locator(".hs-result-table th").first
            assert cell.get_attribute("aria-sort") == order
            assert cell.inner_text().endswith(sign)

    def test_numbers_of_a_measurement_join_the_maps(self, shown, folder, traces, data):
        path = hs.save([traces["bert"], data], folder / "joined.html")
        own = hs.measure(tiny("bert"), [TEXT], statistics="entropy", lens="raw", progress=False)
        for name, numbers in (("entropy (measured)", data), ("entropy", own)):
            shown.open(path, view="matrix", scalar=name)
            value = float(numbers["entropy"].sel(lens="raw").isel(site=0, layer=0, head=3))
            spot = find_spot(shown.scan(CANVAS["matrix"]), "L0H3")
            assert read_number(spot.lines[1].split(" (")[0]) == pytest.approx(value, rel=6e-3)
            assert (spot.lines[2:] == ["n = 4"]) == (numbers is data)
        shown.open(path, view="grid")
        assert {"entropy (nats), measured · raw, n = 4", "entropy (nats) · raw"} <= set(shown.export_csv()[0])
        shown.open(path, view="matrix", scalar="entropy (measured)")
        assert shown.press("Enter").state["view"] == "head"


class TestKeyboard:
    def test_the_grid_moves_and_opens_heads(self, open_view):
        shown = open_view("grid", sort="layer", layer=0, head=0)
        shown.press("ArrowRight", "ArrowRight", "ArrowDown")
        assert "Outlined: L1H2" in shown.reading
        shown.press("Enter")
        assert shown.reading.startswith("L1H2, effective: ")
        assert shown.press("Escape").state.get("view", "grid") == "grid"

    def test_a_head_is_read_with_the_keyboard_alone(self, open_view, models):
        shown = open_view("head", tokens="", special=1, lens="raw", layer=0, head=0)
        shown.press("ArrowRight", "ArrowDown", "ArrowRight", "ArrowLeft")
        assert shown.state["layer"] == shown.state["head"] == "1"
        for key in ["Shift+ArrowDown"] * 3 + ["Shift+ArrowRight"] * 2:
            shown.page.keyboard.press(key)
        weight = models[0].weights("raw", 1, 1)[2, 2]
        assert shown.reading.startswith("“cat” → “cat”: ")
        assert abs(read_number(shown.reading) - weight) <= rounded(weight)
        assert shown.text("[aria-live]") == shown.reading
        assert shown.press(" ").state["tokens"] == "2"
        assert shown.press(".").state["tokens"] == "3"
        assert shown.press("x").state["side"] == "key"
        assert "“sat” is attended to by" in shown.reading
        assert shown.press("l").state["lens"] == "effective"

    def test_lenses_are_compared_with_the_keyboard_alone(self, open_view, models):
        shown = open_view("compare", tokens="", layer=0, head=0)
        shown.press("ArrowDown", "ArrowRight")
        shown.page.keyboard.press("Shift+ArrowDown")
        shown.page.keyboard.press("Shift+ArrowRight")
        raw, effective = (models[0].weights(lens, 1, 1)[1, 1] for lens in ("raw", "effective"))
        said = dict(part.split(": ") for part in shown.reading.split("; ")[1:])
        assert abs(read_number(said["raw"]) - raw) <= rounded(raw)
        assert abs(read_number(said["effective − raw"]) - (effective - raw)) <= rounded(effective - raw) + 1e-4

    def test_numbers_are_read_and_heads_opened_with_the_keyboard_alone(self, open_view, models):
        shown = open_view("matrix", sort="layer")
        shown.press("ArrowRight", "ArrowDown")
        share = models[0].maps["effective"].diagnostics["share"][0, 1, 1]
        said = shown.text("[aria-live]")
        assert said.startswith("L1H1, effective share")
        assert abs(read_number(said) - float(share)) <= rounded(float(share))
        assert shown.press("Enter").reading.startswith("L1H1")

    def test_layers_are_followed_with_the_keyboard_alone(self, open_view, models):
        shown = open_view("layers", tokens=5)
        shown.press("ArrowRight")
        assert "what reaches “mat” (token 6) above layer 1" in shown.reading
        shown.press("ArrowDown")
        assert "above layer 0" in shown.reading
        row = models[0].weights("rollout", 0)[6]
        assert f"Most comes from “{models[0].tokens[int(row.argmax())]}” {row.max():.3f}" in shown.reading
        assert shown.state["top"] == "0"
        said = shown.reading
        shown.open(models[0].path, **shown.state)
        assert shown.reading == said
        shown.press("ArrowUp")
        assert "top" not in shown.state

    def test_two_models_are_compared_with_the_keyboard_alone(self, open_view):
        shown = open_view("models", layer=0, head=0)
        shown.press("ArrowDown", "ArrowRight")
        assert shown.reading.startswith("L1H1")
        shown.page.keyboard.press("Shift+ArrowDown")
        assert "bert: " in shown.reading
        assert "electra − bert: " in shown.reading

    def test_every_view_is_opened_by_its_number(self, open_view):
        shown = open_view("grid")
        for key, view in enumerate(VIEWS[:-1], start=1):
            shown.press(str(key)) if view != "grid" else None
            assert shown.page.locator("[role=tab][aria-selected=true]").get_attribute("data-view") == view

    def test_keys_without_a_control_change_nothing(self, open_view):
        shown = open_view("matrix").press("ArrowRight")
        before = shown.state
        for key in ("w", "s", "x", "c", "[", "+"):
            shown.page.keyboard.press(key)
        shown.press("ArrowRight")
        assert shown.state == {**before, "head": "2"}

    def test_the_menu_of_exports_keeps_its_arrows_and_the_focus(self, open_view):
        shown = open_view("head")
        before = (shown.state, shown.reading)
        shown.page.keyboard.press("e")
        focused = "() => document.activeElement.textContent"
        assert shown.page.evaluate(focused) == "Picture (PNG)"
        shown.page.keyboard.press("ArrowDown")
        assert shown.page.evaluate(focused) == "Vectors (SVG)"
        shown.page.keyboard.press("ArrowDown")
        with shown.page.expect_download():
            shown.page.keyboard.press("Enter")
        shown.wait("document.querySelector('.hs-reading').textContent.includes('was saved')")
        assert shown.page.evaluate(focused) == "Export"
        assert shown.state == before[0]
        assert "was saved" not in shown.press("ArrowUp").reading

    def test_arrows_scroll_a_table_that_has_the_focus(self, open_view):
        shown = open_view("head", tokens="", special=1)
        before = shown.state
        shown.page.keyboard.press("t")
        shown.table()
        shown.page.locator(".hs-table").focus()
        shown.page.keyboard.press("ArrowDown")
        shown.wait("document.querySelector('.hs-table').scrollTop > 0")
        assert shown.state == before

    def test_help_lists_the_keys_and_closes(self, open_view):
        shown = open_view("grid")
        shown.page.keyboard.press("?")
        assert "previous and next head" in shown.page.locator("dialog").inner_text()
        shown.page.keyboard.press("Escape")
        assert not shown.page.locator("dialog").is_visible()

    def test_every_control_can_be_reached_by_tab(self, open_view):
        shown = open_view("head")
        reached = set()
        for _ in range(40):
            shown.page.keyboard.press("Tab")
            reached.add(
                shown.page.evaluate("() => (document.activeElement.ariaLabel ?? '') + document.activeElement.tagName")
            )
        assert {"Attention map: queries are rows, keys are columnsCANVAS", "Query tokensCANVAS"} <= reached
        assert {"BUTTON", "SELECT", "INPUT", "SUMMARY"} <= {re.sub(".*?([A-Z]+)$", r"\1", name) for name in reached}


@pytest.mark.parametrize("view", VIEWS)
def test_every_picture_has_words_and_a_table(open_view, view):
    shown = open_view(view)
    described = shown.page.evaluate(
        f"{LABELS}.map(each => document.getElementById(each.getAttribute('aria-describedby'))?.textContent)"
    )
    assert all(described)
    if view != "result":
        assert described
        assert described[0] == shown.reading
    shown.page.keyboard.press("t")
    head, *rows = shown.table()
    assert len(head) > 1
    assert rows
    assert {len(row) for row in rows} == {len(head)}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(open_view, view, theme):
    shown = open_view(view, theme=theme)
    if view != "result":
        shown.page.keyboard.press("t")
        shown.table()
    found = Axe().run(shown.page).response["violations"]
    serious = [(each["id"], [node["html"] for node in each["nodes"]]) for each in found
               if each["impact"] in ("serious", "critical")]  # fmt: skip
    assert serious == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_reload_shows_the_same(open_view, view):
    shown = open_view(view)
    pictures = f"{LABELS}.map(each => each.toDataURL())"
    before = (shown.reading, shown.page.evaluate(pictures))
    shown.page.reload()
    shown.wait("performance.getEntriesByName('headscope:view').length > 0")
    assert (shown.reading, shown.page.evaluate(pictures)) == before
    assert shown.page.locator("[role=tab][aria-selected=true]").get_attribute("data-view") == view


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_exported(open_view, view):
    shown = open_view(view)
    said = shown.reading
    picture = imread(BytesIO(shown.export("Picture (PNG)")))
    assert min(picture.shape[:2]) > 200
    assert len({tuple(color) for color in picture[::9, ::9].reshape(-1, picture.shape[-1]).tolist()}) > 5
    root = ElementTree.fromstring(shown.export("Vectors (SVG)").decode())
    assert root.tag.endswith("svg")
    if view != "result":
        assert said in "".join(root.itertext())
    rows = shown.export_csv()
    shown.page.keyboard.press("t")
    head, *lines = shown.table()
    if view != "result":  # whose tables have intervals in one cell
        assert list(rows[0]) == head
        assert len(rows) >= len(lines)
    assert not shown.problems


WORDS = {
    "compare": (".hs-panel-title", ["raw", "effective", "norm", "effective − raw"]),
    "models": (".hs-panel-title", ["bert", "electra", "electra − bert"]),
}


@pytest.mark.parametrize("view", WORDS)
def test_an_exported_picture_names_its_panels(open_view, view):
    shown = open_view(view)
    selector, names = WORDS[view]
    titles = [title for title in shown.page.locator(selector).all() if title.is_visible()]
    assert [title.inner_text() for title in titles] == names
    frame = shown.page.locator(".hs-view").bounding_box()
    boxes = [title.bounding_box() for title in titles]
    picture = imread(BytesIO(shown.export("Picture (PNG)")))[..., :3]
    above = len(picture) - 2 * (16 + frame["height"])  # the title and the reading
    for box in boxes:
        left, top = 2 * (box["x"] - frame["x"] + 16), above + 2 * (box["y"] - frame["y"])
        words = picture[int(top) : int(top + 2 * box["height"]), int(left) : int(left + 2 * box["width"])]
        assert words.min() < 0.3
        assert words.max() == 1


@pytest.fixture(scope="module")
def default(folder):
    trace = hs.capture(hs.load(), LONG)
    maps = {lens: hs.view(trace, lens) for lens in LENSES}
    return Known(hs.save(list(maps.values()), folder / "lines.html"), maps)


@pytest.fixture
def run_lines(monkeypatch):
    """Run the copied lines; the model is loaded once."""
    kept = hs.load()
    monkeypatch.setattr(hs, "load", lambda: kept)

    def run_lines(shown):
        names = {}
        *first, last = shown.copy().strip().splitlines()
        exec("\n".join(first), names)
        figure = eval(last, names)
        return [np.asarray(art.get_array()) for axes in figure.axes for art in (*axes.images, *axes.collections)
                if art.get_array() is not None]  # fmt: skip

    return run_lines


class TestPythonLines:
    @pytest.mark.parametrize(("lens", "words"), [("effective", 0), ("effective", 1), ("rollout", 0)])
    def test_the_lines_of_a_head_draw_it(self, shown, default, run_lines, lens, words):
        shown.open(default.path, view="head", lens=lens, layer=3, head=4, words=words)
        maps = hs.to_words(default.maps[lens]) if words else default.maps[lens]
        (drawn,) = run_lines(shown)
        np.testing.assert_allclose(drawn, maps.layer(3)[0, 0 if maps.merged else 4].numpy(), atol=1e-6)

    def test_the_lines_of_a_comparison_draw_it(self, shown, default, run_lines):
        shown.open(default.path, view="compare", lens="effective", layer=3, head=4)
        first, second, _ = run_lines(shown)
        np.testing.assert_allclose(first, default.weights("raw", 3, 4), atol=1e-6)
        np.testing.assert_allclose(second, default.weights("effective", 3, 4), atol=1e-6)

    def test_the_lines_of_a_number_draw_it(self, shown, default, run_lines):
        shown.open(default.path, view="matrix", scalar="share")
        (drawn,) = run_lines(shown)
        np.testing.assert_allclose(drawn, default.maps["effective"].diagnostics["share"][0].numpy(), atol=1e-6)
        shown.open(default.path, view="matrix", scalar="entropy", lens="raw")
        (drawn,) = run_lines(shown)
        rows = shown.export_csv()
        found = np.array([float(row["entropy (nats) · raw"]) for row in rows]).reshape(drawn.shape)
        np.testing.assert_allclose(drawn, found, rtol=1e-5)

    def test_the_lines_of_an_edited_model_measure_it_edited(self, shown, default, run_lines, folder):
        with hs.edited(hs.load(), "uniform_heads:heads=L0H1+L2H3") as edited:
            path = hs.save(hs.view(hs.capture(edited, LONG), "raw"), folder / "edited.html")
            expected = hs.measure(edited, [LONG], statistics="entropy", lens="raw", progress=False)["entropy"]
        shown.open(path, view="matrix", scalar="entropy")
        (drawn,) = run_lines(shown)
        np.testing.assert_allclose(drawn, expected.isel(site=0, lens=0).values, rtol=1e-5)
        plain = hs.measure(hs.load(), [LONG], statistics="entropy", lens="raw", progress=False)["entropy"]
        assert not np.allclose(drawn, plain.isel(site=0, lens=0).values, rtol=1e-2)

    @pytest.mark.parametrize("view", ["grid", "layers"])
    def test_the_lines_of_all_heads_and_of_layers_run(self, shown, default, run_lines, view):
        shown.open(default.path, view=view, lens="rollout")
        run_lines(shown)

    def test_the_lines_of_a_result_draw_it(self, shown, result, data, run_lines, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        hs.save(data, "result.nc")
        shown.open(result, view="matrix", scalar="entropy")
        (drawn,) = run_lines(shown)
        np.testing.assert_allclose(drawn, data["entropy"].sel(lens="raw").isel(site=0).values)
        shown.open(result, view="result")
        assert run_lines(shown)


def test_a_link_is_the_address(open_view):
    shown = open_view("head")
    assert json.dumps(shown.copy("Copy a link")) == json.dumps(shown.page.url)
