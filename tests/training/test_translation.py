"""The task of translation: greedy search, losses and scores, under every edit of heads at every site."""

import json
import sys

import numpy as np
import pytest
import torch
import transformers

import headscope as hs
from headscope.core.errors import InputError, MissingExtra
from headscope.core.example import Example
from headscope.data.tokenizing.masking import IGNORED
from headscope.engine.edited import edit_if_any
from headscope.training.encode import require_padding
from headscope.training.find_task import find_task_of_head
from headscope.training.finetuning.new_model import make_text_tokenizer
from headscope.training.losses import compute_losses
from headscope.training.task import run_network
from headscope.training.tasks.translation import EXTRA, FACTOR, Translation, translate
from tests.heads import headed
from tests.models import text
from tests.tiers import spread

KINDS = ("bart", "t5", "marian")
SITES = ("encoder", "decoder", "cross")
EDITS = ("zero_heads", "uniform_heads", "gate_heads", "resample_heads", "mean_heads")
QUIET = {"progress": False}


def pairs(count):
    return [Example(str(row), text(1 + row, seed=row), text(3 + row, seed=row + 50)) for row in range(count)]


def prepare(kind, examples):
    """A model in double precision, so that no two tokens are equally likely, and one batch."""
    model, task = headed(kind, "seq2seq", double=True), Translation()
    tokenizer = require_padding(model.tokenizer, model.network.config, task.padding_side)
    rows = task.encode(tokenizer, examples, None)
    return model, tokenizer, rows, task.make_batch(tokenizer, rows, (0, 0))


def search_literally(network, tokenizer, batch):
    """Greedy search without a cache: every step reads everything again."""
    limits = (FACTOR * batch["attention_mask"].sum(-1) + EXTRA).clamp(max=63)
    config, count = network.config, len(limits)
    ids = torch.full((count, 1), config.decoder_start_token_id)
    ended = torch.zeros(count, dtype=torch.bool)
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    for _ in range(int(limits.max())):
        with torch.no_grad():
            logits = network(**inputs, decoder_input_ids=ids, use_cache=False).logits[:, -1]
        following = torch.where(ended, config.pad_token_id, logits.argmax(-1))
        ids, ended = torch.cat([ids, following[:, None]], 1), ended | (following == config.eos_token_id)
        if ended.all():
            break
    return [
        tokenizer.decode(row[1 : 1 + limit], skip_special_tokens=True).strip()
        for row, limit in zip(ids, limits, strict=True)
    ]


def make_edit(edit, model, site):
    """An edit of a head of the first layer, and of all heads of the second but one."""
    heads = f"{site}.L0H1+{site}.L1-L1H0"
    if edit != "mean_heads":
        return f"{edit}:heads={heads}" + (",gate=-0.7" if edit == "gate_heads" else "")
    from headscope.edits.mean_heads import MeanHeads

    return MeanHeads(heads=heads, means=hs.average_heads(model, pairs(3)))


@pytest.mark.parametrize(("kind", "edit", "site"), spread(["bart", "t5"], EDITS, SITES))
def test_a_translation_under_an_edit_is_greedy_search_without_cache(kind, edit, site):
    model, tokenizer, _, batch = prepare(kind, pairs(3))
    plain = translate(model.network, tokenizer, batch)
    with edit_if_any(model, make_edit(edit, model, site)) as changed:
        translations = translate(changed.network, tokenizer, batch)
        assert translations == search_literally(changed.network, tokenizer, batch)
    assert translate(model.network, tokenizer, batch) == plain


@pytest.mark.parametrize("kind", KINDS)
def test_a_translation_is_greedy_search_also_where_the_model_asks_for_beams(kind):
    model, tokenizer, _, batch = prepare(kind, pairs(3))
    expected = search_literally(model.network, tokenizer, batch)
    assert translate(model.network, tokenizer, batch) == expected
    network = headed_copy(model.network)
    network.generation_config.update(num_beams=4, early_stopping=True, length_penalty=2.0, max_length=5, do_sample=True)
    assert translate(network, tokenizer, batch) == expected


def headed_copy(network):
    copy = type(network)(network.config).double().eval()
    copy.load_state_dict(network.state_dict())
    return copy


@pytest.mark.parametrize("kind", KINDS)
def test_texts_alone_are_translated_and_scored_as_in_a_batch(kind):
    model, examples = headed(kind, "seq2seq", double=True), pairs(4)
    together, alone = (hs.score(model, examples, batch_size=size, **QUIET) for size in (4, 1))
    assert list(together["prediction"].values) == list(alone["prediction"].values)
    np.testing.assert_allclose(together["loss"], alone["loss"], rtol=1e-9)  # float64


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_that_of_each_token_given_those_before(kind):
    model, _, rows, batch = prepare(kind, pairs(3))
    task = Translation()
    with torch.no_grad():
        output = run_network(task, model.network, batch)
    losses, tokens = compute_losses(task, output, batch)
    for row, loss, count in zip(rows, losses, tokens, strict=True):
        total, start = 0.0, model.network.config.decoder_start_token_id
        for position, token in enumerate(row["labels"]):
            decoder = torch.tensor([[start, *row["labels"][:position]]])
            with torch.no_grad():
                logits = model.network(torch.tensor([row["input_ids"]]), decoder_input_ids=decoder).logits[0, -1]
            total -= float(logits.log_softmax(-1)[token])
        assert (float(loss), int(count)) == (pytest.approx(total), len(row["labels"]))
    assert float(output.loss) == pytest.approx(float(losses.sum() / tokens.sum()))


