"""Messages of the library in the words of the shell, and exit codes."""

import inspect
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from headscope.cli import compare, draw, finetune, main, measure, merge, report, score, show, study
from headscope.cli.main import COMMANDS, app, exit_code
from headscope.cli.shared.shell_words import option_flags, to_shell_words
from headscope.core.errors import CaptureError, HeadscopeError, InputError, MissingExtra, OutputError

FLAGS = option_flags(measure.command)


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("limit=-5 leaves no examples.", "--limit -5 leaves no examples."),
        ("workers=3 is for engine='ray'. Leave it out.", "--workers 3 is for --engine ray. Leave it out."),
        ("Name one: text='my text'", "Name one: --text 'my text'"),
        ("Give a smaller batch_size or max_length.", "Give a smaller --batch-size or --max-length."),
        ("Resume it (resume=True, in the shell --resume), or", "Resume it (--resume), or"),
        ("Add against=hs.load(…), in the shell --against.", "Add --against."),
        ("or skip it with malformed='skip', in the shell --malformed skip.", "or skip it with --malformed skip."),
        ("Measure with rows=True, or leave '.rows' out", "Measure with --rows, or leave '.rows' out"),
        ("Measure first: hs.measure(model, texts, statistics=['entropy']).", "Measure first: headscope measure."),
        ("as statistics=['entropy', 'peak'].", "as --statistics entropy --statistics peak."),
        # what is no option of the command stays
        ("keys='paper' treats padding as keys.", "keys='paper' treats padding as keys."),
        ("No lens is called 'x:limit=3'.", "No lens is called 'x:limit=3'."),
        ("The text of example '0' is empty.", "The text of example '0' is empty."),
        ("Give one to hs.load(…, tokenizer=…).", "Give one to hs.load(…, tokenizer=…)."),
    ],
)
def test_parameters_become_options(python, shell):
    assert to_shell_words(python, FLAGS, COMMANDS) == shell


def test_switches_and_renamed_options_are_known():
    assert to_shell_words("paired=False is given.", option_flags(compare.command), ()) == "--unpaired is given."
    command = study._make_command("effective-attention")
    assert to_shell_words("tasks=('rte',) has no data.", option_flags(command), ()) == "--tasks rte has no data."


def test_every_option_of_every_verb_is_in_the_help():
    for module in (compare, draw, finetune, measure, merge, report, score, show):
        shown = CliRunner().invoke(app, [module.__name__.rpartition(".")[2], "--help"], env={"COLUMNS": "200"}).output
        flags = option_flags(module.command)
        assert set(inspect.signature(module.command).parameters) <= set(flags)
        for flag, _ in flags.values():
            assert not flag.startswith("--") or flag in shown, (module.__name__, flag)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["measure", "sample", "--stat", "entropy", "--limit", "0", "-o", "x.nc"], "--limit 0 leaves no examples"),
        (["measure", "sample", "--stat", "entropy", "--workers", "2", "-o", "x.nc"], "--workers 2 is for --engine ray"),
        (
            ["finetune", "gap_pronouns:development", "--learning-rate", "3", "-o", "x"],
            "--learning-rate 3.0 is not between 0 and 1",
        ),
        (["study", "effective-attention", "--train", "a.jsonl"], "--train FILE is given, but not --dev FILE"),
        (["study", "effective-attention", "--text", "words"], "--text words names a column of your own data"),
    ],
)
def test_errors_name_options_as_they_are_typed(words, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert sentence in " ".join(done.output.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("an argument"), 2),
        (MissingExtra("a package"), 2),
        (OutputError("a file of this name exists"), 2),
        (HeadscopeError("not enough memory"), 1),
        (CaptureError("not captured"), 1),
    ],
)
def test_the_exit_code_is_2_if_the_command_must_be_changed_and_else_1(error, code):
    assert exit_code(error) == code


def test_a_full_disk_is_a_failure_of_no_argument():
    error = OutputError("Cannot write x.nc: no space left.")
    error.__cause__ = OSError(28, "No space left on device")
    assert exit_code(error) == 1


def test_help_loads_no_library():
    code = (
        "import sys, headscope.cli.main; heavy = ('numpy', 'xarray', 'pandas', 'matplotlib', 'torch', 'scipy');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def complete(words):
    """Return what bash would offer after these words."""
    code = "import sys; sys.argv[0] = 'headscope'; from headscope.cli.main import run; run()"
    asked = {"_HEADSCOPE_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True
    ).stdout.split()


def test_the_shell_completes_verbs_options_and_names():
    assert complete(["headscope", "me"]) == ["measure", "merge"]
    assert complete(["headscope", "measure", "x.txt", "--lens", "eff"]) == ["effective"]
    assert complete(["headscope", "measure", "x.txt", "--malf"]) == ["--malformed"]
    assert complete(["headscope", "study", "eff"]) == ["effective-attention"]


def test_waiting_threads_sleep_unless_the_user_chose_otherwise(monkeypatch):
    monkeypatch.setattr(main, "app", lambda: None)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    main.run()
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    main.run()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
