"""Running a model with changed attention."""

import contextvars
import copy
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pytest
import torch
import transformers
from transformers.modeling_outputs import BaseModelOutputWithPast

from headscope.core.edit import Edit
from headscope.core.errors import CaptureError, InputError, UnknownName
from headscope.core.lens import view
from headscope.data.reading.read import read, read_texts
from headscope.edits.effective_attention import EffectiveAttention
from headscope.engine.batch import make_batches
from headscope.engine.capture import capture
from headscope.engine.edited import edited, make_edit
from headscope.engine.load import load
from headscope.engine.model import check_model
from tests.laws.test_families import inputs_of
from tests.models import KINDS, TEXT_TO_TEXT, batch, network, text, tiny, tokenizer
from tests.oracles import effective as literal

PAPER = "effective_attention:keys=paper"
LENGTHS = {"input_ids": torch.tensor([[2, 7, 8, 9, 3, 0, 0], [2, 7, 8, 9, 10, 11, 3]])}
GIVEN = {**LENGTHS, "attention_mask": (LENGTHS["input_ids"] > 0).long()}


@dataclass(frozen=True)
class Noting(Edit):
    """Changes nothing and notes where it was called."""

    places: list = field(default_factory=list)

    def __call__(self, heads):
        self.places.append((heads.site, heads.layer))


@dataclass(frozen=True)
class Scaled(Edit):
    """Multiplies what each head writes."""

    by: object = None
    layers: tuple[int, ...] | None = None

    def __call__(self, heads):
        return heads.context * self.by


@dataclass(frozen=True)
class Narrow(Edit):
    """Gives a context of the wrong shape."""

    def __call__(self, heads):
        return heads.context[:, :1]


def fresh(kind="bert", **changes):
    return load(network(kind, **changes), tokenizer=tokenizer())


def hidden(model, tensors=GIVEN):
    with torch.no_grad():
        return model.network(**tensors).last_hidden_state


def loss(model):
    """A number to take gradients of; not of a whole state, whose squares sum to the same after a norm."""
    return model.network(**GIVEN).last_hidden_state[:, 0, :10].square().sum()


def eager(model):
    other = copy.deepcopy(model.network)
    other.set_attn_implementation("eager")
    return replace(model, network=other)


def padded_to_128(model):
    (inputs,) = make_batches(model, read_texts([text(words, seed=words) for words in (20, 60, 110)]), 3, pad_to=128)
    return inputs.tensors


def test_the_real_model_computes_the_same_with_effective_attention(minilm):
    worst = 0.0
    for inputs in make_batches(minilm, read("sample"), 8):
        plain = hidden(minilm, inputs.tensors)
        with edited(minilm, "effective_attention") as changed:
            made = hidden(changed, inputs.tensors)
        real = inputs.tensors["attention_mask"].bool()
        worst = max(worst, float((made - plain)[real].abs().max()))
    assert 0 < worst <= 1e-4


def published(network, tensors):
    """Paper's effective attention in place of attention, by hooks that compute it all over again."""
    real = tensors["attention_mask"].bool()

    def instead(module, given, made):
        heads = module.num_attention_heads
        query, key, value = (
            layer(given[0]).unflatten(-1, (heads, -1)).transpose(1, 2)
            for layer in (module.query, module.key, module.value)
        )
        scores = query @ key.mT / query.shape[-1] ** 0.5
        attention = scores.masked_fill(~real[:, None, None, :], -torch.inf).softmax(-1)
        context = literal.as_published(attention, value, real) @ value
        context = torch.where(real[:, None, :, None], context, attention @ value)  # padding keeps its own
        return (context.transpose(1, 2).flatten(2), *made[1:])

    hooks = [layer.attention.self.register_forward_hook(instead) for layer in network.encoder.layer]
    with torch.no_grad():
        made = network(**tensors).last_hidden_state
    for hook in hooks:
        hook.remove()
    return made


def test_the_papers_variant_equals_a_literal_version_and_changes_the_output():
    model = fresh(max_position_embeddings=128)
    tensors = padded_to_128(model)
    plain, wanted = hidden(model, tensors), published(model.network, tensors)
    with edited(model, PAPER) as changed:
        made = hidden(changed, tensors)
    assert (made - wanted).norm() <= 1e-4 * wanted.norm()  # float32 decompositions by two roads
    real = tensors["attention_mask"].bool()
    assert (made - plain)[real].norm() > 0.01 * plain[real].norm()


