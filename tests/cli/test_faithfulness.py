"""`headscope faithfulness` in the shell."""

import headscope as hs
from tests.cli.test_ablate import data  # noqa: F401  (a fixture)
from tests.cli.test_importances import folder, run  # noqa: F401  (a fixture)


def test_lenses_are_printed_in_the_width_of_a_terminal_and_saved(folder, data, tmp_path):  # noqa: F811
    path = str(tmp_path / "judged.nc")
    options = ("--lens", "raw", "--lens", "norm", "--target", "predicted", "--rows", "1", "--limit", "6")
    out = run("faithfulness", *data, "--model", folder, *options, "-o", path)
    lines = out.splitlines()
    assert all(len(line) <= 80 for line in lines if not line.startswith("Wrote"))
    result = hs.open_result(path)
    assert f"What {int(result['edges'])} removed edges do" in out
    assert "over 6 examples" in " ".join(out.split())
    value = float(result["rank_correlation"].sel(lens="raw", effect="hidden"))
    row = next(line for line in lines if line.startswith("hidden") and " raw " in line)
    assert f"{value:.2f}".replace("-", "−") in row.replace("-", "−")
    assert "exists already" in run("faithfulness", *data, "--model", folder, *options, "-o", path, code=2)


def test_tokens_are_judged_with_lenses_through_the_layers(folder, data):  # noqa: F811
    options = ("--lens", "rollout", "--judge", "tokens", "--target", "label", "--limit", "4")
    out = run("faithfulness", *data, "--model", folder, *options)
    assert "when tokens are replaced in the order of rollout" in " ".join(out.split())
    wrong = run("faithfulness", *data, "--model", folder, *options[:2], code=2)
    assert "--judge tokens" in wrong
