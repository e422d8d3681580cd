"""Blank-out and input gradients, against their definitions; `hs.importances`."""

import numpy as np
import pytest
import torch

from headscope.core.catalog import importance_methods
from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.core.spec import to_spec
from headscope.engine.importances import importances
from headscope.engine.load import load
from headscope.engine.model import find_word_embeddings
from tests.heads import headed, headed_network
from tests.models import VOCAB, text, tiny, tokenizer
from tests.oracles import importances as oracle

TEXTS = [Example("a", text(6, 1), label=1), Example("b", text(11, 2), label=0), Example("c", "the cat .", label=1)]
MASKED = [Example("a", "the cat [MASK] on a mat ."), Example("b", "it slept [MASK] the hill")]
PAIRS = [Example("a", "the cat sat", "it slept on a mat"), Example("b", "a dog", "the old man sang songs")]
CASES = [
    ("bert", "classification", TEXTS, "label"),
    ("gpt2", "classification", TEXTS, "predicted"),
    ("distilbert", "classification", TEXTS, "class=0:score=logit"),
    ("bert", "mlm", MASKED, "mask:word=slept"),
    ("gpt2", "causal", TEXTS, "next:word=mat"),
    ("bert", "classification", PAIRS, "predicted"),
    ("bart", "seq2seq", PAIRS, "next"),
    ("t5", "seq2seq", PAIRS, "next:word=cat"),
]


@pytest.mark.parametrize(("kind", "head", "texts", "target"), CASES)
@pytest.mark.parametrize("replace", ["mask", "unk"])
def test_blank_out_equals_one_forward_pass_for_each_replaced_token(kind, head, texts, target, replace):
    model = headed(kind, head, double=kind != "t5")  # T5 computes its norms in float32
    result = importances(model, texts, f"blank_out:replace={replace}", target=target, batch_size=2)
    for example, scores, special in zip(texts, result.scores, result.special, strict=True):
        expected = oracle.blank_out(model, example, target, VOCAB.index(f"[{replace.upper()}]"))
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-12 if kind != "t5" else 1e-6)
        assert np.isnan(scores[special]).all()
        assert np.nanmax(np.abs(scores)) > 0


@pytest.mark.parametrize(
    ("kind", "head", "texts", "target"),
    [CASES[0], CASES[1], CASES[3], CASES[4], ("bert", "classification", PAIRS, "predicted")],
)
def test_input_gradients_equal_finite_differences(kind, head, texts, target):
    model = headed(kind, head, double=True)
    layer = find_word_embeddings(model.network)[1]
    found = {
        part: importances(model, texts, f"input_gradient:kind={part}", target=target)
        for part in ("norm", "times_input", "absolute", "norm1")
    }
    example = texts[0]
    gradient = oracle.input_gradient(model, example, target, layer)
    ids = torch.tensor(model.tokenizer(example.text, example.pair)["input_ids"])
    product = (gradient * layer(ids).detach().numpy()).sum(-1)
    np.testing.assert_allclose(found["norm"].scores[0], np.linalg.norm(gradient, axis=-1), rtol=1e-5)
    np.testing.assert_allclose(found["times_input"].scores[0], product, rtol=1e-4, atol=1e-6 * np.abs(product).max())
    np.testing.assert_allclose(found["norm1"].scores[0], np.abs(gradient).sum(-1), rtol=1e-5)
    np.testing.assert_allclose(found["absolute"].scores[0], np.abs(found["times_input"].scores[0]))


@pytest.mark.parametrize(
    ("kind", "name"),
    [("bert", "bert.embeddings"), ("distilbert", "distilbert.embeddings"), ("gpt2", "transformer.drop")],
)
def test_the_sum_of_a_gradient_at_the_output_of_the_embeddings_equals_its_definition(kind, name):
    """Whatever the layers below add: all dimensions of what the first layer reads are moved alike."""
    model = headed(kind, "classification", double=True)
    method = "input_gradient:kind=sum,at=embeddings"
    found = importances(model, TEXTS, method, target="class=1:score=logit", batch_size=2)
    for example, scores in zip(TEXTS, found.scores, strict=True):
        module = model.network.get_submodule(name)
        expected = oracle.summed_gradient(model, example, "class=1:score=logit", module)
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-7)  # finite differences of 1e-6


def test_the_sum_of_a_gradient_is_0_only_where_layer_norms_subtract_the_mean():
    """Of the largest gradient: at BERT's word embeddings and in GPT-2 nothing; at BERT's output and in Llama much."""
    shares = {}
    for kind in ("bert", "gpt2", "llama"):
        for at in ("words", "embeddings"):
            model = headed(kind, "classification", double=True)
            total, norm = (importances(model, TEXTS, f"input_gradient:kind={part},at={at}") for part in ("sum", "norm"))
            shares[kind, at] = max(map(np.max, total.scores)) / max(map(np.max, norm.scores))
    nothing = {pair for pair, share in shares.items() if share < 1e-9}
    assert nothing == {("bert", "words"), ("gpt2", "words"), ("gpt2", "embeddings")}
    assert all(share > 0.05 for pair, share in shares.items() if pair not in nothing), shares