def test_the_papers_variant_changes_a_real_model_and_the_padded_one_does_not(minilm):
    (inputs,) = make_batches(minilm, read("sample")[:4], 4, pad_to=128)
    plain = hidden(minilm, inputs.tensors)
    real = inputs.tensors["attention_mask"].bool()
    apart = {}
    for keys in ("padded", "paper"):
        with edited(minilm, EffectiveAttention(keys)) as changed:
            made = hidden(changed, inputs.tensors)
        apart[keys] = float((made - plain)[real].norm() / plain[real].norm())
    assert apart["padded"] <= 1e-5
    assert 1e-3 < apart["paper"] < 1


@pytest.mark.parametrize("kind", ["albert", "bert", "gpt2"])
def test_an_edit_that_changes_nothing_gives_what_eager_attention_gives(kind):
    with edited(tiny(kind), Noting()) as changed:
        made = hidden(changed)
    assert torch.equal(made, hidden(eager(tiny(kind))))


def test_only_the_layers_that_are_named_change():
    model, given = tiny("albert"), batch("albert")  # one module serves its three layers
    plain = capture(model, given)
    with edited(model, Scaled(by=0.0, layers=(1,))) as changed:
        trace = capture(changed, given)
    assert torch.equal(trace.attention[0], plain.attention[0])
    assert torch.equal(trace.attention[1], plain.attention[1])  # computed before this layer's heads write
    assert not torch.equal(trace.attention[2], plain.attention[2])


def test_a_trace_of_an_edited_model_holds_attention_and_its_own_output():
    with edited(tiny("bert"), Scaled(by=3.0)) as changed:
        trace = capture(changed, batch("bert"))
    for attention, values, context in zip(trace.attention, trace.values, trace.context, strict=True):
        torch.testing.assert_close(attention @ values, context)
    assert view(trace, "effective").diagnostics["residual"].max() <= 1e-5


@pytest.mark.parametrize("kind", list(KINDS))
def test_layers_count_from_zero_at_every_site_and_in_every_pass(kind):
    noting, tensors = Noting(), inputs_of(kind).tensors
    with torch.no_grad(), edited(tiny(kind), noting) as changed:
        changed.network(**tensors)
        first = list(noting.places)
        changed.network(**tensors)
        trace = capture(changed, batch(kind))
    assert noting.places == first * 3
    for site in trace.sites:
        layers = [layer for where, layer in first if where == site]
        assert layers == list(range(len(layers)))


def test_generating_calls_the_encoder_apart_and_still_counts_from_zero():
    torch.manual_seed(0)
    writer = transformers.T5ForConditionalGeneration(transformers.T5Config(**TEXT_TO_TEXT)).eval()
    model, noting = load(writer, tokenizer=tokenizer()), Noting()
    with torch.no_grad(), edited(model, noting, "effective_attention:layers=1") as changed:
        changed.network(**GIVEN, decoder_input_ids=torch.tensor([[0, 5], [0, 5]]))
        for _ in range(2):
            changed.network.generate(**GIVEN, max_new_tokens=3, min_new_tokens=3, do_sample=False)
        changed.network.encoder(**GIVEN)
        changed.network.encoder(**GIVEN)
    assert {layer for _, layer in noting.places} == {0, 1}
    assert noting.places.count(("encoder", 0)) == noting.places.count(("encoder", 1)) == 1 + 2 + 2


def test_edits_apply_in_order_and_blocks_nest():
    model = tiny("bert")
    with edited(model, Scaled(by=2.0), Scaled(by=3.0)) as changed:
        together = hidden(changed)
    with edited(model, Scaled(by=2.0)) as outer, edited(outer, Scaled(by=3.0)) as inner:
        assert torch.equal(hidden(inner), together)
    with edited(model, Scaled(by=6.0)) as changed:
        torch.testing.assert_close(hidden(changed), together, atol=1e-5, rtol=1e-4)


GATE = torch.tensor([1.0, 0.0, 1.0, 1.0])[:, None, None]  # the second head writes nothing


@dataclass(frozen=True)
class Written(Edit):
    """Changes nothing and keeps what heads write."""

    contexts: list = field(default_factory=list)

    def __call__(self, heads):
        self.contexts.append(heads.context)


