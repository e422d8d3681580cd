"""Where nothing is to be found, no verdict says that something is: identical maps, shuffled labels, other seeds."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from headscope.experiments import summary
from headscope.experiments.pattern_shares import split_counts
from headscope.experiments.seeds import mark_collapsed
from headscope.results.seeds import COLLAPSED
from headscope.training.metrics import make_accuracy
from headscope_studies.effective_attention import scores
from headscope_studies.effective_attention.claims import judge_claims
from headscope_studies.effective_attention.measure import EDITS, LENSES

INPUTS, LAYERS, HEADS = 150, 3, 2
LABELS = {
    "pattern": ["vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous"],
    "type": ["noun", "pronoun", "verb", "punctuation", "cls", "sep"],
    "role": ["cls", "sep"],
    "token": ["cls", "sep"],
    "several": ["max", "mean", "sum"],
    "kind": ["cls", "sep", "word"],
}
OF_MAPS = ("layer", "head")
WEIGHTS = {
    "special_tokens_rows": ("role", "source", "several", *OF_MAPS),
    "token_types_rows": ("type", "several", "head"),
    "sink_rows": ("kind", *OF_MAPS),
    "entropy_rows": OF_MAPS,
}
SUMMARIES = (
    summary.summarise_special,
    summary.summarise_types,
    summary.summarise_sink,
    summary.summarise_dispersion,
)
SAME = ("[CLS] attends to itself alike", "[CLS] is attended to alike", "Heterogeneous patterns do not change")
MOVED = (
    "Vertical",
    "Block",
    "Diagonal",
    "Noun",
    "Pronoun",
    "Verb",
    "Punctuation",
    "[SEP] loses",
    "The sink",
    "Effective",
)


def make_rows(random, *, noise, shift=0.0):
    """One value for each input and map, as `measure_rows` returns them.

    The four attentions are views of one map: each moves its weights at random by `noise`, so that which is called raw
    does not matter; all but raw by `shift` as well.
    """
    sizes = {name: len(labels) for name, labels in LABELS.items()} | {"layer": LAYERS, "head": HEADS, "source": 1}
    moved = 1 + shift * np.array([0.0, 1.0, 1.0, 1.0])
    variables = {}
    for name, dims in WEIGHTS.items():
        shape = tuple(sizes[dim] for dim in dims)
        each = random.gamma(8, 0.03, (INPUTS, 1, *shape))  # skewed, as weights are
        each = each * np.exp(noise * random.normal(size=(INPUTS, 4, *shape)))
        variables[name] = ("example", "lens", *dims), each * moved.reshape(1, 4, *(1,) * len(shape))
        variables[name.replace("_rows", "_absolute_rows")] = variables[name]
    shape = (INPUTS, 4, LAYERS, HEADS)
    one, other = random.integers(0, 5, (INPUTS, 1, LAYERS, HEADS)), random.integers(0, 5, shape)
    drawn = np.where(random.random(shape) < noise, other, one)
    drawn = np.where(random.random(shape) < abs(shift) * np.array([0, 1, 1, 1])[:, None, None], 3, drawn)  # to block
    every = ("example", "lens", *OF_MAPS)
    variables |= {
        "patterns_rows": ((*every, "pattern"), np.eye(5)[drawn]),
        "relative_change_rows": (every, np.full(shape, float(noise or shift))),
        "similarity_rows": (every, 1 - 0.1 * random.random((INPUTS, 1, LAYERS, HEADS)) + np.zeros(shape)),
    }
    return xr.Dataset(variables, {**LABELS, "lens": list(LENSES), "layer": range(LAYERS), "source": ["others"]})


def measure(rows):
    """The numbers of one task that verdicts rest on."""
    counted = summary.summarise("counted", split_counts(rows).sum("part"), baseline="raw")
    pieces = [summarise(rows) for summarise in SUMMARIES]
    whole = xr.merge([counted, counted.rename({name: name.replace("counted", "share") for name in counted}), *pieces])
    return xr.merge([whole.expand_dims(role=["tuned"], length=["all"]), summary.summarise_similarity(rows)])


def judge_rows(rows, *more):
    """The verdicts on one task; with more values of the same inputs, each is a seed."""
    numbers = xr.concat([measure(each) for each in (rows, *more)], "seed") if more else measure(rows)
    facts = {"value_size": 32, "n": INPUTS, "head": range(HEADS)}
    return {claim.text: claim.verdict for claim in judge_claims(numbers.assign(facts).expand_dims(task=["RTE"]))}


def find_shown(judged):
    """The claims of a change that hold, and those of no change that do not."""
    changed = {
        text for text in judged if text.startswith(MOVED) and judged[text] not in ("not reproduced", "undecided")
    }
    return changed | {text for text in judged if text.startswith(SAME) and judged[text] not in ("holds", "undecided")}


def test_identical_maps_decide_every_claim_of_a_change_the_same_way():
    judged = judge_rows(make_rows(np.random.default_rng(0), noise=0.0))
    assert {judged[text] for text in judged if text.startswith(MOVED)} == {"not reproduced"}
    assert {judged[text] for text in judged if text.startswith(SAME)} == {"holds"}
    assert sum(text.startswith((*MOVED, *SAME)) for text in judged) == 14  # all that are on a change


@pytest.mark.parametrize("seed", range(2))
def test_shuffled_labels_of_attentions_show_no_change(seed):
    """Which of four views of a map is raw, and which is effective or the paper's, is drawn for every input."""
    assert find_shown(judge_rows(make_rows(np.random.default_rng(seed), noise=0.3))) == set()


