"""How attention reaches a token through the layers: tokens down, layers across, a line for each edge."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.ticker import FixedFormatter, FixedLocator

from headscope.core.errors import InputError
from headscope.core.figure import Figure, Target
from headscope.core.spec import parse_spec
from headscope.plotting import canvas, fonts, heatmap, selection, theme
from headscope.plotting.paths import follow_capacities, follow_products, keep_largest
from headscope.plotting.scales import Cells, format_tick

FOLLOW = {"edges": follow_products, "capacities": follow_capacities}
LINES = {"edges": "weight of all paths through an edge", "capacities": "the most that can flow through an edge"}
CONTRAST = {"edges": 0.5, "capacities": 1.4}  # powers of the weight: few edges are large, but many capacities
BAR_GAP, BAR_LENGTH = 0.25, 1.2  # of the bars beside the tokens, in layers


@dataclass(frozen=True)
class Layered(Figure):
    """The graph that rollout or flow follows: input tokens on the left, layers to the right, a line for each edge.

    Only what reaches one token is drawn: the token `query` above `layer`, by default the first token, or the last
    under a causal mask, above the highest layer. `key` draws what an input token reaches instead; with both, only what
    passes between them. Of each layer the largest edges are drawn, up to a share `mass` of their total. Darker lines
    are more; grey ones stay at their token. The bars are the scores of the lens. `size` is the width in inches.
    """

    query: int | None = None
    key: int | None = None
    layer: int | None = None
    lens: str | None = None
    mass: float = 0.8
    title: str | None = None
    size: float | None = None

    cites = ("abnar2020",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.mass <= 1:
            raise InputError(f"mass={self.mass} must be above 0 and at most 1, as a share of each layer's total.")

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the graph up to one layer."""
        maps, kind = _select_graph(data, self.lens, self.layer)
        query, key = _select_ends(maps, self.query, self.key)
        passing = FOLLOW[kind](maps[kind].values.astype(float), query, key)
        drawn = keep_largest(passing, self.mass, query, key)
        table = maps["weights"].isel(layer=-1, head=0).values.astype(float)
        scores = np.nan_to_num(table[:, key] if query is None else table[query])
        title = self.title if self.title is not None else _title(maps, query, key)
        note = _note(kind, passing, drawn) + f" Bars: {heatmap.weight_label(maps)}, longest: {_largest(scores)}."
        layout = _fit_figure(maps, self.size, title, note)
        ax = target.open_axes(*layout.size)
        if not target.is_new:
            layout = _fit_axes(maps, *canvas.axes_size(ax))
        _draw_edges(ax, drawn, kind)
        _draw_nodes(ax, drawn, query, key)
        _draw_bars(ax, scores, len(drawn), at_top=query is None)
        step = _label_axes(ax, maps, layout)
        canvas.set_title(ax, title, layout.text, pad=8)
        note += f" Tokens: {heatmap.describe_step(step)}." if step > 1 else ""
        canvas.add_note(ax, note, width=layout.text, below=1.6 * theme.text_size("note") / 72)


class _Layout(NamedTuple):
    """Sizes in inches."""

    size: tuple[float, float]  # of a new figure
    row: float  # height of a token
    panel: float  # width of the axes
    font: float  # of the tokens, in points

    @property
    def text(self) -> float:
        """The width of title and note."""
        return max(1.6, self.panel)


def _select_graph(data: xr.Dataset, lens: str | None, layer: int | None) -> tuple[xr.Dataset, str]:
    """Return the maps of a lens (default: the first with a graph) up to a layer, and the variable of its graph."""
    selection.require_variables(data, "weights")
    names = [str(name) for name in data["lens"].values]
    graphs = [_find_graph(data, index) for index in range(len(names))]
    if lens is None:
        lens = next((name for name, graph in zip(names, graphs, strict=True) if graph), names[0])
    maps = selection.select_lens(data, lens)
    kind = graphs[names.index(lens)]
    if kind is None:
        raise InputError(
            f"The figure 'layered' draws the graph of a lens that follows attention through the layers, but the maps "
            f"of '{maps['lens'].item()}' have none. View the trace through 'rollout' or 'flow' with heads=mean; "
            "either takes another lens as its inner=."
        )
    if maps.sizes["head"] > 1:
        raise InputError(
            f"The figure 'layered' draws one graph per layer, but the lens '{maps['lens'].item()}' has "
            f"{maps.sizes['head']} heads. View the trace with heads=mean."
        )
    labels = [int(label) for label in maps["layer"].values]
    start = _lowest_layer(maps)
    if labels != list(range(start, start + len(labels))):
        raise InputError(
            f"The figure 'layered' needs every layer from {start} on, but the data has layers "
            f"{selection.format_range(labels)}. Draw the maps of all layers, and give the highest one as layer=…."
        )
    top = len(labels) - 1 if layer is None else selection.axis_index(data, "layer", layer)
    return maps.isel(layer=slice(top + 1)), kind


