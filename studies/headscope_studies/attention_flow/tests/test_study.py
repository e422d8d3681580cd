"""The study of Abnar & Zuidema (2020), on a tiny model."""

from functools import cache

import numpy as np
import pytest
import xarray as xr
from scipy.stats import spearmanr

import headscope as hs
from headscope.core.document import Paragraph, Picture, Table
from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.provenance import read_provenance
from headscope.engine.capture import capture
from headscope.engine.importances import importances
from headscope.reporting.html_page import table_to_html
from headscope.reporting.latex_table import table_to_latex
from headscope.reporting.markdown import table_to_markdown
from headscope_studies.attention_flow import claims, measure, paper
from headscope_studies.attention_flow.prediction_rows import RowComparison, correlate
from headscope_studies.attention_flow.report import CODE, document, report_pronouns
from tests.study_data import found, place, tiny

NAME = "attention_flow"
TABLES = {
    "verdicts",
    "tasks",
    "accuracy",
    "accuracy_by_attractors",
    "table_1",
    "table_2",
    "table_1_correct",
    "table_2_correct",
    "correlation_blank_out",
    "correlation_gradient",
    "scores",
    "spread",
    "diagonal",
    "lift",
    "at_bound",
    "same_for_sources",
    "thresholds",
    "verdict_numbers",
}


@pytest.fixture(scope="module")
def numbers():
    return found(NAME)["numbers"]


@cache
def whole():
    made = document(found(NAME))
    return {part.name: part for section in made.sections for part in section.parts if not isinstance(part, Paragraph)}


@cache
def tuned():
    return hs.load(next(place().glob(f"{NAME}-0/tasks/*/model")))


def data():
    return hs.read(str(place() / "agreement_dev.jsonl"))


@cache
def literal(lens: str, method: str):
    """Spearman's correlation of the row of [CLS] with importances, one example after another: example × layer."""
    rows = []
    for example in data():
        trace = capture(tuned(), [example], keep=("attention", "values", "output"), target="label")
        scores = importances(tuned(), [example], method, target="label").scores[0]
        words = [at for at, token in enumerate(trace.keys.text[0]) if token not in ("[CLS]", "[SEP]")]
        maps = view(trace, lens)
        layers = [maps.layer(label)[0].detach().double().mean(0)[0].numpy() for label in maps.layers]
        rows.append([spearmanr(np.round(layer / layer.max(), 9)[words], scores[words]).statistic for layer in layers])
    return np.array(rows)


@pytest.mark.parametrize("lens", ["raw", "rollout", "flow", "norm flow"])
@pytest.mark.parametrize("score", ["blank-out", "gradient"])
def test_correlations_are_those_of_scipy_example_by_example(numbers, lens, score):
    expected = literal(measure.LENSES[lens], measure.SCORES[score])
    one = numbers.isel(task=0).sel(subset="all", lens=lens, importance=score)
    # batches round differently: one pair of ranks of one example may be exchanged
    np.testing.assert_allclose(one["correlation"], np.nanmean(expected, 0), atol=0.02)
    np.testing.assert_allclose(one["correlation_std"], np.nanstd(expected, 0), atol=0.02)


def test_the_first_layer_of_rollout_and_flow_is_the_same(numbers):
    first = numbers.isel(task=0, layer=0).sel(subset="all")["correlation"]
    np.testing.assert_allclose(first.sel(lens="rollout"), first.sel(lens="flow"), atol=1e-9)


def test_contrasts_are_differences_of_the_tables(numbers):
    one = numbers.isel(task=0).sel(subset="all")
    last = one["correlation"].isel(layer=-1).sel(importance="blank-out")
    gain = one["difference"].sel(contrast="correlation, flow − raw, blank-out")
    assert float(gain) == pytest.approx(float(last.sel(lens="flow") - last.sel(lens="raw")))
    spread = one["spread"].isel(layer=-1)
    focus = one["difference"].sel(contrast="uniformity, rollout − flow")
    assert float(focus) == pytest.approx(float(spread.sel(lens="rollout") - spread.sel(lens="flow")))