def test_changes_that_are_there_are_shown():
    """So that the tests above can tell."""
    less = find_shown(judge_rows(make_rows(np.random.default_rng(0), noise=0.3, shift=-0.4)))
    assert {"[SEP] loses weight from all other tokens.", "Block patterns rise.", "Vertical patterns fall."} <= less
    more = find_shown(judge_rows(make_rows(np.random.default_rng(0), noise=0.3, shift=0.4)))
    assert {"Nouns gain weight.", "[CLS] is attended to alike from all other tokens."} <= more


def test_seeds_that_move_weights_up_and_down_show_no_gain_and_no_loss():
    """Every seed moves all weights by a number of its own; one alone shows a gain."""
    random = np.random.default_rng(3)
    rows = [make_rows(random, noise=0.1, shift=shift) for shift in (0.4, -0.4, random.normal(0, 0.1))]
    weights = [text for text in MOVED if text not in ("Vertical", "Block", "Diagonal")]  # classes move one way here
    assert any(text.startswith("Noun") for text in find_shown(judge_rows(rows[0])))
    assert not {text for text in find_shown(judge_rows(*rows)) if text.startswith(tuple(weights))}


@pytest.mark.soak
def test_shuffled_labels_show_a_change_in_less_than_one_family_of_twenty():
    shown = [bool(find_shown(judge_rows(make_rows(np.random.default_rng(seed), noise=0.6)))) for seed in range(200)]
    assert np.mean(shown) < 0.05


def score_at_random(random, examples, monkeypatch):
    """Score the edits where each changes one answer in ten, and labels have nothing to do with answers."""
    label, whole = random.integers(0, 2, (2, examples))
    predictions = [whole, *(np.where(random.random(examples) < 0.1, 1 - whole, whole) for _ in range(3))]
    answers = iter([{"label": label, "prediction": each, "logits": np.eye(2)[each]} for each in predictions])
    metrics = SimpleNamespace(
        main="accuracy",
        compute_metrics=lambda each: {"accuracy": make_accuracy(label, each["prediction"].astype(float))},
    )
    job = SimpleNamespace(task=metrics, answer=lambda *_, **__: next(answers))
    monkeypatch.setattr(scores, "prepare_scoring", lambda *_, **__: job)
    return scores.score_edits(None, [], dict.fromkeys(EDITS), progress=False)


def test_with_shuffled_labels_no_attention_in_place_changes_the_score(monkeypatch):
    random, held = np.random.default_rng(0), []
    for _ in range(20):
        scored = score_at_random(random, 277, monkeypatch).isel(lens=slice(1, None))
        assert (scored["changed"] > 10).all()  # so that there is something to find
        held.append(((scored["score_change_low"] <= 0) & (scored["score_change_high"] >= 0)).values)
    assert np.mean(held) > 0.9


def test_a_seed_whose_answers_have_nothing_to_do_with_labels_is_left_out_most_often():
    """On RTE, where one label is hardly more common than the other: four times of five. The other seed learned."""
    random = np.random.default_rng(0)
    label = random.random((400, 1, 277)) < 0.53
    right = label == (random.random((400, 1, 277)) < 0.5)
    score = np.concatenate([right, random.random((400, 1, 277)) < 0.7], 1).mean(-1)
    majority = np.maximum(label.mean(-1), 1 - label.mean(-1)) + np.zeros((400, 2))
    numbers = xr.Dataset({"score": (("task", "seed"), score), "majority": (("task", "seed"), majority)})
    left_out = mark_collapsed(numbers)[COLLAPSED].mean("task")
    assert left_out.values.tolist() == pytest.approx([0.8, 0], abs=0.08)
