"""`headscope head-importance` in the shell."""

import pytest

import headscope as hs
from tests.cli.test_importances import folder, run  # noqa: F401  (a fixture)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("review,stars\nthe cat sat,1\na dog ran fast,0\nthe man sang,1\n")
    return str(path), "--text", "review", "--label", "stars"


def test_the_most_important_heads_are_printed_and_all_are_saved(folder, data, tmp_path):  # noqa: F811
    files = [str(tmp_path / name) for name in ("heads.nc", "heads.png")]
    out = run("head-importance", *data, "--model", folder, "-o", files[0], "-o", files[1])
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("Wrote"))
    assert out.splitlines()[1].split() == ["head", "importance", "share", "(%)"]
    result = hs.open_result(files[0])
    layer, head = divmod(int(result["head_importance"].values.argmax()), 4)
    assert out.splitlines()[2].startswith(f"L{layer}H{head} ")
    again = run("head-importance", *data, "--model", folder, "-o", files[0], code=2)
    assert "exists already" in again


def test_reductions_and_norms_by_option(folder, data, tmp_path):  # noqa: F811
    path = tmp_path / "heads.nc"
    run("head-importance", *data, "--model", folder, "--reduction", "token", "--normalize", "layer", "-o", str(path))
    result = hs.open_result(path)
    assert ((result["head_importance"] ** 2).sum("head") - 1 < 1e-9).all()
    wrong = run("head-importance", *data, "--model", folder, "--reduction", "words", code=2)
    assert "No reduction is called 'words'" in wrong
    assert "--site cross" not in run("head-importance", *data, "--model", folder, "--site", "self")
