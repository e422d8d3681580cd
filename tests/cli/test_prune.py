"""`headscope pruning-curve` and `headscope prune` in the shell."""

import pytest

import headscope as hs
from tests.cli.test_head_importance import data  # noqa: F401  (a fixture)
from tests.cli.test_importances import folder, run  # noqa: F401  (a fixture)


def test_a_curve_is_printed_saved_drawn_and_followed(folder, data, tmp_path):  # noqa: F811
    files = [str(tmp_path / name) for name in ("curve.nc", "curve.png")]
    out = run("pruning-curve", *data, "--model", folder, "--steps", "25", "-o", files[0], "-o", files[1])
    rows = out.splitlines()
    assert rows[0] == "By importance:"
    header = next(index for index, row in enumerate(rows) if row.startswith("pruned "))
    assert rows[header].split()[:4] == ["pruned", "pruned", "heads", "accuracy"]
    assert rows[header + 1].split()[:3] == ["0", "%", "0"]
    assert all(len(line) <= 80 for line in rows if not line.startswith("Wrote"))
    curve = hs.open_result(files[0])
    smaller = str(tmp_path / "smaller")
    out = run("prune", folder, "--curve", files[0], "--pruned", "50", "-o", smaller)
    assert "4 heads pruned" in out
    pruned = hs.load(smaller)
    assert pruned.network.config.headscope_pruned_heads == sorted(str(curve["heads"].values[2]).split("+"))
    assert run("score", *data, "--model", smaller).split()[-4]


def test_several_orders_go_into_one_figure(folder, data, tmp_path):  # noqa: F811
    options = ("--by", "importance", "--by", "random", "--seeds", "2", "--steps", "50", "--keep", "1")
    out = run("pruning-curve", *data, "--model", folder, *options, "-o", str(tmp_path / "curve.png"))
    assert "over 2 random orders" in " ".join(out.split())
    wrong = run("pruning-curve", *data, "--model", folder, *options, "-o", str(tmp_path / "curve.nc"), code=2)
    assert "A .nc file holds one curve." in wrong


def test_heads_are_named(folder, tmp_path):  # noqa: F811
    smaller = str(tmp_path / "smaller")
    out = run("prune", folder, "--heads", "L0H1", "--heads", "L1", "-o", smaller)
    assert "5 heads pruned" in out
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("Wrote"))
    assert "from_pretrained of transformers refuses it" in " ".join(out.split())
    assert "exists already" in run("prune", folder, "--heads", "L0H1", "-o", smaller, code=2)
    run("prune", folder, "--heads", "L0H1", "-o", smaller, "--force")
    assert hs.load(smaller).network.config.headscope_pruned_heads == ["L0H1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Name the heads with --heads, or give --curve and --pruned."),
        (("--heads", "L0H1", "--pruned", "50"), "Name the heads with --heads, or give --curve and --pruned."),
        (("--heads", "L9H1"), "There is no layer 9 here"),
    ],
)
def test_wrong_requests(folder, tmp_path, words, said):  # noqa: F811
    assert said in run("prune", folder, *words, "-o", str(tmp_path / "smaller"), code=2)