def written_by(model, *edits, tensors=GIVEN):
    """What the heads of the first layer write, after edits in one block or in a block for each."""
    one, nested = Written(), Written()
    with edited(model, *edits, one) as changed:
        hidden(changed, tensors)
    with ExitStack() as stack:
        for each in (*edits, nested):
            stack.enter_context(edited(model, each))
        hidden(model, tensors)
    assert torch.equal(nested.contexts[0], one.contexts[0])
    return one.contexts[0]


@pytest.mark.parametrize("keys", ["visible", "padded"])
def test_exact_effective_attention_leaves_what_an_edit_before_it_wrote(keys):
    model = fresh(max_position_embeddings=128)
    tensors, gated = padded_to_128(model), Scaled(by=GATE, layers=(0,))
    alone = written_by(model, gated, tensors=tensors)
    real = tensors["attention_mask"].bool()[:, None, :, None]
    assert not (alone * real)[:, 1].any()
    for edits in ((gated, EffectiveAttention(keys)), (EffectiveAttention(keys), gated)):
        made = written_by(model, *edits, tensors=tensors)
        torch.testing.assert_close(made * real, alone * real, atol=1e-5, rtol=1e-4)


def test_the_papers_variant_makes_the_same_difference_after_another_edit():
    model = fresh(max_position_embeddings=128)
    tensors, gated = padded_to_128(model), Scaled(by=GATE, layers=(0,))
    real = tensors["attention_mask"].bool()[:, None, :, None]
    plain, alone, paper = (written_by(model, *edits, tensors=tensors) for edits in ((), (gated,), (PAPER,)))
    after, before = (written_by(model, *edits, tensors=tensors) for edits in ((gated, PAPER), (PAPER, gated)))
    assert ((paper - plain) * real).norm() > 0.01 * (plain * real).norm()
    torch.testing.assert_close(after * real, (alone + paper - plain) * real, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(before * real, paper * GATE * real, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("keys", ["visible", "padded"])
def test_a_gate_before_exact_effective_attention_gets_its_gradient(keys):
    model, found = tiny("bert"), []
    for more in ((), (EffectiveAttention(keys),)):
        gate = torch.ones(4, 1, 1, requires_grad=True)
        with edited(model, Scaled(by=gate), *more) as changed:
            loss(changed).backward()
        found.append(gate.grad)
    model.network.zero_grad()
    assert found[0].abs().min() > 1e-3
    torch.testing.assert_close(found[1], found[0], atol=1e-5, rtol=1e-3)


def test_a_zeroed_head_is_a_model_without_it():
    model = tiny("bert")
    without = copy.deepcopy(model.network)
    with torch.no_grad():
        for layer in without.encoder.layer:
            layer.attention.output.dense.weight[:, 8:16] = 0
    with edited(model, Scaled(by=GATE)) as changed:
        made = hidden(changed)
    wanted = hidden(replace(model, network=without))
    real = GIVEN["attention_mask"].bool()
    torch.testing.assert_close(made[real], wanted[real], atol=1e-5, rtol=1e-4)


def test_a_gate_gets_its_gradient():
    model = tiny("bert")
    gate = torch.ones(4, 1, 1, requires_grad=True)
    with edited(model, Scaled(by=gate)) as changed:
        loss(changed).backward()
    assert gate.grad.abs().min() > 1e-3
    model.network.zero_grad()


@pytest.mark.parametrize("keys", ["visible", "padded"])
def test_gradients_with_an_exact_edit_are_those_of_the_model(keys):
    model = fresh()

    def gradients():
        model.network.zero_grad()
        loss(model).backward()
        return [weight.grad.clone() for weight in model.network.encoder.parameters()]

    plain = gradients()
    assert max(float(each.abs().max()) for each in plain) > 1
    with edited(model, EffectiveAttention(keys)):
        made = gradients()
    for left, right in zip(made, plain, strict=True):
        torch.testing.assert_close(left, right, atol=1e-3, rtol=1e-3)


def test_the_papers_variant_runs_with_gradients_too():
    with edited(tiny("bert"), PAPER) as changed:
        made = changed.network(**GIVEN).last_hidden_state
        torch.testing.assert_close(made.detach(), hidden(changed), atol=1e-5, rtol=1e-4)
    assert made.requires_grad


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions_stay_what_they_are(dtype):
    model = load(network("bert").to(dtype), tokenizer=tokenizer())
    real = GIVEN["attention_mask"].bool()
    plain = hidden(model)[real].double()
    with edited(model, "effective_attention") as changed:
        made = hidden(changed)
    assert made.dtype == dtype
    loose = 1e-12 if dtype == torch.float64 else 0.05  # a few roundings of 8 bits
    assert (made[real].double() - plain).norm() <= loose * plain.norm()


def test_a_network_can_be_copied_inside_the_block():
    with edited(tiny("bert"), Scaled(by=0.0)):
        other = copy.deepcopy(tiny("bert").network)
    with torch.no_grad():
        assert torch.equal(other(**GIVEN).last_hidden_state, hidden(tiny("bert")))


def test_rows_of_padding_keep_what_they_had():
    model = tiny("bert")
    padding = GIVEN["attention_mask"] == 0
    with edited(model, Scaled(by=0.0, layers=(1,))) as changed:
        made = hidden(changed)
    wanted = hidden(eager(model))
    assert torch.equal(made[padding], wanted[padding])
    assert not torch.equal(made[~padding], wanted[~padding])


def test_training_mode_is_left_to_the_caller():
    model = fresh()
    model.network.train()
    with edited(model, Noting()) as changed:
        assert all(module.training for module in changed.network.modules())
        capture(changed, text(5))
        assert all(module.training for module in changed.network.modules())


def test_after_the_block_everything_is_as_before_also_after_an_error():
    model = fresh()
    plain = hidden(model)

    def fail(*_):
        hook.remove()
        raise KeyboardInterrupt

    noting = Noting()
    with edited(model, Scaled(by=0.0), noting) as changed:
        hook = model.network.encoder.layer[1].register_forward_pre_hook(fail)
        with pytest.raises(KeyboardInterrupt):
            hidden(changed)
        hidden(changed)
    assert noting.places == [("self", 0), ("self", 0), ("self", 1)]
    with pytest.raises(ZeroDivisionError), edited(model, Scaled(by=0.0)):
        raise ZeroDivisionError
    assert model.network.config._attn_implementation == "sdpa"
    assert torch.equal(hidden(model), plain)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.network.modules())


def interrupted(module):
    """Let the next call of a module end as when someone presses Ctrl-C."""

    def forward(*_, **__):
        del module.forward
        raise KeyboardInterrupt

    module.forward = forward


@pytest.mark.parametrize("broken", ["network", "encoder", "layer"])
@pytest.mark.parametrize("next_one", ["network", "encoder", "layer"])
def test_after_an_interrupt_the_next_pass_counts_from_zero_wherever_both_begin(broken, next_one):
    model, noting = fresh(), Noting()
    encoder, states = model.network.encoder, torch.randn(1, 5, 32)
    calls = {
        "network": lambda: model.network(**GIVEN),
        "encoder": lambda: encoder(states),
        "layer": lambda: encoder.layer[1](states),
    }
    with torch.no_grad(), edited(model, noting):
        interrupted(encoder.layer[1].attention.self)
        with pytest.raises(KeyboardInterrupt):
            calls[broken]()
        for _ in range(2):
            noting.places.clear()
            calls[next_one]()
            assert noting.places == [("self", layer) for layer in ([1] if next_one == "layer" else [0, 1])]


def test_after_an_interrupt_generating_counts_from_zero_and_a_layer_that_is_not_there_is_still_said():
    torch.manual_seed(0)
    writer = transformers.T5ForConditionalGeneration(transformers.T5Config(**TEXT_TO_TEXT)).eval()
    model, noting = load(writer, tokenizer=tokenizer()), Noting()
    given = {**GIVEN, "decoder_input_ids": torch.tensor([[0, 5], [0, 5]])}
    with torch.no_grad(), edited(model, noting) as changed:
        interrupted(writer.decoder.block[1].layer[1].EncDecAttention)
        with pytest.raises(KeyboardInterrupt):
            writer(**given)
        changed.network.generate(**GIVEN, max_new_tokens=2, min_new_tokens=2, do_sample=False)
    assert {layer for _, layer in noting.places} == {0, 1}
    with torch.no_grad(), edited(model, EffectiveAttention(layers=(2,))):
        interrupted(writer.encoder.block[1])
        with pytest.raises(KeyboardInterrupt):
            writer.encoder(**GIVEN)
        with pytest.raises(InputError, match=r"There is no layer 2 here, only layers 0 and 1\."):
            writer(**given)


def in_thread(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def edited_hidden(model, *edits):
    with edited(model, *edits) as changed:
        return hidden(changed)


@pytest.mark.parametrize("other", [(), (Scaled(by=2.0),), (Scaled(by=0.5, layers=(1,)),)])
def test_another_thread_in_mid_forward_gets_its_own_answer(other):
    model, mine = fresh(), Scaled(by=0.0, layers=(1,))
    work = (lambda: edited_hidden(model, *other)) if other else (lambda: hidden(model))
    alone, other_alone, found = edited_hidden(model, mine), work(), []

    def pause(*_):
        hook.remove()
        found.append(in_thread(work))

    hook = model.network.encoder.layer[0].register_forward_hook(pause)
    with edited(model, mine) as changed:
        assert torch.equal(hidden(changed), alone)
    assert torch.equal(found[0], other_alone)
    assert not torch.equal(alone, other_alone)
    assert model.network.config._attn_implementation == "sdpa"


def test_a_thread_that_is_given_the_context_is_edited_too():
    model = fresh()
    with edited(model, Scaled(by=0.0)) as changed:
        context = contextvars.copy_context()
        assert torch.equal(in_thread(lambda: context.run(hidden, changed)), hidden(changed))


def test_the_edited_model_says_what_it_is():
    with edited(tiny("bert"), "effective_attention:keys=paper,layers=0+1") as changed:
        assert repr(changed).startswith("Model(BertModel with effective_attention:keys=paper,layers=0+1: BertModel")


def test_no_edit_is_an_error():
    with pytest.raises(InputError, match=r"hs\.edited was given no edit\. Name one: effective_attention"):
        edited(tiny("bert"))


def test_an_unknown_edit_is_named_with_the_nearest_one():
    with pytest.raises(UnknownName, match=r"No edit is called 'effective'. Did you mean 'effective_attention'\?"):
        edited(tiny("bert"), "effective")


def test_what_is_no_edit_and_what_is_no_model_is_refused():
    with pytest.raises(InputError, match=r"The edit must be a name, a spec .*, but got 3\."):
        make_edit(3)
    with pytest.raises(InputError, match=r"Expected a model made by hs\.load, but got BertModel"):
        check_model(tiny("bert").network)


def test_a_layer_that_the_model_has_not_is_an_error():
    with (
        edited(tiny("albert"), "effective_attention:layers=0+3") as changed,
        pytest.raises(InputError, match=r"There is no layer 3 here, only layers 0 to 2\."),
    ):
        hidden(changed)


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ((), r"layers=\(\) asks for no layer at all"),
        ((-1,), r"layers must be a tuple of layers counted from 0, such as \(0, 3\), but got \(-1,\)"),
        ([0], r"layers must be a tuple of layers counted from 0, such as \(0, 3\), but got \[0\]"),
    ],
)
def test_layers_that_make_no_sense_are_refused(layers, said):
    with pytest.raises(InputError, match=said):
        EffectiveAttention.__post_init__(_made_of(layers))


