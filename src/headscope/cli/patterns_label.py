"""`headscope patterns sheet` and `label`: maps to look at, and the classes that somebody gives them."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headscope.cli.columns import Pair, Text, read

KEYS = {"v": "vertical", "d": "diagonal", "m": "vertical_diagonal", "b": "block", "h": "heterogeneous"}


def sheet(
    data: Annotated[str, typer.Argument(help="Texts, as for 'headscope measure'.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for the maps and the sheets.")],
    model: Annotated[str | None, typer.Option(help="A hub id or a folder; by default a small BERT.")] = None,
    lens: Annotated[list[str] | None, typer.Option(help="Any number; raw by default.")] = None,
    text: Text = None,
    pair: Pair = None,
    many: Annotated[int, typer.Option(help="So many maps.")] = 60,
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 0,
    max_length: Annotated[int, typer.Option(help="Cut texts to so many tokens.")] = 128,
) -> None:
    """Draw maps of a model at random, six on a sheet, to be labelled.

    headscope patterns sheet reviews.jsonl --model my-model --lens raw --lens effective -o to_label
    """
    import transformers

    import headscope as hs
    from headscope.core.errors import OutputError
    from headscope.engine.sample_maps import sample_maps
    from headscope.patterns.labels.labelled import save_maps
    from headscope.patterns.labels.sheet import sheets

    if out.exists() and any(out.iterdir()):
        raise OutputError(f"{out} holds something already. Give the path of a new folder.")
    with Console(stderr=True).status("Drawing maps"):
        transformers.utils.logging.disable_progress_bar()
        loaded, texts = hs.load(model), read(data, {"text": text, "pair": pair})
        maps = list(sample_maps(loaded, texts, many, lenses=lens or ["raw"], seed=seed, max_length=max_length))
        save_maps(maps, out)
        pages = list(sheets(maps, out))
    typer.echo(f"Wrote {len(maps)} maps and {len(pages)} sheets into {out}.")
    typer.echo(f"Label them: headscope patterns label {out} --pass YOUR_NAME")


def label(
    folder: Annotated[Path, typer.Argument(help="A folder that 'headscope patterns sheet' wrote.")],
    of: Annotated[str, typer.Option("--pass", help="Whose labels these are.")],
) -> None:
    """Label maps one after the other by pressing keys; every label is saved at once.

    headscope patterns label to_label --pass anna
    """
    from headscope.patterns.labels.in_letters import in_letters
    from headscope.patterns.labels.labelled import open_labelled, save_labels

    console, held = Console(highlight=False), open_labelled(folder)
    given = held.passes.setdefault(of, {})
    waiting = [each for each in held.maps if each.source.id not in given]
    place = 0
    before: list[int] = []
    while place < len(waiting):
        each = waiting[place]
        kind = "pair" if any(each.source.segments) else "single text"
        console.print(in_letters(each, min(76, console.width - 2)))
        console.print(f"{each.source.id}: {len(each.source.tokens)} tokens, {kind}; {len(waiting) - place} to go")
        console.print(", ".join(f"{key} {name}" for key, name in KEYS.items()), markup=False)
        console.print("s skip, u undo, q stop: ", end="", markup=False)
        key = _key()
        console.print(key)
        if key == "q":
            break
        if key == "u" and before:
            place = before.pop()
            given.pop(waiting[place].source.id, None)
            save_labels(held.passes, folder)
        elif key == "s" or key in KEYS:
            before.append(place)
            place += 1
        if key in KEYS:
            given[each.source.id] = KEYS[key]
            save_labels(held.passes, folder)
    console.print(f"{len(given)} of {len(held.maps)} maps have a label of {of}, in {folder / 'labels.tsv'}.")


def _key() -> str:
    from headscope.core.errors import InputError

    try:
        return typer.getchar().lower()
    except OSError as error:
        raise InputError(
            "Labelling takes keys, but there is no terminal to press them in. Run it in a terminal, or look at the "
            "sheets and write labels.tsv yourself, with the columns id, pass and label."
        ) from error
