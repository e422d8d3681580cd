"""The study of Niven & Kao (2019): known values, claims that do not apply, and data of one's own."""

import pytest

from headscope.core.errors import DataWarning, InputError
from headscope_studies.argument_cues import ArgumentCues
from headscope_studies.argument_cues.claims import CLAIMS, find_claims, judge_models
from headscope_studies.argument_cues.data import read_arct
from headscope_studies.argument_cues.listed import list_cues
from headscope_studies.argument_cues.paper import NOT, NOT_OR, PATTERNS
from tests.models import text
from tests.study_data import found, place, tiny

KNOWN = {"train": (0.726, 0.374), "dev": (0.692, 0.380), "test": (0.494, 0.383)}
NEAREST = {"train": (0.71, 0.64), "dev": (0.70, 0.61), "test": (0.51, 0.56), "all": (0.67, 0.62)}


@pytest.mark.filterwarnings("ignore::headscope.core.errors.DataWarning")
def test_the_known_values_of_not_come_out():
    listed = list_cues(read_arct(), PATTERNS)
    assert str(listed["cue"].values[0]) == "not"
    for split, (productivity, coverage) in KNOWN.items():
        both = listed.sel(cue="not", split=split)
        assert float(both["productivity"]) == pytest.approx(productivity, abs=0.005)
        assert float(both["coverage"]) == pytest.approx(coverage, abs=0.005)
        same = listed.sel(pattern=NOT, printed=split, variant="exclusive")
        assert float(same["pattern_productivity"]) == pytest.approx(float(both["productivity"]))
    for split, (productivity, coverage) in NEAREST.items():
        either = listed.sel(pattern=NOT_OR, printed=split, variant="exclusive")
        assert float(either["pattern_productivity"]) == pytest.approx(productivity, abs=0.015)
        assert float(either["pattern_coverage"]) == pytest.approx(coverage, abs=0.015)


def test_claims_without_numbers_do_not_apply():
    judged = judge_models({"": found("argument_cues")["numbers"]})[""]
    assert len(judged) == len(CLAIMS) == len(find_claims(found("argument_cues")["numbers"]))
    verdicts = {claim.text: claim.verdict for claim in judged}
    assert verdicts["Trained where no single word tells the answer, it is at chance there."] == "does not apply"


def test_every_network_answers_every_part():
    results = found("argument_cues")
    answers, numbers = results["answers"], results["numbers"].isel(task=0)
    assert answers["part"].values.tolist() == ["choice", "reason + choice", "claim + choice", "all"]
    assert answers["network"].values.tolist() == ["model", "bag of vectors", "BiLSTM"]
    assert (answers["prediction"] >= 0).all()
    assert (str(numbers["judged"].item()), str(numbers["cue_text"].item())) == ("dev", "dog")
    assert not list((place() / "argument_cues-0" / "models").rglob("*.safetensors"))  # answered, so they are deleted


def test_your_own_classes_are_audited_in_one_run(tmp_path):
    rows = [f"{text(3, seed=at)}\t{('dog', 'cat')[at % 2]} {text(2, seed=at)}\t{at % 2}" for at in range(60)]
    (tmp_path / "my.tsv").write_text("\n".join(["a\tb\ty", *rows]), encoding="utf-8")
    study = ArgumentCues(
        data=str(tmp_path / "my.tsv"), text=("a", "b"), label="y", cue="dog", epochs=1, baseline_epochs=1, max_length=20
    )
    with pytest.warns(DataWarning, match="6 examples of 18 are left, and the largest gain of a cue is 0.250, no less"):
        results = study.run(place() / "base", tmp_path / "out", device="cpu")
    numbers = results["numbers"].isel(task=0)
    assert numbers["part"].values.tolist() == ["b", "a", "all"]
    assert (int(numbers["cue_label"]), str(numbers["judged"].item())) == (0, "held out")
    assert float(numbers["cue_productivity"].sel(set="held out")) > 0.7  # some other texts have a dog, too
    assert numbers["set"].values.tolist() == ["held out"]  # six balanced points are too few to judge by
    assert "no balanced set: 6 points of 18 would be left, fewer than 20" in str(numbers["source"].item())
    titles = [section.title for section in study.document(results).sections]
    assert "Cues of the data" in titles


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"label": "y"}, "label='y' is about your own data, but there is no data=FILE"),
        ({"data": "my.tsv", "text": ("a",), "negations": "n.csv"}, "negations are of claims of ARCT, but the data are"),
        ({"seeds": 0}, "seeds=0 is too small. Give at least 1."),
    ],
)
def test_options_that_do_not_fit_are_an_error(options, problem):
    with pytest.raises(InputError, match=problem):
        ArgumentCues(**options)


def test_data_of_one_text_cannot_be_divided(tmp_path):
    (tmp_path / "my.tsv").write_text("a\ty\n" + "the dog\t0\nthe dog\t1\n" * 5, encoding="utf-8")
    with pytest.raises(InputError, match="All 10 examples have the same text, so that they cannot be divided"):
        ArgumentCues(data=str(tmp_path / "my.tsv"), text=("a",), label="y").read_data()


def test_defaults_are_short_only_for_bundled_data():
    assert (ArgumentCues().setting("train_limit"), tiny("argument_cues").setting("train_limit")) == (240, None)
