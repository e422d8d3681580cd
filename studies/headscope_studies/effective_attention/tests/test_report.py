"""Sentences of the report follow from the numbers."""

from pathlib import Path

import xarray as xr

from headscope.core.document import Picture
from headscope.core.provenance import stamp
from headscope.experiments.rendering.report import describe_learned, describe_unlearned
from headscope.experiments.study import TaskStudy
from headscope.experiments.tasks import read_bundled
from headscope.plotting import theme
from headscope_studies.effective_attention import report
from headscope_studies.effective_attention.claims import judge_claims
from headscope_studies.effective_attention.norms import compare_norms
from headscope_studies.effective_attention.tests.test_claims import numbers
from tests.plotting.test_facets import check_filled
from tests.study_data import found


def by_length(**classes):
    """One task whose classes of lengths change by so much exactly, and by -0.2 with the paper's code."""
    parts = [numbers(exact=exact).assign_coords(length=[name]) for name, exact in classes.items()]
    many = xr.DataArray([[80] * len(parts)], dims=("task", "length"))
    return xr.concat(parts, "length", data_vars="minimal").assign(n=many)


def fill_lengths(measured):
    return report.fill_text("lengths", lengths=report.find_lengths(measured))


def fill_patterns(measured):
    return report.fill_text("patterns", patterns=report.find_patterns(judge_claims(measured)))


def fill_differences(measured, seeds=1):
    return report.fill_text("differences", **report.find_differences(measured, seeds))


def fill_sizes(measured):
    return report.fill_text("sizes", **report.find_sizes(measured))


def test_lengths_at_which_weight_is_lost_are_listed():
    made = by_length(**{"all": -0.2, "1–32": 0.0, "33–64": -0.1, "65–96": -0.2})
    where = "loses weight exactly on RTE with 33–64 and 65–96 tokens; only with padding on RTE with 1–32 tokens."
    subjects = ("The sink", "[SEP]", "[CLS]", "Punctuation")
    assert fill_lengths(made) == " ".join(f"{subject} {where}" for subject in subjects)


def test_lengths_without_inputs_are_left_out_and_those_with_one_input_are_inconclusive():
    made = by_length(**{"all": -0.2, "1–32": -0.2}).assign(n=(("task", "length"), [[10, 0]]))
    assert fill_lengths(made).startswith("The sink loses no weight anywhere.")
    parts = [numbers(exact=-0.1, reach=0.3).assign_coords(length=[each]) for each in ("all", "1–32")]
    unsure = xr.concat(parts, "length", data_vars="minimal")
    text = fill_lengths(unsure.assign(n=(("task", "length"), [[10, 1]])))
    assert text.startswith("The sink may or may not lose weight on RTE with 1–32 tokens.")


def test_claims_on_patterns_are_listed_with_the_tasks_on_which_they_hold():
    whole = xr.concat([numbers(task="RTE", exact=-0.2), numbers(task="STS-B", exact=0.0)], "task")
    text = fill_patterns(whole)
    assert text.startswith("Measured exactly, “Vertical patterns fall” holds on RTE; ")
    assert "“Block patterns rise” holds nowhere; " in text
    assert text.endswith("“Heterogeneous patterns do not change notably” holds on STS-B.")
    assert "is shown nowhere (undecided on RTE)" in fill_patterns(numbers(exact=-0.1, reach=0.3))


def test_the_comparison_with_norms_gives_its_numbers():
    one = found("effective_attention")["numbers"]
    text = report.fill_text("beside norms", **compare_norms(one))
    for name in ("agreement", "agreement_rank"):
        first, second = (float(one[name].isel(task=0).sel(beside_norm=lens)) for lens in ("raw", "effective"))
        assert f"{first:.2f} → {second:.2f} on dev" in text
    portion = 100 * one["type_portion"].isel(task=0).sel(type="cls")
    first, second = (float(portion.sel(beside_norm=lens)) for lens in ("raw", "norm"))
    assert text.endswith(f"in per cent from raw to norms, {first:.0f} → {second:.0f} on dev.")


