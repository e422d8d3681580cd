"""Captures with a target: the gradient of a prediction with respect to attention."""

import threading

import pytest
import torch

from headscope.core.errors import InputError, NotCaptured
from headscope.core.example import Example
from headscope.core.lens import view
from headscope.core.target import parse_target
from headscope.core.trace import Trace
from headscope.engine.capture import by_layer, capture, prepare_inputs, stream
from headscope.engine.generate import generate
from headscope.engine.load import load
from headscope.engine.readout import find_readout
from tests.heads import headed, headed_network
from tests.models import KINDS, batch, network, sites, text, tiny, tokenizer
from tests.oracles.gradient import finite_difference

PLACES = [(kind, site) for kind in KINDS for site in sites(kind)]
TEXTS = [Example("a", text(6, 1), label=1), Example("b", text(9, 2), label=0)]
MASKED = ["the cat [MASK] on a mat .", "it slept [MASK] ."]
DIRECTION = torch.randn(32, generator=torch.Generator().manual_seed(3))


def along(output):
    """A score of models without a head: the first token's hidden state along a fixed direction."""
    return output.last_hidden_state[:, 0] @ DIRECTION.to(output.last_hidden_state)


@pytest.mark.parametrize(("kind", "site"), PLACES)
def test_a_target_changes_neither_attention_nor_predictions(kind, site):
    plain, trace = (capture(tiny(kind), batch(kind), site=site, target=target) for target in (None, along))
    assert trace.held == plain.held | {"gradient"}
    for ours, theirs, seen, gradient in zip(
        trace.attention, plain.attention, trace.visible, trace.gradient, strict=True
    ):
        assert torch.equal(ours, theirs)
        assert not ours.requires_grad
        assert gradient.shape == ours.shape
        assert not gradient.masked_fill(seen[:, None], 0).any()
    assert any(gradient.any() for gradient in trace.gradient)
    assert torch.equal(trace.model_output.last_hidden_state, plain.model_output.last_hidden_state)
    assert not trace.model_output.last_hidden_state.requires_grad


CASES = [
    ("bert", "classification", TEXTS, "predicted"),
    ("bert", "classification", TEXTS, "label"),
    ("distilbert", "classification", TEXTS, "class=1:score=logit"),
    ("gpt2", "classification", TEXTS, "class=0"),
    ("roberta", "classification", TEXTS, "label"),
    ("bert", "mlm", MASKED, "mask:word=slept"),
    ("albert", "mlm", MASKED, "predicted"),
    ("gpt2", "causal", TEXTS, "next:word=mat"),
]


@pytest.mark.parametrize(("kind", "head", "texts", "target"), CASES)
def test_the_gradient_is_the_finite_difference_of_the_score(kind, head, texts, target):
    model = headed(kind, head, double=True)
    trace = capture(model, texts, target=target)
    inputs = prepare_inputs(model, texts, None, max_length=None, pad_to=None)
    with torch.no_grad():
        readout = find_readout(model, inputs, model.network(**inputs.tensors), parse_target(target))
    last = int(trace.queries.counts[0]) - 1
    largest = max(float(gradient.abs().max()) for gradient in trace.gradient)
    for layer, cell in [(0, (0, 1, 2, 1)), (0, (1, 3, last, 0)), (1, (0, 0, 0, 0)), (1, (1, 2, last, 2))]:
        if not trace.visible[layer][cell[0], cell[2], cell[3]]:
            continue
        expected = finite_difference(model, inputs.tensors, readout.score, layer, cell)
        assert float(trace.gradient[layer][cell]) == pytest.approx(expected, rel=1e-5, abs=1e-7 * largest)


@pytest.mark.parametrize("kind", ["gptj", "gpt_neo", "bloom", "xlnet", "deberta-v2", "mpnet"])
def test_followed_models_have_the_gradient_of_the_weights_they_compute_with(kind):
    """The score is linear in A of the last layer up to its norms, so Σ A·∂A of one row is the effect of scaling it."""
    model = load(network(kind).double(), tokenizer=tokenizer())
    trace = capture(model, [text(5, 1)], target=along)
    values, output = trace.values[-1], trace.output[-1]
    assert trace.gradient[-1].shape == trace.attention[-1].shape
    hook_sum = trace.gradient[-1][0, 0, 0] @ torch.ones_like(values[0, 0, :, 0])
    assert torch.isfinite(hook_sum)
    # ∂A[q, k] = V[k] · g[q] for one vector g[q] per query: the gradient has the rank of the values
    rank = torch.linalg.matrix_rank(torch.cat([values[0, 0], trace.gradient[-1][0, 0].mT], dim=-1), rtol=1e-9)
    assert rank == torch.linalg.matrix_rank(values[0, 0], rtol=1e-9)
    assert output is not None