def test_special_tokens_can_be_replaced_too():
    model = headed("bert", "classification", double=True)
    found = importances(model, TEXTS, "blank_out:special=replace", target="label")
    for example, scores in zip(TEXTS, found.scores, strict=True):
        expected = oracle.blank_out(model, example, "label", VOCAB.index("[MASK]"), special=True)
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-12)
        assert np.isfinite(scores).all()


def test_gradients_of_an_encoder_decoder_model_are_of_what_its_encoder_reads():
    """Encoder and decoder share their embeddings, and may read the same ids."""
    model = headed("bart", "seq2seq", double=True)
    same = [Example("a", "the cat sat", "the cat sat")]
    result = importances(model, same, "input_gradient:kind=times_input", target="next:word=mat")
    embeddings = [module for module in model.network.modules() if getattr(module, "num_embeddings", 0) == len(VOCAB)]
    assert embeddings
    assert result.tokens[0] == ("[CLS]", "the", "cat", "sat", "[SEP]")
    _, score = oracle.one_text(model, same[0], "next:word=mat")
    encoder = model.network.get_encoder()
    inputs = oracle.prepare_inputs(model, same, None, max_length=None, pad_to=None).tensors
    vectors = encoder.embed_tokens(inputs["input_ids"]).detach()
    scale = 1e-6
    for token in (1, 2):
        scores = []
        for sign in (1, -1):
            moved = vectors.clone()
            moved[0, token] *= 1 + sign * scale
            with torch.no_grad():
                states = encoder(inputs_embeds=moved, attention_mask=inputs["attention_mask"])
                rest = {name: part for name, part in inputs.items() if name != "input_ids"}
                scores.append(float(score(model.network(encoder_outputs=states, **rest))))
        assert result.scores[0][token] == pytest.approx((scores[0] - scores[1]) / (2 * scale), rel=1e-4)


def test_absolute_changes_are_the_absolute_values():
    model = headed("bert", "classification")
    signed, absolute = (importances(model, TEXTS, f"blank_out:change={kind}") for kind in ("signed", "absolute"))
    for ours, theirs in zip(signed.scores, absolute.scores, strict=True):
        np.testing.assert_array_equal(np.abs(ours), theirs)
    assert signed.signed
    assert not absolute.signed


def test_whole_words_are_replaced_together():
    model = headed("bert", "classification", double=True)
    words = [Example("a", "", words=("the", "cat.", "sat"))]  # the second word has two tokens
    result = importances(model, words, "blank_out:units=words", target="class=1")
    assert result.words[0].tolist() == [-1, 0, 1, 1, 2, -1]
    inputs, score = oracle.one_text(model, words[0], "class=1")
    ids = inputs.tensors["input_ids"].clone()
    ids[0, [2, 3]] = VOCAB.index("[MASK]")
    with torch.no_grad():
        before, after = (
            float(score(model.network(**{**inputs.tensors, "input_ids": tokens})))
            for tokens in (inputs.tensors["input_ids"], ids)
        )
    assert result.scores[0][2] == result.scores[0][3] == pytest.approx(before - after, rel=1e-9)


def test_the_target_decides_whose_probability_changes():
    model = headed("bert", "classification", double=True)
    classes = [importances(model, TEXTS, target=f"class={index}") for index in (0, 1)]
    for first, second in zip(classes[0].scores, classes[1].scores, strict=True):
        np.testing.assert_allclose(first, -second, atol=1e-12)  # two probabilities sum to 1
    labels, predicted = importances(model, TEXTS, target="label"), importances(model, TEXTS, target="predicted")
    assert labels.answers == ("LABEL_1", "LABEL_0", "LABEL_1")
    assert (predicted.score >= 0.5).all()
    for row, label in enumerate((1, 0, 1)):
        np.testing.assert_array_equal(labels.scores[row], classes[label].scores[row])


def test_the_predicted_class_stays_that_of_the_whole_text():
    """A token whose loss changes the prediction still has the change of the first prediction's probability."""
    model = headed("bert", "classification", double=True)
    result = importances(model, TEXTS)
    for row, example in enumerate(TEXTS):
        target = f"class={result.answers[row][-1]}"
        np.testing.assert_allclose(
            result.scores[row], oracle.blank_out(model, example, target, VOCAB.index("[MASK]")), atol=1e-12
        )


