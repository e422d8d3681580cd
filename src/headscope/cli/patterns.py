"""`headscope patterns`: classifiers of attention patterns, and the labels behind them."""

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.patterns_label import label, sheet
from headscope.cli.shared.output import Force

Folder = Annotated[
    Path | None, typer.Option("--labels", help="A folder of labelled maps; by default those bundled with headscope.")
]
Pass = Annotated[str | None, typer.Option("--pass", help="The annotation pass to use; by default the first.")]
Seed = Annotated[int, typer.Option("--seed", help="Random seed of the folds, the networks and the training.")]


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
    from headscope.core.provenance import stamp
    from headscope.engine.progress import show_progress
    from headscope.patterns.classify.cnn import write_cnn
    from headscope.patterns.labels.labelled_maps import read_labelled_maps
    from headscope.patterns.train.evaluation import format_evaluation
    from headscope.patterns.train.train import train as train_classifier
    from headscope.patterns.train.training_set import select_training_set
    from headscope.results.store import refuse_existing, save

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
    from headscope.engine.progress import show_progress
    from headscope.patterns.labels.labelled_maps import read_labelled_maps
    from headscope.patterns.train.evaluation import format_evaluation
    from headscope.patterns.train.train import evaluate as evaluate_classifiers
    from headscope.patterns.train.training_set import select_training_set
    from headscope.results.store import refuse_existing, save

    refuse_existing(out, overwrite=force)
    training = select_training_set(read_labelled_maps(labels), of, seed=seed)
    with show_progress(training.epochs, unit="epochs") as progress:
        data = evaluate_classifiers(training, progress)
    typer.echo(format_evaluation(data))
    if out is not None:
        save(data, out, overwrite=force)
        typer.echo(f"Wrote {out}")


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
    from headscope.patterns.labels.labelled_maps import read_labelled_maps
    from headscope.patterns.labels.typical import select_typical
    from headscope.results.store import open_result, refuse_existing, save

    refuse_existing(out, overwrite=force)
    save(select_typical(read_labelled_maps(labels), open_result(evaluation), count), out, overwrite=force)
    typer.echo(f"Wrote {out}")


VERBS = {"sheet": sheet, "label": label, "train": train, "evaluate": evaluate, "typical": typical}
