"""Laws of every figure in the catalog."""

import inspect
import re
import subprocess
import sys
import warnings

import matplotlib
import numpy as np
import pytest
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from headscope.core.catalog import figures
from headscope.core.errors import DataWarning, InputError, UnknownName
from headscope.core.spec import to_spec
from headscope.plotting import theme
from headscope.plotting.draw import draw
from headscope.results.store import save
from tests.figures.data import (
    MEASURED,
    OF_ABLATIONS,
    OF_CLUSTERS,
    OF_CUES,
    OF_JUDGING,
    OF_PATTERNS,
    OF_PROBES,
    OF_PRUNING,
    OF_SCORES,
    OF_STUDIES,
    ONE_ROW,
    ONE_TEXT,
    data_for,
    scored,
)
from tests.figures.layout import record_texts
from tests.tiers import spread

every_figure = pytest.mark.parametrize("name", figures.names())
ENDINGS = ("svg", "png", "pdf", "html")


def settings() -> dict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some settings are deprecated, even to look at
        return {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}


every_figure_and_ending = pytest.mark.parametrize(("name", "ending"), spread(figures.names(), ENDINGS))


@every_figure_and_ending
def test_the_same_data_gives_the_same_bytes(name, ending, tmp_path):
    first, second = (save(draw(data_for(name), name), tmp_path / f"{n}.{ending}").read_bytes() for n in (1, 2))
    assert first == second


@every_figure
def test_saving_twice_gives_the_same_bytes(name, tmp_path):
    drawn = draw(data_for(name, "a 中 c"), name)
    first, second = (save(drawn, tmp_path / f"{n}.svg").read_bytes() for n in (1, 2))
    assert first == second


@every_figure
def test_no_global_style_is_touched(name, tmp_path):
    with matplotlib.rc_context({"font.size": 23, "text.usetex": True, "axes.facecolor": "black"}):
        before = settings()
        save(draw(data_for(name), name), tmp_path / "a.png")
        assert settings() == before


@every_figure
def test_the_users_style_does_not_change_the_picture(name, tmp_path):
    plain = save(draw(data_for(name), name), tmp_path / "plain.png").read_bytes()
    with matplotlib.rc_context({"axes.facecolor": "black", "savefig.dpi": 30, "axes.titlesize": 30}):
        assert save(draw(data_for(name), name), tmp_path / "dark.png").read_bytes() == plain


@every_figure
def test_the_users_fonts_are_used(name):
    with matplotlib.rc_context({"font.family": "serif", "font.serif": ["DejaVu Serif"], "font.size": 8}):
        drawn = draw(data_for(name), name)
    with record_texts() as texts:
        drawn.draw_without_rendering()
    assert {text.get_fontfamily()[0] for text in texts} == {"DejaVu Serif"}
    assert max(text.get_size() for text in texts) == pytest.approx(8.0)


def test_a_font_that_is_not_installed_is_named_in_a_warning():
    sentence = "font.family asks for Nowhere Serif, which is not installed here"
    fonts = {"font.family": "serif", "font.serif": ["Nowhere Serif"]}
    with matplotlib.rc_context(fonts), pytest.warns(DataWarning, match=sentence):
        draw(data_for("matrix"))


WITHOUT_LENS = {*OF_ABLATIONS, *OF_CUES, *OF_SCORES, *OF_PRUNING, *ONE_ROW, *ONE_TEXT, *OF_PATTERNS, "compare"}


@pytest.mark.parametrize("name", sorted(set(figures.names()) - WITHOUT_LENS))
def test_a_figure_of_one_lens_names_it(name):
    data = data_for(name)
    data = data.isel(lens=[-1]) if "lens" in data.dims else data
    lens = str(data["lens"].values[0]) if "lens" in data.coords else "raw"
    options = {"y": "distance"} if name == "scatter" else {}
    with record_texts() as texts:
        draw(data, name, **options).draw_without_rendering()
    assert any(lens in " ".join(text.get_text().split()) for text in texts)


HAVE_CMAP = {"compare", "confusion", "head_grid", "heads", "matrix", "overlay", "typical_maps", "words"}


@pytest.mark.parametrize("name", sorted(HAVE_CMAP))
def test_a_colour_map_of_matplotlib_can_be_chosen(name):
    for cmap in ("viridis", matplotlib.colormaps["viridis"]):
        drawn = draw(data_for(name), name, cmap=cmap)
        shades = drawn.findobj(lambda artist: isinstance(artist, ScalarMappable))
        used = {tuple(shade.get_cmap()(0.5)) for shade in shades if shade.get_array() is not None}
        assert name in ("overlay", "head_grid") or used == {matplotlib.colormaps["viridis"](0.5)}
    with pytest.raises(UnknownName, match=r"No colour map is called 'viridiz'. Did you mean 'viridis'\?"):
        draw(data_for(name), name, cmap="viridiz")


