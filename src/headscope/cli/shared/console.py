"""Status line and tables of the commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    import xarray as xr


@contextmanager
def load_library(status: str = "Loading") -> Iterator[ModuleType]:
    """Yield headscope, with a status line in the block and without the progress bars of transformers."""
    with Console(stderr=True).status(status):
        import transformers

        import headscope

        transformers.utils.logging.disable_progress_bar()
        yield headscope


@contextmanager
def show_status(status: str) -> Iterator[ModuleType]:
    """Yield headscope, with a status line in the block, for commands that need no model."""
    with Console(stderr=True).status(status):
        import headscope

        yield headscope


def make_table(*texts: str, numbers: tuple[str, ...] = ()) -> Table:
    """Return an empty table with columns of texts, then right-aligned columns of numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def print_before_and_after(console: Console, before: "xr.Dataset", after: "xr.Dataset") -> None:
    """Print how many cues are off chance in two sets of examples, and the largest gain."""
    from headscope.kinds.cues import count_off_chance

    table = make_table("", numbers=("examples", "cues", "off chance", "largest gain"))
    for name, data in (("before", before), ("after", after)):
        cells = int(data["n"]), data.sizes["cue"], count_off_chance(data)
        table.add_row(name, *(f"{cell:,}" for cell in cells), f"{float(data['gain'].max()):.4f}")
    console.print(table)
    console.print("Off chance: chance is outside the 95 % interval of the cue's productivity.")
