"""The interface of a figure, and the canvas it draws on."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headscope.core.errors import InputError
from headscope.core.spec import check_choices

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure
    from matplotlib.figure import SubFigure


@dataclass(frozen=True)
class Target:
    """Where a figure draws: axes or a figure of the caller's, or else a new figure.

    `name` is that of the figure in the catalog, for error messages.
    """

    name: str
    new: "MatplotlibFigure"
    ax: "Axes | None" = None
    canvas: "MatplotlibFigure | SubFigure | None" = None

    @property
    def is_new(self) -> bool:
        """Whether the caller gave neither axes nor a figure."""
        return self.ax is None and self.canvas is None

    @property
    def figure(self) -> "MatplotlibFigure":
        """The whole matplotlib figure."""
        canvas = self.ax.figure if self.ax is not None else self.canvas if self.canvas is not None else self.new
        return canvas.figure

    @property
    def drawn(self) -> "MatplotlibFigure | Axes | list[Axes]":
        """What `hs.draw` returns: the new figure, or else the caller's axes, or those on the caller's figure.

        A notebook shows pyplot's figures at the end of a cell, so a caller's figure would be shown twice.
        """
        if self.ax is not None:
            return self.ax
        return self.new if self.canvas is None else self.canvas.axes

    def open_axes(self, width: float, height: float) -> "Axes":
        """Return the axes for a figure of one panel; a new figure has this size in inches."""
        if self.canvas is not None:
            raise InputError(
                f"The figure '{self.name}' has one panel, so it takes ax=, but got canvas=. Give ax=canvas.subplots()."
            )
        if self.ax is not None:
            return self.ax
        self.new.set_size_inches(width, height)
        ax = self.new.subplots()
        ax.set_anchor("N")  # so that the layout engine sees the whole height of the labels above square cells
        return ax

    def open_panels(self, width: float, height: float) -> "MatplotlibFigure | SubFigure":
        """Return the matplotlib figure for several panels; a new one has this size in inches."""
        if self.ax is not None:
            raise InputError(
                f"The figure '{self.name}' has several panels, so it takes canvas=, but got ax=. "
                "Give a matplotlib figure, or a part of one from Figure.subfigures, as canvas=."
            )
        if self.canvas is not None:
            return self.canvas
        self.new.set_size_inches(width, height)
        return self.new


class Figure(ABC):
    """Frozen parameters and a call that draws a Dataset.

    A subclass is a frozen dataclass in a file of its own under `figures/`, named after it.

    >>> class RowSums(hs.Figure):
    ...     def __call__(self, data, target):
    ...         target.open_axes(4.0, 2.5).plot(data["weights"].isel(lens=0, layer=0, head=0).sum("key"))
    >>> len(hs.draw(hs.view(trace), RowSums).axes)
    1
    """

    cites: ClassVar[tuple[str, ...]] = ()
    """The papers this figure comes from, as keys of `headscope cite` or BibTeX entries."""

    def __post_init__(self) -> None:
        check_choices(self)

    @abstractmethod
    def __call__(self, data: "xr.Dataset", target: Target) -> None:
        """Draw `data` on `target`, in axes from `open_axes` or in a figure from `open_panels`.

        `headscope.draw` calls this with headscope's own style applied.
        """