@every_figure_and_ending
def test_causal_maps_long_words_and_mathematics_are_drawn_without_a_warning(name, ending, tmp_path):
    words = "$x_1$ _a^b $ \\frac 😀 שלום العربية ##ing ·the supercalifragilisticexpialidocious a\nb \x00 \ud83d"
    drawn = draw(data_for(name, words, causal=True), name)
    assert save(drawn, tmp_path / f"a.{ending}").stat().st_size > 1000


@every_figure
def test_data_is_unchanged(name):
    data = data_for(name)
    draw(data, name)
    assert data.identical(data_for(name))


@every_figure
def test_a_figure_rebuilds_from_its_spec(name):
    entry = figures.make(name, title="a title")
    assert figures.make(to_spec(entry)) == entry


SEVERAL_PANELS = {"compare", "heads", "stacked_bars", "typical_maps"}


@pytest.mark.parametrize("name", sorted(set(figures.names()) - SEVERAL_PANELS))
def test_a_figure_of_one_panel_draws_into_axes(name):
    where = Figure(layout="constrained")
    assert draw(data_for(name), name, ax=(axes := where.subplots())) is axes
    with pytest.raises(InputError, match=f"'{name}' has one panel, so it takes ax=, but got canvas="):
        draw(data_for(name), name, canvas=where)


@pytest.mark.parametrize("name", sorted(SEVERAL_PANELS))
def test_a_figure_of_several_panels_draws_into_a_figure_or_a_part_of_one(name):
    where = Figure(layout="constrained")
    assert draw(data_for(name), name, canvas=(part := where.subfigures(1, 2)[0])) == part.axes
    with pytest.raises(InputError, match=f"'{name}' has several panels, so it takes canvas=, but got ax="):
        draw(data_for(name), name, ax=where.subplots())


@every_figure
def test_an_argument_advised_by_an_error_exists(name):
    where = Figure(layout="constrained")
    wrong = {"ax": where.subplots()} if name in SEVERAL_PANELS else {"canvas": where}
    with pytest.raises(InputError) as error:
        draw(data_for(name), name, **wrong)
    advised = set(re.findall(r"(\w+)=", str(error.value)))
    assert advised == {"ax", "canvas"}
    assert advised <= set(inspect.signature(draw).parameters)


@every_figure
def test_the_title_can_be_set(name, tmp_path):
    page = save(draw(data_for(name), name, title="My <own> title"), tmp_path / "a.html").read_text()
    assert "<title>My &lt;own&gt; title</title>" in page


@every_figure
def test_an_empty_axis_raises_an_error(name):
    if name in OF_SCORES:  # which have no axis
        with pytest.raises(InputError, match="There is no score with an interval in this data"):
            draw(scored(()), name)
        return
    sides = {**dict.fromkeys(ONE_ROW, "key"), **dict.fromkeys(MEASURED, "head"), **dict.fromkeys(ONE_TEXT, "token")}
    sides |= {**OF_PATTERNS, **dict.fromkeys(OF_PRUNING, "pruned"), **dict.fromkeys(OF_ABLATIONS, "layer")}
    sides |= {**dict.fromkeys(OF_CLUSTERS, "head"), **dict.fromkeys(OF_CUES, "cue")}
    sides |= {**dict.fromkeys(OF_PROBES, "relation"), **dict.fromkeys(OF_STUDIES, "task")}
    sides |= dict.fromkeys(OF_JUDGING, "lens")
    side = sides.get(name, "query")
    with pytest.raises(InputError, match=f"There is nothing to draw: the data has no {side}"):
        draw(data_for(name).isel({side: []}), name)


def test_darker_is_more_in_grey_print():
    grey = [theme.luminance(theme.weights(x)) for x in np.linspace(0, 1, 256)]
    assert (np.diff(grey) < 0).all()


def test_both_sides_of_the_signed_scale_darken_alike_in_grey_print():
    above = [theme.luminance(theme.signed(x)) for x in np.linspace(0.5, 1, 128)]
    below = [theme.luminance(theme.signed(x)) for x in np.linspace(0.5, 0, 128)]
    assert (np.diff(above) < 0).all()
    assert (np.diff(below) < 0).all()
    assert np.allclose(above, below, atol=0.12)  # luminance from 0 to 1


def test_figures_and_results_leave_torch_and_pyplot_unloaded():
    results = ("store", "compare", "tables", "select", "summarize")
    modules = [figure.__module__ for figure in figures]
    modules += [f"headscope.results.{name}" for name in results]
    modules += [f"headscope.plotting.{name}" for name in ("draw", "theme", "heatmap", "selection", "canvas", "fonts")]
    code = f"import sys, {', '.join(modules)}; print({{'torch', 'matplotlib.pyplot'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
