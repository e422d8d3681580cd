"""Examples with one word replaced."""

import numpy as np
import pytest
import torch
import transformers
import xarray as xr

from headscope.core.example import Example
from headscope.engine.load import load
from headscope.experiments.template import fill_template
from headscope.training.score import score
from headscope_studies.attention_flow.replaced_word import (
    choose_kinds,
    choose_shown,
    draw_replaced,
    read_replaced,
    replace_words,
    show_replaced,
)
from headscope_studies.attention_flow.report import TEXTS
from tests.models import KINDS, tokenizer

LENSES = {"raw": "raw", "rollout": "rollout"}


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    config = transformers.BertConfig(**KINDS["bert"], initializer_range=0.5)
    return load(transformers.BertForSequenceClassification(config).eval(), tokenizer=tokenizer())


def examples():
    texts = ["the cat sat on a mat", "dog ran fast over hill", "old man who sang loud songs of sea", "it slept"]
    return [Example(str(at), text, label=at % 2, columns={"attractors": at % 3}) for at, text in enumerate(texts)]


def test_a_known_subject_is_replaced_by_its_other_number():
    columns = {"subject_position": 1, "swapped_subject": "articles"}
    (made,) = replace_words(Example("0", "the article on", label=0, columns=columns), "[UNK]")
    assert (made.after.text, made.note) == ("the articles on", "article → articles")


def test_those_with_attractors_are_shown_first(model):
    scored = score(model, examples(), progress=False)
    kinds = choose_kinds(examples(), scored)
    right = scored["prediction"].values == scored["label"].values
    for kind, wanted in (("right", True), ("wrong", False)):
        expected = [example.id for example, same in zip(examples(), right, strict=True) if same == wanted]
        assert sorted(example.id for example in kinds.get(kind, [])) == sorted(expected)
        counts = [bool(example.columns["attractors"]) for example in kinds.get(kind, [])]
        assert counts == sorted(counts, reverse=True)


def test_the_word_that_lowers_the_probability_most_is_replaced(model):
    (one,) = [each for each in examples() if each.id == "1"]
    shown = show_replaced(model, {"right": [one]}, LENSES, max_length=None).sel(shown="right")
    versions = [each.after for each in replace_words(one, "[UNK]")]
    logits = torch.tensor(score(model, [one, *versions], progress=False)["logits"].values).double()
    chances = logits.softmax(-1)[:, int(logits[0].argmax())].numpy()
    np.testing.assert_allclose(shown["probability"].values, [chances[0], chances[1:].min()], rtol=1e-6)
    assert str(shown["text"].values[1]) == versions[int(chances[1:].argmin())].text
    assert str(shown["tokens"].values[0]).split("\t") == ["[CLS]", "dog", "ran", "fast", "over", "hill", "[SEP]"]
    np.testing.assert_allclose(shown["weights"].sel(lens="raw").isel(layer=0).sum("token"), 1, atol=1e-5)


def test_a_kind_without_examples_is_empty(model):
    shown = show_replaced(model, {"wrong": examples()[:1]}, LENSES, max_length=None)
    assert [str(name) for name in shown["id"].values] == ["", "0", ""]
    assert len(draw_replaced(shown.sel(shown="wrong")).axes) == 5  # two versions of two lenses, and the color bar


def test_of_several_seeds_the_first_with_an_example_is_shown():
    ids = xr.DataArray([[["", "b"], ["a", "c"]], [["", ""], ["", ""]]], dims=("task", "shown", "seed"))
    shown = xr.Dataset({"id": ids}, {"task": ["A", "B"], "shown": ["right", "wrong"], "seed": [3, 4]})
    right = choose_shown(shown.sel(shown="right"))
    assert {task: (str(data["id"].values), int(data["seed"])) for task, data in right.items()} == {"A": ("b", 4)}
    assert int(choose_shown(shown.sel(shown="wrong"))["A"]["seed"]) == 3
    alone = choose_shown(shown.sel(shown="wrong").isel(seed=1, drop=True))
    assert (list(alone), "seed" in alone["A"].coords) == (["A"], False)


@pytest.mark.parametrize(
    ("after", "flips"),
    [("plural", "flips the prediction: plural"), ("singular", "does not flip the prediction: singular")],
)
def test_the_report_says_whether_the_prediction_flips(after, flips):
    variables = {
        "text": ("version", ["the cat", "the cats"]),
        "prediction": ("version", ["singular", after]),
        "probability": ("version", [0.75, 0.25]),
        "id": "7",
        "label": "singular",
        "note": "cat → cats",
    }
    shown = xr.Dataset(variables, {"version": ["before", "after"], "task": "agreement"})
    alone = fill_template(TEXTS["shown"], **read_replaced(shown))
    assert alone == (
        "**agreement**, input 7: “the cat”, labelled singular, is predicted to be singular (probability 0.750). "
        f"Replacing cat → cats {flips} (0.250 for singular)."
    )
    seeded = fill_template(TEXTS["shown"], **read_replaced(shown.assign_coords(seed=0)))
    assert seeded.startswith("**agreement** (seed 0), input 7: ")
