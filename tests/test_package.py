"""The installed package and its public names."""

import ast
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import headscope

ROOT = Path(__file__).parents[1]
SCRIPTS = [path for folder in ("benchmarks", "docs", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]
NAMES = {
    "Batch",
    "CaptureError",
    "DataWarning",
    "Edit",
    "Example",
    "Figure",
    "HeadscopeError",
    "Importance",
    "Importances",
    "InputError",
    "Lens",
    "LoadError",
    "Maps",
    "MissingExtra",
    "Model",
    "NotCaptured",
    "OutputError",
    "PerExample",
    "Probe",
    "Statistic",
    "Study",
    "Tokens",
    "Trace",
    "UnknownName",
    "__version__",
    "ablate",
    "atlas",
    "average_heads",
    "by_layer",
    "add_negated",
    "balance",
    "capture",
    "cluster",
    "compare",
    "cues",
    "draw",
    "edited",
    "faithfulness",
    "finetune",
    "generate",
    "head_importance",
    "identifiability",
    "importances",
    "list",
    "load",
    "make_maps",
    "measure",
    "merge",
    "open_result",
    "probe",
    "prune",
    "pruning_curve",
    "read",
    "repeat_tokens",
    "report",
    "save",
    "scan",
    "score",
    "show",
    "stream",
    "study",
    "to_words",
    "view",
}


def test_names_of_before_say_what_they_are_now():
    with pytest.warns(DeprecationWarning, match=r"hs.list_lenses\(\) is now hs.list\('lenses'\)"):
        assert "raw" in headscope.list_lenses()
    with pytest.raises(AttributeError, match="has no attribute 'list_nothing'"):
        headscope.list_nothing  # noqa: B018
    with pytest.raises(headscope.UnknownName, match="No catalog is called 'lens'. Did you mean 'lenses'"):
        headscope.list("lens")


def test_the_public_names_are_unchanged():
    assert set(headscope.__all__) == set(dir(headscope)) == NAMES
    for name in NAMES:
        assert getattr(headscope, name) is not None


def test_no_public_name_is_also_a_module():
    """Importing a module sets it on its package, where it would hide the function of that name."""
    assert not NAMES & {module.name for module in pkgutil.iter_modules(headscope.__path__)}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_import_only_names_that_exist(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headscope"):
            module = import_module(node.module)
            for name in (alias.name for alias in node.names):
                assert hasattr(module, name) or import_module(f"{node.module}.{name}")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'headscope' has no attribute 'captur'"):
        headscope.captur  # noqa: B018  (reading it is the test)


def run(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_importing_headscope_loads_no_library_and_changes_no_state():
    before = "import sys, warnings, os, random; state = (list(warnings.filters), dict(os.environ), random.getstate());"
    after = (
        "assert state == (list(warnings.filters), dict(os.environ), random.getstate());"
        "print([name for name in ('torch', 'transformers', 'matplotlib', 'xarray', 'numba') if name in sys.modules])"
    )
    assert run(f"{before} import headscope; {after}").strip() == "[]"


def test_drawing_a_saved_result_needs_no_torch():
    code = (
        "import sys, importlib, pkgutil, headscope.figures, headscope.results, headscope.plotting;"
        "[importlib.import_module(f'{package.__name__}.{each.name}')"
        " for package in (headscope.figures, headscope.results, headscope.plotting)"
        " for each in pkgutil.iter_modules(package.__path__)];"
        "print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    assert run(code).split() == ["False", "False"]


def test_every_import_is_a_declared_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[><=]", requirement)[0] for requirement in project["dependencies"]}
    # only in a notebook; with transformers, both; with torch for GPUs, and only tried
    named = {"IPython", "huggingface_hub", "tokenizers", "triton"}
    studio = {"starlette", "uvicorn", "h11"}  # the extra of a command that looks for it before it imports these modules
    for path in (ROOT / "src").rglob("*.py"):
        known = declared | named | {"headscope"} | (studio if path.parent.name == "studio" else set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imported = (
                    [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
                )
                for name in (module.partition(".")[0] for module in imported):
                    assert name in known or name in sys.stdlib_module_names, (path, name)


def test_no_extra_is_needed_to_import_or_to_measure(tmp_path):
    """What is only in an extra or in the tests is not imported before it is needed."""
    absent = ("numba", "sklearn", "accelerate", "ray", "datasets", "pyarrow", "zarr", "spacy", "IPython", "beartype")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent}))\n"
        "import headscope as hs, headscope.cli.main\n"
        "assert all(getattr(hs, name) is not None for name in dir(hs))\n"
        "data = hs.measure(hs.load(), ['The cat sat down.'], statistics='entropy', progress=False)\n"
        f"hs.save(data, {str(tmp_path / 'heads.nc')!r})\n"
        f"print(float(hs.open_result({str(tmp_path / 'heads.nc')!r})['entropy'].mean()) > 0)"
    )
    assert run(code).strip() == "True"


def test_every_version_is_pinned():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pinned = {line.partition("==")[0] for line in lines}
    assert all(re.fullmatch(r"[a-z0-9._-]+==[\w.]+", line) for line in lines)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = settings["dependency-groups"]
    required = [*settings["project"]["dependencies"], *groups["dev"], *groups["docs"]]
    assert {re.split(r"[><=]", requirement)[0] for requirement in required} <= pinned


def test_the_page_on_versions_says_what_is_required_and_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lowest = dict(re.split(">=", requirement) for requirement in project["dependencies"])
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    page = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    for name in ("torch", "transformers", "numpy"):
        assert f"| {name} | {lowest[name]} | {pinned[name]} |" in page
    pythons = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    assert f"| Python | {pythons[0]} | {pythons[-1]} |" in page
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert "python: [" + ", ".join(f'"{python}"' for python in pythons) + "]" in workflow
    assert f"The current version is **{headscope.__version__}**" in page
