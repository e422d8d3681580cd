"""`headscope study`: a published experiment, repeated."""

import inspect
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from headscope.cli.shared.options import Model, complete_from, make_parameter
from headscope.cli.shared.output import Force
from headscope.core.catalog import studies
from headscope.core.options import DEVICE
from headscope.core.spec import canonical_name, parse_spec

if TYPE_CHECKING:
    from headscope.core.study import StudyResult

SETTINGS = {
    "context_settings": {"ignore_unknown_options": True, "help_option_names": []},
    "options_metavar": "",
    "no_args_is_help": True,
}

Device = Annotated[str | None, typer.Option("--device", help=DEVICE)]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for all steps and the report.")]
DEFAULTS = {"out": Path("out"), "force": False}  # all other options are None unless they are given


def command(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME [OPTIONS]",
            help="A study and its options.",
            autocompletion=lambda incomplete: [name.replace("_", "-") for name in complete_from("studies")(incomplete)],
        ),
    ],
) -> None:
    """Repeat a published experiment on your model and data, and report which of its claims hold.

    NAME is one of 'headscope list studies'; every study has options of its own:

    headscope study effective-attention --help

    headscope study effective-attention --data GLUE --tasks rte -o out/
    """
    from headscope.cli.main import report_errors

    words = [word for word in arguments if not word.startswith("-")]
    if not words:  # --help without a name
        typer.echo(inspect.cleandoc(f"Usage: headscope study NAME [OPTIONS]\n\n{command.__doc__}"))
        return
    known = studies.names()
    name = next((word for word in words if canonical_name(word.partition(":")[0]) in known), words[0])
    rest = [word for word in arguments if word != name]
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(report_errors(_make_command(name)))
    app(rest, prog_name=f"headscope study {name}")


def study_options(kind: Any) -> dict[str, Any]:
    """Return the annotation of an option for each parameter of a study, from its fields: type, default and help."""
    hints = get_type_hints(kind)
    return {
        item.name: make_parameter(item, hints[item.name], optional=True).annotation  # a spec may give it, too
        for item in fields(kind)
    }


def _make_command(name: str) -> Any:
    """Return a function that runs the study; its parameters are the options of the study."""
    kind = studies.find(parse_spec(name)[0])

    def run(model: str | None, device: str | None, out: Path, force: bool, **options: Any) -> None:
        console = Console(highlight=False)
        with Console(stderr=True).status("Loading"):
            import transformers

            import headscope as hs
            from headscope.reporting.write import check_folder

            transformers.utils.logging.disable_progress_bar()
            check_folder(out / "report", overwrite=True)  # hs.study refuses the folder of another study
        chosen_options = {key: value for key, value in options.items() if value not in (None, [])}
        values: Any = {key: tuple(value) if isinstance(value, list) else value for key, value in chosen_options.items()}
        result = hs.study(name, model, out=out, device=device, overwrite=force, **values)
        page = hs.report(result.document, out / "report", overwrite=True)
        _print_verdicts(console, result)
        console.print(f"Wrote {page}", soft_wrap=True)

    run.__annotations__ = {"model": Model, "device": Device, "out": Out, "force": Force, **study_options(kind)}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # typer reads it
        [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=DEFAULTS.get(key))
            for key, hint in run.__annotations__.items()
        ]
    )
    run.__doc__ = kind.__doc__
    return run


def _print_verdicts(console: Console, result: "StudyResult") -> None:
    """Print the claims and their verdicts, where a study judges some, and which tasks its model has not learned."""
    from headscope.experiments.rendering.report import describe_unlearned

    parts = (part for section in result.document.sections for part in section.parts)
    for part in parts:
        if getattr(part, "name", "") == "verdicts" and hasattr(part, "frame"):
            table = Table(
                *(Column(name, overflow="fold") for name in ("claim", "verdict")), box=None, padding=(0, 2, 0, 0)
            )
            for claim, verdict in part.frame["verdict"].items():
                table.add_row(escape(str(claim)), escape(str(verdict)))
            console.print(table, "")
            if "majority" in result.data and (said := describe_unlearned(result.data)):
                console.print(f"{escape(said)}\n")
