"""From what the page asks for to the words of a shell command, each of them checked."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from headscope.core.catalog import lenses, statistics, studies
from headscope.core.errors import InputError
from headscope.studio.entries import FILES, check_plain, describe_study, list_bundled, make_spec
from headscope.studio.folder import StudioFolder
from headscope.studio.jobs import Job
from headscope.studio.shelf import ModelShelf

MAX_ENTRIES = 20
NUMBER = re.compile(r"-?\d*\.?\d+(?:e-?\d+)?", re.ASCII)


def make_job(body: Mapping[str, Any], folder: StudioFolder, shelf: ModelShelf) -> Job:
    """Return the job that a page asks for."""
    makers: dict[Any, Callable[..., Job]] = {"measure": _make_measurement, "study": _make_study}
    kind = body.get("kind")
    if not isinstance(kind, str) or kind not in makers:
        raise InputError(f"A job is a measure or a study, but got {str(kind)[:40]!r}.")
    return makers[kind](body, folder, shelf)


def _make_measurement(body: Mapping[str, Any], folder: StudioFolder, shelf: ModelShelf) -> Job:
    chosen = {name: _read_entries(body, name) for name in ("statistics", "lenses")}
    if not chosen["statistics"]:
        raise InputError("Choose at least one statistic to measure.")
    data, shown = _find_data(body.get("data"), folder)
    out = _new_result(body, folder, ".nc")
    words = ["measure", data, "--out", str(out), *_name_model(body, shelf)]
    words += [word for spec in chosen["statistics"] for word in ("--statistics", make_spec(statistics, spec))]
    words += [word for spec in chosen["lenses"] for word in ("--lens", make_spec(lenses, spec))]
    words += _name_number(body, "limit")
    names = ", ".join(str(spec.get("name")) for spec in chosen["statistics"])
    return Job(f"{out.name}: {names} of {shown}", words, out, out, resumable=True)


def _make_study(body: Mapping[str, Any], folder: StudioFolder, shelf: ModelShelf) -> Job:
    name, given = body.get("study"), body.get("parameters") or {}
    if not isinstance(name, str) or name not in studies.names():
        raise InputError(f"No study is called {str(name)[:40]!r}. Known: {', '.join(studies.names()) or 'none'}.")
    if not isinstance(given, Mapping):
        raise InputError("The parameters of a study are names with values.")
    known = {field["name"]: field for field in describe_study(name)["parameters"]}
    out = _new_result(body, folder, "")
    words = ["study", name, "--out", str(out), *_name_model(body, shelf)]
    for key, value in given.items():
        if key not in known:
            raise InputError(f"The study '{name}' has no parameter {str(key)[:40]!r} here. Known: {', '.join(known)}.")
        words += _name_parameter(name, known[key], value, folder)
    return Job(f"{out.name}: {name}", words, out, out / f"{name}.nc", resumable=False)


def _read_entries(body: Mapping[str, Any], name: str) -> list[Any]:
    entries = body.get(name, [])
    if not isinstance(entries, list) or len(entries) > MAX_ENTRIES:
        raise InputError(f"{name} must be a list of at most {MAX_ENTRIES} entries.")
    return entries


def _find_data(chosen: Any, folder: StudioFolder) -> tuple[str, str]:
    """Return what `headscope measure` reads for a file of an id or a bundled dataset, and its name."""
    if isinstance(chosen, Mapping) and "id" in chosen:
        file = folder.find(chosen["id"], "data")
        return str(file.path), file.name
    name = chosen.get("bundled") if isinstance(chosen, Mapping) else None
    if not isinstance(name, str) or name not in list_bundled():
        raise InputError(f"Choose a data file of the folder, or one of: {', '.join(list_bundled())}.")
    return name, name


def _new_result(body: Mapping[str, Any], folder: StudioFolder, ending: str) -> Any:
    out = folder.new_path(body.get("name"), ending)
    if out.exists():
        raise InputError(f"{out.name} exists already. Give another name.")
    return out


def _name_model(body: Mapping[str, Any], shelf: ModelShelf) -> list[str]:
    source = shelf.find(body.get("model") or {"id": "default"})
    return [] if source is None else ["--model", source]


def _name_number(body: Mapping[str, Any], name: str) -> list[str]:
    number = body.get(name)
    if number is None:
        return []
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= 10**9:
        raise InputError(f"{name} must be a whole number from 1 on, but got {str(number)[:40]!r}.")
    return [f"--{name}", str(number)]


def _name_parameter(study: str, field: Mapping[str, Any], value: Any, folder: StudioFolder) -> list[str]:
    flag, what = f"--{field['name'].replace('_', '-')}", f"The parameter '{field['name']}' of '{study}'"
    if field["name"] in FILES:
        return [flag, str(folder.find(value, "data").path)]
    text = check_plain(value, what)
    if field["type"] == "bool" and text in ("true", "false"):
        return [flag] if text == "true" else []  # a switch of the shell
    if field["type"] == "bool" or not NUMBER.fullmatch(text):
        wanted = "true or false" if field["type"] == "bool" else "a number"
        raise InputError(f"{what} must be {wanted}, but got {text!r}.")
    return [flag, text]
