"""`headscope show`: what a model attends to in a text, and how much of it reaches the output."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table


def verb(
    text: Annotated[str, typer.Argument(help="The text to look at.")],
    pair: Annotated[str | None, typer.Option(help="A second text.")] = None,
    model: Annotated[str | None, typer.Option(help="A hub id or a folder; by default a small BERT.")] = None,
    lens: Annotated[str, typer.Option(help="As 'headscope list lenses' names it.")] = "effective",
    figure: Annotated[str | None, typer.Option(help="As 'headscope list figures' names it.")] = None,
    layer: Annotated[int | None, typer.Option(help="The layer to draw, from 0.")] = None,
    head: Annotated[int | None, typer.Option(help="The head to draw, from 0.")] = None,
    site: Annotated[str | None, typer.Option(help="encoder, decoder or cross, where there are several.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16, float16 or float64.")] = None,
    out: Annotated[
        list[Path] | None, typer.Option("--out", "-o", help="A picture (.pdf .svg .png .html) or the numbers (.nc).")
    ] = None,
) -> None:
    """Show what a model attends to in a text, and how much of it reaches the output.

    headscope show "The cat sat down because it was tired." -o cat.pdf
    """
    console = Console(highlight=False)
    with Console(stderr=True).status("Loading the model"):
        import transformers

        import headscope as hs
        from headscope.core.catalog import lenses
        from headscope.results.store import check_ending

        for path in out or []:
            check_ending(path)
        transformers.utils.logging.disable_progress_bar()
        chosen = lenses.make(lens)
        loaded = hs.load(model, device=device, dtype=dtype)
        keep = {"values"} | set(chosen.needs)
        trace = hs.capture(loaded, text, pair, site=site, keep=sorted(keep))
    maps = [hs.view(trace, "raw"), hs.view(trace, chosen)]
    effective = maps[1] if {"share", "null"} <= set(maps[1].diagnostics) else hs.view(trace, "effective")
    _summary(console, loaded, trace, effective)
    both = maps if maps[1].lens != "raw" else maps[:1]
    _written(console, both, figure, {"layer": layer, "head": head}, out or [])


def _summary(console: Console, model: Any, trace: Any, effective: Any) -> None:
    many = int(trace.keys.counts[0])
    others = [each for each in trace.sites if each != trace.site]
    console.print(f"{model.spec}: {trace.site} attention, {len(trace.layers)} layers × {len(trace.heads)} heads")
    if others:
        console.print(f"Also there: {', '.join(others)} (choose with --site)")
    table = effective.diagnostics
    value = trace.values[0].shape[-1]
    console.print(f"{many} tokens; a head's values have {value} dimensions")
    if not bool(table["null"].any()):
        console.print(
            f"\nEvery head's values have rank {many}, as many as there are tokens: all attention reaches\n"
            "the output, and effective attention is the same as standard attention."
        )
        return
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("layer", "effective share: mean", "least", "most", "null dimensions"):
        shown.add_column(name, justify="right")
    for place, label in enumerate(trace.layers):
        share, null = table["share"][0, place], table["null"][0, place]
        least, most = int(share.argmin()), int(share.argmax())
        spread = str(int(null.min())) if null.min() == null.max() else f"{int(null.min())}–{int(null.max())}"
        shown.add_row(
            f"L{label}",
            f"{share.mean():.2f}",
            f"{share[least]:.2f} (H{trace.heads[least]})",
            f"{share[most]:.2f} (H{trace.heads[most]})",
            spread,
        )
    console.print()
    console.print(shown)
    console.print(
        f"\nEffective share: the size of the part of attention that reaches the output,\nover that of all attention"
        f" ({effective.lens}). Largest residual: {table['residual'].max():.1e}."
    )


def _written(
    console: Console, maps: list[Any], figure: str | None, options: dict[str, int | None], out: list[Path]
) -> None:
    from headscope.results.draw import draw, gathered
    from headscope.results.store import save

    name = figure or ("compare" if len(maps) > 1 and not maps[1].merged else "matrix")
    given = {key: value for key, value in options.items() if value is not None}
    what = maps if name.partition(":")[0] == "compare" else maps[-1]
    for path in out:
        save(gathered(maps) if path.suffix == ".nc" else draw(what, name, **given), path)
        console.print(f"Wrote {path}")
    if not out:
        console.print("\nAdd -o picture.pdf (or .svg .png .html) for a picture, -o maps.nc for the numbers.")
