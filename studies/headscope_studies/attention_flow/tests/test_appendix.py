"""Special tokens, single heads, and the sentences of the paper."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from headscope.core.example import Example
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.importances import importances
from headscope_studies.attention_flow.appendix import HEADS, SPECIAL, compare_heads, compare_lenses, show_sentences
from headscope_studies.attention_flow.paper import SENTENCES
from headscope_studies.attention_flow.published import read_inputs
from headscope_studies.attention_flow.runs.attention_flow import pack_readings, unpack_readings
from tests.heads import headed
from tests.models import text

EXAMPLES = [Example(str(at), text(length, at), label=at % 2) for at, length in enumerate((6, 9))]


@pytest.fixture(scope="module")
def model():
    return headed("bert", "classification", double=True)


def test_correlations_of_heads_are_those_of_their_own_rows(model):
    found = compare_heads(model, EXAMPLES, SPECIAL["blank-out"])["correlation"]
    for lens, spec in HEADS.items():
        rows = []
        for example in EXAMPLES:
            scores = importances(model, [example], SPECIAL["blank-out"], target="label").scores[0]
            maps = view(capture(model, [example], keep=("attention", "values", "output"), target="label"), spec)
            last = maps.layer(-1)[0, :, 0].double().numpy()
            rows.append([spearmanr(np.round(row / row.max(), 9)[1:-1], scores[1:-1]).statistic for row in last])
        np.testing.assert_allclose(found.sel(lens=lens).isel(layer=-1), np.mean(rows, 0), atol=1e-9)


def test_special_tokens_count_where_the_label_says_so(model):
    found = compare_lenses(model, EXAMPLES, {"raw": "raw"}, SPECIAL)["correlation"].isel(lens=0, layer=-1)
    rows = []
    for example in EXAMPLES:
        scores = importances(model, [example], "input_gradient", target="label").scores[0]
        attention = capture(model, [example], keep=("attention",)).attention[-1][0].mean(0)[0].numpy()
        rows.append(spearmanr(attention, scores).statistic)
    assert float(found.sel(importance="gradient, special tokens too")) == pytest.approx(np.mean(rows), abs=1e-9)
    assert float(found.sel(importance="gradient")) != pytest.approx(np.mean(rows), abs=1e-3)


@pytest.mark.filterwarnings("ignore::headscope.core.errors.DataWarning")  # the tiny tokenizer knows few words
def test_the_sentences_of_the_paper_are_shown_in_both_versions(model):
    shown = show_sentences(model)
    assert shown.sizes["shown"] == len(SENTENCES)
    notes = [f"{text.split()[position]} → {other}" for text, position, other, _ in SENTENCES]
    assert shown["note"].values.tolist() == notes
    rows = shown["weights"].sel(lens="rollout").sum("token")
    np.testing.assert_allclose(rows, 1, atol=1e-6)  # padding left out


def test_readings_come_back_from_flat_arrays(model):
    readings = read_inputs(model, EXAMPLES, max_length=None)
    for before, after in zip(readings, unpack_readings(pack_readings(readings)), strict=True):
        np.testing.assert_allclose(after.attention, before.attention, atol=1e-7)  # float32
        assert after.prediction == before.prediction
        assert {name: scores.tolist() for name, scores in after.gradients.items()} == {
            name: scores.tolist() for name, scores in before.gradients.items()
        }
        np.testing.assert_array_equal(after.special, before.special)
