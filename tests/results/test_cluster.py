import json
import sys

import numpy as np
import pytest
import xarray as xr
from scipy.cluster.hierarchy import fcluster, leaves_list
from scipy.spatial.distance import squareform
from sklearn.metrics import silhouette_score

from headscope.core.errors import InputError, MissingExtra
from headscope.core.provenance import read_provenance
from headscope.plotting.draw import draw
from headscope.results.behaviour import describe_behaviour, label_behaviour
from headscope.results.cluster import cluster, embed_distances, name_distance
from headscope.results.store import open_result, save
from tests.figures.data import head_distances

QUICK = {"permutations": 99}


def points(seed=0, count=12):
    return np.random.default_rng(seed).normal(size=(count, 2))


def apart(positions):
    return np.linalg.norm(positions[:, None] - positions, axis=-1)


def test_points_of_a_plane_come_back_without_stress():
    positions, stress = embed_distances(apart(points()), np.arange(12))
    assert stress == pytest.approx(0, abs=1e-6)
    assert np.allclose(apart(positions), apart(points()), atol=1e-5)
    assert np.corrcoef(positions[:, 0], np.arange(12))[0, 1] >= 0
    assert positions[np.abs(positions[:, 1]).argmax(), 1] > 0


def test_stress_is_kruskals():
    table = apart(np.random.default_rng(1).normal(size=(10, 5)))
    positions, stress = embed_distances(table, np.arange(10))
    expected = np.sqrt(((apart(positions) - table) ** 2).sum() / (table**2).sum())
    assert stress == pytest.approx(expected)
    assert 0.05 < stress < 0.5


def test_a_tree_joins_the_heads_of_scipys_linkage():
    data = head_distances(layers=3, heads=4)
    result = cluster(data, **QUICK).sel(lens="raw")
    square = data["head_distance"].sel(lens="raw", site="self").values.reshape(12, 12)
    tree = result["merge"].values
    assert tree.shape == (11, 4)
    assert result["leaf"].values.ravel()[leaves_list(tree)].tolist() == list(range(12))
    # average linkage: the last step joins two groups at the mean distance between them
    left = fcluster(tree, 2, "maxclust") == 1
    assert tree[-1, 2] == pytest.approx(square[np.ix_(left, ~left)].mean())


def test_the_number_of_clusters_has_the_largest_silhouette_of_scikit_learn():
    data = head_distances(layers=3, heads=4)
    result = cluster(data, **QUICK).sel(lens="raw")
    square = squareform(squareform(data["head_distance"].sel(lens="raw", site="self").values.reshape(12, 12)))
    cuts = {count: fcluster(result["merge"].values, count, "maxclust") for count in range(2, 12)}
    scores = {count: silhouette_score(square, labels, metric="precomputed") for count, labels in cuts.items()}
    best = max(scores, key=scores.get)
    assert int(result["clusters"]) == best
    assert float(result["silhouette"]) == pytest.approx(scores[best])
    assert result["cluster"].values.ravel().tolist() == cuts[best].tolist()


def test_layers_that_were_built_alike_are_found():
    result = cluster(head_distances(layers=4, heads=5), count=4, **QUICK)
    assert result["p"].values.tolist() == [0.01, 0.01]
    assert (result["within"] < result["between"]).all()
    assert np.allclose(result["difference"], result["between"] - result["within"])
    for layer in range(4):
        assert len(np.unique(result["cluster"].sel(lens="raw", layer=layer))) == 1


def test_the_mean_by_gap_is_over_pairs_of_heads():
    data = head_distances(layers=3, heads=2)
    table, result = data["head_distance"].sel(lens="raw", site="self"), cluster(data, **QUICK).sel(lens="raw")
    near = [table.values[a, :, b].ravel() for a, b in ((0, 1), (1, 2))]
    assert result["gap"].values.tolist() == [0, 1, 2]
    assert float(result["by_gap"].sel(gap=0)) == pytest.approx(float(result["within"]))
    assert float(result["by_gap"].sel(gap=1)) == pytest.approx(np.mean(near))
    assert float(result["by_gap"].sel(gap=2)) == pytest.approx(table.values[0, :, 2].mean())


def test_behaviours_come_from_what_was_measured():
    data = head_distances(layers=2, heads=3)
    heads = ("lens", "site", "layer", "head")
    offsets = np.zeros((2, 1, 2, 3, 3))
    offsets[:, :, 0, 0] = (0.8, 0.1, 0.1)
    offsets[:, :, 0, 1] = (0.0, 0.2, 0.7)
    roles = np.zeros((2, 1, 2, 3, 2, 2))
    roles[:, :, 0, 1, 1, 0] = 0.75  # more on [SEP] than on the next token
    roles[:, :, 1, 0, 0, 0] = 0.6
    roles[:, :, 1, 1, 0, 1] = 0.9  # from [CLS] to itself does not count
    peak = np.full((2, 1, 2, 3), 0.3)
    peak[:, :, 1, 2] = 0.1
    data = data.assign(
        offsets=((*heads, "offset"), offsets), special_tokens=((*heads, "role", "source"), roles), peak=(heads, peak)
    ).assign_coords(offset=[-1, 0, 1], role=["cls", "sep"], source=["others", "itself"])
    names = cluster(data, **QUICK)["behaviour"].sel(lens="raw").values.tolist()
    assert names == [["previous", "[SEP]", "other"], ["[CLS]", "other", "broad"]]


def with_offsets(**weights):
    """Distances with the weight on the previous token of every head, by lens."""
    data = head_distances(lenses=tuple(weights))
    offsets = np.zeros((len(weights), 1, 2, 3, 3))
    offsets[..., 0] = np.array(list(weights.values()))[:, None, None, None]
    axes = ("lens", "site", "layer", "head")
    return data.assign(
        offsets=((*axes, "offset"), offsets), peak=(axes, np.full(offsets.shape[:-1], 0.05))
    ).assign_coords(offset=[-1, 0, 1])


