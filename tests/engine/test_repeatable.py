"""A pass that took too much for granted is run again, and one that could not be run again takes nothing for granted.

Layers are treated as on a GPU, on any device.
"""

import copy
from functools import wraps

import pytest
import torch
from torch import nn
from transformers import BertModel, DynamicCache, EncoderDecoderCache

from benchmarks.gpu import questions
from headscope.edits.effective_attention import EffectiveAttention
from headscope.effective import layers as effective
from headscope.effective.assumptions import Assumptions
from headscope.engine.capture import capture
from headscope.engine.edited import edited
from headscope.engine.load import load
from tests.gpu import gpu
from tests.models import network, tokenizer

PLAIN = {"input_ids": torch.arange(2, 30)[None]}
REPEATED = {"input_ids": torch.tensor([[2, *[9] * 26, 3]])}  # three vectors: their values have rank 3 at most


@pytest.fixture
def taken(monkeypatch):
    """How often something was taken for granted."""
    found = []
    take = Assumptions.take
    monkeypatch.setattr(effective, "_at_once", lambda attention, values: values.dtype == torch.float32)
    monkeypatch.setattr(Assumptions, "take", lambda self, *given: found.append(given) or take(self, *given))
    return found


def without_places(kind="bert", **changes):
    """A model to which all places of a text are the same."""
    there = network(kind, **changes)
    there.eval().requires_grad_(False)
    for name, each in there.named_parameters():
        if "position_embeddings" in name:
            each.zero_()
    there.set_attn_implementation("eager")
    return load(there, tokenizer=tokenizer())


@pytest.fixture
def passes(monkeypatch):
    """The passes of BERTs."""
    found, forward = [], BertModel.forward

    @wraps(forward)
    def counted(self, *given, **named):
        found.append(self)
        return forward(self, *given, **named)

    monkeypatch.setattr(BertModel, "forward", counted)
    return found


def hidden(model, given):
    with torch.no_grad():
        return model.network(**given).last_hidden_state


def test_the_first_pass_asks_and_the_next_takes_for_granted(taken, passes):
    model = without_places()
    plain = hidden(model, PLAIN)
    with edited(model, "effective_attention"):
        torch.testing.assert_close(hidden(model, PLAIN), plain, atol=1e-5, rtol=1e-4)
        assert not taken
        torch.testing.assert_close(hidden(model, PLAIN), plain, atol=1e-5, rtol=1e-4)
    assert (len(taken), len(passes)) == (2, 3)  # both layers, and no pass too many


def test_a_pass_that_took_too_much_for_granted_is_run_again(taken, passes):
    model = without_places()
    plain = hidden(model, REPEATED)
    with edited(model, "effective_attention"):
        hidden(model, PLAIN)
        torch.testing.assert_close(hidden(model, REPEATED), plain, atol=1e-5, rtol=1e-4)
        assert (len(taken), len(passes)) == (2, 4)
        torch.testing.assert_close(hidden(model, REPEATED), plain, atol=1e-5, rtol=1e-4)
        assert (len(taken), len(passes)) == (4, 5)  # it has learned
        torch.testing.assert_close(hidden(model, PLAIN), hidden(model, PLAIN))
    assert len(passes) == 7


def test_layers_are_numbered_the_same_in_a_pass_that_is_run_again(taken):
    model = without_places()
    with edited(model, EffectiveAttention(layers=(1,))):
        hidden(model, PLAIN)
        found = hidden(model, REPEATED)
    torch.testing.assert_close(found, hidden(model, REPEATED), atol=1e-5, rtol=1e-4)
    assert len(taken) == 1


def test_an_error_in_the_second_run_is_the_users_to_see(taken):
    model = without_places()
    with edited(model, "effective_attention"):
        hidden(model, PLAIN)
        model.network.embeddings.word_embeddings.weight[9] = torch.nan
        with pytest.raises(Exception, match="NaN or infinite"):
            hidden(model, REPEATED)
        assert torch.isfinite(hidden(model, {"input_ids": torch.arange(10, 30)[None]})).all()


def listened(model, given):
    handle = model.network.encoder.layer[0].register_forward_hook(lambda *_: None)
    found = hidden(model, given)
    handle.remove()
    return found


