"""The verbs `headscope measure` and `headscope merge`."""

import json

import pytest
import xarray as xr

from headscope.measuring import measure as measuring
from headscope.results.store import open_result
from tests.cli.test_cli import headscope  # noqa: F401  (a fixture)
from tests.measuring.data import examples, saved_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def reviews(tmp_path):
    """Twelve reviews as JSON Lines."""
    path = tmp_path / "reviews.jsonl"
    path.write_text("".join(json.dumps({"review": example.text, "stars": 3}) + "\n" for example in examples(12)))
    return path


def test_a_file_is_measured_and_drawn(headscope, model, reviews, tmp_path):  # noqa: F811
    out = tmp_path / "heads.nc"
    done = headscope(
        "measure",
        reviews,
        "--text",
        "review",
        "--model",
        model,
        "--lens",
        "raw",
        "--lens",
        "effective",
        "--statistics",
        "entropy",
        "--statistics",
        "offsets",
        "-o",
        out,
    )
    assert done.returncode == 0, done.stderr
    assert any(line.split()[:2] == ["entropy", "raw"] for line in done.stdout.splitlines())
    assert "With further axes: offsets and offsets_absolute." in " ".join(done.stdout.split())
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if not line.startswith("Wrote"))
    assert int(open_result(out)["entropy_n"].max()) == 12
    drawn = headscope("draw", out, "head_grid", "--colour", "entropy", "-o", tmp_path / "heads.pdf")
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "heads.pdf").stat().st_size > 1000


def test_shards_are_measured_and_merged(headscope, model, reviews, tmp_path):  # noqa: F811
    command = ("measure", reviews, "--text", "review", "--model", model, "--statistics", "entropy")
    for part in (1, 2, 3):
        assert headscope(*command, "--shard", f"{part}/3", "-o", tmp_path / f"s{part}.state").returncode == 0
    done = headscope("merge", *sorted(tmp_path.glob("s*.state")), "-o", tmp_path / "merged.nc")
    assert f"Wrote {tmp_path / 'merged.nc'}: 3 shards" in done.stdout
    assert headscope(*command, "-o", tmp_path / "whole.nc").returncode == 0
    merged, whole = (open_result(tmp_path / f"{name}.nc") for name in ("merged", "whole"))
    xr.testing.assert_allclose(merged, whole, atol=1e-6)
    assert list(whole["lens"].values) == ["raw", "effective"]  # by default
    missing = headscope("merge", tmp_path / "s1.state", "-o", tmp_path / "one.nc")
    assert missing.returncode == 2
    assert "2 of 3 shards are missing: 2/3 and 3/3" in missing.stderr


def test_a_dry_run_prints_an_estimate_and_writes_nothing(headscope, model, reviews, tmp_path):  # noqa: F811
    done = headscope(
        "measure",
        reviews,
        "--text",
        "review",
        "--model",
        model,
        "--statistics",
        "entropy",
        "-o",
        tmp_path / "heads.nc",
        "--dry-run",
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("12 examples in 1 batch: about ")
    assert lines[1].startswith("memory: about ")
    assert lines[2].startswith("disk: about ")
    assert not list(tmp_path.glob("heads*"))


def test_an_interrupted_run_is_resumed(headscope, model, reviews, tmp_path, monkeypatch):  # noqa: F811
    command = (
        "measure",
        reviews,
        "--text",
        "review",
        "--model",
        model,
        "--statistics",
        "entropy",
        "--batch-size",
        "3",
        "-o",
    )
    real, calls = measuring.add_states, []

    def add(first, second):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(first, second)

    with monkeypatch.context() as patch:
        patch.setattr(measuring, "add_states", add)
        stopped = headscope(*command, tmp_path / "heads.nc")
    assert stopped.returncode == 130
    assert "Stopped after 6 of 12 examples." in stopped.stderr
    again = headscope(*command, tmp_path / "heads.nc")
    assert again.returncode == 2
    assert "holds 6 of 12 examples of an unfinished measurement" in again.stderr
    assert headscope(*command, tmp_path / "heads.nc", "--resume").returncode == 0
    assert headscope(*command, tmp_path / "whole.nc").returncode == 0
    xr.testing.assert_identical(*(open_result(tmp_path / f"{name}.nc") for name in ("heads", "whole")))


def test_a_malformed_row_is_named_or_skipped(headscope, model, tmp_path):  # noqa: F811
    path = tmp_path / "texts.csv"
    path.write_text("text,label\nthe cat sat,1\nthe dog ran,1,2\non a mat,0\n")
    command = ("measure", path, "--model", model, "--statistics", "entropy", "-o", tmp_path / "heads.nc")
    refused = headscope(*command)
    assert refused.returncode == 2
    assert "texts.csv" in refused.stderr
    assert "line 3" in refused.stderr
    done = headscope(*command, "--malformed", "skip")
    assert done.returncode == 0, done.stderr
    assert "skipped 1 of 3 rows" in done.stderr.replace("\n", " ").lower()
    assert int(open_result(tmp_path / "heads.nc")["entropy_n"].max()) == 2


def test_help_fits_a_terminal(headscope):  # noqa: F811
    for verb in ("measure", "merge", "compare"):
        done = headscope(verb, "--help")
        assert done.returncode == 0
        assert all(len(line) <= 80 for line in done.stdout.splitlines())
