"""What the page offers to choose, and what becomes of what it chose: specs, and words of a command."""

from dataclasses import fields, is_dataclass

import pytest
import typer

from headscope.cli.main import app as shell
from headscope.cli.study import _make_command
from headscope.core.catalog import edits, lenses, statistics, studies
from headscope.core.errors import InputError
from headscope.studio.commands import make_job
from headscope.studio.entries import (
    EDITS,
    check_heads,
    check_plain,
    describe_catalog,
    describe_study,
    first_sentence,
    list_bundled,
    make_spec,
)
from headscope.studio.folder import StudioFolder, identify
from headscope.studio.options import Limits
from headscope.studio.shelf import ModelShelf

CATALOGS = {"lenses": lenses, "statistics": statistics}
CASES = [(kind, name) for kind, catalog in CATALOGS.items() for name in catalog.names()]


@pytest.fixture(scope="module")
def described():
    return describe_catalog()


@pytest.fixture
def folder(tmp_path):
    return StudioFolder.open(tmp_path, Limits())


def find_entry(described, kind, name):
    return next(entry for entry in described[kind] if entry["name"] == name)


# What is offered


def test_everything_of_the_catalogs_is_offered(described):
    assert [entry["name"] for entry in described["lenses"]] == list(lenses.names())
    assert [entry["name"] for entry in described["statistics"]] == list(statistics.names())
    assert [entry["name"] for entry in described["studies"]] == list(studies.names())
    assert [entry["name"] for entry in described["edits"]] == list(EDITS)
    assert set(EDITS) <= set(edits.names())
    assert described["datasets"] == list_bundled()
    assert "sample" in list_bundled()
    assert "hub" not in list_bundled()


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_every_field_becomes_a_control(described, kind, name):
    entry_class = CATALOGS[kind].find(name)
    names = [item.name for item in fields(entry_class)] if is_dataclass(entry_class) else []
    assert [control["name"] for control in find_entry(described, kind, name)["parameters"]] == names


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_defaults_of_controls_are_those_of_the_entry(described, kind, name):
    controls = find_entry(described, kind, name)["parameters"]
    parameters = {control["name"]: control["default"] for control in controls if control["default"]}
    assert make_spec(CATALOGS[kind], {"name": name, "parameters": parameters}) == name


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_every_choice_of_a_control_can_be_chosen(described, kind, name):
    for control in find_entry(described, kind, name)["parameters"]:
        for choice in control["choices"] or []:
            spec = make_spec(CATALOGS[kind], {"name": name, "parameters": {control["name"]: choice}})
            assert spec == (name if choice == control["default"] else spec)
            assert choice in spec or choice == control["default"]


def test_controls_have_the_types_that_the_page_knows(described):
    controls = [
        control
        for kind in ("lenses", "statistics", "edits", "studies")
        for entry in described[kind]
        for control in entry["parameters"]
    ]
    assert {control["type"] for control in controls} <= {"choice", "bool", "int", "float", "text", "list", "file"}
    assert all((control["choices"] is not None) == (control["type"] == "choice") for control in controls)


def test_every_entry_has_one_sentence_without_marks(described):
    for kind in ("lenses", "statistics", "edits", "studies"):
        for entry in described[kind]:
            assert entry["about"]
            assert "`" not in entry["about"]
            assert "\n" not in entry["about"]


def test_a_sentence_ends_at_its_stop_and_not_at_that_of_a_name():
    class Sample:
        """As Brunner et al. (2020) have it, e.g. here. More of it.

        And more.
        """

    assert first_sentence(Sample) == "As Brunner et al. (2020) have it, e.g. here."


def test_the_lenses_say_which_need_a_target_and_which_are_shown_at_first(described):
    assert [entry["name"] for entry in described["lenses"] if entry["gradient"]] == ["gradient", "logit", "relevance"]
    assert [entry["name"] for entry in described["lenses"] if entry["default"]] == ["effective", "raw"]


def test_a_study_offers_numbers_switches_and_files():
    assert {control["type"] for control in describe_study("argument_cues")["parameters"]} == {
        "file",
        "bool",
        "int",
        "float",
    }


# What is chosen


