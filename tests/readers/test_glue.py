"""The nine tasks of GLUE, on small samples and on real data where available."""

import pytest

from headscope.core.errors import InputError, UnknownName
from headscope.data.reading.read import read
from tests.readers.shared import DATA, real

PARSES = "\t(ROOT x)" * 4
SAMPLES = {  # task: folder, file, lines; text, pair, label, its name
    "cola": (
        "CoLA",
        "dev.tsv",
        ["gj04\t1\t\tThe sailors rode the breeze.", "gj04\t0\t*\tThe was."],
        ("The was.", None, 0, "unacceptable"),
    ),
    "sst-2": ("SST-2", "dev.tsv", ["sentence\tlabel", "so good \t1", '"bad\t0'], ('"bad', None, 0, "negative")),
    "mrpc": (
        "MRPC",
        "dev.tsv",
        ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t7\t8\tOne .\tUn ."],
        ("One .", "Un .", 1, "equivalent"),
    ),
    "sts-b": (
        "STS-B",
        "dev.tsv",
        ["index\tgenre\tsentence1\tsentence2\tscore", "0\tnews\tA.\tB.\t3.250"],
        ("A.", "B.", 3.25, None),
    ),
    "qqp": (
        "QQP",
        "dev.tsv",
        ["id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "201\t1\t2\tWhy?\tHow?\t0"],
        ("Why?", "How?", 0, "not_duplicate"),
    ),
    "mnli": (
        "MNLI",
        "dev_matched.tsv",
        [
            "index\tpromptID\tpairID\tgenre\ts1bp\ts2bp\ts1p\ts2p\tsentence1\tsentence2\tlabel1\tgold_label",
            f"0\t1\t1n\tslate{PARSES}\tA b.\tC d.\tneutral\tcontradiction",
        ],
        ("A b.", "C d.", 2, "contradiction"),
    ),
    "qnli": (
        "QNLI",
        "dev.tsv",
        ["index\tquestion\tsentence\tlabel", "0\tWho?\tHe.\tentailment"],
        ("Who?", "He.", 0, "entailment"),
    ),
    "rte": (
        "RTE",
        "dev.tsv",
        ["index\tsentence1\tsentence2\tlabel", "0\tA.\tB.\tnot_entailment"],
        ("A.", "B.", 1, "not_entailment"),
    ),
    "wnli": ("WNLI", "dev.tsv", ["index\tsentence1\tsentence2\tlabel", "0\tA.\tB.\t1"], ("A.", "B.", 1, "entailment")),
}


def write(tmp_path, task, folder=None):
    name, file, lines, _ = SAMPLES[task]
    path = tmp_path / (folder or name)
    path.mkdir(exist_ok=True)
    (path / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("task", SAMPLES)
def test_each_task_has_texts_labels_and_class_names(tmp_path, task):
    own = write(tmp_path, task)
    example = read(f"glue:{task}:dev@{tmp_path}")[-1]
    text, pair, label, name = SAMPLES[task][-1]
    assert (example.text, example.pair, example.label, example.columns.get("label_name")) == (text, pair, label, name)
    assert read(f"glue:{task}@{own}")[-1] == example == read(f"glue:{task}@{own / SAMPLES[task][1]}")[-1]


def test_case_and_hyphens_of_tasks_and_folders_do_not_matter(tmp_path):
    write(tmp_path, "sst-2", "sst2")
    assert read(f"glue:SST_2:validation@{tmp_path}") == read(f"glue:sst2:dev@{tmp_path}")


def test_ids_are_those_of_the_file_if_it_has_them(tmp_path):
    write(tmp_path, "qqp")
    write(tmp_path, "mrpc")
    assert read(f"glue:qqp@{tmp_path}")[0].id == "201"
    assert read(f"glue:mrpc@{tmp_path}")[0].id == "0"


def test_other_columns_are_kept(tmp_path):
    write(tmp_path, "sts-b")
    write(tmp_path, "cola")
    assert dict(read(f"glue:sts-b@{tmp_path}")[0].columns) == {"genre": "news"}
    assert read(f"glue:cola@{tmp_path}")[1].columns["star"] == "*"


def test_mnli_has_matched_and_mismatched_sets(tmp_path):
    folder = write(tmp_path, "mnli")
    (folder / "dev_mismatched.tsv").write_text("index\tsentence1\tsentence2\tgold_label\n5\tE.\tF.\tneutral\n")
    assert read(f"glue:mnli:dev-mismatched@{tmp_path}")[0].label == 1
    with pytest.raises(InputError, match=r"no file '.*test_matched\.tsv'. Did you mean '.*dev_matched\.tsv'\?"):
        read(f"glue:mnli:test@{tmp_path}")


def test_test_sets_have_no_labels(tmp_path):
    (tmp_path / "test.tsv").write_text("index\tsentence\n0\tOne.\n1\tTwo.\n")
    for task in ("cola", "sst-2"):
        assert [(example.text, example.label) for example in read(f"glue:{task}:test@{tmp_path}")] == [
            ("One.", None),
            ("Two.", None),
        ]


@pytest.mark.parametrize(
    ("task", "line", "problem"),
    [
        (
            "rte",
            "1\tA.\tB.\tperhaps",
            r"the label \(column 'label'\) is 'perhaps', but entailment or not_entailment is",
        ),
        ("sts-b", "1\tnews\tA.\tB.\t5.1", r"the label \(column 'score'\) is '5.1', but a number from 0 to 5 is exp"),
        ("sts-b", "1\tnews\tA.\tB.\tnan", r"the label \(column 'score'\) is 'nan', but a number from 0 to 5 is exp"),
        ("qqp", "1\t1\t2\tWhy?\t\t0", r"the second text \(column 'question2'\) is empty"),
        ("qqp", "1\t1\t2\tWhy?", "it has 4 fields, but there are 6 columns"),
        ("cola", "gj04\t1\t", "it has 3 fields, but there are 4 columns"),
    ],
)
def test_the_error_for_a_malformed_row_has_file_line_and_problem(tmp_path, task, line, problem):
    folder, name, lines, _ = SAMPLES[task]
    path = write(tmp_path, task) / name
    path.write_text("\n".join([*lines, line]), encoding="utf-8")
    with pytest.raises(InputError, match=rf"{folder}/{name}, line {len(lines) + 1}: {problem}"):
        read(f"glue:{task}@{tmp_path}")


def test_a_file_of_another_task_is_refused(tmp_path):
    folder = write(tmp_path, "sst-2")
    with pytest.raises(InputError, match="has no column 'sentence1'. It has: sentence and label. Is it the right"):
        read(f"glue:rte@{folder}/dev.tsv")


def test_an_unknown_or_missing_task_is_refused(tmp_path):
    with pytest.raises(UnknownName, match="No GLUE task is called 'rtee'. Did you mean 'rte'"):
        read(f"glue:rtee:dev@{tmp_path}")
    with pytest.raises(InputError, match="Which task of GLUE"):
        read(f"glue@{tmp_path}")


@real
@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("rte:train", 2490),
        ("rte:dev", 277),
        ("mrpc:train", 3668),
        ("mrpc:dev", 408),
        ("sst-2:dev", 872),
        ("sts-b:train", 5749),
        ("sts-b:dev", 1500),
        ("qnli:dev", 5463),
    ],
)
def test_real_tasks_are_read_completely(source, count):
    examples = read(f"glue:{source}@{DATA / 'glue'}")
    assert len(examples) == count == len({example.id for example in examples})
    assert all(isinstance(example.label, float if "sts" in source else int) for example in examples)
