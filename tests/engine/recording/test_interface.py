"""Known pitfalls of capturing through the attention interface of transformers."""

import copy
import pickle
import threading
from importlib.metadata import requires

import pytest
import torch
import transformers

from headscope.core.errors import DataWarning, InputError
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.engine.load import load
from tests.models import KINDS, batch, network, text, tiny, tokenizer


def fresh(kind="bert", **changes):
    return load(network(kind, **changes), tokenizer=tokenizer())


def test_causal_and_padding_masks_apply():
    trace = capture(tiny("llama"), batch("llama"))
    width = trace.keys.real.shape[1]
    assert not trace.attention[0].masked_fill(torch.ones(width, width, dtype=torch.bool).tril(), 0).any()
    padding = ~trace.keys.real[:, None, None, :]
    assert padding.any()
    assert not trace.attention[0].masked_fill(~padding, 0).any()


def test_a_model_that_runs_with_sdpa_is_captured():
    model = fresh()
    assert model.network.config._attn_implementation == "sdpa"
    assert model.network(torch.tensor([[2, 7, 3]]), output_attentions=True).attentions in (None, ())
    assert len(capture(model, text(4)).attention) == 2


def test_empty_attentions_are_an_error_that_names_sdpa():
    with pytest.raises(InputError, match=r"one tensor per layer.*sdpa returns no attentions.*hs\.capture"):
        Trace.of((), ["a"])


def test_shared_value_heads_are_repeated():
    trace = capture(tiny("llama"), text(5))
    assert KINDS["llama"]["num_key_value_heads"] == 2
    assert trace.values[0].shape[1] == 4
    assert torch.equal(trace.values[0][:, 0], trace.values[0][:, 1])
    assert not torch.equal(trace.values[0][:, 1], trace.values[0][:, 2])


def test_a_module_shared_by_all_layers_is_recorded_once_per_layer():
    trace = capture(tiny("albert"), text(6))
    assert trace.layers == (0, 1, 2)
    assert not torch.equal(trace.attention[0], trace.attention[1])


@pytest.mark.parametrize("kind", ["distilbert", "vit", "albert"])
def test_modules_without_a_layer_index_are_numbered_by_order(kind):
    assert not any(hasattr(module, "layer_idx") for module in tiny(kind).network.modules())
    trace = capture(tiny(kind), batch(kind))
    assert trace.layers == tuple(range(len(trace.attention)))
    assert not torch.equal(trace.attention[0], trace.attention[1])


def test_no_mask_means_that_everything_is_visible():
    trace = capture(tiny("bert"), text(6))
    assert all(seen.all() for seen in trace.visible)


def test_rows_of_padding_are_zero():
    trace = capture(tiny("bert"), batch("bert"))
    padding = ~trace.queries.real
    for attention, values, context in zip(trace.attention, trace.values, trace.context, strict=True):
        for part in (attention.transpose(1, 2), values.transpose(1, 2), context.transpose(1, 2)):
            assert not part[padding].any()


def test_values_of_padding_are_kept_on_request_only():
    trace = capture(tiny("bert"), batch("bert"), keep=("values", "pads"))
    assert trace.values[0].transpose(1, 2)[~trace.keys.real].any()


def test_two_models_that_share_a_config_are_both_restored():
    first = network("bert")
    second = transformers.BertModel(first.config).eval()
    assert first.config is second.config
    capture(load(first, tokenizer=tokenizer()), text(4))
    assert second.config._attn_implementation == "sdpa"


def test_nested_configs_are_replaced_and_restored():
    model = fresh("t5")
    inside = {id(module.config): module.config for module in model.network.modules() if hasattr(module, "config")}
    assert len(inside) > 1
    inside[next(iter(inside))]._attn_implementation_internal = "eager"
    before = {name: config._attn_implementation for name, config in inside.items()}
    capture(model, [("the cat", "a mat")], site="cross")
    assert {name: config._attn_implementation for name, config in inside.items()} == before