def test_accuracy_by_attractors_is_counted(numbers):
    scored = hs.score(tuned(), data(), progress=False)
    right = scored["prediction"].values == scored["label"].values
    attractors = np.array([example.columns["attractors"] for example in data()])
    one = numbers.isel(task=0)
    for count in (0, 1, 2):
        assert int(one["group_count"].sel(attractors=count)) == (attractors == count).sum()
        assert float(one["group_accuracy"].sel(attractors=count)) == pytest.approx(right[attractors == count].mean())
    assert int(one["count"].sel(subset="correct")) == right.sum()


def test_the_subject_gets_the_weight_of_its_token(numbers):
    lift = []
    for example in data():
        if example.columns["attractors"] == 2:
            attention = capture(tuned(), [example], keep=("attention",)).attention[-1][0].double().mean(0)[0]
            lift.append(float(attention[2]) * len(attention))  # behind [CLS] and "the"
    one = numbers.isel(task=0, layer=-1).sel(attractors=2, lens="raw", word="subject")
    assert float(one["lift"]) == pytest.approx(np.mean(lift), rel=1e-4)  # float32 attention
    assert bool(numbers["lift"].sel(attractors=0, word="attractor").isnull().all())


def test_every_table_and_figure_of_the_paper_is_there():
    made = whole()
    assert {name for name, part in made.items() if isinstance(part, Table)} == TABLES
    pictures = {name for name, part in made.items() if isinstance(part, Picture)}
    assert pictures >= {
        "scaled_thresholds",
        "figure_1",
        "correlation_by_layer",
        "inner",
        "focus",
        "words",
        "saturation",
    }
    assert pictures & {"figure_2", "figure_3"}  # one that is predicted correctly, or one that is not
    assert made["table_1"].theirs.loc["flow", "L3"] == "0.70 ± 0.25"


def test_every_table_is_printed_in_full():
    for table in (part for part in whole().values() if isinstance(part, Table)):
        for text in (table_to_latex(table), table_to_html(table, "Table"), table_to_markdown(table)):
            assert "nan" not in text.lower()


def test_a_shown_example_says_both_predictions():
    texts = [
        part.text
        for section in document(found(NAME)).sections
        for part in section.parts
        if isinstance(part, Paragraph) and "Replacing" in part.text
    ]
    shown = found(NAME)["shown"].isel(task=0)
    kinds = [kind for kind in ("right", "wrong") if str(shown["id"].sel(shown=kind).values)]
    assert len(texts) == len(kinds) >= 1
    for text, kind in zip(texts, kinds, strict=True):
        one = shown.sel(shown=kind)
        assert str(one["note"].values) in {"dog → cat", "cat → dog"}
        assert f"“{one['text'].values[0]}”" in text
        same = str(one["prediction"].values[0]) == str(one["label"].values)
        assert same == (kind == "right")


def test_a_stopped_study_is_resumed(tmp_path, monkeypatch):
    asked = (place() / "base", tmp_path)

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(RowComparison, "measure", stopped)
        with pytest.raises(KeyboardInterrupt):
            tiny(NAME).run(*asked, device="cpu")
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.name in ("importances.npz", "model")}
    assert {path.name for path in kept} == {"importances.npz", "model"}
    resumed = tiny(NAME).run(*asked, device="cpu")
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    xr.testing.assert_identical(resumed["numbers"], found(NAME)["numbers"])


def test_several_seeds_are_a_dimension_on_the_same_inputs(tmp_path):
    results = tiny(NAME, seeds=2, limit=6).run(place() / "base", tmp_path, device="cpu")
    numbers, shown = results["numbers"], results["shown"]
    assert all(data["task"].values.tolist() == ["agreement_dev"] for data in (numbers, shown))
    assert all(data["seed"].values.tolist() == [0, 1] for data in (numbers, shown))
    assert numbers["correlation"].dims[:2] == ("task", "seed")
    assert len(set(numbers["tuned_hash"].values.ravel())) == 2
    assert len(set(numbers["data_hash"].values.ravel())) == 1
    facts = read_provenance(numbers)
    assert facts["seed"] == [0, 1]
    assert facts["n"] == 6
    assert facts["tuned"] == {"agreement_dev": " ".join(map(str, numbers["tuned_hash"].values[0]))}
    alone = tiny(NAME, limit=6).run(place() / "base", tmp_path / "alone", device="cpu")["numbers"]
    xr.testing.assert_equal(numbers["correlation"].sel(seed=0, drop=True), alone["correlation"])
    text = " ".join(part.text for part in document(results).sections[0].parts if isinstance(part, Paragraph))
    assert "Every number is the mean of 2 seeds of training" in text
    assert "verdicts_by_task" not in {
        part.name for section in document(results).sections for part in section.parts if isinstance(part, Table)
    }  # seeds are no tasks