def test_differences_from_the_paper_are_listed():
    one = stamp(found("effective_attention")["numbers"], model="somewhere/tiny")
    text = fill_differences(one)
    assert text.startswith("dev is no task of the paper. The paper studies BERT-base, whose heads have 64 value")
    assert "this is tiny with 8, so that attention begins to differ at other lengths" in text
    assert "It was tuned once, with one seed (1 epoch, batch 8, learning rate 2e-05); the paper says" in text
    assert "It was tuned with 3 seeds for each task (1 epoch, batch 8" in fill_differences(one, 3)
    assert "It was fine-tuned already; the paper says" in fill_differences(one.assign(tuning=("task", [""])))
    assert "other lengths" not in fill_differences(one.assign(value_size=("task", [64])))
    assert "no task of the paper" not in fill_differences(one.assign_coords(task=["RTE"]))


def test_a_task_that_was_not_learned_is_named():
    ends = {"score": 0.56, "score_low": 0.5, "score_high": 0.62, "majority": 0.53}
    made = xr.Dataset({name: ("task", [each, 0.9]) for name, each in ends.items()}, {"task": ["RTE", "SST-2"]})
    made["majority"] = ("task", [0.53, 0.51])
    made = made.expand_dims(lens=["raw"])
    assert describe_unlearned(made) == (
        "The tuned model is not shown to have learned RTE (0.560, 95 % 0.500 to 0.620; most common label 0.530): "
        "results on tuning there may describe a model that learned little."
    )
    assert describe_learned(made) == (
        "The tuned model has learned SST-2 (0.900, 95 % 0.900 to 0.900; most common label 0.510)."
    )
    made["majority"] = made["majority"] * float("nan")  # numbers that are predicted have no most common one
    assert describe_unlearned(made) == describe_learned(made) == ""


def test_short_and_long_inputs_are_told_apart():
    numbers = found("effective_attention")["numbers"]
    size, n = int(numbers["value_size"][0]), numbers["n"].isel(task=0)
    short, longer = (int(n.sel(length=name)) for name in ("at most d", "more than d"))
    text = fill_sizes(numbers)
    assert f"With at most {size} tokens, as many as a head has value dimensions, effective attention is" in text
    assert f"attention ({short} inputs of dev)" in text
    share = numbers["effective_share"].sel(role="tuned", lens="effective", length="more than d").item()
    assert text.endswith(f"on average, {share:.2f} on the {longer} longer inputs of dev.")
    none = numbers.assign(n=numbers["n"].where(numbers["length"] != "more than d", 0))
    assert fill_sizes(none).startswith(f"All inputs have at most {size} tokens")
    sections = report.document(found("effective_attention")).sections
    parts = {getattr(part, "name", ""): part for section in sections for part in section.parts}
    same = parts["same_by_length"].frame["inputs with all heads the same (%)"]
    assert same.loc[("dev", "at most d")] == 100
    assert same.loc[("dev", "more than d")] < 100


def test_the_bundled_task_has_short_and_long_inputs_and_two_even_classes(minilm):
    task = read_bundled()
    lengths = [len(ids) for ids in minilm.tokenizer([example.text for example in task.dev])["input_ids"]]
    short = sum(length <= 32 for length in lengths) / len(lengths)  # d of the small default
    assert 0.3 < short < 0.5
    for part in (task.train, task.dev):
        assert 0.45 < sum(example.label for example in part) / len(part) < 0.55
    assert not {example.columns["URL"] for example in task.train} & {example.columns["URL"] for example in task.dev}


def test_the_page_on_studies_has_the_sizes_of_the_bundled_run():
    page = (Path(__file__).parents[1] / "pages" / "guide.md").read_text(encoding="utf-8")
    short = TaskStudy.short
    assert f"{short['train_limit']} training examples, {short['limit']} to study" in " ".join(page.split())


def test_the_figures_of_the_report_are_as_wide_as_a_page_and_nothing_is_cut():
    sections = report.document(found("effective_attention")).sections
    pictures = [part for section in sections for part in section.parts if isinstance(part, Picture)]
    grid, *others = pictures
    assert grid.name == "verdict_grid"  # as wide as its claims and tasks
    for picture in others:
        check_filled(picture.figure, theme.PAGE[0])
    numbers = [picture.number for picture in others]
    assert numbers[:7] == [1, 2, 3, 4, 5, 6, 7]
    assert set(numbers[7:]) == {None}
