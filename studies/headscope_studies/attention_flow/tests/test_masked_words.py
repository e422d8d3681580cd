"""What a masked word attends to, and which words would fill it."""

import numpy as np
import pytest
import torch
import transformers

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.provenance import read_provenance
from headscope.engine.load import load
from headscope_studies.attention_flow.masked_words import (
    count_agreement,
    draw_masked,
    masked_table,
    measure_masked,
    measure_sentences,
    predicts_masked_words,
)
from headscope_studies.attention_flow.report import report_pronouns
from tests.models import KINDS, tiny, tokenizer

SENTENCES = {
    "the cat sat with {mask} man": {"cat": "old", "man": "sea"},
    "dog ran over {mask} hill": {"dog": "old", "hill": "sea"},
}
LENSES = {"raw": "raw", "rollout": "rollout"}


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = transformers.BertConfig(**KINDS["bert"], initializer_range=0.5)
    return load(transformers.BertForMaskedLM(config).eval(), tokenizer=tokenizer())


@pytest.fixture(scope="module")
def masked(model):
    return measure_sentences(model, SENTENCES, LENSES)


def test_probabilities_and_weights_are_those_of_the_model_at_the_mask(model, masked):
    ids = model.tokenizer(
        ["the cat sat with [MASK] man", "dog ran over [MASK] hill"], return_tensors="pt", padding=True
    )
    model.network.set_attn_implementation("eager")
    with torch.no_grad():
        output = model.network(**ids, output_attentions=True)
    for row, (place, names) in enumerate(((5, (2, 6)), (4, (1, 5)))):  # behind [CLS]
        chances = output.logits[row, place].double().softmax(-1)
        expected = [float(chances[model.tokenizer.convert_tokens_to_ids(word)]) for word in ("old", "sea")]
        np.testing.assert_allclose(masked["probability"].values[row], expected, rtol=1e-4)  # float32 logits
        attention = output.attentions[-1][row].double().mean(0)[place]
        found = masked["weight"].isel(example=row, layer=-1).sel(lens="raw").values
        np.testing.assert_allclose(found, [float(attention[name]) for name in names], rtol=1e-4)
    assert masked["name"].values.tolist() == [["cat", "man"], ["dog", "hill"]]


def test_the_table_the_figure_and_the_count_have_both(masked):
    table = masked_table(masked)
    assert list(table.columns) == ["p(old)", "p(sea)", "raw", "rollout"]
    assert table["raw"].iloc[0].startswith("cat 0.")
    assert len(draw_masked(masked).axes) == 4
    weight, chance = (
        np.diff(masked[name].isel(layer=-1, missing_dims="ignore").values) for name in ("weight", "probability")
    )
    raw = int((np.sign(weight[:, 0, 0]) == np.sign(chance[:, 0])).sum())
    assert count_agreement(masked)["raw"] == raw
    assert list(count_agreement(masked)) == ["raw", "rollout"]
    assert read_provenance(masked)["n"] == 2


def test_the_name_with_more_weight_agrees_only_with_the_more_probable_word(masked):
    """In the last layer; words that are equally probable, or have no probability, agree with no name."""
    weights = masked["weight"].copy(data=np.broadcast_to([0.2, 0.1], masked["weight"].shape))
    for chances, count in (([0.6, 0.4], 2), ([0.4, 0.6], 0), ([0.5, 0.5], 0), ([np.nan, 0.5], 0)):
        probability = masked["probability"].copy(data=[chances, chances])
        data = masked.assign(weight=weights, probability=probability)
        assert count_agreement(data) == {"raw": count, "rollout": count}


def test_the_report_says_in_how_many_sentences_they_agree(masked):
    text = report_pronouns(masked)[0].text
    counts = count_agreement(masked)
    assert text.startswith("In the last layer the name with more weight goes with the more probable pronoun in ")
    assert text.endswith(f" {counts['raw']} by raw and {counts['rollout']} by rollout, of 2 sentences.")


def test_a_word_of_several_tokens_has_no_probability(model):
    example = Example(
        "0", "", words=("the", "{mask}", "man"), columns={"candidates": (0, 2), "fillers": ("old man", "sea")}
    )
    found = measure_masked(model, [example], LENSES)["probability"].values[0]
    assert np.isnan(found[0])
    assert np.isfinite(found[1])


def test_a_model_without_a_head_for_masked_words_gives_nothing():
    assert not predicts_masked_words(tiny("bert"))
    assert measure_sentences(tiny("bert"), SENTENCES, LENSES) is None


@pytest.mark.filterwarnings("ignore:1 of 1 texts are longer")
def test_a_mask_that_was_truncated_is_an_error(model):
    words = ("the", "cat", "sat", "on", "the", "mat", "{mask}")
    example = Example("0", "", words=words, columns={"candidates": (0, 1), "fillers": ("old", "sea")})
    with pytest.raises(InputError, match="no mask token within its first tokens. Give a larger max_length"):
        measure_masked(model, [example], LENSES, max_length=5)
