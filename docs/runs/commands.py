"""The command line of scripts that are run once per model and dataset, and then join all runs into one file."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

import xarray as xr

import headscope as hs
from headscope.results.stamp import read_provenance, stamp

Command = Callable[[argparse.Namespace], None]


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that prints the docstring of a script as it is."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of one run."""
    parser.add_argument("--data", type=Path, required=True, help="folder of the data")
    parser.add_argument("--model", help="a hub id or a folder; default: a small BERT")
    parser.add_argument("--out", type=Path, required=True, help="output path")
    parser.add_argument("--limit", type=int, help="number of examples")


def run_or_join(
    description: str | None,
    run: Command,
    join: Command,
    *,
    argument: str | None = None,  # of `run`
    choices: Iterable[str] | None = None,  # of that argument
    settings: Iterable[str] | None = None,  # choices of --settings; the first is the default
) -> None:
    """Parse the command line, and call `run` or `join` with its options."""
    parser = make_parser(description)
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run", help="run one model on one dataset")
    if argument is not None:
        running.add_argument(argument, choices=choices)
    add_run_options(running)
    if settings is not None:
        running.add_argument("--settings", choices=settings, default=next(iter(settings)))
    running.set_defaults(command=run)
    joining = commands.add_parser("join", help="join all runs into one file")
    joining.add_argument("paths", type=Path, nargs="+", help="files of the runs")
    joining.add_argument("--out", type=Path, required=True, help="output file")
    joining.set_defaults(command=join)
    options = parser.parse_args()
    options.command(options)


def join_models(options: argparse.Namespace) -> None:
    """Join runs of different models over the same data; a shallower model has no values in deeper layers."""
    parts = [hs.open_result(path) for path in options.paths]
    facts = [read_provenance(part) for part in parts]
    if len({(fact["data"], fact["n"]) for fact in facts}) > 1:
        raise SystemExit("These runs are over different data.")
    joined = {
        "command": f"{facts[0]['command']}, one run for each model, joined",
        "model": sorted(name for fact in facts for name in fact["model"]),
        "weights_hash": {name: code for fact in facts for name, code in fact["weights_hash"].items()},
    }
    whole = xr.concat([part.drop_attrs() for part in parts], "model", join="outer")
    hs.save(stamp(whole, **{**facts[0], **joined}), options.out, overwrite=True)