def test_parameters_come_as_text_or_as_switches():
    parameters = {"residual": "0.3", "receptive_field": True, "inner": "effective"}
    spec = make_spec(lenses, {"name": "rollout", "parameters": parameters})
    assert spec == "rollout:residual=0.3,inner=(effective),receptive_field=true"


@pytest.mark.parametrize(
    "value",
    [
        "../x",
        "/etc/passwd",
        "x.safetensors",
        "effective:keys=paper",
        "(raw)",
        "a,b=c",
        "a b",
        "a\nb",
        "x" * 65,
        "",
        "~",
        "$HOME",
        "a\0b",
        None,
        ["a"],
        {"a": 1},
    ],
)
def test_a_parameter_is_a_plain_word_or_number(value):
    with pytest.raises(InputError, match="'classifier' of 'patterns' must be a plain word or number"):
        make_spec(statistics, {"name": "patterns", "parameters": {"classifier": value}})


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("raw", "A lens is chosen by its name and parameters"),
        ({"name": ["raw"]}, "A lens is chosen by its name and parameters"),
        ({"name": "rolout"}, "No lens is called 'rolout'. Did you mean 'rollout'?"),
        ({"name": "raw:x=1"}, "No lens is called"),
        ({"name": "x" * 10_000}, "No lens is called 'x{80}'"),
        ({"name": "raw", "parameters": "x"}, "must be names with values"),
        ({"name": "raw", "parameters": {"x": 1}}, "No parameter of 'raw' is called 'x'"),
        ({"name": "rollout", "parameters": {"residual": "much"}}, "must be a number or measured, but got 'much'"),
        ({"name": "effective", "parameters": {"keys": "all"}}, "must be visible, padded or paper"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_a_sentence(chosen, message):
    with pytest.raises(InputError, match=message):
        make_spec(lenses, chosen)


@pytest.mark.parametrize("number", [1, 0.5, -3, "1e-05", "-0.25", ".5", True])
def test_numbers_are_plain(number):
    assert check_plain(number, "It")


@pytest.mark.parametrize(
    "heads", ["L0H0", None, 5, [5], ["L0"], ["L0H0,L0H1"], ["../x"], ["x" * 50 + ".L0H0"], [["L0H0"]]]
)
def test_what_names_no_heads_is_refused(heads):
    with pytest.raises(InputError, match="Heads are a list|names no head"):
        check_heads(heads)


def test_heads_are_named_once_and_not_too_many():
    assert check_heads(["L0H1", "cross.L3H4", "L0H1"]) == ("L0H1", "cross.L3H4")
    with pytest.raises(InputError, match="at most 512 names"):
        check_heads(["L0H0"] * 513)


# What becomes a command: no word of the page is taken for an option of the shell


def parse_measure(words):
    """Return the options of `headscope measure` as the shell understands these words."""
    assert words[0] == "measure"
    return typer.main.get_command(shell).commands["measure"].make_context("measure", list(words[1:])).params


def parse_study(words):
    assert words[0] == "study"
    study = typer.Typer()
    study.command()(_make_command(words[1]))
    return typer.main.get_command(study).make_context("study", list(words[2:])).params


def ask_for_job(folder, **changes):
    body = {"kind": "measure", "name": "new", "data": {"bundled": "sample"}, "statistics": [{"name": "entropy"}]}
    return make_job({**body, **changes}, folder, ModelShelf(folder, []))


@pytest.mark.parametrize(
    "name",
    ["--out=x.csv", "-o.csv", "--force.csv", "hub:evil.csv", "csv@x.csv", "a b.csv", "$(id).csv", ";.csv", "'\".csv"],
)
def test_no_name_of_data_becomes_an_option(folder, name):
    (folder.root / name).write_text("text\nthe cat\n")
    options = parse_measure(ask_for_job(folder, data={"id": identify(name)}).arguments)
    assert options["data"] == str(folder.root / name)
    assert options["out"] == folder.root / "new.nc"
    assert not options["force"]


@pytest.mark.parametrize(
    "data",
    ["sample", {"bundled": "--force"}, {"bundled": "hub:x"}, {"bundled": "csv@/etc/passwd"}, {"id": "x"}, {}, None],
)
def test_data_are_those_of_the_folder_or_bundled(folder, data):
    with pytest.raises(InputError, match="Choose a data file of the folder|There is no data of that id"):
        ask_for_job(folder, data=data)


def test_a_measurement_is_the_command_that_a_user_would_write(folder):
    job = ask_for_job(
        folder,
        statistics=[{"name": "entropy"}, {"name": "offsets", "parameters": {"reach": "4"}}],
        lenses=[{"name": "rollout", "parameters": {"residual": "0.3"}}],
        limit=10,
        model={"name": "some/hub-id"},
    )
    options = parse_measure(job.arguments)
    assert (options["data"], options["model"], options["limit"]) == ("sample", "some/hub-id", 10)
    assert (options["statistics"], options["lens"]) == (["entropy", "offsets:reach=4"], ["rollout:residual=0.3"])
    assert (job.out, job.result, job.resumable) == (folder.root / "new.nc", folder.root / "new.nc", True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "rm"}, "A job is a measure or a study, but got 'rm'"),
        ({"kind": ["measure"]}, "A job is a measure or a study"),
        ({"kind": None}, "A job is a measure or a study"),
        ({"statistics": []}, "Choose at least one statistic"),
        ({"statistics": "entropy"}, "statistics must be a list"),
        ({"statistics": [{"name": "entropy"}] * 21}, "at most 20 entries"),
        ({"statistics": ["--force"]}, "A statistic is chosen by its name"),
        ({"lenses": [{"name": "--force"}]}, "No lens is called '__force'"),
        ({"limit": "10 --force"}, "limit must be a whole number from 1 on"),
        ({"limit": 0}, "limit must be a whole number from 1 on"),
        ({"limit": True}, "limit must be a whole number from 1 on"),
        ({"limit": 1.5}, "limit must be a whole number from 1 on"),
        ({"model": {"name": "--force"}}, "is neither a hub id nor a folder"),
        ({"model": "x"}, "Choose a model of the list"),
    ],
)
def test_a_measurement_that_is_none_is_refused_with_a_sentence(folder, changes, message):
    with pytest.raises(InputError, match=message):
        ask_for_job(folder, **changes)