def with_a_forward_of_its_own(model, given):
    layer = model.network.encoder.layer[0].output
    forward = layer.forward
    layer.forward = lambda *given: forward(*given)
    found = hidden(model, given)
    del layer.forward
    return found


def watched_by_all(model, given):
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        return hidden(model, given)
    finally:
        handle.remove()


def with_gradients(model, given):
    return model.network(**given).last_hidden_state.detach()


def with_dropout(model, given):
    model.network.encoder.layer[1].output.dropout.train()
    model.network.encoder.layer[1].output.dropout.p = 0.0
    found = hidden(model, given)
    model.network.eval()
    return found


def inside_another(model, given):
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model.network

        def forward(self, **named):
            return self.inner(**named)

    with torch.no_grad():
        return Outer()(**given).last_hidden_state


def with_a_thing(model, given):
    with torch.no_grad():
        return model.network(**given, thing={"kept": []}).last_hidden_state


def captured(model, given):
    capture(model, given)


@pytest.mark.parametrize(
    "way",
    [
        listened,
        with_a_forward_of_its_own,
        watched_by_all,
        with_gradients,
        with_dropout,
        inside_another,
        with_a_thing,
        captured,
    ],
)
def test_a_pass_that_could_not_be_run_again_takes_nothing_for_granted(way, taken):
    model = without_places()
    plain = hidden(model, REPEATED)
    with edited(model, "effective_attention"):
        hidden(model, PLAIN)
        found = way(model, REPEATED)
        assert not taken
        hidden(model, PLAIN)
        assert taken  # it was this pass, not the model
    if found is not None:
        torch.testing.assert_close(found, plain, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "edits", [("effective_attention",) * 2, ("effective_attention:layers=0", "effective_attention:layers=1")]
)
def test_with_several_edits_nothing_is_taken_for_granted(edits, taken):
    model = without_places()
    with edited(model, *edits):
        hidden(model, PLAIN)
        hidden(model, PLAIN)
    assert not taken
    with edited(model, edits[0]), edited(model, edits[1]):
        hidden(model, PLAIN)
        hidden(model, PLAIN)
    assert not taken


def test_with_a_cache_nothing_is_taken_for_granted(taken):
    model = load(network("bart").eval(), tokenizer=tokenizer())
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    given = {**PLAIN, "decoder_input_ids": torch.tensor([[2, 8]]), "past_key_values": cache, "use_cache": True}
    with edited(model, "effective_attention"), torch.no_grad():
        model.network(**given)
        more = {**given, "decoder_input_ids": torch.tensor([[9]])}
        model.network(**more)
    assert not taken
    assert cache.get_seq_length() == 3


def test_after_the_library_has_listened_passes_can_still_be_run_again(taken):
    model = without_places()
    with torch.no_grad():
        model.network(**PLAIN, output_attentions=True, output_hidden_states=True)
    with edited(model, "effective_attention"), torch.no_grad():
        model.network(**PLAIN)
        made = model.network(**REPEATED, output_attentions=True, output_hidden_states=True)
    assert taken
    assert (len(made.attentions), len(made.hidden_states)) == (2, 3)


def test_a_copied_network_is_run_by_itself(taken):
    model = without_places()
    with edited(model, "effective_attention"):
        hidden(model, PLAIN)
        other = copy.deepcopy(model.network)
        with torch.no_grad():
            other(**REPEATED)
    assert not taken


@gpu
def test_on_a_gpu_the_number_of_questions_does_not_depend_on_the_number_of_layers():
    asked = []
    for layers in (2, 6):
        model = without_places(num_hidden_layers=layers)
        model.network.to("cuda")
        plain, repeated = ({name: each.cuda() for name, each in given.items()} for given in (PLAIN, REPEATED))
        wanted = hidden(model, repeated)
        with edited(model, "effective_attention"):
            for _ in range(12):
                hidden(model, plain)
            for _ in range(12):
                torch.testing.assert_close(hidden(model, repeated), wanted, atol=1e-5, rtol=1e-4)
            asked.append(questions(lambda model=model, given=repeated: hidden(model, given)))
    assert asked[0] == asked[1] <= 3  # who sees whom, how many, and whether all is as assumed
