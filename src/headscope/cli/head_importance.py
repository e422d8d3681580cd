"""`headscope head-importance`: how much each head matters for a task."""

from typing import Any

from rich.console import Console

from headscope.ablation.options import HeadImportanceOptions
from headscope.cli.shared.options import add_options, select_options
from headscope.cli.shared.output import FigureOut, check_figure_out, write_result
from headscope.cli.shared.result_tables import print_result
from headscope.cli.shared.scored_model import ScoredData, TunedModel, load_inputs
from headscope.data.reading.options import ReadOptions, SampleOptions
from headscope.engine.options import LoadOptions
from headscope.results.options import SaveOptions


@add_options(HeadImportanceOptions, SampleOptions, LoadOptions, ReadOptions, SaveOptions)
def command(data: ScoredData, model: TunedModel, out: FigureOut = None, **options: Any) -> None:
    """Estimate how much each head matters for a task, from gradients.

    headscope head-importance glue:mrpc:dev@GLUE --model tuned -o heads.nc -o heads.pdf
    """
    check_figure_out(out, overwrite=options["force"])
    hs, loaded, examples = load_inputs(data, model, options)
    result = hs.head_importance(loaded, examples, **select_options(options, HeadImportanceOptions))
    print_result(Console(highlight=False), result)
    write_result(result, lambda: hs.draw(result), out, overwrite=options["force"])
