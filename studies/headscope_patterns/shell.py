"""`headscope patterns`: the labels behind the classifiers of attention patterns, their training and evaluation."""

import hashlib
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library
from headscope.cli.shared.options import Model, add_options, read_examples
from headscope.cli.shared.output import Force
from headscope.data.reading.options import ReadOptions

app = typer.Typer(no_args_is_help=True, help="Classifiers of attention patterns, and the labels behind them.")
KEYS = {"v": "vertical", "d": "diagonal", "m": "vertical_diagonal", "b": "block", "h": "heterogeneous"}
MAX_TOKENS = 128  # more make cells too small to see

Folder = Annotated[
    Path | None, typer.Option("--labels", help="A folder of labelled maps; by default the bundled ones.")
]
Pass = Annotated[str | None, typer.Option("--pass", help="The annotation pass to use; by default the first.")]
Seed = Annotated[int, typer.Option("--seed", help="Random seed of the folds, the networks and the training.")]


@app.command()
@add_options(ReadOptions, without=("label", "words", "id", "choices", "labels", "encoding", "malformed"))
def sheet(
    data: Annotated[str, typer.Argument(help="Texts, as for 'headscope measure'.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for the maps and the sheets.")],
    model: Model = None,
    lens: Annotated[list[str] | None, typer.Option(help="Repeat for several lenses; raw by default.")] = None,
    count: Annotated[int, typer.Option("--count", "--many", help="Number of maps.")] = 60,
    seed: Annotated[int, typer.Option(help="Random seed of the sample.")] = 0,
    max_length: Annotated[
        int | None,
        typer.Option(help=f"Truncate texts to this number of tokens. Default: {MAX_TOKENS}, or fewer if need be."),
    ] = None,
    **columns: Any,
) -> None:
    """Sample maps of a model at random, and draw them six on a sheet, for labelling.

    headscope patterns sheet reviews.jsonl --model my-model --lens raw --lens effective -o to_label
    """
    from headscope.core.errors import OutputError
    from headscope.engine.batch import max_input_length
    from headscope.results.atomic import check_name
    from headscope_patterns.labels.labelled_maps import save_maps
    from headscope_patterns.labels.render import save_sheets
    from headscope_patterns.labels.sample_maps import sample_maps

    check_name(out)
    if out.exists() and any(out.iterdir()):
        raise OutputError(f"The folder {out} is not empty. Give the path of a new folder.")
    with load_library("Drawing maps") as hs:
        loaded, texts = hs.load(model), read_examples(data, columns)
        max_length = min(MAX_TOKENS, max_input_length(loaded) or MAX_TOKENS) if max_length is None else max_length
        maps = list(sample_maps(loaded, texts, count, lenses=lens or ["raw"], seed=seed, max_length=max_length))
        save_maps(maps, out)
        sheets = list(save_sheets(maps, out))
    typer.echo(f"Wrote {len(maps)} maps and {len(sheets)} sheets into {out}.")
    typer.echo(f"Label them: headscope patterns label {out} --pass YOUR_NAME")


@app.command()
def label(
    folder: Annotated[Path, typer.Argument(help="A folder written by 'headscope patterns sheet'.")],
    of: Annotated[str, typer.Option("--pass", help="The name of this annotation pass, such as the annotator's.")],
) -> None:
    """Label maps one by one with single key presses; every label is saved immediately.

    headscope patterns label to_label --pass anna
    """
    from headscope_patterns.labels.labelled_maps import read_labelled_maps, save_labels
    from headscope_patterns.labels.render import render_terminal

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


@app.command()
def train(
    out: Annotated[Path, typer.Option("--out", "-o", help="The .safetensors file to write.")],
    labels: Folder = None,
    of: Pass = None,
    seed: Seed = 0,
    evaluation: Annotated[
        Path | None, typer.Option("--evaluation", help="Also write the cross-validation results: .nc or .zarr")
    ] = None,
    force: Force = False,
) -> None:
    """Train a pattern classifier on labelled maps, and evaluate it by cross-validation.

    headscope patterns train --labels my_labels -o my.safetensors
    """
    from headscope.core.errors import OutputError
    from headscope.core.progress import show_progress
    from headscope.core.provenance import stamp
    from headscope.patterns.classify.cnn import write_cnn
    from headscope.results.store import refuse_existing, save
    from headscope_patterns.labels.labelled_maps import read_labelled_maps
    from headscope_patterns.train.evaluation import format_evaluation
    from headscope_patterns.train.train import train as train_classifier
    from headscope_patterns.train.training_set import select_training_set

    if out.suffix != ".safetensors":
        raise OutputError(f"A classifier is saved as .safetensors, but '{out.name}' is not. Change the ending.")
    for path in (out, evaluation):
        refuse_existing(path, overwrite=force)
    training = select_training_set(read_labelled_maps(labels), of, seed=seed)
    with show_progress(training.epochs + training.settings.epochs, unit="epochs") as progress:
        cnn, data = train_classifier(training, progress)
    write_cnn(cnn, out)
    if evaluation is not None:
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
        save(stamp(data, model=out.name, weights_hash=digest), evaluation, overwrite=force)
    typer.echo(format_evaluation(data))
    typer.echo(f"Wrote {out}; use it as patterns:classifier={out}")


@app.command()
def evaluate(
    labels: Folder = None,
    of: Pass = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write, for 'headscope draw': .nc or .zarr")
    ] = None,
    force: Force = False,
) -> None:
    """Evaluate classifiers by cross-validation on labelled maps, with unseen heads and texts in each fold.

    headscope patterns evaluate -o patterns.nc
    """
    from headscope.core.progress import show_progress
    from headscope.results.store import refuse_existing, save
    from headscope_patterns.labels.labelled_maps import read_labelled_maps
    from headscope_patterns.train.evaluation import format_evaluation
    from headscope_patterns.train.train import evaluate as evaluate_classifiers
    from headscope_patterns.train.training_set import select_training_set

    refuse_existing(out, overwrite=force)
    training = select_training_set(read_labelled_maps(labels), of, seed=seed)
    with show_progress(training.epochs, unit="epochs") as progress:
        data = evaluate_classifiers(training, progress)
    typer.echo(format_evaluation(data))
    if out is not None:
        save(data, out, overwrite=force)
        typer.echo(f"Wrote {out}")


@app.command()
def typical(
    evaluation: Annotated[Path, typer.Argument(help="A file written by 'headscope patterns evaluate'.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write, for 'headscope draw': .nc or .zarr")],
    labels: Folder = None,
    count: Annotated[int, typer.Option("--count", "--many", min=1, help="Number of maps of each class.")] = 3,
    force: Force = False,
) -> None:
    """Select the labelled maps of each class that the cnn is most confident about.

    headscope patterns typical patterns.nc -o typical.nc; headscope draw typical.nc typical_maps -o typical.pdf
    """
    from headscope.results.store import open_result, refuse_existing, save
    from headscope_patterns.labels.labelled_maps import read_labelled_maps
    from headscope_patterns.labels.typical import select_typical

    refuse_existing(out, overwrite=force)
    save(select_typical(read_labelled_maps(labels), open_result(evaluation), count), out, overwrite=force)
    typer.echo(f"Wrote {out}")
