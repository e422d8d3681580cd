"""`headscope cluster`, as one types it."""

import pytest

from headscope.results.cluster import cluster
from headscope.results.store import open_result, save
from tests.cli.test_cli import headscope  # noqa: F401  (a fixture)
from tests.figures.data import head_distances, measured


def test_layers_are_compared_and_the_result_is_saved(headscope, tmp_path):  # noqa: F811
    data = head_distances(layers=4, heads=3)
    done = headscope("cluster", save(data, tmp_path / "h.nc"), "--permutations", 99, "-o", tmp_path / "c.nc")
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if not line.startswith("Wrote"))
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.split()}
    assert rows["lens"] == ["within", "between", "difference", "p", "clusters", "silhouette", "stress"]
    result = open_result(tmp_path / "c.nc")
    assert result.equals(cluster(data, permutations=99))
    assert float(rows["raw"][0]) == pytest.approx(float(result["within"].sel(lens="raw")), rel=0.01)


def test_a_result_without_distances_is_one_sentence_and_exit_code_2(headscope, tmp_path):  # noqa: F811
    done = headscope("cluster", save(measured(), tmp_path / "h.nc"))
    assert done.returncode == 2
    assert "Heads are clustered by the variable 'head_distance', but the data has" in " ".join(done.stderr.split())
