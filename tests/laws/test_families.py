"""Laws that hold for every kind of model."""

import copy
from collections.abc import Mapping
from functools import cache

import pytest
import torch
from torch.overrides import TorchFunctionMode

from headscope.core.catalog import families
from headscope.core.lens import view
from headscope.data.reading.read import read_texts
from headscope.engine.batch import inputs_from_tensors, make_batches
from headscope.engine.capture import capture, record
from headscope.engine.load import find_family, load
from headscope.engine.model import name_modules
from headscope.engine.recording.output_projection import find_projection
from tests.models import KINDS, batch, network, sites, tiny

PLACES = [(kind, site) for kind in KINDS for site in sites(kind)]
DESCRIBED = [(kind, site) for kind, site in PLACES if find_family(kind).kinds]


def inputs_of(kind):
    """The very tensors that a capture of the kind's batch feeds to the network."""
    inputs = batch(kind)
    if isinstance(inputs, Mapping):
        return inputs_from_tensors(tiny(kind), inputs)
    examples = read_texts(inputs)
    return next(make_batches(tiny(kind), examples, len(examples)))


def projections_in_plain_run(kind, site):
    """Inputs, outputs and modules of the output projections when the model runs without headscope."""
    model, calls = tiny(kind), []
    tensors = inputs_of(kind).tensors
    names = [call.name for call in record(model, tensors, site).calls]
    projections = {id(projection): projection for projection in (find_projection(model, name) for name in names)}

    def note(module, inputs, output):
        calls.append((inputs[0].detach(), output.detach(), module))

    layers = [projection for projection in projections.values() if isinstance(projection, torch.nn.Module)]
    hooks = [layer.register_forward_hook(note) for layer in layers]
    with torch.no_grad(), Einsums(projections, calls):
        model.network(**tensors)
    for hook in hooks:
        hook.remove()
    return calls


class Einsums(TorchFunctionMode):
    """Records inputs and outputs of output projections that are bare parameters (XLNet, time before batch)."""

    def __init__(self, projections, calls):
        super().__init__()
        self.projections, self.calls = projections, calls

    def __torch_function__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        if function is torch.einsum and id(args[-1]) in self.projections:
            self.calls.append((args[1].transpose(0, 1).flatten(2), output.transpose(0, 1), None))
        return output


def assert_same_size(left, right):
    assert (left - right).norm() <= 1e-5 * right.norm()  # sdpa against eager in float32, two layers deep


REFUSED = {"afmoe": "no linear layer reads what the heads computed: something comes between, such as a gate"}
"""Kinds of which it is not known what is around the heads, and what they say of it."""

PARALLEL = ("gptj", "cohere")  # x + attention + feed-forward: no part of the model reads x + attention
FOLLOWED = [(kind, site) for kind, site in PLACES if kind not in REFUSED]


def score(output):
    """A linear function of the last hidden states of the first token."""
    hidden = output.last_hidden_state[:, 0]
    return hidden @ torch.linspace(-1, 1, hidden.shape[-1]).to(hidden)


def read_by_modules(kind):
    """What normalizations and other small modules of a kind's model read and return when it runs without headscope."""
    model, found = tiny(kind), []

    def note(module, inputs, output):
        if inputs and isinstance(inputs[0], torch.Tensor) and isinstance(output, torch.Tensor):
            found.append((inputs[0].detach(), output.detach()))

    leaves = [module for module in name_modules(model.network) if not module._modules and module._parameters]
    hooks = [module.register_forward_hook(note) for module in leaves]
    with torch.no_grad():
        model.network(**inputs_of(kind).tensors)
    for hook in hooks:
        hook.remove()
    if kind == "xlnet":
        return [(before.transpose(0, 1), after.transpose(0, 1)) for before, after in found]
    return found


@cache
def in_doubles(kind):
    """A kind's model in float64, where its code can; with the weights of `tiny`."""
    if kind in ("gpt_oss", "vit"):
        return tiny(kind)
    return load(copy.deepcopy(tiny(kind).network).double(), tokenizer=tiny(kind).tokenizer)


def is_among(vectors, others, real):
    others = [other for other in others if other.shape == vectors.shape]
    return any(((vectors - other) * real).norm() <= 1e-5 * (vectors * real).norm() for other in others)


def test_every_model_type_of_a_family_is_tested():
    described = {kind for family in families for kind in family.kinds}
    assert described <= set(KINDS)


@pytest.mark.parametrize(("kind", "site"), DESCRIBED)
def test_attention_times_values_is_the_input_of_the_output_projection(kind, site):
    trace = capture(tiny(kind), batch(kind), site=site)
    plain = projections_in_plain_run(kind, site)
    assert len(plain) == len(trace.layers)
    for attention, values, (inputs, _, _) in zip(trace.attention, trace.values, plain, strict=True):
        heads = (attention @ values).transpose(1, 2).flatten(2)
        real = trace.queries.real[..., None]
        assert_same_size(heads * real, inputs * real)


@pytest.mark.parametrize(("kind", "site"), DESCRIBED)
def test_the_heads_times_their_slices_sum_to_the_output_of_the_projection(kind, site):
    trace = capture(tiny(kind), batch(kind), site=site)
    plain = projections_in_plain_run(kind, site)
    for context, output, (_, built, module) in zip(trace.context, trace.output, plain, strict=True):
        written = torch.einsum("bhqv,hvx->bqx", context, output)
        bias = getattr(module, "bias", None)
        written = written if bias is None else written + bias
        real = trace.queries.real[..., None]
        assert_same_size(written * real, built * real)


