"""Models whose layers lie on several devices, or are offloaded: the numbers of the model in memory.

The second device is torch's lazy backend on the CPU: its tensors cannot be mixed with others, as those of a GPU cannot.
"""

import accelerate
import pytest
import torch
import torch._lazy
import torch._lazy.ts_backend
import transformers
import xarray as xr

from headscope.core.errors import LoadError
from headscope.core.lens import view
from headscope.engine.capture import by_layer, capture, stream
from headscope.engine.edited import edited
from headscope.engine.load import load
from headscope.engine.offloaded import list_devices, read_weight
from headscope.measuring.measure import measure
from tests.models import batch, network, text, tiny, tokenizer

CPU, LAZY = torch.device("cpu"), torch.device("lazy:0")
PLACES = {
    "bert": {"embeddings": "cpu", "encoder.layer.0": "cpu", "encoder.layer.1": LAZY, "pooler": "cpu"},
    "llama": {"embed_tokens": "cpu", "layers.0": "cpu", "layers.1": LAZY, "norm": "cpu", "rotary_emb": "cpu"},
}
HELD = ("attention", "values", "context", "output", "visible")


@pytest.fixture(scope="session", autouse=True)
def _second_device():
    torch._lazy.ts_backend.init()


def offloaded(kind, folder):
    """A model all of whose weights are on disk."""
    return load(accelerate.disk_offload(network(kind), folder, execution_device=CPU), tokenizer=tokenizer())


def spread(kind):
    """A model whose second layer is on the second device; accelerate keeps the others' weights on the host."""
    network_of_kind = accelerate.dispatch_model(network(kind), PLACES[kind], main_device="cpu", force_hooks=True)
    return load(network_of_kind, tokenizer=tokenizer())


def hooks_of(model):
    return {
        name: [vars(module).get(attribute) for attribute in ("_hf_hook", "_old_forward", "forward")]
        for name, module in model.network.named_modules()
    }


def assert_same(left, right, **tolerance):
    for name in (*HELD, *(["gradient"] if right.gradient is not None else [])):
        for mine, theirs in zip(getattr(left, name), getattr(right, name), strict=True):
            torch.testing.assert_close(mine.to("cpu"), theirs, **{"atol": 1e-5, "rtol": 1e-5, **tolerance})


def changed(model, inputs, edit):
    with edited(model, edit) as edited_model:
        return capture(edited_model, inputs, keep="model_output").model_output.last_hidden_state.to("cpu")


def maps_by_layer(model, inputs, lens):
    return [weights.to("cpu") for weights in by_layer(model, inputs, see=lambda trace: view(trace, lens).weights)]


def first_number(output):
    return output.last_hidden_state[:, 0, 0]


@pytest.mark.parametrize("kind", ["bert", "llama", "gpt2", "xlnet"])  # XLNet: followed, and W_O is a bare parameter
def test_weights_on_disk_give_the_numbers_of_those_in_memory(kind, tmp_path):
    model, plain, inputs = offloaded(kind, tmp_path), tiny(kind), batch(kind)
    before = hooks_of(model)
    assert_same(capture(model, inputs), capture(plain, inputs))
    assert_same(capture(model, inputs, target=first_number), capture(plain, inputs, target=first_number))
    for lens in ("effective", "norm"):
        torch.testing.assert_close(maps_by_layer(model, inputs, lens), maps_by_layer(plain, inputs, lens))
    for edit in ("zero_heads:heads=L1H2", "effective_attention"):
        torch.testing.assert_close(changed(model, inputs, edit), changed(plain, inputs, edit))
    numbers, expected = (measure(each, inputs, statistics=["entropy"], lens=["raw", "norm"]) for each in (model, plain))
    xr.testing.assert_allclose(numbers, expected)
    assert all(weight.is_meta for weight in model.network.parameters())
    assert hooks_of(model) == before


@pytest.mark.parametrize("kind", ["bert", "xlnet"])
def test_the_hash_of_weights_does_not_depend_on_where_they_are(kind, tmp_path):
    assert offloaded(kind, tmp_path).weights_hash == tiny(kind).weights_hash


def test_a_device_map_with_a_layer_on_disk_is_captured_and_measured(tmp_path):
    network("bert").save_pretrained(tmp_path / "model")
    places = {"embeddings": "cpu", "encoder.layer.0": "cpu", "encoder.layer.1": "disk", "pooler": "cpu"}
    placed = transformers.AutoModel.from_pretrained(
        tmp_path / "model", device_map=places, offload_folder=tmp_path / "offloaded"
    )
    model, inputs = load(placed, tokenizer=tokenizer()), batch("bert")
    assert model.network.encoder.layer[1].output.dense.weight.is_meta
    assert_same(capture(model, inputs), capture(tiny("bert"), inputs))
    numbers, expected = (measure(each, inputs, statistics="entropy") for each in (model, tiny("bert")))
    xr.testing.assert_allclose(numbers, expected)


