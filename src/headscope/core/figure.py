"""A way to draw what was found."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib import figure as matplotlib_figure
    from matplotlib.axes import Axes


class Figure(ABC):
    """Frozen parameters and a call that turns a Dataset into a matplotlib figure.

    A subclass is a frozen dataclass in a file of its own under `figures/`, named after it.
    """

    cites: ClassVar[tuple[str, ...]] = ()
    """The papers this figure comes from, as keys of `headscope cite`."""

    @abstractmethod
    def __call__(
        self,
        data: "xr.Dataset",
        *,
        ax: "Axes | None" = None,
        figure: "matplotlib_figure.Figure | matplotlib_figure.SubFigure | None" = None,
    ) -> "matplotlib_figure.Figure":
        """The figure, new or drawn where the caller says.

        A figure of one panel draws into `ax`; one of several panels draws into `figure`, which may be part of
        a larger one. Neither touches matplotlib's global style.
        """