def test_a_class_defined_in_a_notebook_is_captured():
    space = {"transformers": transformers}
    exec("class Typed(transformers.BertModel):\n    pass", space)  # no source file, as in a notebook
    model = load(space["Typed"](network("bert").config).eval(), tokenizer=tokenizer())
    assert len(capture(model, text(4)).attention) == 2


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch's own, on importing its compiler
def test_torch_compile_is_unwrapped():
    inner = network("bert")
    wrapped = torch.compile(inner)
    model = load(wrapped, tokenizer=tokenizer())
    assert model.network is inner
    assert len(capture(model, text(4)).attention) == 2


def test_the_model_is_restored_after_an_error():
    model = fresh()
    model.network.train()

    def fail(*_):
        raise KeyboardInterrupt

    hook = model.network.encoder.layer[1].register_forward_pre_hook(fail)
    with pytest.raises(KeyboardInterrupt):
        capture(model, text(4))
    hook.remove()
    assert model.network.config._attn_implementation == "sdpa"
    assert all(module.training for module in model.network.modules())


def test_a_capture_runs_without_dropout():
    model = fresh()
    calm = capture(model, text(5)).attention
    model.network.train()
    assert all(torch.equal(a, b) for a, b in zip(capture(model, text(5)).attention, calm, strict=True))


def in_mid_forward(model, meanwhile):
    """Capture in this thread, and when the first layer is done, let another thread do something to its end."""
    outcome = []

    def run():
        try:
            outcome.append(meanwhile())
        except Exception as error:
            outcome.append(error)

    def pause(*_):
        hook.remove()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()

    hook = model.network.encoder.layer[0].register_forward_hook(pause)
    trace = capture(model, text(6))
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return trace, outcome[0]


def test_a_second_capture_that_ends_first_does_not_disturb_the_first():
    model = fresh()
    alone, other_alone = capture(model, text(6)), capture(model, text(9))
    first, second = in_mid_forward(model, lambda: capture(model, text(9)))
    for result, expected in ((first, alone), (second, other_alone)):
        assert len(result.attention) == 2
        assert all(torch.equal(a, b) for a, b in zip(result.attention, expected.attention, strict=True))
    assert model.network.config._attn_implementation == "sdpa"


def test_a_forward_pass_in_another_thread_is_unchanged_and_not_recorded():
    model = fresh()
    inputs = {"input_ids": torch.tensor([[2, 7, 8, 9, 3, 0]]), "attention_mask": torch.tensor([[1, 1, 1, 1, 1, 0]])}
    with torch.no_grad():
        before = model.network(**inputs).last_hidden_state

        def plain():
            with torch.no_grad():
                return model.network(**inputs).last_hidden_state

        trace, during = in_mid_forward(model, plain)
    assert torch.equal(before, during)
    assert len(trace.attention) == 2


def test_concurrent_captures_do_not_mix():
    model = fresh()
    lengths = [4, 6, 8, 10, 12, 14]
    expected = {words: capture(model, text(words)).attention[1] for words in lengths}
    result, threads = {}, []
    for words in lengths:
        threads.append(
            threading.Thread(target=lambda n=words: result.update({n: capture(model, text(n)).attention[1]}))
        )
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(result[words], expected[words]) for words in lengths)
    assert model.network.config._attn_implementation == "sdpa"


def test_a_tokenizer_that_knows_no_word_is_a_warning():
    with pytest.warns(DataWarning, match=r"3 of 3 tokens are unknown to this tokenizer \(\[UNK\]\)"):
        capture(tiny("bert"), "zzz yyy xxx")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_give_effective_attention_of_the_same_output(dtype):
    model = load(network("bert").to(dtype), tokenizer=tokenizer())
    trace = capture(model, batch("bert"))
    assert trace.attention[0].dtype == dtype
    maps = view(trace, "effective")
    assert maps.weights.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert maps.diagnostics["residual"].max() <= (1e-12 if dtype == torch.float64 else 1e-5)
    exact = trace.attention[1].double() @ trace.values[1].double()
    assert (maps.layer(1).double() @ trace.values[1].double() - exact).norm() <= 1e-5 * exact.norm()
    assert maps.diagnostics["rank"].max() == 8


