"""`headscope patterns`: classifiers of attention patterns, and the labels behind them."""

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.patterns_label import label, sheet

Folder = Annotated[
    Path | None, typer.Option("--labels", help="A folder of labelled maps; nothing: those that come with headscope.")
]
Pass = Annotated[str | None, typer.Option("--pass", help="Whose labels, where there are several; nothing: the first.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the split, the networks and the training.")]


def train(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to: a .safetensors file.")],
    labels: Folder = None,
    of: Pass = None,
    seed: Seed = 0,
    evaluation: Annotated[
        Path | None, typer.Option("--evaluation", help="Also write how it did in cross-validation: .nc or .zarr")
    ] = None,
) -> None:
    """Train a classifier of patterns on labelled maps, and try it on maps that it has not seen.

    headscope patterns train --labels my_labels -o my.safetensors
    """
    from headscope.core.errors import OutputError
    from headscope.engine.progress import show_progress
    from headscope.patterns.classify.cnn import write_cnn
    from headscope.patterns.classify.settings import USUAL
    from headscope.patterns.labels.labelled import open_labelled
    from headscope.patterns.train.summary import summary
    from headscope.patterns.train.train import epochs
    from headscope.patterns.train.train import train as trained
    from headscope.results.stamp import stamp
    from headscope.results.store import save

    if out.suffix != ".safetensors":
        raise OutputError(f"A classifier is saved as .safetensors, but '{out.name}' is not. Change the ending.")
    held = open_labelled(labels)
    with show_progress(epochs(held, labels=of, seed=seed) + USUAL.epochs, unit="epochs") as said:
        cnn, data = trained(held, labels=of, seed=seed, said=said)
    write_cnn(cnn, out)
    if evaluation is not None:
        found = hashlib.sha256(out.read_bytes()).hexdigest()
        save(stamp(data, model=out.name, weights_hash=found), evaluation)
    typer.echo(summary(data))
    typer.echo(f"Wrote {out}; use it as patterns:classifier={out}")


def evaluate(
    labels: Folder = None,
    of: Pass = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to, for 'headscope draw': .nc or .zarr")
    ] = None,
) -> None:
    """Try classifiers on labelled maps of heads and texts that they have not seen.

    headscope patterns evaluate -o patterns.nc
    """
    from headscope.engine.progress import show_progress
    from headscope.patterns.labels.labelled import open_labelled
    from headscope.patterns.train.summary import summary
    from headscope.patterns.train.train import epochs
    from headscope.patterns.train.train import evaluate as evaluated
    from headscope.results.store import save

    held = open_labelled(labels)
    with show_progress(epochs(held, labels=of, seed=seed), unit="epochs") as said:
        data = evaluated(held, labels=of, seed=seed, said=said)
    typer.echo(summary(data))
    if out is not None:
        save(data, out)
        typer.echo(f"Wrote {out}")


def typical(
    evaluation: Annotated[Path, typer.Argument(help="What 'headscope patterns evaluate' wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to, for 'headscope draw': .nc or .zarr")],
    labels: Folder = None,
    many: Annotated[int, typer.Option("--many", min=1, help="How many maps of each class.")] = 3,
) -> None:
    """Choose the labelled maps of each class that the cnn is surest of.

    headscope patterns typical patterns.nc -o typical.nc; headscope draw typical.nc typical_maps -o typical.pdf
    """
    from headscope.patterns.labels.labelled import open_labelled
    from headscope.patterns.labels.typical import typical as found
    from headscope.results.store import open_result, save

    save(found(open_labelled(labels), open_result(evaluation), many), out)
    typer.echo(f"Wrote {out}")


VERBS = {"sheet": sheet, "label": label, "train": train, "evaluate": evaluate, "typical": typical}
