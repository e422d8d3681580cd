"""Labels are numbered as the model numbers its classes: by name, or as the user says."""

import json

import numpy as np
import pytest
import torch
import transformers

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.provenance import read_provenance
from headscope.data.labels import match_labels, parse_labels
from headscope.training.find_task import find_task
from tests.models import network, tokenizer

QUIET = {"progress": False}
TEXTS = ["cat sat", "dog ran", "cat ran", "dog sat", "cat dog"]


def classifier(*names):
    """A tiny model with these names of its classes, which predicts the first for about half of the texts."""
    torch.manual_seed(0)
    config = network("bert", id2label=dict(enumerate(names)), label2id={name: n for n, name in enumerate(names)}).config
    built = transformers.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        built.classifier.weight.mul_(50)
        logits = built(**tokenizer()(TEXTS, padding=True, return_tensors="pt")).logits
        built.classifier.bias.sub_(logits.median(0).values)
    return hs.load(built, tokenizer=tokenizer())


def answers(model):
    return hs.score(model, [{"text": text, "label": 0} for text in TEXTS], **QUIET)["prediction"].values


def named(predictions, names):
    """Examples whose label is the name of the class that the model predicts."""
    return [{"text": text, "label": names[number]} for text, number in zip(TEXTS, predictions, strict=True)]


@pytest.fixture(scope="module")
def predictions():
    found = answers(classifier("LABEL_0", "LABEL_1"))
    assert set(found) == {0, 1}, "the tiny model predicts both classes"
    return found


@pytest.mark.parametrize("classes", [("LABEL_0", "LABEL_1"), ("0", "1")])
def test_names_that_no_class_has_are_refused_with_the_option_that_helps(classes):
    data = [{"text": "cat sat", "label": "worst"}, {"text": "dog ran", "label": "best"}]
    with pytest.raises(InputError) as error:
        hs.score(classifier(*classes), data, **QUIET)
    assert str(error.value) == (
        "The labels of the data are names, 'worst' and 'best', but the classes are called 0 and 1, so that it is not "
        "known which is which. Give the number of each one's class: hs.read(…, labels={'worst': …, 'best': …}), in the "
        "shell --labels worst=…,best=…"
    )


@pytest.mark.parametrize("labels", [{"worst": 0, "best": 1}, ["worst", "best"], "worst=0,best=1", "worst,best"])
def test_the_mapping_of_the_user_holds_and_is_stamped(labels, predictions):
    data = hs.read(named(predictions, ("worst", "best")), labels=labels)
    for classes in [("LABEL_0", "LABEL_1"), ("NEGATIVE", "POSITIVE")]:
        result = hs.score(classifier(*classes), data, **QUIET)
        assert float(result["accuracy"]) == 1
        assert read_provenance(result)["labels"] == {"worst": 0, "best": 1}
        assert [str(name) for name in result["label_name"].values] == [
            example.columns["label_name"] for example in data
        ]


@pytest.mark.parametrize("names", [("NEGATIVE", "POSITIVE"), ("negative", "Positive"), ("POSITIVE", "NEGATIVE")])
def test_names_are_those_of_the_classes_in_whatever_case_and_order(names, predictions):
    model, data = classifier(*map(str.upper, names)), named(predictions, names)
    for kept in (names, names[:1], names[1:]):  # also where the data have one class only
        result = hs.score(model, [row for row in data if row["label"] in kept], **QUIET)
        assert float(result["accuracy"]) == 1


def test_all_verbs_that_read_labels_number_them_alike(predictions):
    model, names = classifier("POSITIVE", "NEGATIVE"), ("positive", "negative")
    data, numbers = named(predictions, names), named(predictions, (0, 1))
    for verb in (
        lambda rows: hs.ablate(model, rows, sets="layers", **QUIET)["ablated"],
        lambda rows: hs.head_importance(model, rows, **QUIET)["head_importance"],
        lambda rows: hs.pruning_curve(model, rows, steps=50, **QUIET)["score"],
        lambda rows: hs.importances(model, rows, "input_gradient", target="label").score,
        lambda rows: hs.capture(model, rows, target="label").gradient[0],
        lambda rows: hs.measure(model, rows, statistics="entropy", lens="gradient", target="label", **QUIET)["entropy"],
    ):
        np.testing.assert_array_equal(np.asarray(verb(data)), np.asarray(verb(numbers)))


