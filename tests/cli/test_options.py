"""One word for one option, with one default: in the shell as in Python."""

import inspect
from dataclasses import fields

import pytest
import typer

import headscope as hs
from headscope.cli.main import app
from headscope.cli.shared.shell_words import ALIASES
from headscope.cli.study import study_options
from headscope.core.catalog import studies

CALLED = {
    "show": (hs.load, hs.capture, hs.view, hs.draw, hs.save),
    "measure": (hs.load, hs.read, hs.measure),
    "atlas": (hs.load, hs.read, hs.atlas),
    "importances": (hs.load, hs.read, hs.importances, hs.save),
    "merge": (hs.merge, hs.save),
    "probe": (hs.load, hs.read, hs.probe, hs.save),
    "compare": (hs.open_result, hs.compare, hs.save),
    "cluster": (hs.open_result, hs.cluster, hs.save),
    "finetune": (hs.read, hs.finetune),
    "score": (hs.load, hs.read, hs.score, hs.save),
    "ablate": (hs.load, hs.read, hs.ablate, hs.save),
    "head-importance": (hs.load, hs.read, hs.head_importance, hs.save),
    "faithfulness": (hs.load, hs.read, hs.faithfulness),
    "pruning-curve": (hs.load, hs.read, hs.pruning_curve, hs.save),
    "prune": (hs.load, hs.prune, hs.save),
    "cues": (hs.read, hs.cues, hs.save),
    "balance": (hs.read, hs.balance, hs.save),
    "add-negated": (hs.read, hs.add_negated, hs.save),
    "draw": (hs.open_result, hs.draw, hs.save),
    "report": (hs.report,),
}
"""The functions that a verb of the shell calls."""

OBJECTS = {"tokenizer", "processor", "ax", "canvas", "progress"}
"""What the shell cannot give: Python objects. Its progress goes to stderr."""

ONLY_PYTHON = {
    # follow from the lens; --layer and --head select; one text; where tensors are moved to; pages hold whole maps
    "show": {"keep", "layers", "heads", "example", "gather", "rows"},
    "draw": {"example"},  # a saved result holds one
    "atlas": {"choices"},
    "measure": {"choices"},  # of tasks, which are not measured
    "importances": {"choices"},
    "faithfulness": {"choices"},
    "prune": {"model"},  # an argument
    "cluster": {"behaviour"},  # a DataArray
    "add-negated": {"pair", "words"},  # a claim is part of the text
}
ONLY_SHELL = {
    "show": {"layer", "head", "out", "edit"},  # fields of figures; the path of hs.save; hs.edited
    "draw": {"out", "parameters"},  # fields of figures
    "measure": {"dry_run"},
    "importances": {"limit", "seed", "out", "edit"},  # in Python hs.edited
    "merge": {"out"},
    "cluster": {"out"},
    "compare": {"lens", "out"},  # in Python data.sel(lens=…)
    "probe": {"out"},
    "score": {"out"},
    "ablate": {"limit", "seed", "out"},
    "head-importance": {"limit", "seed", "out"},
    "pruning-curve": {"limit", "seed", "out"},
    "cues": {"limit", "seed", "out", "top"},  # the number of cues that are printed
    "balance": {"out"},
    "add-negated": {"out"},
    "prune": {"heads", "curve", "pruned", "out"},  # heads are an argument of hs.prune
    "finetune": {"model", "config", "tokenizer"},  # the first argument of hs.finetune; the name of a new tokenizer
}
FROM_LIBRARY = {
    ("measure", "lens"),
    ("atlas", "lens"),
    ("atlas", "statistics"),
    ("ablate", "sets"),
    ("pruning-curve", "by"),
    ("faithfulness", "lenses"),
    ("faithfulness", "judge"),
    ("faithfulness", "shares"),
}
FROM_LIBRARY |= {(verb, option) for verb in ("cues", "balance") for option in ("ngrams", "patterns")}
"""Options that the shell leaves out where they are not given, so that the function's default holds."""


def shell_options(verb):
    """The default of every option, and of every argument that may be left out."""
    command = typer.main.get_command(app).commands[verb]
    wanted = (each for each in command.params if each.param_type_name == "option" or not each.required)
    return {each.name: None if each.required else each.default for each in wanted if each.name != "help"}


def python_options(verb):
    """The default of every parameter that has one, or that is required by name."""
    options = {}
    for function in CALLED[verb]:
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.default is not inspect.Parameter.empty:
                options[name] = parameter.default
            elif parameter.kind == inspect.Parameter.KEYWORD_ONLY:
                options[name] = None
    return {ALIASES.get(name, name): default for name, default in options.items()}


@pytest.mark.parametrize("verb", CALLED)
def test_an_option_has_the_same_name_in_the_shell_and_in_python(verb):
    shell, python = set(shell_options(verb)), set(python_options(verb)) - OBJECTS
    assert shell - python == ONLY_SHELL.get(verb, set())
    assert python - shell == ONLY_PYTHON.get(verb, set())


@pytest.mark.parametrize("verb", CALLED)
def test_an_option_has_the_same_default_in_the_shell_and_in_python(verb):
    shell, python = shell_options(verb), python_options(verb)
    for name in sorted(set(shell) & set(python)):
        if (verb, name) in FROM_LIBRARY:
            assert shell[name] is None
        else:
            assert str(shell[name]) == str(python[name]), name  # a Path equals its text


def test_every_verb_of_the_shell_is_compared():
    commands = {
        name for name, command in typer.main.get_command(app).commands.items() if not hasattr(command, "commands")
    }
    assert commands - set(CALLED) == {"study", "studio", "list", "cite", "fetch-model"}


@pytest.mark.parametrize("name", studies.names())
def test_the_options_of_a_study_are_its_parameters(name):
    kind = studies.find(name)
    options = study_options(kind)
    assert list(options) == [field.name for field in fields(kind)]
    for parameter, hint in options.items():
        assert hint.__metadata__[0].default == f"--{parameter.replace('_', '-')}"  # where typer keeps the first name


def test_several_lenses_are_raw_and_effective_by_default_one_of_a_probe_is_raw_and_a_view_names_its_own():
    verbs = (hs.measure, hs.probe, hs.view)
    defaults = {verb.__name__: inspect.signature(verb).parameters["lens"].default for verb in verbs}
    assert defaults == {"measure": ("raw", "effective"), "probe": "raw", "view": "effective"}
    assert shell_options("show")["lens"] == "effective"


def test_the_help_of_the_shell_says_the_lenses():
    (option,) = (option for option in typer.main.get_command(app).commands["measure"].params if option.name == "lens")
    assert option.help.endswith("Default: raw and effective.")


def test_the_figure_is_the_same_by_default_everywhere():
    figures = [inspect.signature(verb).parameters["figure"].default for verb in (hs.draw, hs.show)]
    assert [*figures, shell_options("show")["figure"], shell_options("draw")["figure"]] == [None] * 4