def test_results_are_in_the_order_of_the_examples_whatever_the_batches():
    model = headed("bert", "classification", double=True)
    together, apart = importances(model, TEXTS, batch_size=3), importances(model, TEXTS, batch_size=1)
    assert [example.id for example in together.examples] == ["a", "b", "c"]
    for ours, theirs, tokens in zip(together.scores, apart.scores, together.tokens, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
        assert len(ours) == len(tokens)


def test_dropout_is_off_and_the_mode_of_every_module_comes_back():
    network = headed_network("bert", "classification").train()
    network.bert.pooler.eval()
    modes = [module.training for module in network.modules()]
    model = load(network, tokenizer=tokenizer())
    first, second = importances(model, TEXTS), importances(model, TEXTS)
    np.testing.assert_array_equal(first.scores[0], second.scores[0])
    assert [module.training for module in network.modules()] == modes
    assert all(weight.grad is None for weight in network.parameters())


def test_frozen_models_have_input_gradients():
    network = headed_network("bert", "classification").requires_grad_(False)
    expected = importances(headed("bert", "classification"), TEXTS, "input_gradient")
    with torch.no_grad():
        result = importances(load(network, tokenizer=tokenizer()), TEXTS, "input_gradient")
    np.testing.assert_allclose(result.scores[1], expected.scores[1], rtol=1e-4)


def test_every_method_rebuilds_from_its_spec():
    for kind in importance_methods:
        assert importance_methods.make(to_spec(kind())) == kind()


def test_the_running_text_is_the_text_as_written():
    model = headed("bert", "classification")
    result = importances(model, [Example("a", "The  cat, it sat.", "A MAT!")], "input_gradient")
    assert "".join(result.pieces[0]) == "[CLS] The  cat, it sat. [SEP] A MAT! [SEP]"
    assert len(result.pieces[0]) == len(result.tokens[0])
    split = importances(model, [Example("a", "", words=("the", "cat.", "sat"))], "input_gradient")
    assert split.pieces[0] == ("[CLS]", " the", " cat", ".", " sat", " [SEP]")


def test_results_become_datasets_and_tables():
    result = importances(headed("bert", "classification"), TEXTS, target="label")
    data = result.to_dataset()
    assert dict(data["importance"].sizes) == {"method": 1, "example": 3, "token": 13}
    np.testing.assert_array_equal(data["importance"].values[0, 0, :8], result.scores[0])
    assert np.isnan(data["importance"].values[0, 0, 8:]).all()
    assert data["answer"].values[0].tolist() == ["LABEL_1", "LABEL_0", "LABEL_1"]
    table = result.to_dataframe()
    assert len(table) == sum(map(len, result.tokens))
    assert table.query("example == 'b'")["importance"].tolist()[1:-1] == result.scores[1][1:-1].tolist()
    assert result.sel(-1).examples[0].id == "c"
    assert dict(result.dataset(1).sizes) == {"method": 1, "token": 13}
    assert repr(result) == "Importances(blank_out, target label, of 3 examples, 26 tokens)"


def test_examples_are_selected_by_numbers_of_any_kind():
    result = importances(headed("bert", "classification"), TEXTS, "input_gradient")
    for chosen in (np.int64(1), np.array([1]), slice(1, 2), [1], "b"):
        assert [example.id for example in result.sel(chosen).examples] == ["b"]
    assert len(result.sel(slice(None, None, -1))) == 3
    with pytest.raises(InputError, match=r"There is no example 1\.5"):
        result.sel(1.5)


def test_long_texts_are_truncated_with_one_warning():
    with pytest.warns(DataWarning, match="2 of 3 texts are longer than 7 tokens") as notes:
        result = importances(headed("bert", "classification"), TEXTS, max_length=7, batch_size=1)
    assert len(notes) == 1
    assert [len(tokens) for tokens in result.tokens] == [7, 7, 5]


def test_mistakes_are_refused_in_a_sentence():
    model = headed("bert", "classification")
    with pytest.raises(InputError, match="No importance is called 'blankout'. Did you mean 'blank_out'?"):
        importances(model, "the cat", "blankout")
    with pytest.raises(InputError, match="BertModel has no head that predicts one"):
        importances(tiny("bert"), "the cat")
    with pytest.raises(InputError, match="Importances are of the tokens of texts"):
        importances(model, {"input_ids": torch.ones(1, 3)})
    with pytest.raises(InputError, match="batch_size must be at least 1, but got 0"):
        importances(model, "the cat", batch_size=0)
    with pytest.raises(InputError, match="There is no example 5: these importances are of 1, counted from 0"):
        importances(model, "the cat").sel(5)


def test_a_token_that_is_missing_or_pads_is_no_replacement():
    bare = tokenizer().__class__(
        tokenizer_object=tokenizer().backend_tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )
    without = load(headed_network("bert", "classification"), tokenizer=bare)
    with pytest.raises(InputError, match="The tokenizer has no 'mask' token to replace words by. Give replace='unk'"):
        importances(without, "the cat")
    with pytest.raises(InputError, match="Give baseline='unk'"):
        importances(without, "the cat", "integrated_gradients:baseline=mask")
    pads = load(headed_network("gpt2", "classification", pad_token_id=1), tokenizer=tokenizer())
    with pytest.raises(InputError, match="The 'unk' token of this model is also its padding token"):
        importances(pads, "the cat", "blank_out:replace=unk")
