"""The shell command; each command is one file in this folder, or comes from another package by an entry point."""

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import partial, wraps
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from headscope.cli.shared.shell_words import option_flags, to_shell_words
from headscope.core.errors import DataWarning, HeadscopeError, InputError, MissingExtra, OutputError, first_line
from headscope.version import __version__

PANELS = {
    "Look": ("show", "studio", "atlas", "importances", "draw", "report"),
    "Measure": ("measure", "merge", "compare", "cluster"),
    "Intervene": ("ablate", "head_importance", "pruning_curve", "prune", "faithfulness"),
    "Probe": ("probe",),
    "Train and score": ("finetune", "score"),
    "Audit a dataset": ("cues", "balance", "add_negated"),
    "Reproduce a paper": ("study",),
    "Find": ("list", "cite"),
    "Set up": ("fetch_model",),
}
"""Commands by what people want, as the help shows them."""

COMMANDS = tuple(name for names in PANELS.values() for name in names)
ENTRY_POINTS = "headscope.commands"
"""The group of entry points by which other packages add commands."""

PANEL = "Other packages"
"""Where the help shows these commands."""

EXTRAS = {"patterns": "studies"}
"""Commands of other packages that an extra of headscope installs."""

ANY_ARGUMENTS: dict[str, Any] = {
    "add_help_option": False,
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True},
    "rich_help_panel": PANEL,
}
"""Settings of a command that only says why it cannot run."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

app = typer.Typer(
    name="headscope",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> bool:
    if value:
        typer.echo(f"headscope {__version__}")
        raise typer.Exit
    return value


@app.callback()
def headscope(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Analyze attention in transformers, and how much of it reaches the output."""


def run() -> None:
    """Run the command line."""
    # Threads that wait for one another sleep. By default they spin, and beside another busy process, whenever the
    # system has suspended one of them, the others spin until it continues: that took ten times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # OpenMP reads it when torch is loaded
    app()


def report_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command: print errors as one sentence in the words of the shell, and exit with `exit_code`."""

    def translate(message: object) -> str:
        return escape(to_shell_words(str(message), option_flags(command), COMMANDS))

    @wraps(command)
    def wrapped(*arguments: Any, **options: Any) -> None:
        console = Console(stderr=True, soft_wrap=True, highlight=False)
        with warnings.catch_warnings():
            warnings.showwarning = partial(_print_warning, console, translate, warnings.showwarning)
            try:
                command(*arguments, **options)
            except HeadscopeError as error:
                console.print(f"[bold red]Error:[/] {translate(error)}")
                for note in getattr(error, "__notes__", ()):
                    console.print(f"[dim]{escape(note)}[/]")
                sys.exit(exit_code(error))
            except KeyboardInterrupt as stop:
                console.print(translate(stop) or "Stopped. No file was left half-written.")
                sys.exit(INTERRUPTED)

    return wrapped


def exit_code(error: HeadscopeError) -> int:
    """Return 2 if the command must be changed: an argument, the data or an output path; 1 if it failed otherwise."""
    refused = isinstance(error, OutputError) and not isinstance(error.__cause__, OSError)
    return 2 if isinstance(error, InputError) or refused else 1


def _print_warning(
    console: Console, translate: Any, default: Any, message: Any, category: type[Warning], *rest: Any
) -> None:
    """Print a DataWarning as one line, and pass all others to `default`."""
    if issubclass(category, DataWarning):
        console.print(f"[yellow]Note:[/] {translate(message)}")
    else:
        default(message, category, *rest)


def add_commands(shell: typer.Typer, points: Iterable[EntryPoint]) -> None:
    """Add the commands of other packages to the shell: functions, and each typer.Typer with its subcommands.

    One that cannot be loaded, or that an extra would install, says so when it is called.

    Parameters
    ----------
    shell
        What the commands are added to.
    points
        The entry points of the group "headscope.commands", each with the name of its command.
    """
    commands: dict[str, Any] = {name: _name_extra(name, extra) for name, extra in EXTRAS.items()}
    commands |= {point.name: _load_command(point) for point in points if point.name not in COMMANDS}
    for name, command in sorted(commands.items()):
        if isinstance(command, typer.Typer):
            _report_errors_of(command)
            shell.add_typer(command, name=name, rich_help_panel=PANEL)
        elif isinstance(command, InputError):
            shell.command(name, help=escape(str(command)), **ANY_ARGUMENTS)(report_errors(partial(_raise, command)))
        else:
            shell.command(name, rich_help_panel=PANEL)(report_errors(command))


def _load_command(point: EntryPoint) -> Any:
    """Return the function or the typer.Typer of an entry point, or an InputError that says why there is none."""
    try:
        command = point.load()
    except Exception as error:  # whatever another package raises, the other commands work
        return InputError(
            f"The command '{point.name}' of another package cannot be loaded: {first_line(error)}. "
            "Install that package again, or remove it."
        )
    if callable(command):
        return command
    return InputError(
        f"The entry point '{point.name}' of the group '{ENTRY_POINTS}' must name a function or a typer.Typer, but "
        f"{point.value} is {command!r}."
    )


def _name_extra(command: str, extra: str) -> MissingExtra:
    install = f"pip install 'headscope[{extra}]'"
    return MissingExtra(f"The command '{command}' is in another package. Install it with: {install}")


def _raise(error: InputError) -> None:
    raise error


def _report_errors_of(group: typer.Typer) -> None:
    """Let every subcommand report its errors as commands do."""
    for command in group.registered_commands:
        command.callback = report_errors(command.callback) if command.callback else None
    for subgroup in group.registered_groups:
        if subgroup.typer_instance:
            _report_errors_of(subgroup.typer_instance)


for _panel, _names in PANELS.items():
    for _name in _names:
        _module = import_module(f"headscope.cli.{_name}")
        _settings = {"rich_help_panel": _panel, **getattr(_module, "SETTINGS", {})}
        app.command(_name.replace("_", "-"), **_settings)(report_errors(_module.command))

add_commands(app, list(entry_points(group=ENTRY_POINTS)))
