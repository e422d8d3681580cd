"""Data, settings and models that cannot be used are refused before any training."""

import re
import sys
from dataclasses import replace

import pytest
import torch
import transformers

import headscope as hs
from headscope.core.errors import DataWarning, HeadscopeError, InputError, MissingExtra
from tests.models import network, tiny, tokenizer
from tests.training.data import choosing, labeled, paired, plain

DATA = labeled(8)


def refused(tmp_path, text, train=None, model=None, error=InputError, **more):
    """Check that a fine-tuning is refused with this text, and that nothing is written."""
    options = {"device": "cpu", "progress": False, "max_length": 32, "epochs": 1, **more}
    with pytest.raises(error, match=re.escape(text)):
        hs.finetune(model or tiny("bert"), DATA if train is None else train, out=tmp_path / "m", **options)
    assert error is HeadscopeError or not (tmp_path / "m").exists()


def test_missing_constant_and_inconsistent_labels_are_refused(tmp_path):
    bare = [replace(example, label=None) for example in DATA]
    refused(tmp_path, "None of the 8 training examples has a label, so the task cannot be inferred", bare)
    refused(tmp_path, "None of the 8 examples of train has a label", bare, task="classification")
    refused(tmp_path, "3 of the 8 examples of train have no label, such as '0'. Leave them out", bare[:3] + DATA[3:])
    refused(tmp_path, "All 4 training examples have the label 0, so there is nothing to learn", DATA[::2])
    gap = [replace(example, label=2 * example.label) for example in DATA]
    refused(tmp_path, "The labels of train are 0 and 2, where 0 to 1 are expected", gap)
    refused(tmp_path, "All 8 training examples have the label 1.0", [replace(example, label=1.0) for example in DATA])
    refused(
        tmp_path, "The label of example '0' of train is 0.0, where a whole number", paired(4), task="classification"
    )
    refused(tmp_path, "There are no examples in train: the list is empty", [])
    twice = [*DATA[:7], replace(DATA[7], columns={"label_name": "bird"})]
    refused(tmp_path, "The label 1 has two names in train: 'dog' and 'bird'", twice)


def test_dev_labels_that_do_not_match_train_are_refused(tmp_path):
    third = [replace(DATA[0], label=2, columns={})]
    refused(tmp_path, "In dev there are labels 2, but the classes are 0 to 1 (cat, dog)", dev=third)
    other = [replace(DATA[0], columns={"label_name": "bird"})]
    refused(tmp_path, "The labels of dev are names, 'bird', but the classes are called cat and dog", dev=other)
    refused(tmp_path, "1 of the 2 examples of dev have no label", dev=[DATA[0], replace(DATA[1], label=None)])


def test_invalid_choices_are_refused(tmp_path):
    odd = [*choosing(4)[:3], replace(choosing(4)[3], columns={"choices": ("a", "b", "c")})]
    refused(tmp_path, "Example '3' of train has 3 choices, but others have 2", odd)
    refused(tmp_path, "Example '0' of train has no choices. Name the columns", DATA, task="choice")
    refused(tmp_path, "In train there are labels 2, where 0 to 1 are expected", [replace(choosing(1)[0], label=2)])
    refused(tmp_path, "All 2 training examples have the label 0, so there is nothing to learn", choosing(4)[::2])
    both = [replace(example, pair="the cat") for example in choosing(4)]
    refused(tmp_path, "Example '0' of train has choices and a second text", both)


def test_dev_examples_that_are_in_train_are_counted(tmp_path):
    with pytest.warns(DataWarning, match="3 of the 5 examples of dev are in train as well, such as '0'"):
        refused(tmp_path, "max_length=99 is more than the 64", dev=[*DATA[:3], *labeled(2, start=50)], max_length=99)


def test_truncated_texts_are_counted(tmp_path):
    with pytest.warns(DataWarning, match="of 8 texts are longer than 6 tokens and were truncated"):
        hs.finetune(tiny("bert"), DATA, out=tmp_path / "m", device="cpu", progress=False, max_length=6, epochs=1)


def test_settings_out_of_range_are_refused(tmp_path):
    refused(
        tmp_path, "max_length=65 is more than the 64 tokens that BertModel can read. Give 64 or less", max_length=65
    )
    refused(tmp_path, "epochs=0 is too small. Give at least 1", epochs=0)
    refused(tmp_path, "learning_rate=3.0 is not between 0 and 1", learning_rate=3.0)
    refused(tmp_path, "warmup=1.5 is not a share of all steps", warmup=1.5)
    refused(tmp_path, "weight_decay=-1.0 is not a number from 0 on", weight_decay=-1.0)
    refused(tmp_path, "device='tpu' is neither 'cpu' nor 'cuda'", device="tpu")
    refused(tmp_path, "No task is called 'clasification'. Did you mean 'classification'?", task="clasification")
    refused(tmp_path, "No option of hs.finetune is called 'epoch'. Did you mean 'epochs'?", epoch=2)


def test_models_without_the_head_or_tokenizer_are_refused(tmp_path):
    refused(tmp_path, "Models of type 'gpt2' have no head for the task 'mlm'", model=tiny("gpt2"), task="mlm")
    bare = replace(tiny("bert"), tokenizer=None)
    refused(tmp_path, "This model has no tokenizer, so no text can be read", model=bare)
    config = transformers.BertConfig(vocab_size=40)
    refused(tmp_path, "A config was given, which has no tokenizer. Give one", model=config)
    peft = pytest.importorskip("peft")
    lora = peft.get_peft_model(network("bert"), peft.LoraConfig(target_modules=["query"]))
    refused(tmp_path, "Is it wrapped (PEFT, quantised)? Merge it first", model=lora, tokenizer=tokenizer())


def test_without_accelerate_the_error_names_the_pip_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    refused(tmp_path, "pip install 'headscope[train]'", error=MissingExtra)


def test_an_infinite_loss_stops_the_run(tmp_path):
    broken = hs.load(transformers.BertModel(tiny("bert").network.config), tokenizer=tokenizer())
    with torch.no_grad():
        broken.network.encoder.layer[0].output.dense.bias[0] = torch.inf
    refused(tmp_path, "The loss is infinite or NaN after step 1 of 1", model=broken, error=HeadscopeError)


def test_a_lack_of_memory_is_reported(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr("headscope.training.finetuning.finetune.make_trainer", fail)
    refused(tmp_path, "not enough memory for batches of 8 examples of up to 32 tokens", error=HeadscopeError)


def test_masking_needs_a_mask_token(tmp_path):
    from copy import deepcopy

    bare = deepcopy(tokenizer())
    bare.mask_token = None
    refused(tmp_path, "The tokenizer has no mask token", plain(4), tokenizer=bare, task="mlm")
