"""What `headscope balance` and `headscope add-negated` print: cues before and after."""

from typing import TYPE_CHECKING

from rich.console import Console

from headscope.cli.console import make_table

if TYPE_CHECKING:
    import xarray as xr


def print_before_and_after(console: Console, before: "xr.Dataset", after: "xr.Dataset") -> None:
    """Print how many cues are off chance in two sets of examples, and the largest gain."""
    from headscope.reporting.sections_of_cues import count_off_chance

    table = make_table("", numbers=("examples", "cues", "off chance", "largest gain"))
    for name, data in (("before", before), ("after", after)):
        cells = int(data["n"]), data.sizes["cue"], count_off_chance(data)
        table.add_row(name, *(f"{cell:,}" for cell in cells), f"{float(data['gain'].max()):.4f}")
    console.print(table)
    console.print("Off chance: chance is outside the 95 % interval of the cue's productivity.")