@pytest.mark.parametrize(("kind", "site"), PLACES)
def test_captured_attention_is_what_eager_attention_returns(kind, site):
    trace = capture(tiny(kind), batch(kind), site=site)
    eager = copy.deepcopy(tiny(kind).network)
    eager.set_attn_implementation("eager")
    with torch.no_grad():
        output = eager(**inputs_of(kind).tensors, output_attentions=True)
    name = {
        "self": "attentions",
        "encoder": "encoder_attentions",
        "decoder": "decoder_attentions",
        "cross": "cross_attentions",
    }[site]
    real = trace.queries.real[:, None, :, None]
    for ours, theirs in zip(trace.attention, output[name], strict=True):
        torch.testing.assert_close(ours, theirs * real, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("kind", "site"), PLACES)
def test_effective_attention_has_the_same_output_and_no_weight_on_hidden_keys(kind, site):
    trace = capture(tiny(kind), batch(kind), site=site)
    maps = view(trace, "effective")
    for index, label in enumerate(trace.layers):
        weights = maps.layer(label)
        same, output = weights.double() @ trace.values[index].double(), trace.context[index].double()
        assert (same - output).norm() <= 1e-5 * output.norm()
        assert not weights.masked_fill(trace.visible[index][:, None], 0).any()
    assert maps.diagnostics["residual"].max() <= 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_is_restored(kind):
    model = tiny(kind)
    mine = network(kind).train()
    configs = [module.config for module in mine.modules() if hasattr(module, "config")]
    before = [(config._attn_implementation, config.to_dict()) for config in configs]
    modes = [module.training for module in mine.modules()]
    weights = {name: tensor.clone() for name, tensor in mine.state_dict().items()}
    capture(load(mine, tokenizer=model.tokenizer), batch(kind))
    assert [(config._attn_implementation, config.to_dict()) for config in configs] == before
    assert [module.training for module in mine.modules()] == modes
    assert all(torch.equal(tensor, weights[name]) for name, tensor in mine.state_dict().items())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "vit"])
def test_the_same_text_alone_or_in_a_batch_gives_the_same_trace(kind):
    together = capture(tiny(kind), batch(kind))
    for index, example in enumerate(batch(kind)):
        alone = capture(tiny(kind), [example])
        count = int(alone.keys.counts[0])
        for layer in range(len(alone.layers)):
            inside = together.attention[layer][index : index + 1, :, :count, :count]
            torch.testing.assert_close(inside, alone.attention[layer], atol=2e-6, rtol=1e-4)  # other batch, other sums
            seen = together.visible[layer][index]
            assert torch.equal(seen[:count, :count], alone.visible[layer][0])
            assert not seen[count:].any()
            assert not seen[:, count:].any()


@pytest.mark.parametrize(("kind", "site"), FOLLOWED)
def test_what_heads_write_and_what_they_are_added_to_is_what_the_model_goes_on_with(kind, site):
    trace = capture(tiny(kind), batch(kind), site=site, keep=("values", "output", "residual"))
    small, real = read_by_modules(kind), trace.queries.real[..., None]
    for context, output, around in zip(trace.context, trace.output, trace.residual, strict=True):
        added = torch.einsum("bhqv,hvx->bqx", context, output)
        added = added if around.bias is None else added + around.bias
        if around.written is not None:
            added = around.written.apply(added)
            assert is_among(added, [after for _, after in small], real)
        assert_same_size((around.inputs + added) * real, around.outputs * real)
        read = around.inputs if kind in PARALLEL else around.outputs
        assert is_among(read, [before for before, _ in small], real)
        if around.norm is not None:
            normed = around.norm.apply(around.outputs)
            normed = normed if around.norm.bias is None else normed + around.norm.bias
            assert any(
                is_among(around.outputs, [before], real) and is_among(normed, [after], real) for before, after in small
            )


@pytest.mark.parametrize("kind", REFUSED)
def test_a_model_that_hides_what_its_heads_write_says_so(kind):
    trace = capture(tiny(kind), batch(kind), keep=("residual", "readout"), target=score)
    assert trace.residual is None
    assert REFUSED[kind] in trace.absent["residual"]


@pytest.mark.parametrize(("kind", "site"), FOLLOWED)
def test_direct_contributions_and_the_other_parts_sum_to_the_score(kind, site):
    trace = capture(in_doubles(kind), batch(kind), site=site, keep=("values", "output", "readout"), target=score)
    direct = sum(
        torch.einsum("bhqv,hvx,bqx->b", *layer)
        for layer in zip(trace.context, trace.output, trace.readout.directions, strict=True)
    )
    total = direct + sum(trace.readout.parts.values())
    torch.testing.assert_close(total, trace.readout.score, atol=1e-5, rtol=1e-5)
    assert trace.readout.linear == (site != "encoder")
    if trace.readout.linear:  # all of a linear score is in the stream
        assert trace.readout.parts["head"].abs().max() <= 1e-6 * trace.readout.score.abs().max()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_around_the_heads_changes_nothing_that_is_captured(kind):
    keep = ("values",)
    plain, followed = (capture(tiny(kind), batch(kind), keep=names) for names in (keep, (*keep, "residual")))
    for name in ("attention", "values", "context"):
        assert all(torch.equal(*pair) for pair in zip(getattr(plain, name), getattr(followed, name), strict=True))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "vit" and kind not in REFUSED])
def test_the_same_text_alone_or_in_a_batch_has_the_same_around_its_heads(kind):
    together = capture(tiny(kind), batch(kind), keep=("residual",))
    alone = capture(tiny(kind), [batch(kind)[0]], keep=("residual",))
    count = int(alone.queries.counts[0])
    for many, one in zip(together.residual, alone.residual, strict=True):
        assert_same_size(many.inputs[:1, :count], one.inputs)
        assert_same_size(many.outputs[:1, :count], one.outputs)
        assert torch.isfinite(many.outputs).all()