def _made_of(layers):
    """An edit as it stands before it checks itself."""
    made = object.__new__(EffectiveAttention)
    made.__dict__.update(keys="visible", layers=layers)
    return made


@pytest.mark.parametrize("kind", ["gpt2", "mistral", "bart"])
def test_padding_cannot_take_part_where_queries_see_different_keys(kind):
    with (
        edited(tiny(kind), PAPER) as changed,
        pytest.raises(InputError, match=r"keys='paper' treats padding as keys .* in layer 0 .* Use keys='visible'"),
    ):
        hidden(changed, inputs_of(kind).tensors)


def halve_heads(network):
    """Halve what each head of an MPNet hands to the output projection."""
    hooks = [
        layer.attention.attn.o.register_forward_pre_hook(lambda _, given: (given[0] / 2,))
        for layer in network.encoder.layer
    ]
    made = network(**GIVEN).last_hidden_state
    for hook in hooks:
        hook.remove()
    return made


@torch.no_grad()
def test_mpnet_is_edited_without_the_interface():
    model = fresh("mpnet")
    plain, wanted = hidden(model), halve_heads(model.network)
    with edited(model, Scaled(by=0.5)) as changed:
        made = hidden(changed)
    real = GIVEN["attention_mask"].bool()
    torch.testing.assert_close(made[real], wanted[real], rtol=1e-4, atol=1e-5)
    assert (made - plain)[real].norm() > 0.01 * plain[real].norm()
    assert torch.equal(hidden(model), plain)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.network.modules())


