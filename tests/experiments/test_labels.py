"""Labels of a study are numbered as its tuned model numbers its classes."""

import transformers

import headscope as hs
from headscope.experiments.tuned import number_by_model
from tests.models import network, tokenizer


def test_names_are_numbered_by_the_tuned_model_of_a_study(tmp_path):
    names = {0: "good", 1: "bad"}
    config = network("bert", id2label=names, label2id={name: label for label, name in names.items()}).config
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    data = hs.read([{"text": "the cat", "label": "bad"}, {"text": "a dog", "label": "good"}])
    assert [example.label for example in data] == [0, 1]
    assert [example.label for example in number_by_model(data, tmp_path, "data")] == [1, 0]
