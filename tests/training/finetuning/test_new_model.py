"""New models from a config, with a tokenizer made of the training texts; GPT-2 without its causal mask."""

import json

import numpy as np
import pytest
import torch
import transformers

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.lens import view
from headscope.data.reading.read import read
from headscope.engine.capture import capture
from headscope.engine.edited import edited
from headscope.engine.importances import importances
from headscope.engine.load import load
from headscope.measuring.measure import measure
from headscope.training.finetuning.finetune import finetune
from headscope.training.finetuning.new_model import (
    build_config_and_tokenizer,
    make_word_tokenizer,
    read_config,
    reads_last_token,
)
from headscope.training.score import score

CONFIG = {
    "model_type": "gpt2",
    "is_causal": False,
    "n_layer": 2,
    "n_head": 4,
    "n_embd": 32,
    "n_positions": 64,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
}
FAST = {"epochs": 12, "batch_size": 8, "learning_rate": 3e-3, "max_length": 32, "progress": False, "device": "cpu"}


def sentences(count, start=0):
    """Whether the second word ends in -s is the label; other words say nothing."""
    nouns, rest = ("key", "keys", "door", "doors"), ("near the wall", "that we saw", "in the old house of the king")
    texts = [f"the {nouns[row % 4]} {rest[row % 3]}" for row in range(start, start + count)]
    return [Example(f"{row}", text, None, None, row % 2) for row, text in enumerate(texts, start)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("new")
    (path / "config.json").write_text(json.dumps(CONFIG))
    finetune(read_config(path / "config.json"), sentences(48), tokenizer="words", out=path / "model", **FAST)
    return path / "model"


def test_a_trained_folder_is_loaded_without_causal_mask(folder):
    model = load(folder, device="cpu")
    trace = capture(model, ["the key near the wall", "the doors"])
    assert list(trace.queries.text[1][:3]) == ["the", "doors", "[CLS]"]
    for visible, attention in zip(trace.visible, trace.attention, strict=True):
        real = trace.queries.real
        assert torch.equal(visible, real[:, :, None] & real[:, None, :])
        assert (attention[0, :, 0, -1] > 0).all()  # the first token attends to the last one
        assert attention[1, :, :3, 3:].abs().max() == 0


def test_no_causal_mask_is_applied_with_any_implementation(folder):
    """Without padding there is no mask at all, and the fused kernel must not fall back to a causal one."""
    for implementation in ("sdpa", "eager"):
        network = load(folder, device="cpu").network
        network.set_attn_implementation(implementation)
        batch = torch.tensor([[5, 6, 7, 2], [5, 6, 8, 2]])
        with torch.no_grad():
            states = network.transformer(batch).last_hidden_state
        assert (states[0, 0] - states[1, 0]).abs().max() > 1e-5  # a later word changes the first token


def test_a_new_model_learns_and_is_scored_measured_and_edited(folder):
    model, data = load(folder, device="cpu"), sentences(12, start=4)
    assert float(score(model, data, progress=False)["accuracy"]) == 1
    measured = measure(model, data, lens=["raw", "effective"], statistics="entropy", progress=False)
    assert bool(measured["entropy"].notnull().all())
    before = capture(model, data).attention[0]
    with edited(model, "effective_attention"):
        assert torch.allclose(capture(model, data).attention[0], before, atol=1e-6)  # the edit leaves A·V as it is


@pytest.mark.parametrize(
    ("kind", "last"), [("GPT2Config", True), ("LlamaConfig", True), ("BertConfig", False), ("DistilBertConfig", False)]
)
def test_the_class_token_is_where_the_classifier_reads(kind, last):
    config = getattr(transformers, kind)()
    assert reads_last_token(config) == last
    config, tokenizer = build_config_and_tokenizer(config, "words", sentences(8), task="classification")
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("the keys")["input_ids"])
    assert tokens == (["the", "keys", "[CLS]"] if last else ["[CLS]", "the", "keys", "[SEP]"])
    assert (config.vocab_size, config.pad_token_id) == (len(tokenizer), tokenizer.pad_token_id)


