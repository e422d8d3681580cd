"""Other packages add verbs to the shell, by an entry point of the group headscope.commands."""

from importlib.metadata import EntryPoint
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from headscope.cli.main import add_commands
from headscope.core.errors import InputError


def greet(max_words: Annotated[int, typer.Option()] = 3):
    """Greet."""
    if max_words < 1:
        raise InputError(f"max_words={max_words} is too small.")
    typer.echo("Hello.")


flowers = typer.Typer(help="About flowers.")
flowers.command()(greet)
nothing = 7


@pytest.fixture
def shell():
    """Run a shell of its own with the verbs of some entry points."""

    def run(points, *words):
        app = typer.Typer()
        app.callback()(lambda: None)
        named = [EntryPoint(name, f"{__name__}:{value}", "headscope.commands") for name, value in points.items()]
        add_commands(app, named)
        done = CliRunner().invoke(app, words)
        return done.exit_code, " ".join(done.output.split())

    return run


def test_a_function_is_a_verb(shell):
    assert shell({"greet": "greet"}, "greet") == (0, "Hello.")


def test_a_typer_app_is_a_verb_with_subcommands(shell):
    assert shell({"flowers": "flowers"}, "flowers", "greet") == (0, "Hello.")
    assert "About flowers." in shell({"flowers": "flowers"}, "--help")[1]


@pytest.mark.parametrize("words", [("greet",), ("flowers", "greet")])
def test_errors_are_one_sentence_as_for_other_verbs(shell, words):
    done = shell({"greet": "greet", "flowers": "flowers"}, *words, "--max-words", "0")
    assert done == (2, "Error: --max-words 0 is too small.")


def test_what_is_no_command_says_so_when_it_is_called(shell):
    assert shell({"greet": "greet", "wrong": "nothing"}, "greet") == (0, "Hello.")
    sentence = "The entry point 'wrong' of the group 'headscope.commands' must name a function or a typer.Typer, but"
    code, text = shell({"wrong": "nothing"}, "wrong", "--anything")
    assert (code, sentence in text) == (2, True), text


def test_a_package_that_cannot_be_imported_breaks_no_other_verb(shell):
    points = {"greet": "greet", "lost": "no_such_name"}
    assert shell(points, "greet") == (0, "Hello.")
    code, text = shell(points, "lost", "--help")
    assert code == 2
    assert "The command 'lost' of another package cannot be loaded: " in text
    assert "Install that package again, or remove it." in text


def test_a_verb_of_an_extra_says_what_to_install(shell):
    for words in (("patterns",), ("patterns", "--help"), ("patterns", "train", "-o", "my.safetensors")):
        code, text = shell({}, *words)
        assert code == 2
        assert "The command 'patterns' is in another package. Install it with: pip install 'headscope[studies]'" in text
    assert "pip install 'headscope[studies]'" in shell({}, "--help")[1].replace("│ │ ", "")
