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
from headscope.experiments.one_head import choose_example
from headscope.experiments.summary import summarise_similarity
from headscope.experiments.tasks import read_files, read_glue
from headscope.experiments.tuned import check_example, check_runs, find_example, find_tuned_folder, hash_model_files
from headscope.reporting.html_page import table_to_html
from headscope.reporting.latex_table import table_to_latex
from headscope.reporting.markdown import table_to_markdown
from headscope_studies.effective_attention import EffectiveAttention, measure, paper, scores
from headscope_studies.effective_attention.claims import judge_claims
from headscope_studies.effective_attention.published import effective_by_svd
from headscope_studies.effective_attention.report import document
from tests.models import tiny as tiny_model
from tests.study_data import WIDTH, found, place, tiny

NAME = "effective_attention"
TABLES = {
    "table_1",
    "table_2",
    "table_2_base",
    "table_2_longer",
    "table_3",
    "verdicts",
    "scores",
    "same",
    "norms",
    "type_weights",
    "special",
    "special_longer",
    "similarity",
}


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
    assert pictures == {
        "verdict_grid",
        "by_length",
        "shares",
        "scaled_thresholds",
        "sink_by_layer",
        *(f"figure_{place}" for place in range(1, 8)),
    }
    assert len(judge_claims(found(NAME)["numbers"], found(NAME)["times"])) == 20


def test_every_table_is_printed_in_full():
    tables = [part for part in whole().values() if isinstance(part, Table)]
    for table in tables:
        for text in (table_to_latex(table), table_to_html(table, "Table"), table_to_markdown(table)):
            assert "nan" not in text.lower()
            assert "<NA>" not in text
    assert any("longtable" in table_to_latex(table) for table in tables)


def test_outputs_are_the_same_with_exact_effective_attention_in_place(numbers):
    one = numbers.isel(task=0)
    assert float(one["output_change"].sel(lens="effective")) < 1e-4
    assert float(one["output_change"].sel(lens="padded")) < 1e-4
    assert float(one["output_change"].sel(lens="paper")) > 1e-4
    assert int(one["changed"].sel(lens="effective")) == 0


def test_inputs_of_no_more_tokens_than_dimensions_keep_their_attention(numbers):
    one = numbers.isel(task=0)
    assert 0 < int(one["n"].sel(length="at most d")) < int(one["n"].sel(length="all"))
    assert float(one["same_inputs"].sel(length="at most d", role="tuned")) == 1
    assert float(one["same_inputs"].sel(length="more than d", role="tuned")) == 0
    short = one.sel(length="at most d", role="tuned", size="signed", several="max")
    assert float(abs(short["weight_change"].sel(lens="effective")).max()) == 0
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
    where = {"role": "base", "length": "all", "lens": "effective", "size": "signed", "several": "max", "token": "sep"}
    one = numbers["weight"].isel(task=0).sel(where)
    assert float(one) == pytest.approx(np.mean(rows), abs=1e-5)


def test_shares_of_patterns_are_shares(numbers):
    share = numbers["share"].isel(task=0).sel(length="all")
    np.testing.assert_allclose(share.sum("pattern"), 1, atol=1e-6)
    assert bool((numbers["share_low"] <= numbers["share"] + 1e-9).sel(length="all").all())
    empty = numbers["n"].isel(task=0) == 0
    assert bool(numbers["share"].isel(task=0).sel(length=empty.values).isnull().all())


def test_a_stopped_study_is_resumed(tmp_path, monkeypatch):
    asked = (place() / "base", tmp_path)

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(scores, "prepare_scoring", stopped)
        with pytest.raises(KeyboardInterrupt):
            tiny(NAME).run(*asked, device="cpu")
    done = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.state")}
    assert {path.name for path in done} == {"tuned.state", "tuned_types.state", "norms.state"}
    assert next(tmp_path.rglob("base.npz"))  # a step of its own, which runs of other seeds can share
    weights = next(tmp_path.rglob("model.safetensors"))
    before = weights.stat().st_mtime_ns
    whole = tiny(NAME).run(*asked, device="cpu")
    assert weights.stat().st_mtime_ns == before
    assert not list(tmp_path.rglob("*.state"))  # they are large, and their numbers are kept
    xr.testing.assert_identical(whole["numbers"], found(NAME)["numbers"])
    again = tiny(NAME).run(*asked, device="cpu")
    xr.testing.assert_identical(again["times"], whole["times"])
    with pytest.raises(InputError, match="cannot be resumed: its max_length is 40, but this run's is 36"):
        tiny(NAME, max_length=36).run(*asked, device="cpu")


def test_the_papers_method_gives_the_same_maps_without_padding():
    model = tiny_model("bert")
    trace = capture(model, ["the cat sat on the mat and slept while the old man sang"], keep=("values", "pads"))
    for label, made in zip(trace.layers, effective_by_svd(trace), strict=True):
        torch.testing.assert_close(made, view(trace, "effective").layer(label), atol=1e-5, rtol=0)  # float32