def test_words_that_occur_once_are_unknown_and_pairs_are_separated():
    examples = [Example("0", "a b a", "b c"), Example("1", "ignored", None, ("d", "d", "e"))]
    tokenizer = make_word_tokenizer(examples, cls_last=True)
    assert tokenizer.tokenize("a c e d ignored") == ["a", "[UNK]", "[UNK]", "d", "[UNK]"]
    pair = tokenizer.convert_ids_to_tokens(tokenizer("a", "b")["input_ids"])
    assert pair == ["a", "[SEP]", "b", "[CLS]"]


def test_only_a_model_that_is_trained_on_masks_has_a_mask_token(folder):
    assert load(folder, device="cpu").tokenizer.mask_token is None
    assert make_word_tokenizer(sentences(8), cls_last=False, masks=True).mask_token == "[MASK]"


def test_importances_and_lenses_of_a_target_work_without_causal_mask(folder):
    model, data = load(folder, device="cpu"), sentences(3)
    for method in ("blank_out:replace=unk", "input_gradient"):
        scores = importances(model, data, method, target="label").scores
        assert all(np.isfinite(values[:-1]).all() for values in scores)  # the last token is [CLS]
    trace = capture(model, data, target="label", keep=("values", "gradient"))
    for lens in ("rollout", "gradient", "rollout:inner=(gradient:times_attention=true)"):
        weights = view(trace, lens).weights
        assert weights.isfinite().all()
        assert weights[0, 0, 0, 0, len(data[0].text.split())].abs() > 0  # from the first token to [CLS], the last


def test_a_truncated_text_keeps_its_class_token():
    tokenizer = make_word_tokenizer(sentences(8), cls_last=True)
    ids = tokenizer("the key near the wall", truncation=True, max_length=3)["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["the", "key", "[CLS]"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is no JSON"),
        ("[]", 'has no "model_type"'),
        ('{"n_layer": 2}', 'has no "model_type"'),
        ('{"model_type": "gpt-2"}', "No model type of transformers is called 'gpt-2'. Did you mean"),
    ],
)
def test_a_file_that_is_no_config_is_refused(tmp_path, text, problem):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match=problem):
        read_config(tmp_path / "config.json")


def test_only_a_config_gets_a_new_tokenizer(tmp_path, folder):
    config = transformers.GPT2Config(**{name: CONFIG[name] for name in ("n_layer", "n_head", "n_embd")})
    with pytest.raises(InputError, match="tokenizer='words' for one that is made from the training texts"):
        finetune(config, sentences(8), out=tmp_path / "a", **FAST)
    with pytest.raises(InputError, match="No tokenizer of a new model is called 'letters'"):
        finetune(config, sentences(8), tokenizer="letters", out=tmp_path / "b", **FAST)
    with pytest.raises(InputError, match="tokenizer='words' is for a new model"):
        finetune(folder, sentences(8), tokenizer="words", out=tmp_path / "c", **FAST)


def test_agreement_sentences_train_a_new_model(tmp_path):
    config = transformers.GPT2Config(**{name: value for name, value in CONFIG.items() if name != "model_type"})
    train = read("agreement_templates:train:20")
    model = finetune(config, train, tokenizer="words", out=tmp_path / "model", **(FAST | {"epochs": 1}))
    assert model.network.config.id2label == {0: "singular", 1: "plural"}


def test_subwords_are_for_tasks_that_write():
    config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=300)
    made, tokenizer = build_config_and_tokenizer(config, "subwords", sentences(8), task="causal")
    assert (made.vocab_size, made.eos_token_id) == (len(tokenizer), tokenizer.eos_token_id)
    with pytest.raises(InputError, match=r"for the tasks translation and causal, but this is 'classification'"):
        build_config_and_tokenizer(config, "subwords", sentences(8), task="classification")


def test_a_new_marian_has_one_vocabulary_on_both_sides():
    config = transformers.MarianConfig(d_model=16, encoder_layers=1, decoder_layers=1)
    made, tokenizer = build_config_and_tokenizer(config, "words", sentences(8), task="translation")
    assert made.vocab_size == made.decoder_vocab_size == len(tokenizer)
    assert (made.decoder_start_token_id, made.forced_eos_token_id) == (tokenizer.bos_token_id, None)
