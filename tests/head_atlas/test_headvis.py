"""The export has the layout of HeadVis, field by field as its data_pipeline.py specifies it."""

import json
from itertools import pairwise

import numpy as np
import pytest

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.example import Example
from tests.head_atlas.data import examples, make_atlas, read_files, read_header, read_heads
from tests.models import tiny

INTERVALS = {3: "strongest", 2: "median", 1: "weakest"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("headvis")
    pruned = hs.prune(tiny("bert"), ["L0H0"])  # the first head: one without numbers
    make_atlas(pruned, folder / "atlas", headvis=folder / "data")
    return folder / "atlas", folder / "data"


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def test_the_folder_holds_the_files_that_headvis_reads(folders):
    names = {f"heads/L{layer}H{head}.json" for layer in range(2) for head in range(4)}
    others = {"config.json", "scatter_data.json", "server_config.json", "attributions/manifest.json"}
    assert set(read_files(folders[1])) == names | others
    assert read(folders[1], "server_config.json") == read(folders[1], "attributions/manifest.json") == {}


def test_the_config_says_what_there_is(folders):
    config, scatter = read(folders[1], "config.json"), read(folders[1], "scatter_data.json")
    assert isinstance(config["model_name"], str)
    assert config["heads"] == [[layer, head] for layer in range(2) for head in range(4)]
    assert (config["n_layers"], config["n_heads"], config["n_intervals"]) == (2, 4, 3)
    assert (config["has_umap"], config["umap_heads"]) == (False, [])
    assert config["head_data_pattern"].format(layer=1, head=3) == "L1H3.json"
    assert config["metrics"] == list(scatter[0])[2:] == list(config["metric_descriptions"])
    head = read(folders[1], "heads/L1H3.json")
    for plot in config["custom_plots"]:
        histogram = head[plot["key"]]
        assert len(histogram["bin_values"]) == len(histogram["bin_edges"]) - 1
    for table in config["custom_tables"]:
        assert all(set(row) == {"token", "weight"} for row in head[table["key"]])
    assert set(config["statistics_display"]) == set(head["statistics"])


def test_every_head_is_a_flat_row_of_numbers_and_the_first_row_has_all_of_them(folders):
    header, scatter = read_header(folders[0]), read(folders[1], "scatter_data.json")
    assert sorted([row["layer"], row["head"]] for row in scatter) == read(folders[1], "config.json")["heads"]
    values = {
        scalar["name"] if scalar["lens"] is None else f"{scalar['name']} ({scalar['lens']})": scalar["values"]
        for scalar in header["scalars"]
    }
    assert set(values) <= set(scatter[0])  # HeadVis offers the numbers of the first row as axes
    for row in scatter:
        layer, head = row.pop("layer"), row.pop("head")
        assert row == {} if (layer, head) == (0, 0) else row == {name: x[layer][head] for name, x in values.items()}


def test_sequences_are_the_examples_of_the_first_lens(folders):
    for name, head in read_heads(folders[0]).items():
        sequences = read(folders[1], f"heads/{name}.json")["sequences"]
        for sequence, example in zip(sequences, head["examples"], strict=True):
            assert set(sequence) == {
                *("sequence_id", "interval", "tokens", "attention_indices", "attention_values", "seq_len"),
                "max_activation",
            }
            assert sequence["sequence_id"] == example["position"]
            assert INTERVALS[sequence["interval"]] == example["group"]
            assert sequence["tokens"] == example["queries"]["text"]
            assert sequence["seq_len"] == len(sequence["tokens"])
            check_weights(sequence, example["maps"][0])


def check_weights(sequence, stored):
    """Flat indices are query · length + key, values have four decimals, and the maximum skips the first token."""
    length = sequence["seq_len"]
    table = np.zeros((length, length))
    table.flat[sequence["attention_indices"]] = sequence["attention_values"]
    queries = np.repeat(np.arange(length), stored["counts"])
    np.testing.assert_allclose(table[queries, stored["keys"]], np.array(stored["weights"]) / 1e4, atol=1e-9)
    assert len(set(sequence["attention_indices"])) == len(stored["keys"])
    assert np.count_nonzero(table, axis=1).max() <= 8
    assert min(sequence["attention_values"]) >= 0.005
    assert [round(value, 4) for value in sequence["attention_values"]] == sequence["attention_values"]
    np.fill_diagonal(table, 0)
    assert sequence["max_activation"] == table[1:, 1:].max()


def test_summaries_of_a_head_are_those_of_its_sequences(folders):
    head = read(folders[1], "heads/L1H2.json")
    distances, given, taken = [], {}, {}
    for sequence in head["sequences"]:
        for place, weight in zip(sequence["attention_indices"], sequence["attention_values"], strict=True):
            query, key = divmod(place, sequence["seq_len"])
            distances.append(abs(query - key))
            for side, token in ((given, query), (taken, key)):
                token = sequence["tokens"][token]
                side[token] = side.get(token, 0) + weight
    edges = head["qk_distance_histogram"]["bin_edges"]
    assert edges[:4] == [0, 1, 2, 4]
    assert edges[-1] > max(distances)
    counts = [sum(low <= each < high for each in distances) for low, high in pairwise(edges)]
    assert head["qk_distance_histogram"]["bin_values"] == counts
    for name, weights in (("top_query_tokens", given), ("top_key_tokens", taken)):
        rows = head[name]
        assert [row["weight"] for row in rows] == sorted(
            (round(weight, 4) for weight in weights.values()), reverse=True
        )
        assert all(row["weight"] == pytest.approx(weights[row["token"]], abs=1e-4) for row in rows)
    largest = [sequence["max_activation"] for sequence in head["sequences"]]
    assert head["statistics"] == {"n_samples": 9, "mean_max_activation": pytest.approx(np.mean(largest), abs=1e-4)}


def test_a_head_without_examples_has_a_file_all_the_same(folders):
    head = read(folders[1], "heads/L0H0.json")
    assert head["sequences"] == head["top_query_tokens"] == head["top_key_tokens"] == []
    assert head["statistics"] == {"n_samples": 0, "mean_max_activation": 0.0}
    assert sum(head["qk_distance_histogram"]["bin_values"]) == 0


def test_cross_attention_is_refused_before_anything_is_measured(tmp_path):
    pairs = [Example("a", "the cat sat", "a dog ran")]
    with pytest.raises(InputError, match="but the cross attention of this model is from one text to another. Leave h"):
        make_atlas(tiny("t5"), tmp_path / "atlas", pairs, site="cross", headvis=tmp_path / "data")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("out", "headvis"), [("atlas", "atlas"), ("atlas", "atlas/data"), ("data/atlas", "data")])
def test_neither_folder_may_be_in_the_other(tmp_path, out, headvis):
    with pytest.raises(InputError, match="are one folder, or one is in the other, and each is replaced as a whole"):
        make_atlas(tiny("bert"), tmp_path / out, headvis=tmp_path / headvis)
    assert not list(tmp_path.iterdir())


def test_a_folder_of_something_else_is_not_replaced(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.tex").write_text("…")
    with pytest.raises(InputError, match="holds something else than an atlas in the layout of HeadVis. Give another"):
        make_atlas(tiny("bert"), tmp_path / "atlas", examples(2), headvis=tmp_path / "data", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
