"""`headscope prune`: write a smaller model without some heads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library
from headscope.cli.shared.options import add_options, select_options
from headscope.core.errors import InputError
from headscope.core.prose import count_noun, join_words
from headscope.engine.options import LoadOptions
from headscope.results.options import SaveOptions

if TYPE_CHECKING:
    import xarray as xr


@add_options(LoadOptions, SaveOptions)
def command(
    model: Annotated[str, typer.Argument(help="The folder of a model, or a hub id.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output folder.")],
    heads: Annotated[
        list[str] | None,
        typer.Option(help="Heads to remove: L3H7, L3 for a layer, all-L3H7, cross.L3H7. May be repeated."),
    ] = None,
    curve: Annotated[
        Path | None, typer.Option(help="A result of 'headscope pruning-curve' (.nc), which says which heads.")
    ] = None,
    pruned: Annotated[
        float | None, typer.Option(help="With --curve: the percentage of heads to remove, one of its steps.")
    ] = None,
    example: Annotated[
        str | None, typer.Option(help="A text or a picture to find the weights of heads by, where no family says them.")
    ] = None,
    **options: Any,
) -> None:
    """Write a smaller model whose outputs are those of the model without some heads.

    headscope prune tuned --heads L3H7+L0H1 -o smaller
    """
    if (heads is None) == (curve is None) or (curve is None) != (pruned is None):
        raise InputError("Name the heads with --heads, or give --curve and --pruned.")
    with load_library() as hs:
        from headscope.engine.pruning.pruned_config import BEFORE
        from headscope.results.store import refuse_folder

        refuse_folder(out, overwrite=options["force"])
        names: Any = heads if curve is None else _read_heads(hs.open_result(curve), pruned)
        loaded = hs.load(model, **select_options(options, LoadOptions))
        smaller = hs.prune(loaded, names, example=example)
        hs.save(smaller, out, overwrite=options["force"])
    before, after = (part.network.num_parameters() for part in (loaded, smaller))
    config = smaller.network.config
    count = len(config.headscope_pruned_heads)
    also = ", or with from_pretrained." if hasattr(config, BEFORE) else "; from_pretrained of transformers refuses it."
    console = Console(highlight=False)
    console.print(
        f"{count_noun(count, 'head')} pruned: {after:,} of {before:,} weights are left ({after / before:.1%}). Read it "
        f"with headscope or hs.load{also}"
    )
    console.print(f"Wrote {out}", soft_wrap=True)


def _read_heads(curve: "xr.Dataset", pruned: float | None) -> str:
    """Return the heads of one step of a pruning curve."""
    if "pruned" not in curve.dims or "heads" not in curve or "seed" in curve.dims:
        raise InputError("--curve must be a pruning curve by importance. Compute one: headscope pruning-curve …")
    shares = [float(share) for share in curve["pruned"].values]
    if pruned not in shares[1:]:
        raise InputError(f"--pruned {pruned} is no step of this curve. Its steps: {join_words(shares[1:])}.")
    return str(curve["heads"].values[shares.index(pruned)])
