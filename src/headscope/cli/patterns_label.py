"""`headscope patterns sheet` and `label`: sample maps of a model, and label them."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library
from headscope.cli.shared.options import Model, Pair, Text, read_examples

KEYS = {"v": "vertical", "d": "diagonal", "m": "vertical_diagonal", "b": "block", "h": "heterogeneous"}
MAX_TOKENS = 128  # more make cells too small to see


def sheet(
    data: Annotated[str, typer.Argument(help="Texts, as for 'headscope measure'.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for the maps and the sheets.")],
    model: Model = None,
    lens: Annotated[list[str] | None, typer.Option(help="Repeat for several lenses; raw by default.")] = None,
    text: Text = None,
    pair: Pair = None,
    count: Annotated[int, typer.Option("--count", "--many", help="Number of maps.")] = 60,
    seed: Annotated[int, typer.Option(help="Random seed of the sample.")] = 0,
    max_length: Annotated[
        int | None,
        typer.Option(help=f"Truncate texts to this number of tokens. Default: {MAX_TOKENS}, or fewer if need be."),
    ] = None,
) -> None:
    """Sample maps of a model at random, and draw them six on a sheet, for labelling.

    headscope patterns sheet reviews.jsonl --model my-model --lens raw --lens effective -o to_label
    """
    from headscope.core.errors import OutputError
    from headscope.engine.batch import max_input_length
    from headscope.engine.sample_maps import sample_maps
    from headscope.patterns.labels.labelled_maps import save_maps
    from headscope.patterns.labels.render import save_sheets
    from headscope.results.atomic import check_name

    check_name(out)
    if out.exists() and any(out.iterdir()):
        raise OutputError(f"The folder {out} is not empty. Give the path of a new folder.")
    with load_library("Drawing maps") as hs:
        loaded, texts = hs.load(model), read_examples(data, {"text": text, "pair": pair})
        max_length = min(MAX_TOKENS, max_input_length(loaded) or MAX_TOKENS) if max_length is None else max_length
        maps = list(sample_maps(loaded, texts, count, lenses=lens or ["raw"], seed=seed, max_length=max_length))
        save_maps(maps, out)
        sheets = list(save_sheets(maps, out))
    typer.echo(f"Wrote {len(maps)} maps and {len(sheets)} sheets into {out}.")
    typer.echo(f"Label them: headscope patterns label {out} --pass YOUR_NAME")


def label(
    folder: Annotated[Path, typer.Argument(help="A folder written by 'headscope patterns sheet'.")],
    of: Annotated[str, typer.Option("--pass", help="The name of this annotation pass, such as the annotator's.")],
) -> None:
    """Label maps one by one with single key presses; every label is saved immediately.

    headscope patterns label to_label --pass anna
    """
    from headscope.patterns.labels.labelled_maps import read_labelled_maps, save_labels
    from headscope.patterns.labels.render import render_terminal

    console, labelled = Console(highlight=False), read_labelled_maps(folder)
    labels = labelled.passes.setdefault(of, {})
    unlabelled = [item for item in labelled.maps if item.source.id not in labels]
    index = 0
    history: list[int] = []
    while index < len(unlabelled):
        item = unlabelled[index]
        console.print(render_terminal(item, min(76, console.width - 2)))
        remaining = len(unlabelled) - index
        console.print(f"{item.source.id}: {len(item.source.tokens)} tokens, {item.source.kind}; {remaining} to go")
        console.print(", ".join(f"{key} {name}" for key, name in KEYS.items()), markup=False)
        console.print("s skip, u undo, q stop: ", end="", markup=False)
        key = _read_key()
        console.print(key)
        if key == "q":
            break
        if key == "u" and history:
            index = history.pop()
            labels.pop(unlabelled[index].source.id, None)
            save_labels(labelled.passes, folder)
        elif key == "s" or key in KEYS:
            history.append(index)
            index += 1
        if key in KEYS:
            labels[item.source.id] = KEYS[key]
            save_labels(labelled.passes, folder)
    console.print(f"{len(labels)} of {len(labelled.maps)} maps have a label of {of}, in {folder / 'labels.tsv'}.")


def _read_key() -> str:
    from headscope.core.errors import InputError

    try:
        return typer.getchar().lower()
    except OSError as error:
        raise InputError(
            "Labelling reads single keys, but there is no terminal. Run it in a terminal, or look at the sheets and "
            "write labels.tsv yourself, with the columns id, pass and label."
        ) from error
