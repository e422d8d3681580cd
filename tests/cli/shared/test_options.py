"""Shell options, made from fields."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from headscope.cli.shared.options import add_options, read_type, select_options
from headscope.core.options import describe, option


@dataclass(frozen=True)
class CountOptions:
    data: Any = field(metadata=describe("The data."))
    _: KW_ONLY
    lens: Sequence[str] | Any = option(("raw", "norm"), "Lenses, see `headscope list lenses`.")
    limit: int | None = option(None, "Number of examples.")
    seed: int = option(0, "Random seed of `limit`.")
    paired: bool | None = option(None, "Pair examples, or not.", flag="unpaired")
    overwrite: bool = option(False, "Replace it.")
    model: Any = option(None, "An object.", shell=False)


def make_app():
    app = typer.Typer()

    @app.command()
    @add_options(CountOptions, required=("limit",))
    def count(**options):
        typer.echo(select_options(options, CountOptions))

    return app


def test_what_is_given_goes_to_python_by_the_names_of_the_fields():
    done = CliRunner().invoke(make_app(), ["--limit", "3", "--lens", "raw", "--force", "--unpaired"])
    assert done.stdout.strip() == str({"lens": ["raw"], "limit": 3, "seed": 0, "paired": False, "overwrite": True})
    assert CliRunner().invoke(make_app(), []).exit_code == 2  # --limit is required


def test_the_help_is_in_the_words_of_the_shell():
    text = " ".join(CliRunner().invoke(make_app(), ["--help"], env={"COLUMNS": "200"}).stdout.split())
    assert "Lenses, see 'headscope list lenses'. May be repeated. Default: raw and norm." in text
    assert "Random seed of --limit. [default: 0]" in text
    assert "--model" not in text
    assert "--data" not in text


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (int | None, int),
        (str | Mapping[str, int] | Sequence[str], str),
        (Sequence[int] | int | None, list[int]),
        (tuple[str, ...], list[str]),
        (Path | str, Path),
        (Any, str),
        ("Model | None", str),
    ],
)
def test_the_shell_gives_the_first_of_a_union_and_a_list_for_a_sequence(hint, kind):
    assert read_type(hint) == kind