def differences(task: str = "agreement", **values: float):
    """Numbers in which every contrast is 0 but for some, with an interval of ± 0.01."""
    table = np.zeros((1, 1, len(claims.CONTRASTS)))
    for name, value in values.items():
        table[0, 0, list(claims.CONTRASTS).index(name)] = value
    dims = ("task", "subset", "contrast")
    ends = {"": 0.0, "_low": -0.01, "_high": 0.01}
    variables = {f"difference{kind}{end}": (dims, table + add) for kind in ("", "_change") for end, add in ends.items()}
    coords = {"task": [task], "subset": ["all"], "contrast": list(claims.CONTRASTS)}
    return xr.Dataset({**variables, "count": (("task", "subset"), [[100]])}, coords)


def verdicts(numbers):
    return {claim.text: claim.verdict for claim in claims.judge_claims(numbers)}


def test_a_gain_of_half_the_papers_holds_and_a_smaller_one_does_not():
    text = "Flow correlates better with blank-out than raw attention does, in the last layer."
    name = "correlation, flow − raw, blank-out"
    assert verdicts(differences(**{name: 0.041}))[text] == "holds"
    assert verdicts(differences(**{name: 0.02}))[text] == "not reproduced"
    assert verdicts(differences(**{name: 0.029}))[text] == "undecided"  # of 25 verdicts; it would not hold alone
    assert verdicts(differences(**{name: 0.035}))[text] == "undecided"


def test_identical_attentions_give_no_verdict_that_says_otherwise():
    """Where every contrast is 0, no claim of a change holds; where it is small, nothing is uniform or fades."""
    judged = verdicts(differences()) | verdicts(differences(paper.SST))
    holding = {text for text, verdict in judged.items() if verdict == "holds"}
    assert holding == {text for text in judged if "hardly correlates" in text or "diagonal fades" in text}


@pytest.mark.parametrize("seed", range(3))
def test_seeds_that_gain_and_lose_at_random_give_no_verdict_that_one_attention_is_better(seed):
    """Contrasts of each of three trained models are far from 0, up or down: one model alone shows many of them."""
    random = np.random.default_rng(seed)
    names = [name for name in claims.CONTRASTS if name.startswith("correlation") and "−" in name]
    models = [differences(**dict(zip(names, random.choice([-0.3, 0.3], len(names)), strict=True))) for _ in range(9)]
    assert "holds" in {verdict for text, verdict in verdicts(models[0]).items() if "better" in text}
    together = verdicts(xr.concat(models, "seed"))
    assert "holds" not in {verdict for text, verdict in together.items() if "better" in text}


def test_shuffled_importances_give_no_verdict_that_one_attention_is_better():
    """Attention as it may be, and importances that have nothing to do with it: nothing is gained, falls or grows."""
    random, held = np.random.default_rng(0), set()
    dims, layers = ("example", "importance", "lens", "layer"), list(range(1, 7))
    coords = {"importance": list(claims.SCORES), "lens": list(paper.SHOWN), "layer": layers}
    for _ in range(10):
        weights = random.dirichlet(np.full(12, 0.3), size=(150, 3, 6))
        weights[:, 2, 3:] = weights[:, 2, 3:4]  # a flow that is saturated
        scores = random.permuted(weights[:, 0, :2], axis=-1)  # of the first layers of raw attention, shuffled
        table = [[correlate(rows, score) for score in both] for rows, both in zip(weights, scores, strict=True)]
        rows = xr.Dataset({"correlation": (dims, np.array(table))}, {"example": list(range(150)), **coords})
        empty = rows["correlation"].isel(importance=0, drop=True) * np.nan
        lift = empty.expand_dims(word=["subject", "attractor"])
        rows = rows.assign(spread=empty, diagonal=empty, lift=lift, attractors=("example", np.zeros(150)))
        numbers = measure.summarise_contrasts(rows).expand_dims(task=["agreement"], subset=["all"])
        numbers = numbers.assign(count=(("task", "subset"), [[150.0]]))
        judged = verdicts(numbers)
        assert len(judged) == 10  # all on correlations
        held |= {text for text, verdict in judged.items() if verdict == "holds"}
    assert held == set()


