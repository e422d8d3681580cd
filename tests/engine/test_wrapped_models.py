"""Wrapped models: the same trace as the plain model's, or an error."""

import accelerate
import peft
import pytest
import torch
import transformers

from headscope.core.errors import CaptureError, LoadError
from headscope.engine.capture import capture
from headscope.engine.generate import generate
from headscope.engine.load import load
from headscope.engine.recording.output_projection import find_projection, output_slices
from tests.models import batch, network, text, tiny, tokenizer

LORA = {
    "bert": ["query", "value", "attention.output.dense"],
    "llama": ["v_proj", "o_proj"],
    "gpt2": ["c_attn", "attn.c_proj"],
}


def with_lora(kind, **more):
    """A model with adapters that are not zero."""
    torch.manual_seed(1)
    lora = peft.LoraConfig(
        target_modules=LORA[kind],
        r=2,
        lora_alpha=8,
        init_lora_weights=False,
        lora_dropout=0.3,
        fan_in_fan_out=kind == "gpt2",
        **more,
    )
    return peft.get_peft_model(network(kind), lora)


def same(left, right):
    for a, b in zip(left.attention, right.attention, strict=True):
        assert torch.allclose(a, b, atol=1e-5)  # float32, in another order of sums
    for a, b in zip(left.values, right.values, strict=True):
        assert torch.allclose(a, b, atol=1e-4)  # values are up to 40 here
    for a, b in zip(left.output, right.output, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch's own, on importing its compiler
@pytest.mark.parametrize("how", ["wrapped", "in place", "layer by layer"])
def test_a_compiled_model_gives_the_plain_models_trace(how):
    plain = network("bert")
    if how == "wrapped":
        plain = torch.compile(plain, backend="eager")
    elif how == "in place":
        plain.compile(backend="eager")
    else:
        for layer in plain.encoder.layer:
            layer.compile(backend="eager")
    model = load(plain, tokenizer=tokenizer())
    same(capture(model, batch("bert")), capture(tiny("bert"), batch("bert")))
    compiled = [module for module in model.network.modules() if module._compiled_call_impl is not None]
    assert len(compiled) == {"wrapped": 0, "in place": 1, "layer by layer": 2}[how]


@pytest.mark.parametrize("kind", LORA)
def test_lora_is_part_of_attention_values_and_output(kind):
    model = load(with_lora(kind), tokenizer=tokenizer())
    assert type(model.family).__name__.lower() == kind
    merged = load(with_lora(kind).merge_and_unload(), tokenizer=tokenizer())
    trace = capture(model, batch(kind))
    same(trace, capture(merged, batch(kind)))
    assert not torch.allclose(trace.values[0], capture(tiny(kind), batch(kind)).values[0], atol=1e-2)
    assert not torch.allclose(trace.output[0], capture(tiny(kind), batch(kind)).output[0], atol=1e-2)


@pytest.mark.parametrize("kind", LORA)
def test_heads_times_slices_with_lora_sum_to_the_output_of_the_layer(kind):
    model = load(with_lora(kind), tokenizer=tokenizer())
    trace, layers = capture(model, text(6)), range(2)
    names = [
        name for name, _ in model.network.named_modules() if name.endswith(("attention.self", "self_attn", ".attn"))
    ]
    for layer, name in zip(layers, names, strict=True):
        module = find_projection(model, name).eval()
        context = trace.context[layer].transpose(1, 2).flatten(2)
        bias = module(torch.zeros_like(context[:, :1]))
        written = torch.einsum("bhqv,hvx->bqx", trace.context[layer], trace.output[layer]) + bias
        assert torch.allclose(written, module(context), atol=1e-3)  # up to 100 here


def test_dora_and_disabled_adapters_are_respected():
    dora = with_lora("bert", use_dora=True)
    same(
        capture(load(dora, tokenizer=tokenizer()), text(5)),
        capture(load(dora.merge_and_unload(), tokenizer=tokenizer()), text(5)),
    )
    off = with_lora("bert")
    with off.disable_adapter():
        same(capture(load(off, tokenizer=tokenizer()), text(5)), capture(tiny("bert"), text(5)))


def test_a_model_with_lora_stays_in_training_mode():
    wrapped = with_lora("bert").train()
    same(
        capture(load(wrapped, tokenizer=tokenizer()), text(5)),
        capture(load(with_lora("bert").eval(), tokenizer=tokenizer()), text(5)),
    )
    assert all(module.training for module in wrapped.modules())


def test_a_model_with_lora_generates():
    config = network("llama", eos_token_id=None).config
    lora = peft.LoraConfig(target_modules=LORA["llama"], r=2, init_lora_weights=False, task_type="CAUSAL_LM")
    model = load(peft.get_peft_model(transformers.LlamaForCausalLM(config), lora), tokenizer=tokenizer())
    trace = generate(model, text(4), max_new_tokens=3)
    ids = tokenizer().convert_tokens_to_ids(trace.keys.text[0])
    assert torch.allclose(trace.attention[1], capture(model, {"input_ids": [ids]}).attention[1], atol=1e-5)


def test_prompt_tuning_is_an_error():
    writer = transformers.GPT2LMHeadModel(network("gpt2").config)
    wrapped = peft.get_peft_model(writer, peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3))
    with pytest.raises(LoadError, match=r"\(PROMPT_TUNING\) puts learned tokens before the text.*get_base_model\(\)\)"):
        load(wrapped, tokenizer=tokenizer())
    assert capture(load(wrapped.get_base_model(), tokenizer=tokenizer()), text(3)).keys.counts.tolist() == [5]


