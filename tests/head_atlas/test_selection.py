"""The examples of a head are those that sorting all examples by the statistic gives."""

from itertools import chain

import numpy as np
import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.state import Extremes, State
from headscope.engine.load import load
from headscope.head_atlas import selection
from tests.head_atlas.data import LENSES, STATISTICS, examples, make_atlas, read_head, read_header, read_heads
from tests.models import network, tiny, tokenizer

SIZE = 3


@pytest.fixture(scope="module")
def model():
    return tiny("bert")


@pytest.fixture(scope="module")
def measured(model):
    return hs.measure(model, examples(20), statistics=STATISTICS, lens=LENSES, batch_size=4, rows=True, progress=False)


@pytest.fixture(scope="module")
def result(model, folder):
    return hs.open_result(folder / "atlas.nc")


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("atlas") / "atlas"
    make_atlas(model, out)
    return out


def choose(values, sample, size):
    """The groups of one head, by plain sorting of the values of all examples; the median is that of the sample."""
    places = [at for at, value in enumerate(values) if not np.isnan(value)]
    strongest = sorted(places, key=lambda at: (-values[at], at))[:size]
    weakest = [at for at in sorted(places, key=lambda at: (values[at], at))[:size] if at not in strongest]
    drawn = [at for at in places if at in sample]
    middle = np.median([values[at] for at in drawn])
    rest = [at for at in drawn if at not in strongest + weakest]
    nearest = sorted(rest, key=lambda at: (abs(values[at] - middle), at))[:size]
    return {
        "strongest": strongest,
        "median": sorted(nearest, key=lambda at: (-values[at], at)),
        "weakest": weakest,
    }


def chosen(head):
    """The positions of a head's examples, by group, in the order of its file."""
    groups = {group: [] for group in selection.GROUPS}
    for example in head["examples"]:
        groups[example["group"]].append(example["position"])
    return groups


def rows_of(measured, head, lens="raw", variable="activity"):
    return measured[f"{variable}_rows"].sel(lens=lens, layer=head["layer"], head=head["head"]).isel(site=0).values


def test_strongest_median_and_weakest_are_those_of_sorting_all_examples(folder, measured):
    heads = read_heads(folder)
    assert len(heads) == 8
    for head in heads.values():
        values = rows_of(measured, head)
        assert chosen(head) == choose(values, range(20), SIZE)
        for example in head["examples"]:
            value = values[example["position"]]
            assert example["id"] == f"text {example['position']}"
            assert example["activity"] == pytest.approx(value, abs=1e-6)
            assert example["above"] == pytest.approx(np.mean(values < value), abs=1e-4)
            assert example["label"] == example["position"] % 2


def test_numbers_and_intervals_are_those_of_measure(measured, result):
    plain = measured.drop_dims("example")
    xr.testing.assert_equal(result, plain)
    for name in plain.variables:
        assert result[name].attrs == plain[name].attrs


def test_the_header_shows_the_same_numbers_and_intervals(folder, measured):
    header = read_header(folder)
    shown = {(scalar["name"], scalar["lens"]): scalar for scalar in header["scalars"]}
    assert set(shown) == {(name, lens) for name in ("activity", "entropy") for lens in LENSES} | {
        ("effective_share", None)  # the same through every lens, so it is listed once
    }
    for (name, lens), scalar in shown.items():
        for field, suffix in {"values": "", "low": "_low", "high": "_high"}.items():
            table = measured[f"{name}{suffix}"].sel(lens=lens or "raw").values[0]
            np.testing.assert_allclose(np.array(scalar[field]), table, rtol=1e-5)
        assert scalar["n"] == "n = 20"
    assert header["files"] == {f"L{layer}H{head}": 9 for layer in range(2) for head in range(4)}
    assert (header["layers"], header["heads"], header["examples"]) == ([0, 1], [0, 1, 2, 3], 20)


def test_another_statistic_sorts_examples(model, measured, tmp_path):
    make_atlas(model, tmp_path / "atlas", activity="entropy", statistics=["activity", "effective_share"])
    for head in read_heads(tmp_path / "atlas").values():
        assert chosen(head) == choose(rows_of(measured, head, variable="entropy"), range(20), SIZE)


def test_the_first_lens_decides_the_order(model, measured, tmp_path):
    make_atlas(model, tmp_path / "atlas", lens=["effective", "raw"])
    for head in read_heads(tmp_path / "atlas").values():
        assert chosen(head) == choose(rows_of(measured, head, lens="effective"), range(20), SIZE)


@pytest.mark.parametrize("batch_size", [1, 7, 20])
def test_any_split_into_batches_gives_the_same(model, folder, tmp_path, batch_size):
    make_atlas(model, tmp_path / "atlas", batch_size=batch_size)
    for name, expected in read_heads(folder).items():
        head = read_head(tmp_path / "atlas", name)
        assert chosen(head) == chosen(expected)
        for found, example in zip(head["examples"], expected["examples"], strict=True):
            assert found["queries"] == example["queries"]
            assert found["activity"] == pytest.approx(example["activity"], abs=2e-6)
            np.testing.assert_allclose(found["maps"][0]["received"], example["maps"][0]["received"], atol=2e-6)