def test_claims_on_sst_are_judged_there_only():
    text = "On SST-2, flow attention in the last layer hardly correlates with input gradients."
    assert verdicts(differences("SST-2"))[text] == "holds"
    assert text not in verdicts(differences("agreement"))
    assert "Flow correlates better with blank-out the deeper it goes." not in verdicts(differences("SST-2"))
    assert verdicts(differences(paper.SCRIPT))[text] == "holds"


def test_thresholds_are_half_of_the_papers_smallest_differences():
    assert (claims.GAIN, claims.SST_GAIN) == (0.04, 0.02)  # .54 - .46, and .13 - .09
    assert claims.OVER == 0.033  # (.44 + .70 + .70 + .71 + .70 - .38 - .51 - .62 - .70 - .71) / 5
    assert claims.DROP == 0.185  # .53 - (.16 - .06 + .00 + .24 + .46) / 5
    assert claims.GROWTH == 0.16  # .54 - .22
    assert claims.LOW == 0.2
    assert (claims.UNIFORM, claims.FOCUS, claims.FADE, claims.LIFT) == (0.8, 0.05, 0.5, 0.1)
    assert all(claim.threshold.reason and claim.threshold.date == "2026-11-16" for claim in claims.CLAIMS)


def test_bounds_of_claims_are_those_that_were_committed():
    bounds = {
        claim.text: (claim.bounds[0] - claim.threshold.value, claim.bounds[1] + claim.threshold.value)
        for claim in claims.CLAIMS
        if claim.direction == "within"
    }
    assert bounds["Raw attention from [CLS] is almost uniform above the third layer."] == (0.8, 1.2)  # 1 is the most
    assert bounds["The diagonal fades with depth under flow."] == (-0.5, 0.5)  # 0 is the least
    assert bounds["On SST-2, raw attention in the last layer hardly correlates with input gradients."] == (-0.2, 0.2)
    assert len(bounds) == 6


def test_all_models_of_a_page_are_corrected_together():
    judged = claims.judge_models({"a": differences(), "b": differences("SST-2")})
    assert {claim.tests for found in judged.values() for claim in found} == {
        sum(len(claim.tasks) for found in judged.values() for claim in found)  # those that apply
    }
    assert len(claims.CLAIMS) == 25


def test_without_a_masked_language_model_the_report_says_so(tmp_path):
    (said,) = report_pronouns(None)
    assert "The studied model has no such head" in said.text
    with pytest.raises(InputError, match="predicts no masked words. Give a masked language model, or leave it out"):
        tiny(NAME, mlm=str(place() / "base")).run(place() / "base", tmp_path, device="cpu")


def test_the_papers_tables_are_printed_as_there():
    frame = paper.print_table(paper.SST_GRADIENT, paper.SST_LAYERS)
    assert frame.loc["rollout"].tolist() == ["0.11 ± 0.19", "0.12 ± 0.21", "0.13 ± 0.21", "0.13 ± 0.20"]
    assert list(frame.columns) == ["L1", "L3", "L5", "L6"]


def test_the_papers_tables_are_no_running_means():
    layers = [0.32, 0.56, 1.22]  # the last is no correlation
    assert [np.mean(layers[:count]) for count in (1, 2, 3)] == pytest.approx(paper.BLANK_OUT["flow"][0][:3])
    assert f"would need a correlation of {layers[2]:.1f})" in CODE
