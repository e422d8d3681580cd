"""The study of Sun & Marasović (2021), on a tiny model."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.core.document import Picture, Table
from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.reporting.html_page import table_to_html
from headscope.reporting.latex_table import table_to_latex
from headscope.studies.effective_attention import EffectiveAttention, one_task, reduce, scoring, tables, timing
from headscope.studies.effective_attention.check import check
from headscope.studies.effective_attention.claims import claims
from headscope.studies.effective_attention.document import document
from headscope.studies.effective_attention.example import telling
from headscope.studies.effective_attention.tasks import of_files, of_glue
from tests.models import tiny as tiny_model
from tests.studies.data import WIDTH, found, place, tiny

NAME = "effective_attention"
TABLES = {"table_1", "table_2", "table_2_base", "table_2_longer", "table_3", "verdicts", "scores", "same", "norms",
          "type_weights", "special", "special_longer", "similarity"}  # fmt: skip


@pytest.fixture(scope="module")
def numbers():
    return found(NAME)["numbers"]


def parts(what):
    return {part.name: part for section in document(what).sections for part in section.parts if hasattr(part, "name")}


@cache
def whole():
    return parts(found(NAME))


def test_every_table_and_figure_of_the_paper_is_there():
    made = whole()
    assert {name for name, part in made.items() if isinstance(part, Table)} >= TABLES
    pictures = {name for name, part in made.items() if isinstance(part, Picture)}
    assert pictures == {"by_length", "shares", *(f"figure_{place}" for place in range(1, 8))}
    assert len(claims(found(NAME)["numbers"], found(NAME)["times"])) == 16


def test_every_table_is_printed_in_full():
    tables = [part for part in whole().values() if isinstance(part, Table)]
    for table in tables:
        for text in (table_to_latex(table), table_to_html(table, "Table")):
            assert "nan" not in text.lower()
            assert "<NA>" not in text
    assert any("longtable" in table_to_latex(table) for table in tables)


def test_outputs_are_the_same_with_exact_effective_attention_in_place(numbers):
    one = numbers.isel(task=0)
    assert float(one["output_change"].sel(lens="visible")) < 1e-4
    assert float(one["output_change"].sel(lens="padded")) < 1e-4
    assert float(one["output_change"].sel(lens="paper")) > 1e-4
    assert int(one["changed"].sel(lens="visible")) == 0


def test_inputs_of_no_more_tokens_than_dimensions_keep_their_attention(numbers):
    one = numbers.isel(task=0)
    assert 0 < int(one["n"].sel(length="at most d")) < int(one["n"].sel(length="all"))
    assert float(one["same_inputs"].sel(length="at most d", role="tuned")) == 1
    assert float(one["same_inputs"].sel(length="more than d", role="tuned")) == 0
    short = one.sel(length="at most d", role="tuned", size="signed")
    assert float(abs(short["weight_change"].sel(lens="visible")).max()) == 0
    assert float(abs(short["weight_change"].sel(lens="paper")).max()) > 0.001


def test_classes_of_length_hold_every_input_once(numbers):
    n = numbers["n"].isel(task=0)
    assert int(n.sel(length="all")) == 12 == int(n.sel(length=["at most d", "more than d"]).sum())
    assert int(n.isel(length=slice(3, None)).sum()) == 12
    assert [str(each) for each in n["length"].values[3:]] == ["1–10", "11–20", "21–30", "31–40"]


def test_weights_are_those_of_the_maps(numbers):
    model = hs.load(place() / "base")
    data = hs.read(str(place() / "dev.jsonl"))
    rows = []
    for each in data:
        maps = view(capture(model, each), "effective")
        sep = torch.tensor([token == "[SEP]" for token in maps.keys.text[0]])
        on = torch.stack([maps.layer(label)[0] for label in maps.layers])[..., ~sep, :][..., sep]
        rows.append(float(on.amax(-1).mean(-1).mean()))
    one = numbers["weight"].isel(task=0).sel(role="base", length="all", lens="visible", size="signed", token="sep")
    assert float(one) == pytest.approx(np.mean(rows), abs=1e-5)


def test_shares_of_patterns_are_shares(numbers):
    share = numbers["share"].isel(task=0).sel(length="all")
    np.testing.assert_allclose(share.sum("pattern"), 1, atol=1e-6)
    assert bool((numbers["share_low"] <= numbers["share"] + 1e-9).sel(length="all").all())
    empty = numbers["n"].isel(task=0) == 0
    assert bool(numbers["share"].isel(task=0).sel(length=empty.values).isnull().all())


def test_a_study_that_was_stopped_goes_on(tmp_path, monkeypatch):
    asked = (place() / "base", tmp_path)

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(scoring, "score", stopped)
        with pytest.raises(KeyboardInterrupt):
            tiny(NAME).run(*asked, device="cpu", progress=False)
    done = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.state")}
    assert {path.name for path in done} == {"tuned.state", "base.state", "norms.state"}
    weights = next(tmp_path.rglob("model.safetensors"))
    before = weights.stat().st_mtime_ns
    whole = tiny(NAME).run(*asked, device="cpu", progress=False)
    assert weights.stat().st_mtime_ns == before
    assert not list(tmp_path.rglob("*.state"))  # they are large, and their numbers are kept
    xr.testing.assert_identical(whole["numbers"], found(NAME)["numbers"])
    again = tiny(NAME).run(*asked, device="cpu", progress=False)
    xr.testing.assert_identical(again["times"], whole["times"])
    with pytest.raises(InputError, match="holds a study with max_length=40, but this run has max_length=36"):
        tiny(NAME, max_length=36).run(*asked, device="cpu", progress=False)


def test_the_published_way_to_make_maps_gives_the_same_maps():
    model = tiny_model("bert")
    trace = capture(model, ["the cat sat on the mat and slept while the old man sang"], keep=("values", "pads"))
    for label, made in zip(trace.layers, timing.by_svd(trace), strict=True):
        torch.testing.assert_close(made, view(trace, "effective").layer(label), atol=1e-5, rtol=0)  # float32


def test_of_few_examples_there_is_one_batch():
    data = hs.read(str(place() / "dev.jsonl"))[:3]
    assert timing.times(tiny_model("bert"), data, 16, (8, 64))["batch"].values.tolist() == [3]


def test_the_example_that_is_shown_has_something_to_show():
    data = hs.read(str(place() / "dev.jsonl"))
    tokens = [8 + 3 * each for each in range(12)]
    assert telling(data, tokens, 8) is data[7]  # 29 tokens: about twenty more than a head has dimensions


def test_a_folder_of_glue_is_studied_task_by_task(tmp_path):
    (tmp_path / "QNLI").mkdir()
    lines = [f"{at}\twho {at // 2}?\tann {at // 3}.\t{'not_' * (at % 2)}entailment" for at in range(30)]
    (tmp_path / "QNLI" / "dev.tsv").write_text("index\tquestion\tsentence\tlabel\n" + "\n".join(lines) + "\n")
    (task,), missing = of_glue(str(tmp_path), (), 0)
    assert missing == ["RTE", "MRPC", "SST-2", "STS-B"]
    assert (task.name, task.kind, len(task.train) + len(task.dev)) == ("QNLI", "QA as NLI", 30)
    assert not {each.pair for each in task.train} & {each.pair for each in task.dev}
    assert f"{len(task.train)} to learn from, {len(task.dev)} to study" in task.source
    with pytest.raises(InputError, match="has no folder RTE, as GLUE's download makes it, and no dev.tsv either. It"):
        of_glue(str(tmp_path), ("rte",), 0)
    with pytest.raises(InputError, match="No task of this study is called 'cola'. Known: MRPC, QNLI, RTE, SST-2"):
        of_glue(str(tmp_path), ("cola",), 0)
    with pytest.raises(InputError, match="has none of the tasks RTE, MRPC"):
        of_glue(str(tmp_path / "QNLI" / ".."), (), 0) if not (tmp_path / "QNLI" / "dev.tsv").unlink() else None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"data": "glue", "dev": "my.csv"}, "Both data (a folder of GLUE) and dev (data of one's own) are given"),
        ({"train": "my.csv"}, "train is given, but not dev, which is what is studied. Give both"),
        ({"tasks": ("rte",)}, "The task rte is asked for, but not where it lies. Give data, the folder of GLUE"),
    ],
)
def test_what_cannot_be_studied_is_refused(given, text):
    with pytest.raises(InputError, match=re.escape(text)):
        EffectiveAttention(**given)


def test_a_tuned_model_is_found_for_its_task(tmp_path):
    from headscope.studies.effective_attention import _tuned_folder

    (tmp_path / "sst2").mkdir()
    assert _tuned_folder(str(tmp_path), "SST-2", 5) == tmp_path / "sst2"
    with pytest.raises(InputError, match="and no folder of the task RTE either. Give the folder that hs.finetune made"):
        _tuned_folder(str(tmp_path), "RTE", 1)
    (tmp_path / "sst2" / "config.json").write_text("{}")
    with pytest.raises(InputError, match="is one tuned model, but 5 tasks are studied. Name one task"):
        _tuned_folder(str(tmp_path / "sst2"), "SST-2", 5)


def plans(**changes):
    study = tiny(NAME, **changes)
    tasks, _ = study._tasks()
    return [study._plan(task, len(tasks), False) for task in tasks]


def test_an_example_can_be_named_even_if_a_limit_leaves_it_out(tmp_path):
    base = hs.load(place() / "base")
    wanted = next(each.id for each in plans()[0].task.dev if each not in plans(limit=3)[0].studied)
    (plan,) = plans(limit=3, example=wanted, tuned=None)
    check([plan], base, tmp_path)
    assert plan.shows_wanted
    assert plans(example=3)[0].example == "3"  # a row number
    (another,) = plans(example="dev-33")
    with pytest.raises(InputError, match="No input is called 'dev-33', .* Did you mean 'dev-3'. There are 12, such as"):
        check([another], base, tmp_path / "other")
    with pytest.raises(
        InputError, match="The input 'train-3' is among those that dev is learned from, and only others"
    ):
        check(plans(example="train-3"), base, tmp_path / "other")
    assert not list(tmp_path.iterdir())  # what is refused leaves nothing behind
    other = replace(plan.task, name="other", dev=plan.studied)
    check([replace(plan, task=other), plan], base, tmp_path / "both")  # one task that has it is enough


def test_a_tuned_model_is_held_against_the_base_and_the_labels_before_anything_is_done(tmp_path):
    found(NAME)
    base, tuned = hs.load(place() / "base"), place() / f"{NAME}-0" / "dev" / "model"
    check(plans(tuned=str(tuned)), base, tmp_path / "fits")
    with pytest.raises(InputError, match="which has no head for any task"):
        check(plans(tuned=str(place() / "base")), base, tmp_path / "headless")
    base.network.config.num_hidden_layers += 3
    with pytest.raises(InputError, match=r"has \d layers, but the model it is compared with, .*, has \d. Give as"):
        check(plans(tuned=str(tuned)), base, tmp_path / "shape")
    base.network.config.num_hidden_layers -= 3
    unlabelled = tmp_path / "dev.jsonl"
    unlabelled.write_text('{"text": "the cat sat"}\n{"text": "the dog sat"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="None of the 2 examples of dev has a label. Name the column.*--label"):
        check(plans(dev=str(unlabelled), tuned=str(tuned)), base, tmp_path / "labels")


def test_columns_of_ones_own_data_can_be_named(tmp_path):
    rows = [f'{{"first": "the cat", "second": "sat {at}", "gold": {at % 2}}}' for at in range(12)]
    (tmp_path / "mine.jsonl").write_text("\n".join(rows), encoding="utf-8")
    columns = {"text": "first", "pair": "second", "label": "gold"}
    (plan,) = plans(dev=str(tmp_path / "mine.jsonl"), tuned=str(place() / "base"), **columns)
    assert (plan.task.dev[3].text, plan.task.dev[3].pair, plan.task.dev[3].label) == ("the cat", "sat 3", 1)
    with pytest.raises(InputError, match="label names a column of data of one's own, but there is no dev"):
        EffectiveAttention(label="gold")


def test_steps_of_another_tuned_model_are_not_taken(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"one")
    before = one_task._weights(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"another")
    assert before != one_task._weights(tmp_path)


def test_a_small_run_is_called_reduced_and_a_whole_one_is_not(numbers):
    made = whole()
    assert made["table_2"].reduced == "96 maps of dev, where the paper has 1,000 of each task"
    assert made["special"].reduced is None  # all of dev was studied
    few = numbers.assign(whole_dev=("task", [40]))
    assert parts({**found(NAME), "numbers": few})["special"].reduced == "12 of 40 inputs of dev were studied"


def test_the_papers_own_shares_stand_beside_ours():
    theirs = tables.their_patterns(["RTE", "GAP"])
    assert list(theirs.index) == [("RTE", "standard"), ("RTE", "published")]
    assert theirs.loc[("RTE", "published"), "B"] == 32.6
    assert tables.their_patterns(["GAP"]) is None


def test_the_last_layers_change_most_where_they_do():
    table = np.ones((20, 2, 4, 3)) * np.array([0.99, 0.98, 0.6, 0.5])[None, None, :, None]
    table[:, 1] = table[:, 1, ::-1]
    rows = xr.Dataset(
        {"similarity_rows": (("example", "lens", "layer", "head"), table)},
        coords={"lens": ["standard", "visible"], "layer": range(4), "head": range(3)},
    )
    assert reduce.similarity(rows)["last_layers_change_most"].values.tolist() == [1.0, 0.0]


def test_width_is_that_of_the_study():
    assert int(found(NAME)["times"].attrs["tokens"]) == WIDTH


def test_a_broken_file_of_glue_is_no_missing_one(tmp_path):
    (tmp_path / "QNLI").mkdir()
    (tmp_path / "QNLI" / "dev.tsv").write_text("index\tquestion\n0\tbroken\n", encoding="utf-8")
    with pytest.raises(InputError, match="dev.tsv"):
        of_glue(str(tmp_path), (), 0)


def test_a_model_that_is_tuned_already_leaves_all_examples_to_be_studied():
    task = of_files(None, str(place() / "dev.jsonl"), "mine", 0, learning=False)
    assert (len(task.dev), len(task.train), task.source) == (12, 0, "all 12 examples to study")


@pytest.mark.parametrize(
    ("given", "said"),
    [({"dev": "a.jsonl", "tasks": ("rte",)}, "no task of the paper"), ({"limit": 0}, "limit=0 leaves nothing to do")],
)
def test_what_makes_no_sense_together_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        EffectiveAttention(**given)
