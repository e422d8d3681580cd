"""`headscope ablate`: score a model without each of its heads."""

from typing import Any

from rich.console import Console

from headscope.ablation.options import AblateOptions
from headscope.cli.shared.options import add_options, select_options
from headscope.cli.shared.output import FigureOut, check_figure_out, write_result
from headscope.cli.shared.result_tables import print_result
from headscope.cli.shared.scored_model import ScoredData, TunedModel, load_inputs
from headscope.data.reading.options import ReadOptions, SampleOptions
from headscope.engine.options import LoadOptions
from headscope.results.options import SaveOptions


@add_options(AblateOptions, SampleOptions, LoadOptions, ReadOptions, SaveOptions)
def command(data: ScoredData, model: TunedModel, out: FigureOut = None, **options: Any) -> None:
    """Score a model without each of its heads, with paired tests.

    headscope ablate glue:sst2:dev@GLUE --model tuned -o ablation.nc -o ablation.pdf
    """
    check_figure_out(out, overwrite=options["force"])
    hs, loaded, examples = load_inputs(data, model, options)
    options["sets"] = _read_sets(options["sets"])
    result = hs.ablate(loaded, examples, **select_options(options, AblateOptions))
    print_result(Console(highlight=False), result)
    write_result(result, lambda: hs.draw(result), out, overwrite=options["force"])


def _read_sets(sets: list[str] | None) -> Any:
    """Return the kind of sets that is named, or else a list of selections."""
    from headscope.ablation.head_sets import KINDS

    named = [name.replace("-", "_") for name in sets or []]
    return named[0] if len(named) == 1 and named[0] in KINDS else sets
