"""Where a notebook shows a thing: at once when `hs.show` is called, and not again as the value of the same cell."""

import sys
from typing import Any


class ShownOnce:
    """What `hs.show` displays in a notebook and returns."""

    _shown_in: int | None = None

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return what is displayed, by its mime type."""
        raise NotImplementedError  # not an abstract method: widgets have a metaclass of their own

    def show_now(self) -> None:
        """Display it here, and not again as the value of the same cell."""
        from IPython.display import display

        display(self._repr_mimebundle_(), raw=True)
        self._shown_in = _read_shell().execution_count

    def _ipython_display_(self, **_: Any) -> None:
        """Display it, unless it is the value of a cell in which `hs.show` displayed it."""
        shell = _read_shell()
        is_value = getattr(shell.displayhook, "msg", None) is not None  # of ipykernel, while it displays a value
        if not (is_value and shell.execution_count == self._shown_in):
            self.show_now()


def in_marimo() -> bool:
    """Whether this is a notebook of marimo, which shows the value of a cell and has no IPython."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())


def _read_shell() -> Any:
    return sys.modules["IPython"].get_ipython()
