"""What verbs share that score a tuned model: their options, reading the examples and loading the model."""

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from types import ModuleType
from typing import Annotated, Any

import typer

from headscope.cli.console import load_library
from headscope.cli.options import (
    Choices,
    Device,
    Dtype,
    FigureOut,
    Force,
    Id,
    Label,
    Limit,
    Malformed,
    Pair,
    Seed,
    Text,
    Words,
    check_figure_out,
    read_examples,
)


def shared_options(
    data: Annotated[str, typer.Argument(help="A file (.jsonl .csv .tsv .txt .parquet) or glue:mrpc:dev@DIR.")],
    model: Annotated[str, typer.Option(help="The folder of a tuned model, or a hub id.")],
    task: Annotated[
        str, typer.Option(help="classification, regression, choice, translation, mlm or causal. auto: from the model.")
    ] = "auto",
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    words: Words = None,
    id: Id = None,  # noqa: A002  (the column's name everywhere)
    choices: Choices = None,
    malformed: Malformed = "error",
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
) -> None:
    """Declare the options: `add_shared_options` reads the signature."""


def add_shared_options(*, without: Collection[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the shared options to a verb, which takes them as `**shared`; its own options come before them."""

    def add(verb: Callable[..., None]) -> Callable[..., None]:
        @wraps(verb)
        def extended(**options: Any) -> None:
            verb(**options)

        own = [part for part in inspect.signature(verb).parameters.values() if part.kind is not part.VAR_KEYWORD]
        shared = [part for name, part in inspect.signature(shared_options).parameters.items() if name not in without]
        required = [part for part in shared if part.default is part.empty]
        optional = [part for part in shared if part.default is not part.empty]
        parameters = [part.replace(kind=part.KEYWORD_ONLY) for part in (*required, *own, *optional)]
        extended.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        extended.__annotations__ = {part.name: part.annotation for part in parameters}
        return extended

    return add


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