def _find_graph(data: xr.Dataset, lens: int) -> str | None:
    """Return the name of the variable that holds the graph of a lens, given by its index."""
    return next((name for name in FOLLOW if name in data and bool(data[name].isel(lens=lens).notnull().any())), None)


def _lowest_layer(maps: xr.Dataset) -> int:
    """Return the layer that the graph of a lens begins with: 0, or the `start` of a rollout."""
    return int(parse_spec(str(maps["lens"].item()))[1].get("start", 0))


def _select_ends(maps: xr.Dataset, query: int | None, key: int | None) -> tuple[int | None, int | None]:
    """Return the tokens between which paths are drawn; by default all that lead to the first, or the last if causal."""
    for side, token in (("query", query), ("key", key)):
        count = maps.sizes[side]
        if token is not None and not 0 <= token < count:
            raise InputError(f"There is no {side} {token}: this text has {count} tokens, 0 to {count - 1}.")
    if query is not None or key is not None:
        return query, key
    alone = "visible" in maps and int(maps["visible"].isel(layer=-1, query=0).sum()) == 1
    return maps.sizes["query"] - 1 if alone else 0, None


def _draw_edges(ax: Axes, drawn: Cells, kind: str) -> None:
    """Draw lines from layer to layer, faint ones first; those that stay at their token are grey, below zero dashed."""
    index, query, key = np.nonzero(drawn)
    weights = drawn[index, query, key]
    moves = query != key
    parts = (
        (~moves, theme.quiet, "solid"),
        (moves & (weights < 0), theme.negative, (0, (3, 2))),
        (moves & (weights > 0), theme.positive, "solid"),
    )
    for chosen, colour, dashes in parts:
        same_kind = np.abs(weights[moves == (colour != theme.quiet)])
        if not chosen.any():
            continue
        sizes = (np.abs(weights[chosen]) / (same_kind.max(initial=0.0) or 1.0)) ** CONTRAST[kind]
        order = np.argsort(sizes, kind="stable")
        ends = np.stack([index, key, index + 1, query], -1)[chosen][order].reshape(-1, 2, 2)
        paint = np.tile(to_rgba(colour), (len(order), 1))
        paint[:, 3] = 0.08 + 0.92 * sizes[order]
        lines = LineCollection(list(ends), colors=paint, linestyles=[dashes], capstyle="butt", zorder=2)
        lines.set_linewidth((0.3 + 1.5 * sizes[order]).tolist())
        ax.add_collection(lines)


def _draw_nodes(ax: Axes, drawn: Cells, query: int | None, key: int | None) -> None:
    """Draw a small dot for each token at each layer, and a large one at the ends of the paths."""
    layers, tokens = drawn.shape[:2]
    columns, rows = np.meshgrid(np.arange(layers + 1), np.arange(tokens))
    ax.scatter(columns.ravel(), rows.ravel(), s=1.2, color=theme.faint, linewidths=0, zorder=1)
    for column, token in ((layers, query), (0, key)):
        if token is not None:
            ax.scatter([column], [token], s=16, color=theme.ink, linewidths=0, zorder=4, clip_on=False)


def _draw_bars(ax: Axes, scores: Cells, layers: int, *, at_top: bool) -> None:
    """Draw the scores of the tokens as bars, at the input or at the top."""
    lengths = BAR_LENGTH * np.abs(scores) / (np.abs(scores).max() or 1.0)
    colours = [theme.positive if score >= 0 else theme.negative for score in scores]
    left = layers + BAR_GAP if at_top else -BAR_GAP - lengths
    ax.barh(np.arange(len(scores)), lengths, left=left, height=0.62, color=colours, linewidth=0)
    ends = (-0.3, layers + BAR_GAP + BAR_LENGTH) if at_top else (-BAR_GAP - BAR_LENGTH, layers + 0.3)
    ax.set(xlim=ends, ylim=(len(scores) - 0.4, -0.6))


