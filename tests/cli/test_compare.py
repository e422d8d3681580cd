"""`headscope compare`, as one types it."""

import numpy as np
import pytest

from headscope.results.store import open_result, save
from tests.cli.test_cli import headscope  # noqa: F401  (a fixture)
from tests.figures.data import measured


@pytest.fixture
def results(tmp_path):
    return [save(measured(layers=6, heads=12, seed=seed), tmp_path / f"{seed}.nc") for seed in (1, 2)]


def test_the_largest_sure_differences_are_printed_in_80_columns(headscope, results, tmp_path):  # noqa: F811
    done = headscope("compare", *results, "-o", tmp_path / "d.nc")
    assert done.returncode == 0, done.stderr
    assert "2.nc minus 1.nc, paired by example, correction: holm" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if not line.startswith("Wrote"))
    found = open_result(tmp_path / "d.nc")
    many = int(found["entropy_significant"].sum())
    assert f"{many} of 144 cells of entropy differ (p < 0.05 after Holm's correction)." in " ".join(done.stdout.split())
    assert f"The {min(many, 10)} largest significant differences in entropy" in done.stdout
    sure = abs(found["entropy"]).where(found["entropy_significant"] == 1)
    lens, _, layer, head = np.unravel_index(int(np.nanargmax(sure.values)), sure.shape)
    first = next(line for line in done.stdout.splitlines() if line.startswith("L")).split()
    assert first[:2] == [f"L{layer}H{head}", ["raw", "effective"][lens]]
    assert float(first[2].replace("−", "-")) == pytest.approx(float(found["entropy"][lens, 0, layer, head]), rel=0.01)


def test_two_lenses_of_one_file_are_compared(headscope, results):  # noqa: F811
    done = headscope("compare", results[0], results[0], "--lens", "raw/effective", "--variable", "entropy")
    assert done.returncode == 0, done.stderr
    assert "cells of entropy differ" in done.stdout
    assert "cells of distance" not in done.stdout


def test_nothing_that_differs_is_said(headscope, results):  # noqa: F811
    assert "0 of 144 cells of entropy differ" in headscope("compare", results[0], results[0]).stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--lens", "raw/"), "Cannot read --lens 'raw/'. Write one lens, or two as FIRST/SECOND"),
        (("--lens", "rwa"), "No lens in this data is called 'rwa'. Did you mean 'raw'?"),
        (("--variable", "entropi"), "No variable of both results is called 'entropi'. Did you mean 'entropy'?"),
        (("--correction", "bonferroni"), "No correction is called 'bonferroni'"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(headscope, results, words, sentence):  # noqa: F811
    done = headscope("compare", *results, *words)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())


def test_help_fits_a_terminal(headscope):  # noqa: F811
    done = headscope("compare", "--help")
    assert done.returncode == 0
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_one_difference_is_told_in_the_singular_and_figures_are_not_spoken_of(headscope, tmp_path):  # noqa: F811
    first = measured(layers=6, heads=12)
    second = first.copy(deep=True)
    second["entropy_rows"][{"lens": 0, "site": 0, "layer": 1, "head": 2}] += 1 + 0.01 * np.arange(
        first.sizes["example"]
    )
    paths = [save(data, tmp_path / f"{name}.nc") for name, data in {"a": first, "b": second}.items()]
    said = " ".join(headscope("compare", *paths, "--variable", "entropy").stdout.split())
    assert "1 of 144 cells of entropy differs (p < 0.05" in said
    assert "The one significant difference in entropy; p is corrected." in said
    assert "drawn" not in said