def test_behaviours_are_those_of_raw_attention_for_every_lens():
    result = cluster(with_offsets(effective=0.25, raw=0.99), **QUICK)
    assert (result["behaviour"] == "previous").all()
    assert result["behaviour"].attrs["lens"] == "raw"
    assert describe_behaviour(result.sel(lens="effective")) == (
        "Behaviour of raw attention. All 6 heads are of one kind: previous."
    )
    alone = cluster(with_offsets(effective=0.25), **QUICK)
    assert (alone["behaviour"] == "broad").all()
    assert describe_behaviour(alone.sel(lens="effective")) == "All 6 heads are of one kind: broad."


def test_a_lens_that_merges_heads_has_behaviours_of_its_own():
    data = with_offsets(raw=0.99, rollout=0.25)
    merged = (data["lens"] == "raw") | (data["head"] == 0)
    data["offsets"] = data["offsets"].where(merged)
    data["head_distance"] = data["head_distance"].where(merged & ((data["lens"] == "raw") | (data["other_head"] == 0)))
    names = label_behaviour(data.isel(site=0, drop=True))
    assert (names.sel(lens="raw") == "previous").all()
    assert (names.sel(lens="rollout", head=0) == "broad").all()


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("head_distance", "Jensen–Shannon divergence, sum over tokens, nats"),
        ("head_distance:reduce=mean", "Jensen–Shannon divergence, mean over tokens, nats"),
        ("entropy", "distance, nats"),
    ],
)
def test_distances_say_whether_tokens_are_summed(spec, name):
    data = head_distances().assign_attrs(headscope=json.dumps({"statistics": [spec]}))
    result = cluster(data, **QUICK)
    assert name_distance(result) == name_distance(data) == name
    assert draw(result, "dendrogram").axes[0].get_ylabel().replace("\n", " ") == name
    note = " ".join(" ".join(text.get_text() for text in draw(result, "clusters").axes[0].texts).split())
    assert f"{name[0].upper()}{name[1:]}: mean within layers" in note


def test_behaviours_can_be_named():
    data = head_distances(layers=2, heads=3)
    own = xr.DataArray([["a", "b", "b"], ["c", "a", "a"]], {"layer": [0, 1], "head": [0, 1, 2]}, ("layer", "head"))
    assert (cluster(data, behaviour=own, **QUICK)["behaviour"].sel(lens="effective") == own).all()
    assert "behaviour" not in cluster(data, **QUICK)
    with pytest.raises(InputError, match="behaviour has no name for head 2. Name every head"):
        cluster(data, behaviour=own.isel(head=[0, 1]), **QUICK)
    with pytest.raises(InputError, match="must have the axes layer and head, and may have lens, but it has head. Name"):
        cluster(data, behaviour=own.isel(layer=0), **QUICK)


def test_a_lens_with_one_map_per_layer_has_one_head_in_each():
    data = head_distances(layers=4, heads=3)
    merged = data["head_distance"].copy()
    merged.loc[{"lens": "effective", "head": [1, 2]}] = np.nan
    merged.loc[{"lens": "effective", "other_head": [1, 2]}] = np.nan
    result = cluster(data.assign(head_distance=merged), **QUICK)
    other = result.sel(lens="effective")
    assert np.isfinite(other["position"]).all("coordinate").values.tolist() == [[True, False, False]] * 4
    assert other["cluster"].values[:, 1:].tolist() == [[0, 0]] * 4
    assert np.isfinite(other["merge"]).all("part").sum() == 3
    assert np.isnan(other["within"])
    assert np.isnan(other["p"])
    assert np.isfinite(result["p"].sel(lens="raw"))


def test_a_result_is_stamped_saved_and_the_same_again(tmp_path):
    data = head_distances()
    result = cluster(data, count=2, **QUICK)
    facts = read_provenance(result)
    assert facts["model"] == "tiny"
    assert {name: facts[name] for name in ("command", "permutations", "seed", "count", "linkage")} == {
        "command": "headscope cluster",
        "permutations": 99,
        "seed": 0,
        "count": 2,
        "linkage": "average",
    }
    assert cluster(data, count=2, **QUICK).identical(result)
    back = open_result(save(result, tmp_path / "clusters.nc"))
    assert back["position"].equals(result["position"])
    assert json.loads(back.attrs["headscope"]) == facts


def test_scikit_learn_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    with pytest.raises(
        MissingExtra, match=r"Multidimensional scaling needs the package sklearn.*headscope\[clusters\]"
    ):
        cluster(head_distances(), **QUICK)


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        (lambda data: data.rename(head_distance="d"), {}, "by the variable 'head_distance', but the data has 'd'"),
        (lambda data: data.isel(other_head=0), {}, "'head_distance' has no axis other_head: some of it was selected"),
        (lambda data: data.isel(layer=[0], other_layer=[0], head=[0, 1], other_head=[0, 1]), {}, "At least 3 heads"),
        (lambda data: xr.concat([data, data.assign_coords(site=["cross"])], "site"), {}, "data has self and cross"),
        (lambda data: data, {"count": 7}, "number of clusters of 6 heads, from 1 to 6, but got 7"),
        (lambda data: data, {"permutations": 0}, "permutations must be at least 1, but got 0"),
    ],
)
def test_what_cannot_be_clustered_is_said(change, options, sentence):
    with pytest.raises(InputError, match=sentence):
        cluster(change(head_distances()), **{**QUICK, **options})