def test_frozen_models_have_the_same_gradient():
    for kind in ("bert", "gptj"):
        frozen = load(network(kind), tokenizer=tokenizer())
        frozen.network.requires_grad_(False)
        for ours, theirs in zip(
            capture(frozen, batch(kind), target=along).gradient,
            capture(tiny(kind), batch(kind), target=along).gradient,
            strict=True,
        ):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)


def test_the_caller_may_have_switched_gradients_off():
    expected = capture(tiny("bert"), batch("bert"), target=along).gradient[0]
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert torch.equal(capture(tiny("bert"), batch("bert"), target=along).gradient[0], expected)


def test_no_gradient_is_left_on_the_weights():
    model = load(network("bert"), tokenizer=tokenizer())
    capture(model, batch("bert"), target=along)
    assert all(weight.grad is None for weight in model.network.parameters())


def test_half_precision_keeps_the_gradient_of_a_saturated_probability():
    confident = headed_network("bert", "classification")
    with torch.no_grad():
        confident.classifier.bias.copy_(torch.tensor([14.0, -14.0]))
    exact = capture(load(confident.double(), tokenizer=tokenizer()), TEXTS, target="class=0").gradient[0]
    half = capture(load(confident.half(), tokenizer=tokenizer()), TEXTS, target="class=0").gradient[0].double()
    assert exact.abs().max() < 1e-9  # float16 itself holds no number below 6e-8
    assert (half - exact).norm() < 0.1 * exact.norm()  # three digits, two layers deep


