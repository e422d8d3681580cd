"""The study of Michel et al. (2019) on a tiny model: numbers that follow from others, and what is left out."""

import numpy as np
import pytest
import xarray as xr

from headscope.ablation.head_importance import head_importance
from headscope.core.document import Paragraph
from headscope.core.errors import InputError
from headscope.experiments.claims import judge
from headscope.experiments.rendering.report import describe_unlearned
from headscope.training.score import score
from headscope_studies.sixteen_heads import claims
from headscope_studies.sixteen_heads.head_effects import compare_orders
from headscope_studies.sixteen_heads.report import judge_results
from headscope_studies.sixteen_heads.translation import measure_sites
from tests.heads import headed_network
from tests.models import WORDS, text, tokenizer
from tests.study_data import found, place, tiny


def test_shares_follow_from_the_effects_of_every_head():
    numbers = found("sixteen_heads")["numbers"].isel(task=0)
    change, score = numbers["change"].values, float(numbers["score"])
    assert float(numbers["small_share"]) == np.mean(np.abs(change) < claims.SMALL * score)
    assert float(numbers["significant_share"]) == numbers["significant"].values.mean()
    enough = claims.enough(numbers, score, 0.05)
    assert 0 <= float(numbers["enough_share"]) <= 1
    assert enough.dims == ("layer",)


def test_nothing_is_lost_before_anything_is_pruned():
    numbers = found("sixteen_heads")["numbers"].isel(task=0)
    assert (numbers["kept"].sel(pruned=0) == 1).all()
    assert numbers["pruned"].values.tolist()[:3] == [0, 10, 20]
    kept = 1 + numbers["pruned_change"] / float(numbers["score"])
    np.testing.assert_allclose(numbers["kept"], kept)


def test_importance_is_followed_to_the_end_of_training():
    numbers = found("sixteen_heads")["numbers"].isel(task=0)
    last = numbers["head_importance_during"].sel(trained=100)
    np.testing.assert_allclose(last, numbers["head_importance"].sel(reduction="example"), rtol=1e-4)
    assert float(numbers["determined"].sel(trained=100)) > 0.99
    assert not list((place() / "sixteen_heads-0").rglob("step-*"))  # measured, so they are deleted


def test_claims_without_data_do_not_apply():
    judged = {claim.text: claim.verdict for claim in judge_results(found("sixteen_heads"))["tasks"]}
    assert len(judged) == len(claims.CLAIMS)
    assert judged["Heads have the same effects on another dataset of the task."] == "does not apply"


def test_the_shell_says_what_was_not_learned():
    text = describe_unlearned(found("sixteen_heads")["numbers"])
    assert text.startswith("The tuned model is not shown to have learned dev (0.500")


def test_nothing_is_judged_where_the_model_learned_nothing():
    numbers = found("sixteen_heads")["numbers"]
    for low, learned in ((0.4, False), (0.6, True)):
        changed = numbers.assign(score_low=0 * numbers["score_low"] + low, majority=0 * numbers["majority"] + 0.5)
        reasons = {task.figures for claim in judge_results({"numbers": changed})["tasks"] for task in claim.tasks}
        assert (reasons == {"the model is not shown to have learned the task"}) is not learned


def curves(random, importance):
    """Pruning curves with changes of the score at half of the heads, by importance and in random orders."""
    ends = dict(zip(("pruned_change", "pruned_change_low", "pruned_change_high"), importance, strict=True))
    variables = {name: (("order", "pruned"), [[value]]) for name, value in ends.items()}
    return xr.Dataset({**variables, "half_change": ("half", random)}, {"order": ["importance"], "pruned": [50]})


def test_an_importance_that_says_nothing_gains_nothing():
    """The null: the order by importance is one more random order. 2.5 % of intervals may be above 0."""
    random = np.random.default_rng(0)
    drawn = random.normal(-0.2, 0.05, (2000, 11))
    lows = np.array([compare_orders(curves(orders[1:], (orders[0],) * 3))[1] for orders in drawn])
    assert 0.015 < (lows > 0).mean() < 0.035
    assert compare_orders(curves(drawn[0, 1:], (0.2, 0.19, 0.21)))[1] > 0


def test_the_last_layer_is_judged_by_what_its_best_head_leaves():
    labels = {"task": ["all", "cross"], "layer": [0, 1], "head": [0, 1]}
    change = {
        "": [[np.nan] * 2, [0.0, -12.0]],
        "_low": [[np.nan] * 2, [-1.0, -15.0]],
        "_high": [[np.nan] * 2, [1.0, -9.0]],
    }
    variables = {f"best_change{end}": (("task", "layer"), values) for end, values in change.items()}
    shares = {name: ("task", [np.nan, share]) for name, share in (("small_share", 0.75), ("enough_share", 0.5))}
    shares |= {f"{name}{end}": values for name, values in shares.items() for end in ("_low", "_high")}
    alone = {name: ("task", [np.nan, 20.0]) for name in ("alone_score", "score")} | {"n": ("task", [400, 400])}
    sites = claims.complete_sites(xr.Dataset({**variables, **shares, **alone}, labels))
    np.testing.assert_allclose(
        [sites[f"last{end}"].sel(task="cross") for end in ("", "_low", "_high")], [0.4, 0.25, 0.55]
    )
    assert float(sites["small_share"].sel(task="all")) == 0.75  # of the only site
    assert [task.verdict for task in judge(claims.TRANSLATION_CLAIMS[0], sites).tasks] == ["does not apply", "holds"]


