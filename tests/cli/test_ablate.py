"""`headscope ablate` in the shell."""

import re

import pytest

import headscope as hs
from tests.cli.test_importances import folder, run  # noqa: F401  (a fixture)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("review,stars\n" + "the cat sat,1\na dog ran fast,0\nthe man sang,1\nwho ran,0\n" * 4)
    return str(path), "--text", "review", "--label", "stars"


def test_the_largest_changes_are_printed_and_all_are_saved(folder, data, tmp_path):  # noqa: F811
    files = [str(tmp_path / name) for name in ("ablation.nc", "ablation.png")]
    out = run("ablate", *data, "--model", folder, "-o", files[0], "-o", files[1])
    lines = out.splitlines()
    assert all(len(line) <= 80 for line in lines if not line.startswith("Wrote"))
    result = hs.open_result(files[0])
    assert f"The accuracy of the whole model is {float(result['score']):.4g}" in " ".join(lines)
    largest = float(abs(result["change"]).max())
    row = next(line for line in lines if re.match(r"L\d+H\d+ ", line))
    assert abs(float(row.split()[1].replace("−", "-"))) == pytest.approx(largest, abs=0.01)
    assert "changes are significant (p < 0.05 after Holm's correction)" in " ".join(out.split())
    assert "exists already" in run("ablate", *data, "--model", folder, "-o", files[0], code=2)


def test_sets_are_kinds_or_heads_by_name(folder, data, tmp_path):  # noqa: F811
    path = str(tmp_path / "ablation.nc")
    run("ablate", *data, "--model", folder, "--sets", "layers", "--edit", "uniform-heads", "-o", path)
    assert hs.open_result(path)["ablated"].dims == ("layer",)
    out = run("ablate", *data, "--model", folder, "--sets", "L1H0+L0H1", "--sets", "L0", "--limit", "8")
    assert "L1H0+L0H1" in out
    assert "over 8\nexamples" in out
    wrong = run("ablate", *data, "--model", folder, "--sets", "L9", code=2)
    assert "L9" in wrong or "layer 9" in wrong
