"""Figures in papers: text of a readable size, nothing cut and nothing overprinted, in columns and on pages."""

from functools import cache

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from headscope.core.catalog import figures
from headscope.plotting import theme
from headscope.plotting.draw import draw
from headscope.plotting.head_dots import BEHAVIOURS
from tests.figures.data import (
    MEASURED,
    OF_ABLATIONS,
    OF_CLUSTERS,
    OF_CUES,
    OF_JUDGING,
    OF_PROBES,
    OF_PRUNING,
    OF_SCORES,
    OF_STUDIES,
    ablation,
    add_graph,
    clustered,
    cues,
    data_for,
    dataset,
    evaluated,
    importances,
    intervals,
    judged,
    measured,
    probed,
    pruning,
    scored,
    studied,
    typical,
)
from tests.figures.layout import find_faults, frame_of, overlap, record_texts
from tests.figures.test_laws import SEVERAL_PANELS
from tests.tiers import spread

COLUMN, PAGE = 3.3, 6.9  # inches
HEADS = {12: (2, 4), 60: (12, 12), 128: (24, 16)}  # layers and heads of measured results
PATTERNS = ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")
WORDS = (
    "the animal didn ' t cross the street because it was too tired , un ##believ ##able and extraordinarily so".split()
)


@pytest.fixture(autouse=True)
def _default_style():
    """Use the fonts that matplotlib includes, whatever the machine has."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield


def make_text(tokens: int) -> str:
    return " ".join(["[CLS]", *(WORDS[index % len(WORDS)] for index in range(tokens - 2)), "[SEP]"])


@cache
def make_data(name: str, tokens: int):
    """Return data of the size of `tokens` tokens; measured results have more layers and heads instead."""
    layers, heads = HEADS[tokens]
    if name in MEASURED:
        return measured(layers=layers, heads=heads, types=("noun", "verb", "punctuation", "special", "determiner"))
    if name in ("confusion", "typical_maps"):
        return evaluated(PATTERNS) if name == "confusion" else typical(PATTERNS)
    if name == "identifiability":
        return make_intervals(tokens)
    if name in OF_PRUNING:
        return pruning(seeds=layers)
    if name in OF_ABLATIONS:
        return ablation("heads")
    if name in OF_PROBES:
        return probed([f"nmod:{number}" for number in range(min(tokens, 50))])
    if name in OF_CLUSTERS:
        return clustered((*BEHAVIOURS, "other"), layers=layers, heads=heads, lenses=("raw",))
    if name in OF_CUES:
        return cues([f"{WORDS[index % len(WORDS)]} {index}" for index in range(tokens)])
    if name in OF_SCORES:
        return scored(("accuracy", "f1", "matthews correlation", "log_likelihood"))
    if name in OF_JUDGING:
        return judged(("raw", "effective", "norm", "gradient:times_attention=true", "rollout"))
    if name in OF_STUDIES:
        return studied(("RTE", "MRPC", "QNLI", "SST-2", "STS-B"), lenses=("raw", "effective", "padded", "paper"))
    if name == "words":
        return importances(make_text(tokens))
    if name == "overlay":
        return make_image({12: 3, 60: 7, 128: 11}[tokens])
    if name == "layered":
        return add_graph(make_maps(tokens, layers=layers, heads=1))
    return make_maps(8 if name == "head_grid" else tokens, layers=layers if name == "head_grid" else 1, heads=heads)


def make_maps(tokens: int, *, layers: int, heads: int):
    """Return maps whose last key takes a large part of every row."""
    data = dataset(make_text(tokens), layers=layers, heads=heads)
    scores = np.random.default_rng(0).normal(0, 1.8, (layers, heads, tokens, tokens))
    scores[..., -1] += 3.5
    raw = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    both = np.stack([raw, raw - 0.6 * raw.mean(-2, keepdims=True)])
    return data.assign(weights=(data["weights"].dims, both.astype("float32")))


def make_intervals(tokens: int):
    random = np.random.default_rng(0)
    raw = random.dirichlet(np.full(tokens, 0.5))
    least, greatest = raw * random.random(tokens), raw + 0.1 * random.random(tokens)
    effective = raw + random.normal(0, 0.02, tokens)
    columns = {"raw": raw, "effective": effective, "least": least, "greatest": greatest}
    return intervals(make_text(tokens)).assign({name: ("key", values) for name, values in columns.items()})


def make_image(side: int):
    """Return maps over an image of `side` × `side` patches."""
    place = np.arange(side * side)
    data = dataset(" ".join(["[CLS]", *map(str, place)]), layers=1, heads=1).drop_vars("picture")
    data = data.assign(picture=(("row", "column", "colour"), np.full((64, 64, 3), 200, np.uint8)))
    rows, columns = np.r_[-1, place // side], np.r_[-1, place % side]
    return data.assign_coords(key_row=("key", rows), key_column=("key", columns))


@pytest.mark.parametrize(("name", "width", "tokens"), spread(figures.names(), [COLUMN, PAGE], list(HEADS)))
def test_a_figure_of_a_given_width_is_readable(name, width, tokens):
    drawn = draw(make_data(name, tokens), name, size=width)
    assert find_faults(drawn) == []
    assert drawn.get_figwidth() == pytest.approx(width)
    assert drawn.get_figheight() <= theme.PAGE[1] + 1e-6


@pytest.mark.parametrize("name", figures.names())
def test_a_figure_without_a_given_width_fits_a_page_and_is_readable(name):
    drawn = draw(make_data(name, 128), name)
    assert find_faults(drawn) == []
    assert (drawn.get_size_inches() <= np.array(theme.PAGE) + 1e-6).all()


@pytest.mark.parametrize("name", figures.names())
def test_a_figure_in_a_wider_font_is_readable(name):
    matplotlib.rcParams["font.family"] = ["DejaVu Sans Mono"]
    assert find_faults(draw(make_data(name, 12), name, size=COLUMN)) == []


@pytest.mark.parametrize("width", [COLUMN, PAGE])
@pytest.mark.parametrize("options", [{"colour": "share"}, {"colour": "patterns"}])
def test_a_grid_of_coloured_heads_is_readable(options, width):
    data = make_data("head_grid", 12)
    if options["colour"] == "patterns":
        shares = np.random.default_rng(0).dirichlet(np.ones(5), (1, 1, 12, 12))
        dims = ("lens", "site", "layer", "head", "pattern")
        data = measured(layers=12, heads=12, lenses=["raw"]).assign(patterns=(dims, shares))
        data = data.assign_coords(pattern=list(PATTERNS))
    assert find_faults(draw(data, "head_grid", size=width, **options)) == []


ENDS = [{}, {"query": 7}, {"key": 4}, {"query": 7, "key": 4}]


@pytest.mark.parametrize(("ends", "kind", "width"), spread(ENDS, ["edges", "capacities"], [PAGE, COLUMN]))
def test_a_graph_of_12_layers_and_30_tokens_is_readable(ends, kind, width):
    data = add_graph(make_maps(30, layers=12, heads=1), kind)
    assert find_faults(draw(data, "layered", size=width, **ends)) == []


@pytest.mark.parametrize("width", [COLUMN, PAGE])
def test_two_texts_beside_each_other_are_readable(width):
    texts = [make_maps(tokens, layers=1, heads=1).isel(lens=[0]) for tokens in (12, 30)]
    assert find_faults(draw(texts, "compare", size=width)) == []


@pytest.mark.parametrize("width", [COLUMN, PAGE])
def test_equal_maps_with_their_reason_are_readable(width):
    data = dataset(make_text(12), shares=np.ones((2, 3)))
    assert find_faults(draw(data, "compare", size=width)) == []


ONE_PANEL = sorted(set(figures.names()) - SEVERAL_PANELS)


@pytest.mark.parametrize("name", ONE_PANEL)
def test_neighbours_of_the_callers_axes_are_left_alone(name):
    figure = Figure(figsize=(PAGE, 6.0))
    FigureCanvasAgg(figure)
    (ax, right), (below, far) = figure.subplots(2, 2)
    neighbours = [right, below, far]
    for other in neighbours:
        other.plot([1, 2, 3])
        other.set(title="neighbour", xlabel="x", ylabel="y")
    figure.draw_without_rendering()
    before = [(other.get_position().bounds, other.get_xlim(), other.get_xticks().tolist()) for other in neighbours]
    draw(make_data(name, 12), name, ax=ax)
    with record_texts() as texts:
        figure.draw_without_rendering()
    assert before == [
        (other.get_position().bounds, other.get_xlim(), other.get_xticks().tolist()) for other in neighbours
    ]
    own = {text for part in (ax, *ax.child_axes) for text in part.findobj(Text)}
    mine = [(text.get_text(), box) for text, box in texts.items() if text in own]
    theirs = [box for text, box in texts.items() if text not in own] + [frame_of(other) for other in neighbours]
    assert [word for word, box in mine for other in theirs if overlap(box, other)] == []
    assert [word for word, box in mine if (box < -0.75).any()] == []  # cut at the left or below


def test_axes_in_a_layout_engine_are_left_to_it():
    figure = Figure(layout="constrained")
    ax = figure.subplots(1, 2)[0]
    before = ax.get_position(original=True).bounds
    draw(data_for("matrix"), "matrix", ax=ax)
    assert ax.get_position(original=True).bounds == before


def with_lens(data, lens: str):
    return data.isel(lens=[1]).assign_coords(lens=[lens])


def special_tokens(layers: int, heads: int):
    """Return a measured variable along roles and sources, as that of the statistic `special_tokens`."""
    data = measured(layers=layers, heads=heads, lenses=("raw",))
    table = data["token_types"].isel(type=0, drop=True)
    table = table.expand_dims(role=["cls", "sep", "punctuation"], source=["all", "itself", "others"], axis=(4, 5))
    return xr.Dataset({"special_tokens": table}, attrs=data.attrs)


LONG = " ".join(
    ["[CLS]", *"Donaudampfschifffahrtsgesellschaft internationalization a uncharacteristically".split() * 3]
)
SPEC = "rollout:residual=0.3,inner=(effective:keys=paper)"


def small_changes():
    """Return two variables of every head whose numbers are long, as −0.008."""
    changes = np.random.default_rng(0).normal(-0.004, 0.003, (2, 1, 1, 12, 12))
    data = measured(layers=12, heads=12, lenses=("raw",))[["entropy", "distance"]]
    return data.assign({name: (data[name].dims, table) for name, table in zip(data.data_vars, changes, strict=True)})


AT_DEFAULT_SIZE = {
    "long numbers along an axis": lambda: draw(small_changes(), "scatter", x="entropy", y="distance"),
    "effective map of 12 tokens": lambda: draw(make_maps(12, layers=1, heads=1), "matrix", lens="effective"),
    "effective map of 45 tokens": lambda: draw(make_maps(45, layers=1, heads=1), "matrix", lens="effective"),
    "long words": lambda: draw(dataset(LONG, layers=1, heads=1), "matrix", lens="effective"),
    "long words compared": lambda: draw(dataset(LONG, layers=1, heads=1), "compare"),
    "a lens with parameters": lambda: draw(with_lens(make_maps(5, layers=1, heads=1), SPEC), "matrix"),
    "2 × 2 heads of a lens": lambda: draw(with_lens(make_maps(8, layers=2, heads=2), SPEC), "head_grid"),
    "12 × 1 heads": lambda: draw(make_maps(8, layers=12, heads=1), "head_grid", lens="effective"),
    "1 × 12 heads": lambda: draw(make_maps(8, layers=1, heads=12), "head_grid", lens="effective"),
    "shares of 2 × 2 heads": lambda: draw(make_maps(8, layers=2, heads=2), "head_grid", colour="share"),
    "shares of 1 × 12 heads": lambda: draw(make_maps(8, layers=1, heads=12), "head_grid", colour="share"),
    "shares of 4 × 32 heads": lambda: draw(make_maps(8, layers=4, heads=32), "head_grid", colour="share"),
    "a selection of 2 × 3 heads": lambda: draw(special_tokens(2, 3), "heads", at="role=sep+source=others"),
    "a selection of 12 × 12 heads": lambda: draw(special_tokens(12, 12), "heads", at="role=sep+source=others"),
    "12 × 3 heads of an image": lambda: draw(
        make_image(6).isel(layer=[0] * 12, head=[0] * 3).assign_coords(layer=range(12), head=range(3)), "head_grid"
    ),
}


@pytest.mark.parametrize(("case", "kind"), spread(list(AT_DEFAULT_SIZE), [None, "pdf", "svg"]))
def test_a_figure_at_its_default_size_is_not_cut(case, kind):
    assert find_faults(AT_DEFAULT_SIZE[case](), kind) == []


@pytest.mark.parametrize(("name", "tokens"), spread(figures.names(), [12, 60]))
def test_every_figure_at_its_default_size_is_readable(name, tokens):
    assert find_faults(draw(make_data(name, tokens), name)) == []


@pytest.mark.parametrize(("name", "kind"), spread(figures.names(), ["png", "pdf", "svg"]))
def test_every_figure_is_readable_in_the_file_that_is_saved(name, kind):
    assert find_faults(draw(make_data(name, 12), name), kind) == []
