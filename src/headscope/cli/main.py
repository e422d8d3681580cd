"""The shell command: one verb, one file in this folder."""

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from headscope.core.errors import DataWarning, HeadscopeError, InputError
from headscope.version import __version__

VERBS = ("show", "measure", "merge", "compare", "finetune", "score", "draw", "report", "study", "list", "cite")
GROUPS = ("patterns",)
"""Verbs with verbs of their own."""

app = typer.Typer(
    name="headscope",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"headscope {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def headscope(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,
) -> None:
    """Which part of a transformer's attention really reaches the output."""


def run() -> None:
    """Run the command line."""
    app()


def polite(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb that turns whatever goes wrong into one sentence and an exit code."""

    @wraps(verb)
    def run_politely(*arguments: Any, **options: Any) -> None:
        problems = Console(stderr=True, soft_wrap=True, highlight=False)
        with warnings.catch_warnings():
            warnings.showwarning = _say(problems, warnings.showwarning)
            try:
                verb(*arguments, **options)
            except HeadscopeError as error:
                problems.print(f"[bold red]Error:[/] {escape(str(error))}")
                sys.exit(2 if isinstance(error, InputError) else 1)
            except KeyboardInterrupt as stop:
                problems.print(escape(str(stop) or "Stopped. No file was left half-written."))
                sys.exit(130)

    return run_politely


def _say(problems: Console, otherwise: Any) -> Any:
    """Warnings about the user's data in one plain line; all others as Python shows them."""

    def shown(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, DataWarning):
            problems.print(f"[yellow]Note:[/] {escape(str(message))}")
        else:
            otherwise(message, category, *rest, **more)

    return shown


for _verb in VERBS:
    _module = import_module(f"headscope.cli.{_verb}")
    app.command(_verb, **getattr(_module, "SETTINGS", {}))(polite(_module.verb))

for _group in GROUPS:
    _module = import_module(f"headscope.cli.{_group}")
    _verbs = typer.Typer(no_args_is_help=True, help=(_module.__doc__ or "").partition(": ")[2])
    for _name, _verb_of_group in _module.VERBS.items():
        _verbs.command(_name)(polite(_verb_of_group))
    app.add_typer(_verbs, name=_group)
