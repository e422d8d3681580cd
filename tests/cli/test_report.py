"""`headscope report`, as one types it."""

import pytest

from headscope.results.store import save
from tests.cli.test_cli import headscope  # noqa: F401  (a fixture)
from tests.figures.data import measured


@pytest.fixture
def results(tmp_path):
    one = measured(layers=1, heads=1, rows=False)[["entropy", "entropy_n"]]
    return [save(one, tmp_path / name) for name in ("before.nc", "after.nc")]


def test_the_page_is_named_at_the_end(headscope, results, tmp_path):  # noqa: F811
    done = headscope("report", *results, "-o", tmp_path / "out", "--title", "Before & after")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"Wrote {tmp_path / 'out' / 'report.html'}\n"
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<h1>Before &amp; after</h1>" in page
    assert "<h2>before: entropy</h2>" in page
    assert (tmp_path / "out" / "tables" / "after_entropy.tex").is_file()


def test_a_missing_file_is_one_sentence_and_exit_code_2(headscope, tmp_path):  # noqa: F811
    done = headscope("report", tmp_path / "no.nc", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "there is nothing of that name" in " ".join(done.stderr.split())


def test_a_folder_that_is_no_report_is_one_sentence_and_exit_code_2(headscope, results, tmp_path):  # noqa: F811
    done = headscope("report", *results, "-o", tmp_path)
    assert done.returncode == 2
    assert "which no report wrote" in " ".join(done.stderr.split())


def test_help_fits_a_terminal(headscope):  # noqa: F811
    done = headscope("report", "--help")
    assert done.returncode == 0
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