def test_gradients_do_not_depend_on_the_batch_or_the_thread():
    model = headed("bert", "classification")
    together = capture(model, TEXTS, target="label")
    found = {}
    threads = [
        threading.Thread(target=lambda row=row: found.update({row: capture(model, [TEXTS[row]], target="label")}))
        for row in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for row, alone in found.items():
        count = int(alone.keys.counts[0])
        for ours, theirs in zip(together.gradient, alone.gradient, strict=True):
            torch.testing.assert_close(ours[row : row + 1, :, :count, :count], theirs, rtol=1e-4, atol=1e-6)


def test_layers_and_heads_can_be_selected():
    model = headed("bert", "classification")
    whole, part = capture(model, TEXTS, target="label"), capture(model, TEXTS, target="label", layers=-1, heads=[2, 0])
    assert torch.equal(part.gradient[0], whole.gradient[1][:, [2, 0]])


def test_stream_takes_a_target():
    model = headed("bert", "classification")
    first, second = stream(model, TEXTS, batch_size=1, target="label")
    assert first.gradient[0].any()
    assert second.examples[0].id == "b"


def test_a_tokenised_batch_brings_its_labels():
    model = headed("bert", "classification")
    inputs = prepare_inputs(model, TEXTS, None, max_length=None, pad_to=None).tensors
    labeled = capture(model, {**inputs, "labels": torch.tensor([1, 0])}, target="label")
    expected = capture(model, TEXTS, target="label")
    assert torch.equal(labeled.gradient[0], expected.gradient[0])


def test_image_classifiers_have_gradients():
    import transformers

    torch.manual_seed(0)
    config = transformers.ViTConfig(**KINDS["vit"], num_labels=3)
    model = load(transformers.ViTForImageClassification(config).eval())
    assert capture(model, batch("vit"), target="class=2").gradient[0].any()


def test_an_encoder_decoder_model_predicts_the_next_word_of_its_decoder():
    model = headed("bart", "seq2seq")
    pair = [("the cat sat", "it slept"), ("a dog ran fast", "the old man sang")]
    for site in ("encoder", "decoder", "cross"):
        trace = capture(model, pair, site=site, target="next:word=mat")
        assert all(gradient.any() for gradient in trace.gradient)


def test_attention_times_gradient_is_the_product():
    trace = capture(headed("bert", "classification"), TEXTS, target="label")
    maps = view(trace, "gradient:times_attention=true")
    assert maps.signed
    torch.testing.assert_close(maps.layer(0), trace.gradient[0] * trace.attention[0])


def test_a_trace_of_tensors_takes_a_gradient():
    attention, gradient = torch.full((1, 2, 3, 3), 1 / 3), torch.randn(1, 2, 3, 3)
    trace = Trace.of([attention], ["a", "b", "c"], gradient=[gradient], visible="causal")
    assert torch.equal(view(trace, "gradient").layer(0), gradient.tril())
    with pytest.raises(InputError, match=r"gradient\[0\] has shape \[2, 3, 3, 1\]"):
        Trace.of([attention], ["a", "b", "c"], gradient=[gradient[0, :, :, :, None]], visible="all")


REFUSED = [
    ("bert", None, TEXTS, "predicted", "BertModel has no head that predicts one"),
    ("bert", "classification", TEXTS, "mask:word=cat", "asks for a word, but BertForSequenceClassification predicts a"),
    (
        "bert",
        "classification",
        TEXTS,
        "class=good",
        "This model has no class 'good'. Its classes: LABEL_0 and LABEL_1.",
    ),
    ("bert", "classification", ["the cat"], "label", "but that of example '0' is None. Give labels"),
    (
        "bert",
        "mlm",
        ["the cat sat"],
        "mask:word=cat",
        "example '0' has none of them. Write [MASK] once into each text.",
    ),
    ("bert", "mlm", MASKED, "mask:word=elephant", "must be one token of the tokenizer, but is unknown to it"),
    ("bert", "mlm", MASKED, "mask:word=old man", "but is 2 tokens ('old' and 'man')"),
    ("bert", "mlm", MASKED, "mask:column=verb", "Example '0' has no word in a column 'verb'. It has no columns."),
    ("bert", "mlm", MASKED, "label", "asks for a class, but BertForMaskedLM predicts words. Give 'mask:word=WORD'"),
    ("bert", "mlm", MASKED, "next", "does not fit BertForMaskedLM, which predicts words at a mask token. Give 'mask'"),
    ("gpt2", "causal", MASKED, "mask:word=cat", "does not fit GPT2LMHeadModel, which continues texts. Give 'next'"),
]


@pytest.mark.parametrize(("kind", "head", "texts", "target", "sentence"), REFUSED)
def test_a_target_that_does_not_fit_is_refused_in_a_sentence(kind, head, texts, target, sentence):
    with pytest.raises(InputError) as error:
        capture(tiny(kind) if head is None else headed(kind, head), texts, target=target)
    assert sentence in str(error.value)


def test_a_regression_head_has_one_number_and_no_classes():
    model = load(headed_network("bert", "classification", num_labels=1), tokenizer=tokenizer())
    assert capture(model, TEXTS, target="predicted").gradient[0].any()
    with pytest.raises(InputError, match="asks for a class, but this model predicts a number"):
        capture(model, TEXTS, target="class=0")


def test_labels_under_other_names_are_refused():
    model = load(
        headed_network("bert", "classification", id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1}),
        tokenizer=tokenizer(),
    )
    assert capture(model, TEXTS, target="class=good").gradient
    named = [Example("a", "the cat", label=1, columns={"label_name": "fair"})]
    with pytest.raises(InputError, match="The labels of the data are names, 'fair', but the classes are called bad an"):
        capture(model, named, target="label")


def test_a_function_must_give_one_number_per_example():
    with pytest.raises(InputError, match=r"one number per example, \[3\], not \[3, 32\]"):
        capture(tiny("bert"), batch("bert"), target=lambda output: output.last_hidden_state[:, 0])


def test_other_captures_say_that_the_gradient_comes_with_a_target():
    with pytest.raises(InputError, match="The gradient is kept where a target is given"):
        capture(tiny("bert"), "the cat", keep=("attention", "gradient"))
    with pytest.raises(InputError, match="hs.by_layer and hs.generate have none"):
        by_layer(tiny("bert"), "the cat", see=len, keep="gradient")
    with pytest.raises(InputError, match="hs.by_layer and hs.generate have none"):
        generate(headed("gpt2", "causal"), "the cat", keep="gradient")
    with pytest.raises(NotCaptured, match="target='predicted'"):
        view(capture(tiny("bert"), "the cat"), "gradient")