def test_a_study_is_the_command_that_a_user_would_write(folder):
    (folder.root / "--seed.jsonl").write_text('{"text": "the cat"}\n')
    parameters = {"seed": "3", "learning_rate": "1e-05", "balanced": True, "dev": identify("--seed.jsonl")}
    job = ask_for_job(folder, kind="study", name="run 1.2", study="argument_cues", parameters=parameters)
    options = parse_study(job.arguments)
    assert (options["seed"], options["learning_rate"], options["balanced"]) == (3, 1e-05, True)
    assert str(options["dev"]) == str(folder.root / "--seed.jsonl")
    assert (options["out"], options["force"]) == (folder.root / "run 1.2", False)
    assert job.result == folder.root / "run 1.2" / "argument_cues.nc"
    off = ask_for_job(folder, kind="study", study="argument_cues", parameters={"balanced": False})
    assert parse_study(off.arguments)["balanced"] is not True


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"seed": "--force"}, "'seed' of 'argument_cues' must be a number, but got '--force'"),
        ({"seed": "-o"}, "must be a number"),
        ({"seed": "1 --force"}, "must be a plain word or number"),
        ({"seed": "x"}, "must be a number"),
        ({"seed": True}, "must be a number"),
        ({"seed": ["1"]}, "must be a plain word or number"),
        ({"balanced": "--force"}, "'balanced' of 'argument_cues' must be true or false"),
        ({"dev": "/etc/passwd"}, "There is no data of that id"),
        ({"data": "/etc"}, "has no parameter 'data' here"),
        ({"out": "/etc"}, "has no parameter 'out' here"),
        ({"force": True}, "has no parameter 'force' here"),
        ({"--force": True}, "has no parameter '--force' here"),
        ("x", "The parameters of a study are names with values"),
    ],
)
def test_no_parameter_of_a_study_injects_anything(folder, parameters, message):
    with pytest.raises(InputError, match=message):
        ask_for_job(folder, kind="study", study="argument_cues", parameters=parameters)


@pytest.mark.parametrize("study", ["--help", "../x", "argument_cues:seed=1", "", None, ["argument_cues"]])
def test_a_study_is_one_of_the_catalog(folder, study):
    with pytest.raises(InputError, match="No study is called"):
        ask_for_job(folder, kind="study", study=study)