def test_targets_refuse_names_without_a_class_too(predictions):
    data = named(predictions, ("worst", "best"))
    for verb in (hs.importances, hs.capture):
        with pytest.raises(InputError, match="so that it is not known which is which. Give the number of each one's"):
            verb(classifier("LABEL_0", "LABEL_1"), data, target="label")
        assert verb(classifier("LABEL_0", "LABEL_1"), hs.read(data, labels=["worst", "best"]), target="label")


def examples(*names, order="alphabetical"):
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    marks = {} if order is None else {"label_order": order}
    return [
        Example(str(row), "a", label=numbers[name], columns={"label_name": name, **marks})
        for row, name in enumerate(names)
    ]


def test_the_order_of_a_format_holds_where_classes_have_no_names():
    assert [example.label for example in match_labels(examples("b", "a", order=None), ["0", "1"], "x")] == [1, 0]
    with pytest.raises(InputError, match="The labels of x are names, 'b' and 'a', but the classes are called E and F"):
        match_labels(examples("b", "a", order=None), ["E", "F"], "x")


def test_names_of_which_some_have_no_class_are_refused():
    with pytest.raises(InputError, match="The labels of x are names, 'mixed', but the classes are called neg and pos"):
        match_labels(examples("neg", "mixed"), ["neg", "pos"], "x")


def test_two_names_of_one_class_are_refused():
    with pytest.raises(InputError, match="The labels 'Neg' and 'neg' of x both fit the class 'neg'"):
        match_labels(examples("Neg", "neg"), ["neg", "pos"], "x")
    with pytest.raises(InputError, match="The labels of x are names, 'neG'"):
        match_labels(examples("neG"), ["neg", "NEG"], "x")


def test_numbers_are_refused_where_classes_are_called_by_other_numbers():
    with pytest.raises(InputError, match="of x is 1, but the model's class 0 is called '1', so that it is not known"):
        match_labels([Example("a", "a", label=1)], ["1", "2", "3"], "x")


def test_default_names_of_classes_are_numbers():
    assert [example.label for example in match_labels(examples("LABEL_1", "LABEL_0"), ["0", "1"], "x")] == [1, 0]
    assert [example.label for example in match_labels([Example("a", "a", label=1)], ["LABEL_0", "LABEL_1"], "x")] == [1]


@pytest.mark.parametrize("labels", [{}, "", {"a": -1}, {"a": 1.5}, {"a": "b"}, ["a", "a"], 3, "a=0,b", {"a": True}])
def test_what_gives_no_numbers_is_refused(labels):
    with pytest.raises(InputError, match="does not give each label the number of its class. Write labels={'worst': 0"):
        parse_labels(labels)


def test_a_label_that_the_mapping_lacks_is_refused_with_its_row():
    rows = [{"text": "a", "label": "worst"}, {"text": "b", "label": "mixed"}]
    with pytest.raises(
        InputError, match=r"row 1: the label \(column 'label'\) is 'mixed', but labels has worst and best"
    ):
        hs.read(rows, labels="worst,best")
    with pytest.raises(InputError, match="The label of example '1' is 'mixed', but labels has worst and best. Name it"):
        hs.read(hs.read(rows), labels="worst,best")
    with pytest.raises(InputError, match="labels numbers the labels, but no column holds them; name it: label="):
        hs.read([{"text": "a"}], labels="worst,best")


def test_a_mapping_may_number_numbers_and_join_classes():
    assert [example.label for example in hs.read([{"text": "a", "label": 5}], labels={5: 1, 1: 0})] == [1]
    rows = [{"text": "a", "label": name} for name in ("entailment", "neutral", "contradiction")]
    data = hs.read(hs.read(rows), labels={"entailment": 0, "neutral": 1, "contradiction": 1})
    result = hs.score(classifier("entailment", "not_entailment"), data, **QUIET)
    assert result["label"].values.tolist() == [0, 1, 1]
    assert read_provenance(result)["labels"] == {"entailment": 0, "contradiction": 1, "neutral": 1}


def test_examples_that_are_saved_and_read_again_stay_without_an_order(tmp_path, predictions):
    path = hs.save(hs.read(named(predictions, ("worst", "best"))), tmp_path / "a.jsonl")
    assert "alphabetical" in {json.loads(line)["label_order"] for line in path.read_text().splitlines()}
    with pytest.raises(InputError, match="so that it is not known which is which"):
        hs.score(classifier("0", "1"), path, **QUIET)


