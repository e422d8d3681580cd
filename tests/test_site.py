"""The site of the docs: docs/index.md is its table of contents."""

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from headscope.core.explained import PAGES, find_page
from tests.test_docs import list_anchors

ROOT = Path(__file__).parents[1]


def import_conf():
    spec = spec_from_file_location("docs_conf", ROOT / "docs" / "conf.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CONF = import_conf()


def test_every_page_is_in_the_index_once():
    lines = [line for options in CONF.CONTENTS.values() for entries in options.values() for line in entries]
    listed = [re.search(r"</(.*)>", line)[1] for line in lines]
    pages = [
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.ipynb")]
    ]
    assert sorted(page for page in listed if page.startswith("docs/")) == sorted({*pages} - {"docs/index"})
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("topic", PAGES)
def test_the_pages_that_errors_name_exist(topic):
    page, _, section = find_page(topic).partition("#")
    assert not section or f"#{section}" in list_anchors(ROOT / page)
    folder = ROOT / "src" / "headscope" / topic.replace(".", "/")
    assert topic in ("extras", "studies") or folder.is_dir() or folder.with_suffix(".py").is_file()


def test_pictures_for_two_themes_become_a_picture_for_each():
    source = [(ROOT / "docs" / "viewer.md").read_text(encoding="utf-8")]
    CONF.adapt_page(None, "docs/none", source)
    assert "<picture" not in source[0]
    assert source[0].count("only-light") == source[0].count("only-dark") > 0


@pytest.mark.soak
def test_the_site_is_built_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-c", "docs", "-b", "html", "-W", "--keep-going", "-q", ".", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