def test_transformers_is_new_enough_for_t5_and_modernbert():
    assert "transformers>=5.15" in requires("headscope")


def test_importing_headscope_registers_nothing():
    import subprocess
    import sys

    code = (
        "import headscope, headscope.engine.capture; from transformers import AttentionInterface; "
        "assert not [name for name in AttentionInterface() if 'headscope' in name]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


OLDER = """
from transformers.models.bert.modeling_bert import *
from transformers.models.bert.modeling_bert import ALL_ATTENTION_FUNCTIONS, BertSelfAttention, eager_attention_forward

class Older(BertSelfAttention):
    def forward(self, hidden_states, attention_mask=None, past_key_values=None, **kwargs):
        heads = (*hidden_states.shape[:-1], -1, self.attention_head_size)
        projections = self.query, self.key, self.value
        query, key, value = (part(hidden_states).view(heads).transpose(1, 2) for part in projections)
        attend = eager_attention_forward
        if self.config._attn_implementation != "eager":
            attend = ALL_ATTENTION_FUNCTIONS[self.config._attn_implementation]
        output, weights = attend(self, query, key, value, attention_mask, dropout=0.0, scaling=self.scaling, **kwargs)
        return output.flatten(2), weights
"""


def test_code_that_looks_functions_up_by_name_is_captured():
    space = {}
    exec(OLDER, space)  # as transformers did before `get_interface`, and code outside of the library does
    model, inputs = fresh(), batch("bert")
    expected = capture(model, inputs)
    for layer in model.network.encoder.layer:
        layer.attention.self.__class__ = type("Older", (space["Older"],), {"forward": space["Older"].forward})
    trace = capture(model, inputs)
    assert all(torch.equal(ours, plain) for ours, plain in zip(trace.attention, expected.attention, strict=True))


def test_classes_of_transformers_are_restored_after_the_last_capture():
    before = vars(transformers.PreTrainedConfig)["_attn_implementation"], transformers.AttentionInterface.get_interface
    model = fresh()

    def pause(*_):
        with torch.no_grad():
            capture(fresh(), text(4))

    model.network.encoder.layer[0].register_forward_hook(pause)
    capture(model, text(4))
    after = vars(transformers.PreTrainedConfig)["_attn_implementation"], transformers.AttentionInterface.get_interface
    assert after == before


def test_another_thread_reads_the_implementation_that_the_config_has():
    model = fresh()
    _, during = in_mid_forward(model, lambda: model.network.config._attn_implementation)
    assert during == "sdpa"


def test_a_copy_of_the_config_says_the_same_in_each_context():
    """Some models copy their config for each layer at each call, and make masks by the copy."""
    model, copies = fresh(), []
    config = model.network.config

    def keep_copies(*_):
        copies.extend((copy.copy(config), copy.deepcopy(config)))
        names.extend(part._attn_implementation for part in copies)

    names = []
    model.network.encoder.layer[1].register_forward_hook(keep_copies)
    _, names_in_thread = in_mid_forward(model, lambda: copy.copy(config)._attn_implementation)
    assert names[:2] == ["eager", "eager"]
    assert names_in_thread == "sdpa"
    assert [part._attn_implementation for part in copies[:2]] == ["sdpa", "sdpa"]
    assert type(pickle.loads(pickle.dumps(copies[0]))._attn_implementation_internal) is str
    assert type(config._attn_implementation_internal) is str


def test_another_model_that_runs_meanwhile_in_the_same_context_is_not_recorded():
    model, other = fresh(), network("gpt2")
    ids, outputs = torch.tensor([[2, 7, 8, 3]]), []
    with torch.no_grad():
        plain = other(ids).last_hidden_state

    model.network.encoder.layer[0].register_forward_hook(lambda *_: outputs.append(other(ids).last_hidden_state))
    assert len(capture(model, text(4)).attention) == 2
    assert torch.equal(outputs[0], plain)
