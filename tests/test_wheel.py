"""What a release holds, and that it works where there is no clone."""

import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from headscope.version import __version__

ROOT = Path(__file__).parents[1]
NAMES = ("headscope", "headscope_studies")
PACKAGES = {
    "headscope": ("src/headscope",),
    "headscope_studies": ("studies/headscope_studies", "studies/headscope_patterns"),
}
IN_REPOSITORY = {"pages", "runs", "results", "tests"}
"""Folders of a study that are not released."""

MAX_MB = {"headscope": 3.5, "headscope_studies": 5.0}
EXAMPLE = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Return the folder with the sdist and wheel of both distributions, built as `make wheel` does."""
    folder = tmp_path_factory.mktemp("dist")
    for source in (ROOT, ROOT / "studies"):
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder


def test_a_release_is_a_wheel_and_an_sdist_of_both_with_the_same_version(dist):
    ends = ("-py3-none-any.whl", ".tar.gz")
    assert {path.name for path in dist.iterdir()} == {f"{name}-{__version__}{end}" for name in NAMES for end in ends}
    needed = open_wheel(dist, "headscope_studies").metadata.get_all("Requires-Dist")
    assert needed == [f"headscope=={__version__}"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
    assert f"## {__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_what_the_index_reads_is_right(dist):
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir()], capture_output=True)
    assert done.returncode == 0, done.stdout
    assert "minilm" not in str(open_wheel(dist, "headscope").metadata).lower().partition("\n\n")[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_wheel_holds_the_package_with_types_and_licences_and_nothing_else(dist, name):
    wheel = open_wheel(dist, name)
    packaged = set()
    for package in map(Path, PACKAGES[name]):
        listed = subprocess.run(["git", "ls-files", package], cwd=ROOT, capture_output=True, text=True).stdout.split()
        files = [Path(path).relative_to(package.parent) for path in listed]
        packaged |= {path.as_posix() for path in files if name == "headscope" or not IN_REPOSITORY & set(path.parts)}
        assert f"{package.name}/py.typed" in wheel.names
    assert {path for path in wheel.names if ".dist-info/" not in path} == packaged
    project = tomllib.loads((ROOT / ("" if name == "headscope" else "studies") / "pyproject.toml").read_text())[
        "project"
    ]
    licences = wheel.metadata.get_all("License-File")
    assert {f"{wheel.facts}/licenses/{path}" for path in licences} <= wheel.names
    assert len(licences) >= len(project["license-files"])
    assert wheel.metadata["License-Expression"] == "Apache-2.0 AND MIT AND CC-BY-SA-4.0"


def test_every_licence_beside_bundled_data_is_named(dist):
    for name in NAMES:
        wheel = open_wheel(dist, name)
        found = {path for path in wheel.names if re.search(r"(LICENSE|NOTICE)$", path) and ".dist-info/" not in path}
        named = {path.removeprefix("src/") for path in wheel.metadata.get_all("License-File")} - {"LICENSE"}
        assert found == named


@pytest.mark.parametrize("name", NAMES)
def test_a_release_is_small(dist, name):
    for path in dist.glob(f"{name}-*"):
        assert path.stat().st_size < MAX_MB[name] * 1e6, path.name
    with tarfile.open(next(dist.glob(f"{name}-*.tar.gz"))) as archive:
        assert {"PKG-INFO", "LICENSE", "README.md", "CHANGELOG.md"} <= {Path(each).name for each in archive.getnames()}


class Wheel:
    """The names, the metadata and the entry points of a wheel."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            self.names = {name for name in archive.namelist() if not name.endswith("/")}
            (metadata,) = (name for name in self.names if name.endswith(".dist-info/METADATA"))
            self.facts = metadata.partition("/")[0]
            self.metadata = message_from_bytes(archive.read(metadata))


def open_wheel(dist, name):
    return Wheel(next(dist.glob(f"{name}-*.whl")))


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    """Install the wheels in a new environment outside the clone, with the libraries of this environment."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "env", with_pip=False)
    (site,) = (folder / "env").glob("lib/python*/site-packages")
    into = ["--python", folder / "env", "install", "--no-deps", "--no-index", "--no-compile", *dist.glob("*.whl")]
    done = subprocess.run([sys.executable, "-m", "pip", *into], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "libraries.pth").write_text(f"import site; site.addsitedir({libraries!r})\n")
    return folder / "env"


def run_in(environment, *command, **variables):
    clean = {name: os.environ[name] for name in ("PATH", "HOME", "PIP_CERT", "SSL_CERT_FILE") if name in os.environ}
    command = [environment / "bin" / command[0], *command[1:]]
    return subprocess.run(
        command, cwd=environment, env={**clean, "LANG": "C.UTF-8", **variables}, capture_output=True, text=True
    )


def check_use(environment, **variables):
    """Run the five lines of the README and two commands, by the interpreter of this environment."""
    script = (environment / "bin" / "headscope").read_text().splitlines()[0]
    assert Path(script.removeprefix("#!")).is_relative_to(environment), script
    where = "import headscope, headscope_studies; print(headscope.__file__, headscope_studies.__file__)\n"
    done = run_in(environment, "python", "-c", where + EXAMPLE, **variables)
    assert done.returncode == 0, done.stderr
    assert all(Path(path).is_relative_to(environment) for path in done.stdout.split())
    assert (environment / "compare.pdf").read_bytes().startswith(b"%PDF")
    assert "<html" in (environment / "page.html").read_text(encoding="utf-8")[:2000]
    for line, expected in (
        ("headscope --help", "patterns"),
        ("headscope study --help", "effective-attention"),
    ):
        done = run_in(environment, *shlex.split(line), **variables)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout, done.stdout


def test_the_wheels_work_outside_the_clone(installed):
    check_use(installed, HF_HUB_OFFLINE="1")


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_wheels_installed_from_an_index_with_all_that_they_need_work(dist, tmp_path):
    """Into an empty environment, with the default model fetched by its command."""
    venv.create(tmp_path / "env", with_pip=True)
    install = ["python", "-m", "pip", "install", "-q", "--no-compile"]
    variables = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    variables |= {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "HEADSCOPE_CACHE": str(tmp_path / "cache")}
    for what in (["torch"], sorted(dist.glob("*.whl"))):
        done = run_in(tmp_path / "env", *install, *what, **variables)
        assert done.returncode == 0, done.stderr
    for command in (("python", "-m", "pip", "check"), ("headscope", "fetch-model")):
        done = run_in(tmp_path / "env", *command, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
    check_use(tmp_path / "env", **variables, HF_HUB_OFFLINE="1")
    listed = run_in(tmp_path / "env", "python", "-m", "pip", "list").stdout
    assert not re.search(r"sentence|scikit-learn|jupyter|pytest", listed), listed