def test_few_examples_are_timed_as_one_batch():
    data = hs.read(str(place() / "dev.jsonl"))[:3]
    assert measure.time_model(tiny_model("bert"), data, 16)["batch"].values.tolist() == [3]


def test_the_example_to_show_is_longer_than_the_value_dimensions():
    data = hs.read(str(place() / "dev.jsonl"))
    tokens = [8 + 3 * each for each in range(12)]
    assert choose_example(data, tokens, 8) is data[7]  # 29 tokens: about twenty more than a head has dimensions


def test_a_folder_of_glue_is_studied_task_by_task(tmp_path):
    (tmp_path / "QNLI").mkdir()
    lines = [f"{at}\twho {at // 2}?\tann {at // 3}.\t{'not_' * (at % 2)}entailment" for at in range(30)]
    (tmp_path / "QNLI" / "dev.tsv").write_text("index\tquestion\tsentence\tlabel\n" + "\n".join(lines) + "\n")
    (task,), missing = read_glue(str(tmp_path), (), paper.KINDS)
    assert missing == ["RTE", "MRPC", "SST-2", "STS-B"]
    assert (task.name, task.kind, len(task.train) + len(task.dev)) == ("QNLI", "QA as NLI", 30)
    assert not {each.pair for each in task.train} & {each.pair for each in task.dev}
    assert f"{len(task.train)} to learn from, {len(task.dev)} to study" in task.source
    with pytest.raises(InputError, match="has no folder RTE, as in GLUE's download, and no dev.tsv. It"):
        read_glue(str(tmp_path), ("rte",), paper.KINDS)
    with pytest.raises(InputError, match="No task of this study is called 'cola'. Known: MRPC, QNLI, RTE, SST-2"):
        read_glue(str(tmp_path), ("cola",), paper.KINDS)
    with pytest.raises(InputError, match="has none of the tasks RTE, MRPC"):
        read_glue(str(tmp_path / "QNLI" / ".."), (), paper.KINDS) if not (
            tmp_path / "QNLI" / "dev.tsv"
        ).unlink() else None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"data": "glue", "dev": "my.csv"}, "Both data=FOLDER (of GLUE) and dev=FILE (your own data) are given"),
        ({"train": "my.csv"}, "train=FILE is given, but not dev=FILE, which is what is studied. Give both"),
        ({"tasks": ("rte",)}, "The task rte is asked for, but not where it is. Give data=FOLDER, the folder of GLUE"),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(given, text):
    with pytest.raises(InputError, match=re.escape(text)):
        EffectiveAttention(**given)


def test_a_tuned_model_is_found_for_its_task(tmp_path):
    (tmp_path / "sst2").mkdir()
    assert find_tuned_folder(str(tmp_path), "SST-2", 5) == tmp_path / "sst2"
    with pytest.raises(InputError, match="and no folder of the task RTE either. Give the folder that hs.finetune made"):
        find_tuned_folder(str(tmp_path), "RTE", 1)
    (tmp_path / "sst2" / "config.json").write_text("{}")
    with pytest.raises(InputError, match="is one tuned model, but 5 tasks are studied. Name one task"):
        find_tuned_folder(str(tmp_path / "sst2"), "SST-2", 5)


def runs(out, *, base=None, **changes):
    study = tiny(NAME, **changes)
    tasks, _ = study.read_tasks()
    return [study.plan_task(task, base or hs.load(place() / "base"), out, len(tasks)) for task in tasks]


def check(runs, example=None):
    check_example(runs, example)
    check_runs(runs, {"classifier": "cnn"})


def test_an_example_can_be_named_even_if_a_limit_leaves_it_out(tmp_path):
    (whole,), (run,) = runs(tmp_path), runs(tmp_path, limit=3)
    wanted = next(example.id for example in whole.task.dev if example not in run.examples)
    check([run], wanted)
    assert find_example(run, wanted).id == wanted
    assert tiny(NAME, example=3).example_id == "3"  # a row number
    with pytest.raises(InputError, match="No input is called 'dev-33', .* Did you mean 'dev-3'. There are 12, such as"):
        check([run], "dev-33")
    with pytest.raises(InputError, match="The input 'train-3' is one that dev is fine-tuned on, and only others"):
        check([run], "train-3")
    assert not list(tmp_path.iterdir())  # a refused study writes nothing
    other = replace(run, task=replace(run.task, name="other", dev=run.examples))
    check([other, run], wanted)  # one task that has it is enough


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"warmup": 2.0}, "warmup=2.0"),
        ({"learning_rate": 3.0}, "learning_rate=3.0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"max_length": 10_000}, "max_length=10000"),
        ({"classifier": "no-such-folder"}, "no-such-folder"),
    ],
)
def test_every_parameter_is_checked_before_anything_is_run(changes, text, tmp_path):
    with pytest.raises(InputError, match=re.escape(text)):
        tiny(NAME, **changes).run(place() / "base", tmp_path, device="cpu")
    assert not list(tmp_path.iterdir())