def test_losses_have_gradients():
    model, _, _, batch = prepare("bart", pairs(2))
    task = Translation()
    with torch.enable_grad():
        losses, _ = compute_losses(task, run_network(task, model.network, batch), batch)
    assert losses.requires_grad


def test_a_score_has_metrics_with_intervals_and_the_counts_of_each_example():
    model, examples = headed("bart", "seq2seq", double=True), pairs(4)
    result = hs.score(model, examples, **QUIET)
    for name in ("bleu", "chrf", "log_likelihood"):
        assert result[f"{name}_low"] <= result[name] <= result[f"{name}_high"]
    assert (result.sizes["bleu_count"], result.sizes["chrf_count"]) == (10, 18)
    assert list(result["reference"].values) == [example.pair for example in examples]
    expected = -float(result["loss"].sum() / result["tokens"].sum())
    assert float(result["log_likelihood"]) == pytest.approx(expected)
    assert "pair" not in result.coords


def test_a_translation_ends_at_the_maximum_length_of_its_own_text():
    model, tokenizer, _, batch = prepare("bart", pairs(2))
    network = headed_copy(model.network)
    network.generation_config.eos_token_id = None
    with torch.no_grad():
        network.final_logits_bias[:] = 0
        network.final_logits_bias[0, 9] = 1e6  # one word without end
    lengths = [len(translation.split()) for translation in translate(network, tokenizer, batch)]
    assert lengths == (FACTOR * batch["attention_mask"].sum(-1) + EXTRA).clamp(max=63).tolist()


def test_padding_of_a_batch_keeps_the_labels():
    model, examples = headed("bart", "seq2seq", double=True), [Example("0", text(5, seed=1), text(5, seed=2))]
    narrow, wide = (hs.score(model, examples, pad_to=width, **QUIET) for width in (None, 20))
    np.testing.assert_allclose(narrow["loss"], wide["loss"], rtol=1e-9)
    assert int(narrow["tokens"][0]) == int(wide["tokens"][0])


def test_a_model_from_scratch_learns_to_translate(tmp_path):
    config = transformers.BartConfig(
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=64,
        dropout=0.0,
        init_std=0.15,
        vocab_size=400,
    )
    words = {"red": "rouge", "green": "vert", "black": "noir", "white": "blanc"}
    rows = [{"text": f"a {key} b", "pair": f"{value} c"} for key, value in words.items() for _ in range(8)]
    rows = [{"id": str(number), **row} for number, row in enumerate(rows)]
    options = {"epochs": 20, "batch_size": 8, "learning_rate": 1e-2, "warmup": 0.1, "max_length": 32, **QUIET}
    model = hs.finetune(
        config, rows, out=tmp_path / "tuned", tokenizer="subwords", task="translation", device="cpu", **options
    )
    assert type(model.network) is transformers.BartForConditionalGeneration
    result = hs.score(hs.load(tmp_path / "tuned", device="cpu"), rows, **QUIET)
    assert list(result["prediction"].values) == [row["pair"] for row in rows]
    losses = json.loads((tmp_path / "tuned" / "finetune.json").read_text())["loss"]
    assert losses[-1][1] < losses[0][1] / 10


def test_a_tokenizer_of_subwords_writes_every_text_again():
    examples = [Example("0", "The cat sat.", "Le chat était assis à côté."), Example("1", "A dog barks!", "Un chien.")]
    made = make_text_tokenizer(examples, 300)
    assert len(made) <= 300
    for words in ("Le chat était assis.", "señor, 你好 !", "a  b"):
        assert made.decode(made(words)["input_ids"], skip_special_tokens=True).strip() == words
    assert made("cat")["input_ids"][-1] == made.eos_token_id
    assert make_text_tokenizer(examples, 300).get_vocab() == made.get_vocab()


def test_a_tokenizer_of_words_knows_those_of_both_texts():
    examples = [Example(str(row), "the cat", "le chat") for row in range(2)]
    made = make_text_tokenizer(examples, None)
    assert set(made.get_vocab()) == {"<pad>", "<s>", "</s>", "<unk>", "the", "cat", "le", "chat"}
    assert made.decode(made("le chat noir")["input_ids"]) == "le chat <unk> </s>"


def test_a_bart_is_scored_on_translation_unless_asked_otherwise():
    network = headed("bart", "seq2seq").network
    assert find_task_of_head("auto", network, pairs(1)).name == "translation"
    assert find_task_of_head("mlm", network, pairs(1)).name == "mlm"


def test_examples_without_a_second_text_are_refused():
    examples = [*pairs(2), Example("lonely", "one text")]
    with pytest.raises(InputError, match="1 of the 3 examples of train have no second text, such as 'lonely'"):
        Translation.from_examples(examples)


def test_a_model_that_cannot_write_is_refused(tmp_path):
    with pytest.raises(InputError, match="have no head for the task 'translation'"):
        hs.finetune(
            headed("bert", "classification"), pairs(2), out=tmp_path / "tuned", task="translation", max_length=32
        )


def test_without_sacrebleu_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(MissingExtra, match=r"Scoring translations needs the package sacrebleu.*headscope\[translation"):
        hs.score(headed("bart", "seq2seq", double=True), pairs(2), **QUIET)


def test_labels_are_not_what_padding_fills():
    _, _, rows, batch = prepare("bart", pairs(2))
    real = batch["labels"] != IGNORED
    assert real.sum(-1).tolist() == [len(row["labels"]) for row in rows]
    assert torch.equal(batch["decoder_attention_mask"].bool(), real)