def _label_axes(ax: Axes, maps: xr.Dataset, layout: _Layout) -> int:
    """Label tokens on the left and layers below; return n where only every n-th token is labelled."""
    ax.spines[:].set_visible(False)
    step = heatmap.label_tokens(ax.yaxis, maps, "key", layout.row, size=layout.font)
    layers = [int(label) for label in maps["layer"].values]
    _label_layers(ax, layers, layout.panel / (len(layers) + 0.3 + BAR_GAP + BAR_LENGTH))
    return step


def _label_layers(ax: Axes, layers: list[int], apart: float) -> None:
    """Label the input and the layers, which are `apart` inches, from the highest down, every n-th where not all fit."""
    labels = [f"below L{layers[0]}" if layers[0] else "input", *(f"L{label}" for label in layers)]
    size = theme.text_size("note")
    widths = [fonts.text_width(label) * size + 0.06 for label in labels]
    step = max(1, int(np.ceil(max(widths[1:]) / apart)))
    columns = [column for column in range(len(layers), 0, -step) if column * apart > (widths[0] + widths[column]) / 2]
    ax.xaxis.set_major_locator(FixedLocator([0, *columns[::-1]]))
    ax.xaxis.set_major_formatter(FixedFormatter([labels[column] for column in [0, *columns[::-1]]]))
    ax.xaxis.set_tick_params(length=0, labelsize=size, pad=1)


def _title(maps: xr.Dataset, query: int | None, key: int | None) -> str:
    top, source = (
        None if token is None else f"“{fonts.to_label(selection.token_texts(maps, side)[token])}”"
        for side, token in (("query", query), ("key", key))
    )
    lens, layer = maps["lens"].item(), f"L{int(maps['layer'].values[-1])}"
    if top is None:
        return f"{lens} · what {source} reaches, up to {layer}"
    return f"{lens} · what reaches {top} above {layer}" + (f" from {source}" if source else "")


def _note(kind: str, passing: Cells, drawn: Cells) -> str:
    totals = np.abs(passing).sum((1, 2))
    shares = np.abs(drawn).sum((1, 2)) / np.where(totals > 0, totals, 1.0)
    low, high = (f"{100 * share:.0f}" for share in (shares.min(), shares.max()))
    moving = drawn * (1 - np.eye(drawn.shape[-1]))
    dashed = ", dashed ones are below zero" if (moving < 0).any() else ""
    return (
        f"Lines: {LINES[kind]}, darkest: {_largest(moving)}; grey ones stay at their token{dashed}. "
        f"Drawn: the largest, {low if low == high else f'{low} to {high}'} % of each layer."
    )


def _largest(numbers: Cells) -> str:
    return format_tick(float(f"{np.abs(numbers).max(initial=0.0):.2g}"))


def _fit_figure(maps: xr.Dataset, width: float | None, title: str, note: str) -> _Layout:
    """Return the sizes of a new figure, as tall as its tokens, title and note need."""
    rows, layers = maps.sizes["query"], maps.sizes["layer"]
    labels = fonts.label_width(selection.token_texts(maps, "key"))
    row = heatmap.fit_rows(rows, 0.2, around=1.9)
    if width is None:
        wide = 0.3 + labels * heatmap.font_size(row) + 0.42 * (layers + BAR_LENGTH + BAR_GAP)
        width = min(theme.PAGE[0], max(theme.COLUMN, wide))
    font = heatmap.fit_label_size(row, labels, width)
    layout = _Layout((width, 0.0), row, width - labels * font - 0.25, font)
    above, below = (
        (canvas.wrap_text(text, layout.text, size).count("\n") + 1) * 1.25 * size / 72
        for text, size in ((title, theme.text_size("title")), (note, theme.text_size("note")))
    )
    return layout._replace(size=(width, row * rows + above + below + 0.75))


def _fit_axes(maps: xr.Dataset, width: float, height: float) -> _Layout:
    """Return the sizes for the caller's axes."""
    row = height / maps.sizes["query"]
    font = heatmap.fit_label_size(row, fonts.label_width(selection.token_texts(maps, "key")), width)
    return _Layout((width, height), row, width, font)