def test_a_weight_that_is_nowhere_is_an_error():
    with torch.device("meta"):
        layer = torch.nn.Linear(2, 3)
    with pytest.raises(
        LoadError, match=r"weight of Linear is on the meta device, and accelerate has no place.*Load the"
    ):
        read_weight(layer, "weight")


@pytest.mark.parametrize("kind", PLACES)
def test_layers_on_several_devices_are_gathered_where_the_inputs_are(kind):
    model, inputs = spread(kind), batch(kind)
    before = hooks_of(model)
    assert list_devices(model.network) == [CPU, LAZY]
    trace = capture(model, inputs)
    assert {layer.device for name in HELD for layer in getattr(trace, name)} == {CPU}
    assert_same(trace, capture(tiny(kind), inputs))
    for lens in ("effective", "rollout"):
        torch.testing.assert_close(view(trace, lens).weights, view(capture(tiny(kind), inputs), lens).weights)
    assert hooks_of(model) == before


def test_gather_names_the_device_of_a_trace():
    model, inputs = spread("bert"), batch("bert")
    assert capture(model, inputs, layers=1).attention[0].device == LAZY
    trace = capture(model, inputs, layers=1, gather="cpu")
    assert {layer.device for name in HELD for layer in getattr(trace, name)} == {CPU}
    assert_same(trace, capture(tiny("bert"), inputs, layers=1))
    assert next(stream(model, inputs, gather="lazy:0")).attention[0].device == LAZY
    with pytest.raises(LoadError, match=r"device='cuda:9' is asked for|device='nowhere' is no device of torch"):
        capture(model, inputs, gather="nowhere")


def test_layers_that_share_a_mask_share_it_after_they_are_gathered():
    trace = capture(spread("llama"), batch("llama"), gather="cpu")
    plain = capture(tiny("llama"), batch("llama"))
    assert (trace.visible[0] is trace.visible[1]) == (plain.visible[0] is plain.visible[1])


@pytest.mark.parametrize("kind", PLACES)
def test_each_layer_is_seen_and_measured_where_it_ran(kind):
    model, inputs = spread(kind), batch(kind)
    devices = by_layer(model, inputs, see=lambda trace: {trace.attention[0].device, trace.output[0].device})
    assert devices == [{CPU}, {LAZY}]
    torch.testing.assert_close(maps_by_layer(model, inputs, "norm"), maps_by_layer(tiny(kind), inputs, "norm"))
    options = {"statistics": ["entropy", "peak"], "lens": ["raw", "norm"]}
    xr.testing.assert_allclose(measure(model, inputs, **options), measure(tiny(kind), inputs, **options))


@pytest.mark.parametrize("edit", ["zero_heads:heads=L1H2+L0H1", "uniform_heads:heads=L1H1"])
def test_heads_are_edited_where_they_are(edit):
    model = spread("bert")
    torch.testing.assert_close(changed(model, batch("bert"), edit), changed(tiny("bert"), batch("bert"), edit))


def test_gradients_of_layers_on_several_devices_are_gathered():
    trace, expected = (capture(each, text(6), target=first_number) for each in (spread("bert"), tiny("bert")))
    assert {layer.device for layer in trace.gradient} == {CPU}
    assert_same(trace, expected)


def test_the_residual_stream_is_gathered_with_the_rest():
    plain = capture(tiny("bert"), text(6), keep=("attention", "residual"))
    trace = capture(tiny("bert"), text(6), keep=("attention", "residual"), gather=LAZY)
    for mine, theirs in zip(trace.residual, plain.residual, strict=True):
        assert {mine.inputs.device, mine.outputs.device, mine.norm.scale.device} == {LAZY}
        torch.testing.assert_close(mine.result.to("cpu"), theirs.result)


@pytest.mark.parametrize("where", ["offloaded", "spread"])
def test_the_residual_stream_of_a_spread_model_is_absent_with_a_reason(where, tmp_path):
    model = spread("bert") if where == "spread" else offloaded("bert", tmp_path)
    trace = capture(model, text(6), keep=("attention", "residual"))
    assert (trace.residual, trace.held) == (None, frozenset({"attention"}))
    assert trace.absent["residual"].startswith("The residual stream is not followed where accelerate spreads a model")
