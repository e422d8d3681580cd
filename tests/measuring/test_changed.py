"""A model or data that changed is neither resumed nor merged, and the part that changed is named."""

import shutil
from dataclasses import replace

import pytest
import torch
import transformers
from tokenizers import Tokenizer, normalizers

import headscope as hs
from headscope.core.errors import InputError
from headscope.engine.fingerprint import fingerprint_model
from headscope.patterns.classify.cnn import BUNDLED, read_cnn, write_cnn
from tests.measuring.data import examples
from tests.models import network, tiny, tokenizer


def data(label=0, column="a"):
    return [replace(example, label=label, columns={"genre": column}) for example in examples(4)]


def bert(**config):
    """Return a BERT with the same weights and another config."""
    changed = network("bert", **config)
    changed.load_state_dict(tiny("bert").network.state_dict())
    return hs.load(changed, tokenizer=tokenizer())


def cased():
    """Return a tokenizer with the same vocabulary that keeps capitals."""
    backend = Tokenizer.from_str(tokenizer().backend_tokenizer.to_str())
    backend.normalizer = normalizers.NFC()
    special = {name: str(token) for name, token in tokenizer().special_tokens_map.items()}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **special)


def with_other_modules():
    model = bert()
    for layer in model.network.encoder.layer:
        layer.intermediate.intermediate_act_fn = torch.nn.ReLU()
    return model


MODELS = {
    "the tokenizer": lambda: replace(tiny("bert"), tokenizer=cased()),
    "its config.hidden_act is 'gelu', but this run's is 'relu'": lambda: bert(hidden_act="relu"),
    "its config.layer_norm_eps is 1e-12, but this run's is 1e-05": lambda: bert(layer_norm_eps=1e-5),
    "the modules": with_other_modules,
}


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """The first half of a measurement."""
    path = tmp_path_factory.mktemp("shards") / "1.state"
    measure(tiny("bert"), data(), path, "1/2")
    return path


def measure(model, data, path, part, statistics="entropy", **options):
    hs.measure(model, data, statistics=statistics, shard=part, out=path, progress=False, **options)


def check_refused(shard, tmp_path, model, examples, sentence):
    """Neither is the first half resumed, nor are both halves merged."""
    with pytest.raises(InputError, match=f"1.state cannot be resumed: {sentence}"):
        measure(model, examples, shard, "1/2", resume=True)
    measure(model, examples, tmp_path / "2.state", "2/2")
    with pytest.raises(InputError, match=f"(they differ in their|their) {sentence.split(' ')[1]}"):
        hs.merge(shard, tmp_path / "2.state")


@pytest.mark.parametrize("sentence", MODELS)
def test_the_same_weights_in_another_model_are_refused(shard, tmp_path, sentence):
    model = MODELS[sentence]()
    assert model.weights_hash == tiny("bert").weights_hash
    check_refused(shard, tmp_path, model, data(), sentence)


@pytest.mark.parametrize("change", [{"label": 1}, {"column": "b"}], ids=["labels", "columns"])
def test_other_labels_and_columns_are_refused(shard, tmp_path, change):
    (name,) = change
    check_refused(shard, tmp_path, tiny("bert"), data(**change), f"the {name}s changed since it was started")


def test_another_version_is_refused(shard, tmp_path, monkeypatch):
    monkeypatch.setattr("headscope.measuring.job.__version__", "99.0.0")
    check_refused(shard, tmp_path, tiny("bert"), data(), "its version is '.*', but this run's is '99.0.0'")


def test_another_pattern_classifier_in_the_same_file_is_refused(tmp_path):
    classifier, path = tmp_path / "mine.safetensors", tmp_path / "1.state"
    shutil.copy(BUNDLED, classifier)
    statistic = f"patterns:classifier={classifier}"
    measure(tiny("bert"), data(), path, "1/2", statistic)
    measure(tiny("bert"), data(), path, "1/2", statistic, resume=True)
    cnn = read_cnn(BUNDLED, torch.device("cpu"))
    write_cnn(replace(cnn, metadata={**cnn.metadata, "temperature": 2.0}), classifier)
    with pytest.raises(InputError, match="cannot be resumed: the pattern classifier changed since it was started"):
        measure(tiny("bert"), data(), path, "1/2", statistic, resume=True)


def test_an_unchanged_model_is_resumed_after_it_was_used(shard):
    """Padding and truncation are stored in a tokenizer by every call, and a capture replaces parts of a config."""
    before = fingerprint_model(tiny("bert"))
    tiny("bert").tokenizer(["the cat", "the"], padding=True, truncation=True, max_length=3)
    hs.capture(tiny("bert"), "the cat")
    assert fingerprint_model(tiny("bert")) == before
    measure(tiny("bert"), data(), shard, "1/2", resume=True)


def test_a_model_from_a_folder_equals_the_one_in_memory(tmp_path):
    network("bert").save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    assert fingerprint_model(hs.load(tmp_path, device="cpu")) == fingerprint_model(tiny("bert"))


def test_a_result_is_stamped_with_hashes_only():
    facts = hs.measure(tiny("bert"), data(), statistics="entropy", progress=False).attrs["headscope"]
    assert '"config_hash": "' in facts
    assert '"config": ' not in facts