@torch.no_grad()
def test_edits_of_mpnet_apply_in_order_and_to_their_layers():
    model, notes = fresh("mpnet"), Noting()
    with edited(model, notes, Scaled(by=0.5, layers=(1,)), Scaled(by=2.0, layers=(1,))) as changed:
        made = hidden(changed)
        captured = capture(changed, [text(5)])
    torch.testing.assert_close(made, hidden(model), rtol=1e-4, atol=1e-5)
    assert notes.places == [("self", 0), ("self", 1)] * 2
    assert torch.equal(captured.attention[0], capture(model, [text(5)]).attention[0])


@pytest.mark.parametrize(("spec", "same"), [("effective_attention", True), (PAPER, False)])
def test_mpnet_computes_the_same_with_exact_effective_attention_only(spec, same):
    model = fresh("mpnet", max_position_embeddings=130)
    tensors = padded_to_128(model)
    tensors.pop("token_type_ids", None)
    plain = hidden(model, tensors)
    with edited(model, spec) as changed:
        made = hidden(changed, tensors)
    real = tensors["attention_mask"].bool()
    apart = float((made - plain)[real].norm() / plain[real].norm())
    assert apart <= 1e-4 if same else apart > 0.01


@torch.no_grad()
def test_blocks_of_mpnet_nest():
    model = fresh("mpnet")
    plain = hidden(model)
    with edited(model, Scaled(by=0.5)), edited(model, Scaled(by=2.0)) as changed:
        torch.testing.assert_close(hidden(changed), plain, rtol=1e-4, atol=1e-5)


