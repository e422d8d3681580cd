"""Loading models, and errors in loading."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from headscope.core.errors import DataWarning, LoadError
from headscope.engine.capture import capture
from headscope.engine.load import load
from tests.models import network, text, tokenizer


@pytest.fixture
def folder(tmp_path):
    """A tiny BERT, saved as any model is."""
    network("bert").save_pretrained(tmp_path / "tiny")
    tokenizer().save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


def change(path, **changes):
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, **changes}))


def test_a_folder_is_loaded_with_the_class_its_config_names(folder):
    change(folder, architectures=["BertForSequenceClassification"])
    with pytest.warns(
        DataWarning, match=r"lacks 2 weights, which are now random: classifier\.bias and classifier\.weight"
    ):
        model = load(folder)
    assert type(model.network).__name__ == "BertForSequenceClassification"
    assert len(capture(model, text(4)).layers) == 2


def test_missing_weights_are_the_same_every_time_and_leave_the_random_generator_alone(folder):
    change(folder, architectures=["BertForSequenceClassification"])
    before = torch.random.get_rng_state()
    with pytest.warns(DataWarning, match="now random"):
        hashes = {load(folder).weights_hash for _ in range(2)}
    assert len(hashes) == 1
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_folder_is_loaded_as_it_was_saved(folder):
    model = load(str(folder))
    assert model.spec == str(folder)
    assert repr(model) == f"Model({folder}: BertModel, family bert)"
    in_hand = load(network("bert"), tokenizer=tokenizer())
    assert torch.equal(capture(model, text(5)).attention[1], capture(in_hand, text(5)).attention[1])
    assert model.weights_hash == in_hand.weights_hash
    assert capture(model, "the cat sat").keys.text == [["[CLS]", "the", "cat", "sat", "[SEP]"]]


def test_the_weights_hash_depends_on_the_weights():
    model = load(network("bert"))
    before = model.weights_hash
    with torch.no_grad():
        model.network.pooler.dense.bias[0] += 1
    assert model.weights_hash != before


def test_half_precision_becomes_float32_on_the_cpu_unless_requested(folder):
    network("bert").half().save_pretrained(folder)
    assert load(folder, device="cpu").network.dtype == torch.float32
    assert load(folder, device="cpu", dtype="float16").network.dtype == torch.float16
    assert load(folder, dtype=torch.float64).network.dtype == torch.float64


def test_a_missing_gpu_is_an_error(folder, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(LoadError, match="device='cuda' is asked for, but this installation of torch finds no GPU"):
        load(folder, device="cuda")


def test_an_image_model_needs_no_tokenizer(tmp_path):
    network("vit").save_pretrained(tmp_path)
    model = load(tmp_path)
    assert model.tokenizer is None
    assert capture(model, {"pixel_values": torch.zeros(1, 3, 12, 12)}).keys.text[0][:2] == ["[CLS]", "0,0"]


def test_the_embedded_default_is_all_minilm(minilm):
    assert minilm.spec == "sentence-transformers/all-MiniLM-L6-v2"
    trace = capture(minilm, "The cat sat down because it was tired.")
    assert trace.keys.text[0] == ["[CLS]", *"the cat sat down because it was tired .".split(), "[SEP]"]
    assert (len(trace.layers), len(trace.heads), trace.values[0].shape[-1]) == (6, 12, 32)


def truncate(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:2000])


def scramble(folder):
    (folder / "model.safetensors").write_text("these are no weights")


def lose_weights(folder):
    (folder / "model.safetensors").unlink()


def lose_tokenizer(folder):
    for path in folder.glob("tokenizer*"):
        path.unlink()


def lose_config(folder):
    (folder / "config.json").unlink()


def break_config(folder):
    (folder / "config.json").write_text("{")


def swap_weights(folder):
    network("gpt2").save_pretrained(folder / "other")
    shutil.copy(folder / "other" / "model.safetensors", folder / "model.safetensors")
    shutil.rmtree(folder / "other")


@pytest.mark.filterwarnings("default::headscope.core.errors.DataWarning")
@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (truncate, r"holds no usable model: .* Is a file missing, truncated or of another kind\?"),
        (scramble, r"holds no usable model: "),
        (lose_weights, r"holds no usable model: .*model\.safetensors"),
        (lose_tokenizer, r"holds no usable tokenizer: "),
        (lose_config, r"is not a model: it holds no config\.json"),
        (break_config, r"holds no usable model: .*config"),
        (swap_weights, r"does not hold the weights of BertModel: it lacks "),
    ],
)
def test_a_damaged_folder_is_an_error(folder, damage, sentence):
    damage(folder)
    with pytest.raises(LoadError, match=sentence):
        load(folder)


def test_a_class_that_is_not_in_transformers_is_an_error(folder):
    change(folder, architectures=["MyOwnModel"])
    with pytest.raises(
        LoadError, match=r"asks for the class MyOwnModel, which transformers .* never runs code from a hub"
    ):
        load(folder)


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        (5, r"its architectures are '5', and must be a list such as"),
        ("BertModel", r"its architectures are 'BertModel', and must be a list such as"),
        ([1, 2], r"its architectures are '\[1, 2\]', and must be a list such as"),
        ([["BertModel"]], r"its architectures are .* and must be a list such as"),
        ({"a": 1}, r"its architectures are .* and must be a list such as"),
        (["BertConfig"], r"asks for BertConfig, which is no class of a model"),
        (["BertTokenizer"], r"asks for BertTokenizer, which is no class of a model"),
        (["logging"], r"asks for logging, which is no class of a model"),
    ],
)
def test_architectures_that_are_no_classes_of_models_are_an_error(folder, named, sentence):
    change(folder, architectures=named)
    with pytest.raises(LoadError, match=sentence):
        load(folder)


@pytest.mark.parametrize("named", [None, [], ["AutoModel"]])
def test_a_config_without_architectures_is_loaded_by_its_kind(folder, named):
    change(folder, architectures=named)
    assert type(load(folder).network).__name__ == "BertModel"


def test_code_in_a_folder_is_never_run(folder):
    change(
        folder,
        architectures=["Evil"],
        model_type="evil",
        auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Evil"},
    )
    (folder / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')")
    with pytest.raises(LoadError):
        load(folder)
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("./no/such/folder", r"There is no folder \./no/such/folder"),
        (Path("nowhere"), r"There is no folder nowhere"),
        (
            "no-such-model",
            r"Cannot load the model 'no-such-model': there is no such folder here, and from the hub came: ",
        ),
        ("someone/no-such-model", r"Check the name and the connection, or give a local folder"),
        (__file__, r"is a file\. Give the folder that holds it"),
    ],
)
def test_a_missing_model_is_an_error(name, sentence):
    with pytest.raises(LoadError, match=sentence):
        load(name)


def test_an_object_that_is_no_model_is_an_error():
    with pytest.raises(LoadError, match=r"Cannot look into Linear: give a transformers model"):
        load(torch.nn.Linear(2, 2))


def test_a_network_in_memory_is_not_moved():
    with pytest.raises(LoadError, match="move it yourself, and leave out device and dtype"):
        load(network("bert"), dtype="float16")


def test_a_tokenizer_of_another_model_is_an_error():
    with pytest.raises(LoadError, match=r"The tokenizer knows 38 tokens, but the model only 20: they do not belong"):
        load(network("bert", vocab_size=20), tokenizer=tokenizer())