def test_offloaded_weights_are_loaded_when_needed():
    away = accelerate.cpu_offload(network("bert"), execution_device=torch.device("cpu"))
    assert all(weight.is_meta for weight in away.parameters())
    same(capture(load(away, tokenizer=tokenizer()), batch("bert")), capture(tiny("bert"), batch("bert")))
    assert all(weight.is_meta for weight in away.parameters())


def test_weights_offloaded_to_disk_are_loaded_when_needed(tmp_path):
    away = accelerate.disk_offload(network("bert"), tmp_path, execution_device=torch.device("cpu"))
    same(capture(load(away, tokenizer=tokenizer()), text(5)), capture(tiny("bert"), text(5)))


def test_a_device_map_works(tmp_path):
    network("bert").save_pretrained(tmp_path)
    spread = transformers.AutoModel.from_pretrained(tmp_path, device_map="cpu")
    same(capture(load(spread, tokenizer=tokenizer()), text(5)), capture(tiny("bert"), text(5)))


class Int8Linear(torch.nn.Linear):
    """As bitsandbytes has it: weights of one byte and a scale for each row."""

    def __init__(self, plain):
        super().__init__(plain.in_features, plain.out_features)
        self.bias = plain.bias
        self.scale = plain.weight.detach().abs().amax(1, keepdim=True) / 127
        whole = (plain.weight.detach() / self.scale).round().to(torch.int8)
        self.weight = torch.nn.Parameter(whole, requires_grad=False)

    def forward(self, inputs):
        return torch.nn.functional.linear(inputs, self.weight * self.scale, self.bias)


class Packed(torch.nn.Module):
    """As GPTQ has it: no weight at all."""

    def __init__(self, plain):
        super().__init__()
        self.plain = plain.requires_grad_(False)

    def forward(self, inputs):
        return self.plain(inputs)


@pytest.mark.parametrize(("kind", "named"), [(Int8Linear, r"torch\.int8"), (Packed, "Packed")])
def test_a_quantised_model_gives_attention_and_values_but_no_output(kind, named):
    bert = network("bert")
    for layer in bert.encoder.layer:
        layer.attention.output.dense = kind(layer.attention.output.dense)
    model = load(bert, tokenizer=tokenizer())
    with pytest.raises(
        CaptureError,
        match=rf"is quantised \({named}\)\. Load the model unquantised, or capture with keep=\('attention'",
    ):
        capture(model, text(5))
    trace = capture(model, text(5), keep=("attention", "values"))
    assert torch.allclose(trace.attention[1], capture(tiny("bert"), text(5)).attention[1], atol=0.05)  # 127 steps


def test_float8_is_quantised_too():
    bert = network("bert")
    dense = bert.encoder.layer[0].attention.output.dense
    dense.weight = torch.nn.Parameter(dense.weight.detach().to(torch.float8_e4m3fn), requires_grad=False)
    with pytest.raises(CaptureError, match=r"is quantised \(torch\.float8_e4m3fn\)"):
        output_slices(load(bert), "encoder.layer.0.attention.self", range(4), 4)


def test_a_model_on_the_meta_device_is_an_error():
    with torch.device("meta"):
        empty = transformers.BertModel(network("bert").config)
    with pytest.raises(LoadError, match=r"This BertModel is on the meta device: it has shapes, but no weights"):
        load(empty)


def test_data_parallel_is_an_error():
    with pytest.raises(LoadError, match=r"DataParallel runs copies of a model.*hs\.load\(network\.module\)"):
        load(torch.nn.DataParallel(network("bert")))