def test_of_a_large_corpus_the_median_is_that_of_a_sample(model, measured, tmp_path, monkeypatch):
    monkeypatch.setattr(selection, "SAMPLE", 8)
    make_atlas(model, tmp_path / "atlas", seed=1)
    sample = selection.draw_sample(20, seed=1).tolist()
    assert len(set(sample)) == 8
    for head in read_heads(tmp_path / "atlas").values():
        assert chosen(head) == choose(rows_of(measured, head), sample, SIZE)
    assert read_header(tmp_path / "atlas")["sample"] == 8


def test_an_example_is_shown_once_where_there_are_few(model, tmp_path):
    make_atlas(model, tmp_path / "atlas", examples(4))
    for head in read_heads(tmp_path / "atlas").values():
        groups = chosen(head)
        assert sorted(chain(*groups.values())) == [0, 1, 2, 3]
        assert [len(group) for group in groups.values()] == [3, 0, 1]


def test_one_example_has_numbers_without_intervals(model, tmp_path):
    make_atlas(model, tmp_path / "atlas", examples(1))
    header = read_header(tmp_path / "atlas")
    assert set(header["files"].values()) == {1}
    for scalar in header["scalars"]:
        assert None not in chain(*scalar["values"])
        assert set(chain(*scalar["low"], *scalar["high"])) == {None}


def test_a_pruned_head_has_no_number_and_no_example(model, tmp_path):
    make_atlas(hs.prune(model, ["L0H1", "L0H2"]), tmp_path / "atlas")
    header = read_header(tmp_path / "atlas")
    assert [header["files"][f"L0H{head}"] for head in range(4)] == [9, 0, 0, 9]
    for scalar in header["scalars"]:
        assert [value is None for value in scalar["values"][0]] == [False, True, True, False]
    assert read_head(tmp_path / "atlas", "L0H1") == {"layer": 0, "head": 1, "examples": []}


@pytest.mark.filterwarnings("ignore::headscope.DataWarning")
def test_a_head_that_is_nan_has_no_example_and_the_others_are_shown(tmp_path):
    broken = network("bert")
    with torch.no_grad():
        broken.encoder.layer[1].attention.self.query.weight[8:16] = torch.nan  # the second of four heads
    make_atlas(load(broken, tokenizer=tokenizer()), tmp_path / "atlas")
    header = read_header(tmp_path / "atlas")
    assert header["files"]["L1H1"] == 0
    assert header["files"]["L0H1"] == header["files"]["L1H0"] == 9


def test_an_example_without_a_value_is_not_chosen():
    values = np.array([np.nan, 0.5, 0.1, np.nan, 0.3, 0.4])[:, None, None]
    sample = np.arange(6)
    state = State(
        "activity", {selection.LEAF: Extremes.from_values(sample, values, 2, sample)}, {"layer": [3], "head": [7]}
    )
    (picks,) = selection.pick_examples(state, 2, sample).values()
    assert [(pick.group, pick.position, pick.above) for pick in picks] == [
        ("strongest", 1, 0.75),
        ("strongest", 5, 0.5),
        ("weakest", 2, 0.0),
        ("weakest", 4, 0.25),
    ]


def test_after_a_run_that_failed_at_its_first_batch_other_options_are_not_refused(model, tmp_path):
    with pytest.raises(InputError, match="has several values"):
        make_atlas(model, tmp_path / "atlas", activity="offsets:reach=1")
    make_atlas(model, tmp_path / "atlas")
    assert [path.name for path in tmp_path.iterdir()] == ["atlas"]


def test_a_statistic_without_a_value_for_each_example_cannot_sort(model, tmp_path):
    class Whole(hs.Statistic):
        def observe(self, batch):
            raise NotImplementedError

        def finish(self, state):
            raise NotImplementedError

    with pytest.raises(
        InputError, match="activity='whole' has no value for each example, so examples cannot be sorted"
    ):
        make_atlas(model, tmp_path / "atlas", activity=Whole())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"examples": 0}, "examples=0 leaves nothing to show. Give at least 1."),
        ({"keys": 0}, "keys=0 leaves nothing to show. Give at least 1."),
        ({"threshold": 1.0}, "threshold=1.0 is no weight. Give at least 0 and less than 1."),
        ({"engine": "slurm"}, "No engine is called 'slurm'. Known: local, ray."),
        ({"workers": 2}, "workers=2 is for engine='ray'. Leave it out, or add that engine."),
        ({"lens": []}, "No lens was given. Name at least one: "),
        ({"lens": ["raw", "rollout"]}, "The lenses 'raw' and 'rollout' have different heads: one of them merges those"),
        ({"activity": "offsets:reach=1"}, "activity='offsets:reach=1' has several values for a head, along offset, so"),
        (
            {"statistics": ["similarity"]},
            "The statistic 'similarity' compares two models, but an atlas is of one. Leave",
        ),
        ({"data": []}, "There are no examples in the list: it has no rows."),
    ],
)
def test_what_cannot_be_is_a_sentence(model, tmp_path, options, message):
    with pytest.raises(InputError) as caught:
        make_atlas(model, tmp_path / "atlas", **options)
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "atlas").exists()