def test_a_tuned_model_keeps_its_names_and_dev_may_lack_a_class(tmp_path):
    rows = [{"text": f"{name} sat", "label": name} for name in ("cat", "dog", "bird") * 4]
    dev = [{"text": "dog ran", "label": "dog"}, {"text": "cat ran", "label": "cat"}]
    model = hs.finetune(
        classifier("LABEL_0", "LABEL_1"), rows, dev=dev, out=tmp_path / "a", epochs=1, max_length=16, **QUIET
    )
    assert model.network.config.id2label == {0: "bird", 1: "cat", 2: "dog"}
    assert hs.score(tmp_path / "a", dev, **QUIET)["label"].values.tolist() == [2, 1]


def test_a_classifier_that_goes_on_learning_keeps_the_order_of_its_classes(tmp_path):
    model = classifier("good", "bad")
    rows = [
        {"text": text, "label": name} for text, name in zip(TEXTS, ("Bad", "Good", "Bad", "Good", "Bad"), strict=True)
    ]
    tuned = hs.finetune(model, rows, out=tmp_path / "a", epochs=1, learning_rate=1e-12, max_length=16, **QUIET)
    assert tuned.network.config.id2label == {0: "good", 1: "bad"}
    before, after = (hs.score(one, rows, **QUIET)["label"].values.tolist() for one in (model, tuned))
    assert before == after == [1, 0, 1, 0, 1]


def test_training_examples_number_others_of_a_task():
    from headscope.experiments.tasks import read_files

    train = [{"text": f"{name} {row}", "label": name} for row, name in enumerate(("a", "b", "c"))]
    data = read_files([{"text": "x", "label": "b"}, {"text": "y", "label": "c"}], train)
    assert [example.label for example in data.dev] == [1, 2]
    assert find_task("auto", data.train)[0].prepare(data.dev, "dev") == list(data.dev)


def test_numbers_are_refused_where_classes_are_called_by_other_numbers_or_truth_values():
    numbers = [Example("0", "cat", label=1)]
    for classes in (["1", "0"], ["TRUE", "FALSE"], ["1", "2", "3"]):
        with pytest.raises(
            InputError, match=r"is 1, but the model's class 0 is called '(1|TRUE)', so that it is not known"
        ):
            match_labels(numbers, classes, "the data")
    for classes in (["0", "1"], ["False", "True"], ["NEGATIVE", "1"], ["true", "false", "unknown"]):
        assert match_labels(numbers, classes, "the data")[0].label == 1


def test_truth_values_are_not_taken_for_the_numbers_of_classes_in_another_order():
    data = [{"text": "cat sat", "label": True}, {"text": "dog ran", "label": False}]
    with pytest.raises(InputError, match=r"the model's class 0 is called 'TRUE'"):
        hs.score(classifier("TRUE", "FALSE"), data, **QUIET)


def test_names_are_no_numbers_for_a_regression():
    config = network("bert", num_labels=1).config
    model = hs.load(transformers.BertForSequenceClassification(config).eval(), tokenizer=tokenizer())
    data = [{"text": "cat sat", "label": "good"}, {"text": "dog ran", "label": "bad"}]
    said = (
        r"The label of example '0' of the data is a name, 'good', where a number is expected\. Give the number of each "
        r"one: hs\.read\(…, labels=\{'good': …, …\}\), in the shell --labels good=…,…\nMore: docs/"
    )
    with pytest.raises(InputError, match=said):
        hs.score(model, data, **QUIET)
    with pytest.raises(InputError, match=said):
        hs.capture(model, hs.read(data), target="loss")
    with pytest.raises(InputError, match=r"of train is a name, 'good', where a number is expected"):
        find_task("regression", hs.read(data))
    assert int(hs.score(model, hs.read(data, labels={"bad": 1, "good": 5}), **QUIET)["n"]) == 2


def test_names_are_no_index_of_a_choice():
    columns = {"text": "cat", "first": "sat", "second": "ran", "third": "slept"}
    data = hs.read([{**columns, "label": "B"}, {**columns, "label": "C"}], choices=["first", "second", "third"])
    with pytest.raises(InputError, match=r"a name, 'B', where the index of the right choice is expected"):
        find_task("choice", data)
