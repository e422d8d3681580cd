"""Heads that attend to related words: what is read, which relations are measured, and the best of all heads."""

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.experiments.relation_heads import (
    choose_relations,
    measure_relations,
    name_best_head,
    read_relations,
    show_relation,
    summarise_best,
)
from headscope.experiments.rendering.head_figures import draw_relation
from headscope.maps.word_pairs import list_word_pairs
from headscope.uncertainty.corrections import correct_p_values, simultaneous_factor
from tests.models import WORDS, text, tiny


def related(count=30):
    """Texts of words that a tiny model knows; the first word is related to the third, in some to the last as well."""
    examples = []
    for at in range(count):
        words = tuple(text(6, seed=at).split())
        pairs = [(0, 2, "near"), *([(0, 5, "far:away")] if at % 2 else [])]
        examples.append(Example(str(at), " ".join(words), words=words, columns={"word_pairs": tuple(pairs)}))
    return examples


def test_sentences_of_a_treebank_come_with_the_package():
    examples = read_relations()
    assert len(examples) == 150
    names = choose_relations(examples)
    assert len(names) == 12
    assert {"nsubj", "obj", "det"} <= set(names)
    assert not {"punct", "root"} & set(names)


def test_a_table_of_word_pairs_is_known_by_its_ending(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("text\tword_i\tword_j\trelation\nA b c\t0\t2\tfar\n", encoding="utf-8")
    (example,) = read_relations(str(path))
    assert list_word_pairs(example) == [(0, 2, "far")]
    assert choose_relations([example]) == ("far",)  # fewer texts than a verdict needs, but there are no others


def test_texts_without_related_words_are_refused():
    with pytest.raises(InputError, match="No two words of these texts are related"):
        choose_relations([Example("0", "Stop.", columns={"heads": (-1,), "relations": ("root",)})])


def test_relations_in_too_few_texts_are_left_out():
    assert choose_relations(related(30)) == ("near",)
    assert choose_relations(related(60)) == ("near", "far")


def test_every_head_is_measured_and_corrected_for_all_heads_and_relations():
    data = measure_relations(tiny("bert"), related(60), max_length=None, progress=False)
    assert data["n"].values.tolist() == [60, 30]
    xr.testing.assert_allclose(data["weight"] - data["baseline"], data["gain"])
    p, corrected = (data[name].sel(direction="larger").values for name in ("gain_p", "gain_p_adjusted"))
    np.testing.assert_array_equal(corrected, correct_p_values(p))
    assert (data["best_gain_change"] == data["gain"].sel(direction="larger").max(("layer", "head"))).all()
    shown = show_relation(tiny("bert"), related(60), data, max_length=None)
    assert shown.sizes["example"] == 2
    words = shown["word"].values[0]
    assert {words[place] for place in shown["pair"].values[0]} <= set(WORDS)
    titles = [panel.get_title() for panel in draw_relation(data, shown).axes]
    assert [title for title in titles if " on text " in title] == [f"{titles[0][:4]} on text {each}" for each in (1, 2)]


def test_relations_are_those_of_attention_as_the_model_computes_it():
    words = tuple(text(30, seed=0).split())  # each of them is a token
    examples = [Example("0", " ".join(words), words=words, columns={"word_pairs": ((0, 2, "near"),)})]
    model = tiny("bert")
    trace = hs.capture(model, examples)
    raw, effective = (np.asarray(hs.view(trace, lens))[0] for lens in ("raw", "effective"))  # layer head query key
    assert abs(raw - effective).max() > 1e-3  # so that this test can tell
    data = measure_relations(model, examples, ["near"], max_length=None, progress=False)
    both = np.stack([raw[:, :, 1, 3], raw[:, :, 3, 1]])  # [CLS] is the first token
    np.testing.assert_allclose(data["weight"].sel(task="near", direction="larger").values, both.max(0), atol=1e-6)


def test_the_share_of_encoding_heads_is_bounded_by_intervals_for_all_heads():
    value = np.array([[0.3, 0.12], [0.08, 0.0]])
    names = {"gain": value, "gain_low": value - 0.01, "gain_high": value + 0.01}
    dims = ("task", "direction", "layer", "head")
    table = xr.Dataset(
        {name: (dims, each[None, None]) for name, each in names.items()} | {"n": ("task", [40])},
        {"task": ["near"], "direction": ["larger"], "layer": [0, 1], "head": [0, 1]},
    )
    best, factor = summarise_best(table), simultaneous_factor(4, 40)
    assert 0.01 < factor * 0.01 < 0.02
    assert [float(best[f"encoding{end}"][0]) for end in ("", "_low", "_high")] == [0.5, 0.5, 0.5]
    assert float(best["best_gain_change_low"][0]) == pytest.approx(0.3 - factor * 0.01)
    wide = table.assign(gain_low=table["gain"] - 0.02, gain_high=table["gain"] + 0.02)
    assert [float(summarise_best(wide)[f"encoding{end}"][0]) for end in ("", "_low", "_high")] == [0.5, 0.25, 0.75]
    assert name_best_head(table.sel(task="near")) == "L0H0"