def test_one_head_in_every_layer_is_the_most_important_one():
    numbers = found("sixteen_heads")["numbers"].isel(task=0)
    best = numbers["head_importance"].sel(reduction="example").argmax("head").values
    heads = numbers.sizes["head"]
    others = [f"L{layer}H{head}" for layer, kept in enumerate(best) for head in range(heads) if head != kept]
    model, dev = f"{place()}/sixteen_heads-0/tasks/dev/model", str(place() / "dev.jsonl")
    whole, left = (
        float(score(model, dev, edit=edit, progress=False)["accuracy"])
        for edit in (None, f"zero_heads:heads={'+'.join(others)}")
    )
    assert float(numbers["single"]) == pytest.approx(left / whole)


def test_importance_is_estimated_on_what_the_model_learned_from():
    numbers = found("sixteen_heads")["numbers"].isel(task=0)
    assert int(numbers["learned"]) == 16
    model = f"{place()}/sixteen_heads-0/tasks/dev/model"
    importance = head_importance(model, str(place() / "train.jsonl"), progress=False)["head_importance"]
    np.testing.assert_allclose(numbers["head_importance"].sel(reduction="example"), importance, rtol=1e-4)


def test_without_a_model_that_translates_that_half_is_left_out_with_a_sentence():
    document = tiny("sixteen_heads").document(found("sixteen_heads"))
    (section,) = [section for section in document.sections if section.title == "Translation"]
    assert isinstance(section.parts[0], Paragraph)
    assert "--translation FOLDER --parallel FILE" in section.parts[0].text
    with pytest.raises(InputError, match="translation=FOLDER and parallel=FILE belong together"):
        tiny("sixteen_heads", translation="folder")
    with pytest.raises(InputError, match="parallel_train=FILE is given, but not parallel=FILE"):
        tiny("sixteen_heads", parallel_train="file")
    with pytest.raises(InputError, match="checkpoints=0 is too small"):
        tiny("sixteen_heads", checkpoints=0)


@pytest.mark.parametrize(
    ("kept", "verdict"),
    [((0.97, 0.96, 0.99), "holds"), ((0.8, 0.7, 0.9), "not reproduced"), ((0.95, 0.9, 0.99), "undecided")],
)
def test_forty_percent_of_heads_go_or_do_not(kept, verdict):
    ends = zip(("", "_low", "_high"), kept, strict=True)
    variables = {f"kept{end}": (("task", "order", "pruned"), [[[value]]]) for end, value in ends}
    labels = {"task": ["RTE"], "order": ["importance"], "pruned": [40]}
    numbers = xr.Dataset({**variables, "n": ("task", [400])}, labels)
    claim = next(claim for claim in claims.CLAIMS if claim.quantity == "kept")
    assert judge(claim, numbers).verdict == verdict


def test_every_site_of_a_model_that_translates_is_studied(tmp_path):
    two_heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    network = headed_network("bart", "seq2seq", max_position_embeddings=6, **two_heads)  # the longest translation
    network.final_logits_bias[0, tokenizer().convert_tokens_to_ids(WORDS[0])] = 1e3  # it says nothing else: BLEU > 0
    network.save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    pairs = [{"text": text(3, seed=row), "pair": " ".join([WORDS[0]] * 4)} for row in range(6)]
    sites = measure_sites(str(tmp_path / "model"), pairs, tmp_path / "out", limit=None, seed=0, orders=1, device="cpu")
    assert sites["task"].values.tolist() == ["all", "encoder", "decoder", "cross"]
    assert sites["change"].sel(task="all").isnull().all()
    assert sites["change"].sel(task="cross").notnull().all()
    assert (sites["kept"].sel(pruned=0, order="importance") == 1).all()
    results = {**found("sixteen_heads"), "translation": sites}
    judged = judge_results(results)["translation"]
    cross = next(claim for claim in judged if claim.text.endswith("translation collapses."))
    assert [task.verdict for task in cross.tasks if task.task != "cross"] == ["does not apply"] * 3
    document = tiny("sixteen_heads").document(results)
    names = [part.name for section in document.sections for part in section.parts if not isinstance(part, Paragraph)]
    assert {"translation_verdicts", "translation_pruning", "translation_effects"} <= set(names)
