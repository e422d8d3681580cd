"""What the model itself returned stays with the trace: logits, and the loss where labels were given."""

import pytest
import torch
from transformers import BertForSequenceClassification, GPT2LMHeadModel

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.engine.batch import make_batches
from headscope.engine.capture import ATTENTIONS, by_layer, capture, stream
from headscope.engine.generate import generate
from headscope.engine.load import load
from headscope.measuring.observe import Observer
from headscope.measuring.settings import make_measure_settings
from tests.models import batch, network, text, tiny, tokenizer

TEXTS = [text(5), text(9)]


def classifier():
    torch.manual_seed(0)
    return load(BertForSequenceClassification(network("bert").config).eval(), tokenizer=tokenizer())


def plain(model, inputs):
    """What the network returns without headscope, with eager attention."""
    model.network.set_attn_implementation("eager")
    with torch.no_grad():
        output = model.network(**inputs)
    model.network.set_attn_implementation("sdpa")
    return output


def test_logits_and_loss_are_those_of_the_model():
    model = classifier()
    inputs = {**tokenizer()(TEXTS, padding=True, return_tensors="pt"), "labels": torch.tensor([1, 0])}
    output, expected = capture(model, inputs).model_output, plain(model, inputs)
    assert torch.equal(output.logits, expected.logits)
    assert torch.equal(output.loss, expected.loss)


def test_without_labels_there_is_no_loss():
    output = capture(classifier(), TEXTS).model_output
    assert output.loss is None
    assert output.logits.shape == (2, 2)


def test_every_batch_of_a_stream_has_its_own():
    model = classifier()
    together = capture(model, TEXTS).model_output.logits
    apart = torch.cat([trace.model_output.logits for trace in stream(model, TEXTS, batch_size=1)])
    torch.testing.assert_close(apart, together, atol=1e-6, rtol=1e-5)  # other batch, other sums


@pytest.mark.parametrize("kind", ["bert", "t5", "deberta-v2", "xlnet"])
def test_attention_is_held_once(kind):
    trace = capture(tiny(kind), batch(kind), layers=[0])
    assert not ATTENTIONS & trace.model_output.keys()
    hidden = trace.model_output.last_hidden_state
    assert torch.isfinite(hidden).all()


def test_it_is_kept_by_default_or_by_name():
    assert "model_output" in capture(tiny("bert"), TEXTS).held
    assert capture(tiny("bert"), TEXTS, keep=("values",)).model_output is None
    named = capture(tiny("bert"), TEXTS, keep=("model_output",))
    assert named.held == {"attention", "model_output"}
    assert named.model_output.last_hidden_state.shape == (2, 11, 32)
    assert view(named, "raw").weights.shape[1] == 2


def test_where_there_is_no_whole_forward_pass_it_cannot_be_kept():
    sentence = "Cannot keep model_output. What can be kept: attention, output, pads, values"
    with pytest.raises(InputError, match=sentence):
        by_layer(tiny("bert"), TEXTS, see=lambda trace: trace, keep=("model_output",))
    writer = load(GPT2LMHeadModel(network("gpt2").config).eval(), tokenizer=tokenizer())
    with pytest.raises(InputError, match=sentence):
        generate(writer, "the cat", max_new_tokens=2, keep=("model_output",))
    assert by_layer(tiny("bert"), TEXTS, see=lambda trace: trace.model_output) == [None, None]


def test_a_measurement_does_not_hold_it():
    model = tiny("bert")
    (inputs,) = make_batches(model, list(capture(model, TEXTS).examples), 2)
    observer = Observer(model, make_measure_settings("effective", ["entropy"]))
    assert observer._capture(inputs, None)["model"].model_output is None