def test_a_pass_that_no_edit_could_change_is_an_error():
    model = fresh()
    said = r"No head was edited: no attention of this model of type 'bert' was seen\."
    model.network.encoder.forward = lambda hidden, *_, **__: BaseModelOutputWithPast(hidden)
    with edited(model, "effective_attention") as changed, pytest.raises(CaptureError, match=said):
        hidden(changed)


@pytest.mark.parametrize("name", ["eager", "sdpa"])
def test_another_implementation_that_is_set_within_the_block_is_edited_too(name):
    model = fresh()
    expected = edited_hidden(model, Scaled(by=0.0))
    with edited(model, Scaled(by=0.0)) as changed:
        model.network.set_attn_implementation(name)
        assert torch.equal(hidden(changed), expected)


def test_gradient_checkpointing_is_refused():
    model = fresh()
    model.network.gradient_checkpointing_enable()
    with pytest.raises(InputError, match=r"Call network\.gradient_checkpointing_disable\(\)"), edited(model, Noting()):
        pass


def test_an_edit_that_gives_the_wrong_shape_is_named():
    with (
        edited(tiny("bert"), Narrow()) as changed,
        pytest.raises(InputError, match=r"must give a context of shape \[2, 4, 7, 8\] .* but gave \[2, 1, 7, 8\]"),
    ):
        hidden(changed)


def run_layers(model, states, **options):
    for layer in model.network.encoder.layer:
        output = layer(states, **options)
        states = output if isinstance(output, torch.Tensor) else output[0]
    return states


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
@torch.no_grad()
def test_layers_that_are_called_one_by_one_are_edited_by_their_own_numbers(kind):
    model, states, noting = fresh(kind), torch.randn(1, 5, 32), Noting()
    weights = {"output_attentions": True} if kind == "mpnet" else {}
    bias = {"position_bias": model.network.encoder.compute_position_bias(states)} if kind == "mpnet" else {}
    options = {**weights, **bias}  # as the encoder calls its layers
    plain = run_layers(model, states, **options)
    for heads in ("L0H1", "L1H2", "L0H1+L1H2"):
        with edited(model, f"zero_heads:heads={heads}", noting) as changed:
            expected = changed.network.encoder(states, **weights)[0]
            noting.places.clear()
            looped = run_layers(changed, states, **options)
            assert torch.equal(looped, expected)
            assert not torch.equal(looped, plain)
        assert noting.places == [("self", 0), ("self", 1)]


