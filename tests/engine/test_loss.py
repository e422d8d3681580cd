"""Captures with the loss as target: of labels, numbers, masked tokens and next tokens."""

import math

import pytest
import torch

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.target import parse_target
from headscope.data.tokenizing.masking import IGNORED
from headscope.engine.capture import capture, prepare_inputs
from headscope.engine.importances import importances
from headscope.engine.load import load
from headscope.engine.loss import mask_inputs
from headscope.engine.readout import find_readout
from headscope.measuring.measure import measure
from headscope.training.tasks.mlm import Mlm
from tests.heads import headed, headed_network
from tests.models import text, tiny, tokenizer
from tests.oracles.gradient import finite_difference

TEXTS = [Example("a", text(6, 1), label=1), Example("b", f"{text(9, 2)} .", label=0)]
MODELS = [("bert", "classification"), ("bert", "mlm"), ("distilbert", "mlm"), ("gpt2", "causal")]


def prepare(model, texts=TEXTS, seed=0):
    return mask_inputs(model, prepare_inputs(model, texts, None, max_length=None, pad_to=None), seed)


def literal_losses(model, inputs, kind):
    """Return the loss of each example, token by token from softmax probabilities."""
    with torch.no_grad():
        chances = model.network(**inputs.tensors).logits.double().softmax(-1)
    if kind == "classification":
        return [-math.log(chances[row, example.label]) for row, example in enumerate(inputs.examples)]
    losses = []
    for row in range(len(inputs.examples)):
        ids, count = inputs.tensors["input_ids"][row], int(inputs.source.real[row].sum())
        if kind == "causal":
            terms = [-math.log(chances[row, at, ids[at + 1]]) for at in range(count - 1)]
        else:
            labels = inputs.token_labels[row].tolist()
            terms = [-math.log(chances[row, at, label]) for at, label in enumerate(labels) if label != IGNORED]
        losses.append(sum(terms) / len(terms))
    return losses


@pytest.mark.parametrize(("kind", "head"), MODELS)
def test_the_gradient_is_the_finite_difference_of_the_literal_loss(kind, head):
    model = headed(kind, head, double=True)
    trace, inputs = capture(model, TEXTS, target="loss"), prepare(model)
    with torch.no_grad():
        output = model.network(**inputs.tensors)
    readout = find_readout(model, inputs, output, parse_target("loss"))
    assert readout.score(output).tolist() == pytest.approx(literal_losses(model, inputs, head), rel=1e-9)
    for layer, cell in [(0, (0, 1, 2, 1)), (1, (1, 2, 4, 2))]:
        expected = finite_difference(model, inputs.tensors, readout.score, layer, cell)
        assert float(trace.gradient[layer][cell]) == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_masks_are_those_of_training_and_do_not_depend_on_the_batch():
    model = headed("bert", "mlm")
    together, alone = prepare(model), prepare(model, TEXTS[1:])
    count = int(alone.source.real.sum())
    assert torch.equal(together.token_labels[1, :count], alone.token_labels[0])
    assert torch.equal(together.tensors["input_ids"][1, :count], alone.tensors["input_ids"][0])
    original = prepare_inputs(model, TEXTS, None, max_length=None, pad_to=None).tensors["input_ids"]
    selected = together.token_labels != IGNORED
    assert selected.any(-1).all()
    assert torch.equal(original[selected], together.token_labels[selected])
    assert torch.equal(original[~selected], together.tensors["input_ids"][~selected])
    assert not torch.equal(prepare(model, seed=1).token_labels, together.token_labels)


def test_masked_tokens_are_named_and_belong_to_no_word():
    examples = [Example(str(at), text(20, at)) for at in range(8)]
    trace = capture(headed("bert", "mlm"), examples, target="loss")
    spelled = [token for row in trace.keys.text for token in row]
    masks = trace.keys.roles == 3
    assert 8 < spelled.count("[MASK]") == int(masks.sum()) < 40  # about 12 % of 160 tokens
    assert (trace.keys.word[masks] == -1).all()


def test_a_batch_with_labels_is_masked_already():
    model = headed("bert", "mlm")
    batch = Mlm().make_batch(tokenizer(), Mlm().encode(tokenizer(), TEXTS, None), (0, 0))
    trace = capture(model, batch, target="loss")
    assert trace.keys.text == [
        tokenizer().convert_ids_to_tokens(row[mask.bool()])
        for row, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    ]


def test_a_regression_has_the_squared_error():
    model = load(headed_network("bert", "classification", num_labels=1).double(), tokenizer=tokenizer())
    inputs = prepare(model)
    with torch.no_grad():
        output = model.network(**inputs.tensors)
    losses = find_readout(model, inputs, output, parse_target("loss")).score(output)
    assert losses.tolist() == pytest.approx([(float(output.logits[row, 0]) - (1, 0)[row]) ** 2 for row in (0, 1)])


def test_the_loss_is_measured_and_stamped():
    statistic = "token_types:source=all,reduce=mean,types=sep+mask+other_text"
    data = measure(
        headed("bert", "mlm"), TEXTS, lens="gradient", statistics=[statistic], target="loss:seed=3", progress=False
    )
    assert '"target": "loss:seed=3"' in data.attrs["headscope"]
    assert (data["token_types_absolute"].sel(type="sep") > 0).all()


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("loss:score=logit", "No parameter of the target 'loss' is called 'score'"),
        ("loss:seed=x", "The seed of a target must be a whole number, but got 'x'."),
    ],
)
def test_parameters_of_a_loss_are_checked(target, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_target(target)


def test_a_loss_that_is_not_known_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="BertModel has no head that predicts one"):
        capture(tiny("bert"), TEXTS, target="loss")
    with pytest.raises(InputError, match="needs the label of each example as a number from 0 to 1"):
        capture(headed("bert", "classification"), ["the cat"], target="loss")
    with pytest.raises(InputError, match="target='loss' is known for classes, numbers, masked words and next words"):
        capture(headed("bart", "seq2seq"), [("the cat", "it slept")], target="loss")
    with pytest.raises(InputError, match="importances explain one prediction"):
        importances(headed("bert", "mlm"), "the cat", target="loss")
