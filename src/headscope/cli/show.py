"""`headscope show`: attention of a model on a text, and how much of it reaches the output."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headscope.cli.shared.console import load_library, make_table
from headscope.cli.shared.options import Model, add_options, complete_from, edit_model, select_options
from headscope.cli.shared.output import FigureOut, check_figure_out, print_path, write_result
from headscope.core.catalog import figures, lenses
from headscope.core.errors import InputError
from headscope.core.lens import VIEW_LENS
from headscope.core.spec import parse_spec
from headscope.engine.options import EditOptions, LoadOptions, RecordOptions
from headscope.results.options import SaveOptions

if TYPE_CHECKING:
    import xarray as xr

    import headscope as hs


@add_options(RecordOptions, EditOptions, LoadOptions, SaveOptions, without=("layers", "heads"))
def command(
    text: Annotated[str, typer.Argument(help="The text.")],
    pair: Annotated[str | None, typer.Option(help="A second text, for models of text pairs.")] = None,
    model: Model = None,
    lens: Annotated[
        str, typer.Option(help="A lens, see 'headscope list lenses'.", autocompletion=complete_from("lenses"))
    ] = VIEW_LENS,
    figure: Annotated[
        str | None,
        typer.Option(
            help="A figure, see 'headscope list figures'. Default: compare with raw attention; as .html, the viewer.",
            autocompletion=complete_from("figures"),
        ),
    ] = None,
    layer: Annotated[int | None, typer.Option(help="Draw and save only this layer; -1 is the last.")] = None,
    head: Annotated[int | None, typer.Option(help="Draw and save only this head; -1 is the last.")] = None,
    out: FigureOut = None,
    **options: Any,
) -> None:
    """Show the attention of a model on a text, and how much of it reaches the output.

    headscope show "The committee met again in March, but the chair was ill, the
    minutes had been lost, and nobody knew what they had decided before; so they
    agreed to wait until the summer was over." -o attention.html

    A page of .html is the viewer, with every head; other endings are a figure.

    The default model's heads have 32 value dimensions; in texts of at most 32 tokens all attention reaches the output.
    """
    force = options["force"]
    _check_output(figure, out or [], force)
    _check_target(lens, options["target"])
    console = Console(highlight=False)
    pages = [path for path in out or () if path.suffix.lower() == ".html" and figure is None]
    with load_library() as hs:
        keep = () if pages else sorted({"values"} | lenses.make(lens).needs - {"gradient"})
        loaded = hs.load(model, **select_options(options, LoadOptions))
        with edit_model(loaded, options["edit"]) as loaded:
            trace = hs.capture(loaded, text, pair, keep=keep, **select_options(options, RecordOptions))
    maps = [hs.view(trace, name) for name in dict.fromkeys(["raw", lens])]
    if maps[-1].merged:
        maps[0] = maps[0].mean("head")  # one map per layer, too
    _print_summary(console, loaded, trace, maps[-1] if "null" in maps[-1].diagnostics else hs.view(trace, "effective"))
    if pages:
        _write_pages(trace, lens, layer, head, pages)
    if files := [path for path in out or () if path not in pages]:
        _write(_stamp(_select(maps, layer, head), loaded, trace.examples[0]), figure, files, force)
    if not out:
        console.print(
            "\nAdd -o page.html to look at every head, -o picture.pdf (.svg .png) for a\n"
            "figure, -o maps.nc for the numbers."
        )


def _check_output(figure: str | None, out: list[Path], force: bool) -> None:
    """Raise an error for an unknown figure or file ending, or a file that exists, before the model is loaded."""
    if figure is not None:
        figures.find(parse_spec(figure)[0])
    check_figure_out(out, overwrite=force)


def _check_target(lens: str, target: str | None) -> None:
    """Raise an error for a lens of gradients without a target, or a target that no lens uses."""
    if lenses.make(lens).needs_target == (target is not None):
        return
    if target is None:
        raise InputError(f"The lens '{lens}' needs the gradient of a prediction. Say which: target='predicted'.")
    raise InputError(f"target={target!r} was given, but the lens '{lens}' needs no gradient. Leave it out.")


def _print_summary(console: Console, model: "hs.Model", trace: "hs.Trace", maps: "hs.Maps") -> None:
    """Print the model, and the effective share of every layer, or that all attention is effective."""
    assert trace.values is not None
    console.print(f"{model.spec}: {trace.site} attention, {len(trace.layers)} layers × {len(trace.heads)} heads")
    if others := [site for site in trace.sites if site != trace.site]:
        console.print(f"Other sites: {', '.join(others)} (choose with --site)")
    tokens = int(trace.keys.counts[0])
    console.print(f"{tokens} tokens; a head's values have {trace.values[0].shape[-1]} dimensions\n")
    if not maps.diagnostics["null"].any():
        console.print(
            f"Every head's values have rank {tokens}, as many as there are tokens: all attention\n"
            "reaches the output, and effective attention is the same as raw attention.\n"
            f"A text of more than {trace.values[0].shape[-1]} tokens shows a difference."
        )
        return
    console.print(_share_table(trace, maps))
    residual = float(maps.diagnostics["residual"].max())
    console.print(
        f"\nShare: Frobenius norm of the {maps.lens} map ÷ norm of the raw map.\n"
        f"Largest relative change of a head's output without the rest: {residual:.1e}."
    )


def _share_table(trace: "hs.Trace", maps: "hs.Maps") -> Table:
    table = make_table(numbers=("layer", "share: mean", "min", "max", "null dimensions"))
    for index, label in enumerate(trace.layers):
        share, null = (maps.diagnostics[name][0, index] for name in ("share", "null"))
        ends = [f"{share[head]:.2f} (H{trace.heads[int(head)]})" for head in (share.argmin(), share.argmax())]
        dimensions = f"{null.min()}" if null.min() == null.max() else f"{null.min()}–{null.max()}"
        table.add_row(f"L{label}", f"{share.mean():.2f}", *ends, dimensions)
    return table


def _select(maps: "list[hs.Maps]", layer: int | None, head: int | None) -> "xr.Dataset":
    from headscope.plotting.draw import to_dataset
    from headscope.plotting.selection import axis_index

    data = to_dataset(maps)
    for name, label in (("layer", layer), ("head", head)):
        if label is not None:
            data = data.isel({name: [axis_index(data, name, label)]})
    return data


def _stamp(data: "xr.Dataset", model: "hs.Model", example: "hs.Example") -> "xr.Dataset":
    from headscope.core.provenance import stamp
    from headscope.results.hashes import fingerprint

    facts = {"model": model.spec, "weights_hash": model.weights_hash, "n": 1}
    return stamp(
        data, kind="maps", command="headscope show", **facts, data=fingerprint([example.text, example.pair or ""])
    )


def _write(data: "xr.Dataset", figure: str | None, out: list[Path], force: bool) -> None:
    from headscope.core.kind import find_kind
    from headscope.plotting.draw import draw

    figure = figure or find_kind(data).figure(data)
    selected = data if parse_spec(figure)[0] == "compare" else data.isel(lens=[-1])
    write_result(data, lambda: draw(selected, figure), out, overwrite=force)


def _write_pages(trace: "hs.Trace", lens: str, layer: int | None, head: int | None, pages: list[Path]) -> None:
    """Write the viewer with raw, effective and norm-based attention, and with the lens that was asked for."""
    from headscope.core.lens import view
    from headscope.results.store import save
    from headscope.viewer.from_maps import view_trace

    maps = view_trace(trace)
    if all(lenses.make(lens) != lenses.make(each.lens) for each in maps):
        maps.append(view(trace, lens))
    chosen = [each.sel(layer=layer, head=None if each.merged else head) for each in maps]
    for path in pages:
        save(chosen, path)
        print_path(path)