@torch.no_grad()
def test_layers_are_numbered_where_a_module_is_called_without_its_hooks():
    model, states, noting = fresh(), torch.randn(1, 5, 32), Noting()
    with edited(model, noting):
        for layer in model.network.encoder.layer:
            states = layer.forward(states)
        model.network.encoder.layer[1].attention.self.forward(states)
        model.network.encoder.forward(states)
        model.network.forward(**GIVEN)
    layers = [layer for _, layer in noting.places]
    assert layers == [0, 1, 1, 0, 1, 0, 1]


@torch.no_grad()
def test_blocks_of_a_decoder_that_are_called_one_by_one_keep_their_numbers_at_every_site():
    model, noting = fresh("bart"), Noting()
    states, memory = torch.randn(1, 5, 32), torch.randn(1, 6, 32)
    mask = torch.full((1, 1, 5, 5), torch.finfo(torch.float32).min).triu(1)
    with edited(model, noting):
        for layer in reversed(model.network.decoder.layers):
            layer(states, mask, encoder_hidden_states=memory)
        for layer in model.network.encoder.layers:
            layer(memory, None)
    cross, own = [("cross", 1), ("cross", 0)], [("decoder", 1), ("decoder", 0)]
    assert noting.places == [own[0], cross[0], own[1], cross[1], ("encoder", 0), ("encoder", 1)]


@torch.no_grad()
def test_masks_of_layers_called_one_by_one_that_eager_attention_reads_otherwise_are_refused():
    model, states = fresh("gpt2"), torch.randn(1, 5, 32)
    block = model.network.h[0]
    causal = torch.ones(1, 1, 5, 5).tril().bool()
    mask = torch.zeros(1, 1, 5, 5).masked_fill(~causal, torch.finfo(torch.float32).min)
    plain = block(states)  # without a mask SDPA is causal, but eager attention sees what follows
    with edited(model, Noting()):
        torch.testing.assert_close(block(states, attention_mask=mask), plain)
        block(states[:, :1])
        with pytest.raises(
            InputError, match=r"^h\.0\.attn was called from outside its network with no mask, which 'sdpa'"
        ):
            block(states)
        with pytest.raises(InputError, match=r"with a boolean mask, which 'sdpa' .*create_causal_mask returns within"):
            block(states, attention_mask=causal)
        hidden(model)
    model.network.set_attn_implementation("eager")
    plain = block(states)
    with edited(model, Noting()):
        torch.testing.assert_close(block(states), plain)


@torch.no_grad()
def test_a_module_that_serves_several_layers_is_refused_on_its_own():
    model, states = fresh("albert"), torch.randn(1, 5, 32)
    said = (
        r"attention was called from outside its network, where nothing says which of the layers of 'self' it is: the "
        r"number of its modules \(1\) is not that of layers\. Within hs\.edited run all layers in one call"
    )
    with edited(model, "zero_heads:heads=L0H1"):
        with pytest.raises(InputError, match=said):
            model.network.encoder.albert_layer_groups[0](states)
        model.network.encoder(states[..., :16])  # all layers in one call
        hidden(model)


@torch.no_grad()
def test_groups_of_modules_that_repeat_are_refused_on_their_own():
    for changes in ({"num_hidden_layers": 4, "num_hidden_groups": 2}, {"num_hidden_layers": 2, "inner_group_num": 2}):
        model, noting = fresh("albert", **changes), Noting()
        with edited(model, noting):
            hidden(model)
            with pytest.raises(InputError, match=r"the number of its modules \(2\) is not that of layers"):
                model.network.encoder.albert_layer_groups[0](torch.randn(1, 5, 32))
        assert noting.places == [("self", layer) for layer in range(4)]


@pytest.mark.parametrize(("heads", "said"), [("L2H0", r"There is no layer 2"), ("L1H9", r"There is no head 9 here")])
@torch.no_grad()
def test_a_layer_or_head_that_is_not_there_is_said_after_all_layers_were_called_one_by_one(heads, said):
    model = fresh()
    with edited(model, f"zero_heads:heads={heads}"), pytest.raises(InputError, match=said):
        run_layers(model, torch.randn(1, 5, 32))


def test_a_block_of_edits_that_is_entered_again_says_so():
    block = edited(tiny("bert"), Scaled(by=2.0))
    with block:
        pass
    with (
        pytest.raises(InputError, match=r"was entered before: a block lasts once\. Call hs\.edited\(…\) again\."),
        block,
    ):
        pass