def test_a_tuned_model_is_checked_against_the_base_and_the_labels_before_anything_is_run(tmp_path):
    found(NAME)
    base, tuned = hs.load(place() / "base"), place() / f"{NAME}-0" / "tasks" / "dev" / "model"
    check(runs(tmp_path / "fits", base=base, tuned=str(tuned)))
    with pytest.raises(InputError, match="which has no head for any task"):
        check(runs(tmp_path / "headless", base=base, tuned=str(place() / "base")))
    base.network.config.num_hidden_layers += 3
    with pytest.raises(
        InputError, match=r"has num_hidden_layers=\d, but the model it is .*, has num_hidden_layers=\d. Give"
    ):
        check(runs(tmp_path / "shape", base=base, tuned=str(tuned)))
    base.network.config.num_hidden_layers -= 3
    unlabelled = tmp_path / "dev.jsonl"
    unlabelled.write_text('{"text": "the cat sat"}\n{"text": "the dog sat"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="None of the 2 examples of dev has a label. Name the column.*--label"):
        check(runs(tmp_path / "labels", base=base, dev=str(unlabelled), tuned=str(tuned)))


def test_columns_of_own_data_can_be_named(tmp_path):
    rows = [f'{{"first": "the cat", "second": "sat {at}", "gold": {at % 2}}}' for at in range(12)]
    (tmp_path / "mine.jsonl").write_text("\n".join(rows), encoding="utf-8")
    columns = {"text": "first", "pair": "second", "label": "gold"}
    (run,) = runs(tmp_path, dev=str(tmp_path / "mine.jsonl"), tuned=str(place() / "base"), **columns)
    assert (run.task.dev[3].text, run.task.dev[3].pair, run.task.dev[3].label) == ("the cat", "sat 3", 1)
    with pytest.raises(InputError, match="label='gold' names a column of your own data, but there is no dev=FILE"):
        EffectiveAttention(label="gold")


@pytest.mark.parametrize(
    ("file", "part"),
    [("model.safetensors", "weights"), ("config.json", "config"), ("tokenizer.json", "tokenizer")],
)
def test_another_file_of_a_tuned_model_has_another_hash_by_name(file, part, tmp_path):
    for name in ("model.safetensors", "config.json", "tokenizer.json", "finetune.json"):
        (tmp_path / name).write_text("one")
    before = hash_model_files(tmp_path)
    (tmp_path / file).write_text("another")
    (tmp_path / "finetune.json").write_text("another")  # a record of the tuning, which decides no number
    after = hash_model_files(tmp_path)
    assert [name for name in before if before[name] != after[name]] == [f"tuned {part}"]


def test_a_small_run_is_called_reduced_and_a_whole_one_is_not(numbers):
    made = whole()
    assert made["table_2"].reduced == "96 maps of dev, where the paper has 1,000 of each task"
    assert made["special"].reduced is None  # all of dev was studied
    few = numbers.assign(whole_dev=("task", [40]))
    assert parts({**found(NAME), "numbers": few})["special"].reduced == "12 of 40 inputs of dev were studied"


def test_the_papers_own_shares_stand_beside_ours():
    theirs = paper.table_2(["RTE", "GAP"])
    assert list(theirs.index) == [("RTE", "raw"), ("RTE", "paper")]
    assert theirs.loc[("RTE", "paper"), "B"] == 32.6
    assert paper.table_2(["GAP"]) is None


def test_the_last_layers_change_most_where_they_do():
    table = np.ones((20, 2, 4, 3)) * np.array([0.99, 0.98, 0.6, 0.5])[None, None, :, None]
    table[:, 1] = table[:, 1, ::-1]
    rows = xr.Dataset(
        {"similarity_rows": (("example", "lens", "layer", "head"), table)},
        coords={"lens": ["raw", "effective"], "layer": range(4), "head": range(3)},
    )
    margin = summarise_similarity(rows)
    np.testing.assert_allclose(margin["layer_margin"], [0.98 - 0.6, 0.5 - 0.99])
    np.testing.assert_allclose(margin["layer_margin_low"], margin["layer_margin_high"])  # every example is the same


def test_timed_inputs_have_the_length_of_the_study():
    assert int(found(NAME)["times"].attrs["tokens"]) == WIDTH


def test_a_broken_glue_file_is_not_a_missing_one(tmp_path):
    (tmp_path / "QNLI").mkdir()
    (tmp_path / "QNLI" / "dev.tsv").write_text("index\tquestion\n0\tbroken\n", encoding="utf-8")
    with pytest.raises(InputError, match="dev.tsv"):
        read_glue(str(tmp_path), (), paper.KINDS)


def test_all_examples_are_studied_if_the_model_is_tuned_already():
    task = read_files(str(place() / "dev.jsonl"), tuned=True)
    assert (len(task.dev), len(task.train), task.source) == (12, 0, "all 12 examples to study")


@pytest.mark.parametrize(
    ("given", "said"),
    [({"dev": "a.jsonl", "tasks": ("rte",)}, "no task of the paper"), ({"limit": 0}, "limit=0 is too small")],
)
def test_parameters_without_meaning_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        EffectiveAttention(**given)
