"""Check shapes while tests run, and keep tests offline."""

import os
import sysconfig
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HEADSCOPE_CACHE"] = tempfile.mkdtemp(prefix="headscope-")  # not the cache of the user

from tests.shapes import check_shapes

if "HEADSCOPE_TEST_PLAIN" not in os.environ:
    check_shapes("headscope", "headscope_studies", "headscope_patterns")

import pytest
import torch

from tests.environment import find_damage
from tests.tiers import COLLECTED, is_quick

torch.set_num_threads(int(os.environ.get("HEADSCOPE_TEST_THREADS", "1")))  # tests run in two processes on two cores


if find_spec("hypothesis"):  # how long an example takes says nothing about the code: the machine may be busy
    from hypothesis import HealthCheck, settings

    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")

STARTED = time.time()


def pytest_collection_modifyitems(config, items):
    """Mark the tests of `make quick`, and remember those of all tiers.

    The laws of studies come just before the tests of each study, mostly in the same process, which runs it once. So do
    the pages that are generated from its results, which its own tests read and judge again.
    """
    items.sort(key=place_item)
    config.stash[COLLECTED] = list(items)
    for item in items:
        if is_quick(item):
            item.add_marker("quick")


def place_item(item):
    """Return where a test stands among all: 1 for laws of studies, which come after all that is not of a study.

    Then come those of each study, by its name.
    """
    parts = item.nodeid.split("/")
    if parts[0] == "studies":
        return 2, parts[2]
    callspec = getattr(item, "callspec", None)
    study = callspec and getattr(item.module, "STUDY_OF", {}).get(callspec.params.get("page"))
    return (2, study) if study else (int(item.nodeid.startswith("tests/laws/test_studies.py")), "")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Fail where tests damaged the environment that ran them; the process that started all others looks."""
    if hasattr(session.config, "workerinput"):
        return
    damage = find_damage(Path(sysconfig.get_path("purelib")), since=STARTED)
    if damage:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        reporter.section("The tests damaged their environment", sep="=", red=True)
        reporter.write_line("\n".join(damage))


@pytest.fixture(scope="session")
def minilm():
    """Return the pretrained default model."""
    from headscope.engine.load import load

    return load()


@pytest.fixture
def blank_reports(monkeypatch):
    """Leave the figures of reports blank: they take most of the time, and have tests of their own."""
    from matplotlib.figure import Figure

    def write_blank(figure, kind, path):
        path.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")

    monkeypatch.setattr("headscope.results.document_parts.draw", lambda *_, **__: Figure())
    monkeypatch.setattr("headscope.reporting.write.write_figure", write_blank)
