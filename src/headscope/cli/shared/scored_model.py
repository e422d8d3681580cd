"""What verbs share that score a tuned model: their options, reading the examples and loading the model."""

from collections.abc import Mapping
from types import ModuleType
from typing import Annotated, Any

import typer

from headscope.cli.shared.console import load_library
from headscope.cli.shared.options import Device, Dtype, Limit, Seed, add_options, column_options, read_examples
from headscope.cli.shared.output import FigureOut, Force, check_figure_out


@add_options(column_options)
def scoring_template(
    data: Annotated[str, typer.Argument(help="A file (.jsonl .json .csv .tsv .txt .parquet) or glue:mrpc:dev@DIR.")],
    model: Annotated[str, typer.Option(help="The folder of a tuned model, or a hub id.")],
    task: Annotated[
        str, typer.Option(help="classification, regression, choice, translation, mlm or causal. auto: from the model.")
    ] = "auto",
    limit: Limit = None,
    seed: Seed = 0,
    batch_size: Annotated[int, typer.Option(help="Number of examples per batch.")] = 32,
    max_length: Annotated[
        int | None, typer.Option(help="Truncate texts to this number of tokens. Default: as tuned.")
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    out: FigureOut = None,
    force: Force = False,
    **columns: Any,
) -> None:
    """Declare the options: `add_options` reads the signature."""


def load_inputs(shared: Mapping[str, Any]) -> tuple[ModuleType, Any, Any]:
    """Check the output files; return headscope, the loaded model, and the examples or a sample of them."""
    check_figure_out(shared.get("out"), overwrite=shared["force"])
    with load_library() as hs:
        from headscope.core.example import sample_examples

        examples = sample_examples(read_examples(shared["data"], shared), shared.get("limit"), shared.get("seed", 0))
        return hs, hs.load(shared["model"], device=shared["device"], dtype=shared["dtype"]), examples


def scoring_options(shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shared options that go to the function as they are."""
    return {name: shared[name] for name in ("task", "batch_size", "max_length")}
