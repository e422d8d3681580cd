"""Panels in rows and columns, with what they share: titles, labels, a legend, a color bar and a caption."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from headscope.plotting import canvas, scales, series, theme


@dataclass(frozen=True)
class PanelGrid:
    """Rows of panels in a figure; the last row may be shorter."""

    figure: Figure | SubFigure
    rows: tuple[tuple[Axes, ...], ...]

    @property
    def panels(self) -> list[Axes]:
        """All panels, row by row."""
        return [panel for row in self.rows for panel in row]

    @property
    def columns(self) -> int:
        """The number of panels side by side."""
        return len(self.rows[0])

    def name_panels(
        self, titles: Iterable[str], *, width: float | None = None, role: Literal["label", "note"] = "label"
    ) -> None:
        """Write titles above the first panels, wrapped to `width` inches, by default about that of a panel."""
        size = theme.text_size(role)
        if width is None:
            width = (canvas.figure_width(self.figure) - 0.65) / self.columns - 0.1
        for panel, title in zip(self.panels, titles, strict=False):
            panel.set_title(canvas.wrap_text(title, width, size), fontsize=size)

    def name_rows(self, labels: Iterable[str]) -> None:
        """Write labels to the left of the rows."""
        size = theme.text_size("note")
        for row, label in zip(self.rows, labels, strict=False):
            row[0].set_ylabel(canvas.wrap_text(label, 1.4, size), fontsize=size)

    def add_legend(self, panels: Sequence[Axes] | None = None) -> None:
        """Name the series of some panels above all of them; by default those of the first."""
        handles: list[Artist] = []
        names: list[str] = []
        for panel in self.panels[:1] if panels is None else panels:
            more = panel.get_legend_handles_labels()
            handles, names = [*handles, *more[0]], [*names, *more[1]]
        columns = series.fit_legend(names, canvas.figure_width(self.figure) - 0.3)[0]
        look: dict[str, Any] = {"fontsize": theme.text_size("note"), "columnspacing": 1.0}
        self.figure.legend(handles, names, loc="outside upper center", ncols=columns, **look)

    def add_color_bar(self, scale: scales.ColourScale, text: str) -> None:
        """Add a color bar below all panels."""
        scales.add_shared_bar(self.panels, scale, text, canvas.figure_width(self.figure) - 0.6)

    def write(self, *, title: str = "", note: str = "") -> None:
        """Write a title above and a note below all panels, wrapped to the width of the figure."""
        width = canvas.figure_width(self.figure) - 0.2
        self.figure.suptitle(canvas.wrap_text(title, width, theme.text_size("title")))
        size = theme.text_size("note")
        self.figure.supxlabel(canvas.wrap_text(note, width, size), fontsize=size, color=theme.quiet)

    def fit_cells(self, shape: tuple[int, int], largest: float) -> None:
        """Resize a new figure so that panels are as high as rows of square cells, each of at most `largest` inches."""
        figure, aspects = self.figure.figure, [panel.get_aspect() for panel in self.panels]
        for panel in self.panels:
            panel.set_aspect("auto")  # so that panels fill their places, which are measured
        for _ in range(canvas.MAX_ROUNDS):
            if not canvas.try_layout(figure):
                break
            total, box = figure.get_size_inches(), self.rows[0][0].get_position(original=True)
            needed = shape[0] * min(total[0] * box.width / shape[1], largest)
            missing = needed - total[1] * box.height
            if abs(missing) <= max(0.05 * needed, 0.03):
                break
            figure.set_size_inches(total[0], total[1] + len(self.rows) * missing)
        for panel, aspect in zip(self.panels, aspects, strict=True):
            panel.set_aspect(aspect)


def open_grid(
    figure: Figure | SubFigure,
    count: int,
    columns: int,
    *,
    share_x: bool = False,
    share_y: Literal["none", "row", "all"] = "none",
    width_ratios: Sequence[float] | None = None,
) -> PanelGrid:
    """Add panels to a figure.

    Parameters
    ----------
    figure
        A new figure, or the caller's.
    count
        The number of panels.
    columns
        How many of them are side by side.
    share_x
        Whether all panels have one x axis, labelled below the lowest panel of each column.
    share_y
        Whether the panels of each row, or all of them, have one y axis, labelled on the left.
    width_ratios
        The widths of the columns beside one another; by default all are the same.
    """
    rows = -(-count // columns)
    shared: dict[str, Any] = {"sharex": share_x, "sharey": share_y, "width_ratios": width_ratios}
    cells = figure.subplots(rows, columns, squeeze=False, **shared)
    for empty in cells.ravel()[count:]:
        empty.remove()
    if share_x:
        for panel in cells.ravel()[max(0, count - columns) : count]:
            panel.tick_params(axis="x", labelbottom=True)
    places = cells.ravel()[:count].tolist()
    for panel in places:
        panel.set_anchor("N")  # so that a layout sees the whole height of the labels above square cells
    return PanelGrid(figure, tuple(tuple(places[start : start + columns]) for start in range(0, count, columns)))


def new_grid(size: tuple[float, float], count: int, columns: int, **shared: Any) -> PanelGrid:
    """Return panels in a new figure of a size in inches; the other parameters are those of `open_grid`."""
    return open_grid(canvas.new_figure(size), count, columns, **shared)
