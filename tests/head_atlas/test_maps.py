"""The stored maps are the model's: the largest weights of each row by size, and what is left out is stated."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import headscope as hs
from headscope.head_atlas.sparse import UNIT, keep_largest
from tests.engine.test_images import MODEL, picture
from tests.head_atlas.data import examples, make_atlas, read_header, read_heads
from tests.models import tiny

weights = st.sampled_from([-0.5, -0.004, 0.0, 0.0049, 0.005, 0.2, 0.5])  # few, so that many are equal


def keep_plainly(row, visible, count, threshold):
    """What is kept of one row, by plain sorting: keys with their weights, the largest first; and Σ|w| of the others."""
    keys = [key for key in range(len(row)) if visible[key]]
    largest = sorted(keys, key=lambda key: (-abs(row[key]), key))[:count]
    kept = [key for key in largest if abs(row[key]) >= threshold]
    return [(key, row[key]) for key in kept], sum(abs(row[key]) for key in keys if key not in kept)


def split_rows(counts, keys, values):
    """What is stored of each row: keys with their weights."""
    ends = np.cumsum([0, *counts])
    pairs = list(zip(keys, values, strict=True))
    return [pairs[start:stop] for start, stop in pairwise(ends)]


@given(
    arrays(np.float64, (4, 6), elements=weights),
    arrays(bool, (4, 6)),
    st.integers(1, 8),
    st.sampled_from([0.0, 0.005, 0.3]),
)
def test_rows_keep_the_largest_weights_by_size_and_state_the_rest(table, visible, count, threshold):
    sparse = keep_largest(table, visible, count, threshold)
    rows = split_rows(sparse.counts, sparse.keys.tolist(), sparse.weights.tolist())
    for row, seen, kept, left in zip(table.tolist(), visible, rows, sparse.left, strict=True):
        expected, rest = keep_plainly(row, seen, count, threshold)
        assert kept == expected
        assert left == pytest.approx(rest, abs=1e-12)
    size = np.abs(np.where(visible, table, 0))
    assert sparse.left_share == pytest.approx(sparse.left.sum() / size.sum() if size.sum() else 0)
    np.testing.assert_allclose(sparse.received, np.where(visible, table, 0).mean(0))


def dense_rows(stored, columns):
    """The kept weights as a table."""
    table = np.zeros((len(stored["counts"]), columns))
    for query, row in enumerate(split_rows(stored["counts"], stored["keys"], stored["weights"])):
        for key, weight in row:
            table[query, key] = weight * UNIT
    return table


def check_maps(model, folder, corpus, keys, threshold, **capture):
    """Compare every stored map with one that is captured alone; returns how many there are."""
    texts = {example.id: example for example in corpus}
    lenses = [lens["name"] for lens in read_header(folder)["lenses"]]
    traces = {name: hs.capture(model, text, **capture) for name, text in texts.items()}
    maps = {(name, lens): hs.view(trace, lens) for name, trace in traces.items() for lens in lenses}
    count = 0
    for head in read_heads(folder).values():
        for example in head["examples"]:
            for lens, stored in zip(lenses, example["maps"], strict=True):
                whole = maps[example["id"], lens]
                table = whole.layer(head["layer"])[0, whole.heads.index(head["head"])].double().numpy()
                check_map(stored, table, whole.visible[head["layer"]][0].numpy(), keys, threshold)
                assert example["queries"]["text"] == list(whole.queries.text[0])
                count += 1
    return count


def check_map(stored, table, visible, keys, threshold):
    kept = dense_rows(stored, table.shape[1])
    places = kept != 0
    np.testing.assert_allclose(kept[places], table[places], atol=UNIT)
    assert places.sum() == len(stored["keys"])
    assert not places[~visible].any()
    for row, seen, count, left in zip(table, visible, stored["counts"], stored["left"], strict=True):
        expected, rest = keep_plainly(row.tolist(), seen.tolist(), keys, threshold)
        assert abs(count - len(expected)) <= sum(abs(abs(weight) - threshold) < 1e-6 for weight in row)  # rounding
        assert left * UNIT == pytest.approx(rest, abs=2 * UNIT)
    size = np.abs(table).sum()
    assert stored["leftShare"] == pytest.approx((size - np.abs(table[places]).sum()) / size, abs=1e-4)
    np.testing.assert_allclose(stored["received"], table.mean(0), atol=2e-6)


@pytest.mark.parametrize(("keys", "threshold"), [(8, 0.005), (2, 0.0), (40, 0.2)])
def test_stored_maps_are_those_of_a_capture_through_every_lens(tmp_path, keys, threshold):
    model = tiny("bert")
    make_atlas(model, tmp_path / "atlas", keys=keys, threshold=threshold, lens=["raw", "effective", "norm"])
    assert check_maps(model, tmp_path / "atlas", examples(20), keys, threshold) == 8 * 9 * 3
    header = read_header(tmp_path / "atlas")
    assert header["kept"] == {"keys": keys, "threshold": threshold}
    assert [lens["signed"] for lens in header["lenses"]] == [False, True, False]


def test_maps_of_a_decoder_keep_no_key_that_is_not_visible(tmp_path):
    model = tiny("llama")
    make_atlas(model, tmp_path / "atlas", examples(6), lens=["raw", "effective"])
    assert check_maps(model, tmp_path / "atlas", examples(6), 8, 0.005) == 8 * 6 * 2


def test_a_part_of_the_layers_and_heads_can_be_shown(tmp_path):
    model = tiny("bert")
    make_atlas(model, tmp_path / "atlas", examples(6), layers=[1], heads=[3, 0])
    assert set(read_header(tmp_path / "atlas")["files"]) == {"L1H0", "L1H3"}
    trace = hs.view(hs.capture(model, examples(1)[0]), "raw")
    for name, head in read_heads(tmp_path / "atlas").items():
        (example,) = [each for each in head["examples"] if each["id"] == "text 0"]
        table = trace.layer(1)[0, int(name[-1])].double().numpy()
        check_map(example["maps"][0], table, np.ones_like(table, bool), 8, 0.005)


def test_cross_attention_stores_the_tokens_of_both_texts(tmp_path):
    pairs = [hs.Example(str(row), "the cat sat on a mat", "a dog ran fast") for row in range(2)]
    make_atlas(tiny("t5"), tmp_path / "atlas", pairs, site="cross")
    example = read_heads(tmp_path / "atlas")["L0H0"]["examples"][0]
    assert "mat" in example["keys"]["text"]
    assert "dog" in example["queries"]["text"]
    assert len(example["maps"][0]["counts"]) == len(example["queries"]["text"])
    assert len(example["maps"][0]["received"]) == len(example["keys"]["text"])
    assert read_header(tmp_path / "atlas")["site"] == "cross"


def test_patches_of_pictures_are_tokens(tmp_path):
    make_atlas(MODEL, tmp_path / "atlas", [picture(seed) for seed in range(3)])
    example = read_heads(tmp_path / "atlas")["L0H0"]["examples"][0]
    assert len(example["queries"]["text"]) == 10
    assert example["queries"]["special"] == [0]
