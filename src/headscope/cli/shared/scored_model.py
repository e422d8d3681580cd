"""What commands share that score a tuned model: reading the examples and loading the model."""

from collections.abc import Mapping
from types import ModuleType
from typing import Annotated, Any

import typer

from headscope.cli.shared.console import load_library
from headscope.cli.shared.options import read_examples, select_options
from headscope.data.reading.options import SampleOptions
from headscope.engine.options import LoadOptions

ScoredData = Annotated[str, typer.Argument(help="A file (.jsonl .json .csv .tsv .txt .parquet) or glue:mrpc:dev@DIR.")]
TunedModel = Annotated[str, typer.Option(help="The folder of a tuned model, or a hub id.")]


def load_inputs(data: str, model: str, options: Mapping[str, Any]) -> tuple[ModuleType, Any, Any]:
    """Return headscope, the loaded model, and the examples or a sample of them."""
    with load_library() as hs:
        from headscope.core.example import sample_examples

        sample = SampleOptions(**select_options(options, SampleOptions))
        examples = sample_examples(read_examples(data, options), sample.limit, sample.seed)
        return hs, hs.load(model, **select_options(options, LoadOptions)), examples
