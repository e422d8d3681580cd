"""The site of the docs: docs/index.md is its table of contents."""

import re
import subprocess
import sys
import warnings
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from textwrap import dedent

import pytest

import headscope as hs
from headscope.core.explained import PAGES, find_page
from headscope.data.bundled.files import bundled_file
from tests.browser import CHROMIUM, browser
from tests.docs_folder import prepare
from tests.test_docs import list_anchors
from tests.test_generated_docs import MAKE
from tools import ask_docs

ROOT = Path(__file__).parents[1]


def import_conf():
    spec = spec_from_file_location("docs_conf", ROOT / "docs" / "conf.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CONF = import_conf()
GALLERY = MAKE.gallery_page


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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-c", "docs", "-b", "html", "-W", "--keep-going", "-q", ".", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.soak
def test_the_site_is_built_without_a_warning(site):
    assert (site / "docs" / "index.html").is_file()


@browser
@pytest.mark.soak
def test_questions_of_a_newcomer_are_answered_by_three_clicks_or_one_search(site):
    answers = list(ask_docs.ask(site))
    assert len(answers) == 15
    assert [answer.question for answer in answers if not ask_docs.is_answered(answer)] == []


WIDE = """() => [...document.querySelectorAll("article img, article table, article pre")].filter((element) => {
  const ends = (one) => one.getBoundingClientRect().right <= innerWidth + 1;
  if (ends(element)) return false;
  for (let box = element.parentElement; box.tagName !== "ARTICLE"; box = box.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(box).overflowX) && ends(box)) return false;
  return true;
}).map((element) => element.outerHTML.slice(0, 80))"""


@browser
@pytest.mark.soak
def test_on_a_phone_no_page_is_wider_than_the_screen_and_what_is_wide_scrolls_within_itself(site):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        page = play.chromium.launch(executable_path=CHROMIUM).new_page(viewport={"width": 390, "height": 844})
        for path in sorted([*site.glob("C*.html"), *site.glob("docs/**/*.html")]):
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path.name
            assert page.evaluate(WIDE) == [], path.name


def test_tables_pictures_code_and_outputs_scroll_within_themselves():
    style = (ROOT / "docs" / "site" / "site.css").read_text(encoding="utf-8")
    scrolls = re.search(r"^(.*) \{ overflow-x: auto; \}$", style, re.MULTILINE)[1].split(", ")
    parts = (".table-wrapper", ".highlight", "p:has(> img)", ".cell_output")
    assert scrolls == [f"article {part}" for part in parts]


@pytest.mark.soak
@pytest.mark.parametrize("source", sorted(set(GALLERY.SOURCES) - set(GALLERY.STORED)))
def test_the_lines_of_the_gallery_run(source, tmp_path, tmp_path_factory, monkeypatch):
    prepare(tmp_path, tmp_path_factory.mktemp("models"))
    (tmp_path / "trees.conllu").write_bytes(bundled_file("ewt_sample.conllu").read_bytes())
    monkeypatch.chdir(tmp_path)
    variables = {"hs": hs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.DataWarning)
        exec(dedent(GALLERY.SOURCES[source]), variables)
    for entries in GALLERY.GROUPS.values():
        for name, call in entries.values():
            assert name != source or eval(call, variables)


def test_every_question_of_a_newcomer_names_the_section_that_answers_it():
    lines = ask_docs.LINE.findall((ROOT / "docs" / "questions.md").read_text(encoding="utf-8"))
    assert len(lines) == 15  # that the sections exist is a test of links
    assert all("*" in question for question, *_ in lines)
