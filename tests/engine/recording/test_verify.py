"""The first capture of a model is compared with a plain pass, which also shows attention that no site holds."""

import gc

import pytest
import torch
import transformers

from headscope.core.errors import CaptureError, DataWarning
from headscope.engine.capture import by_layer, capture
from headscope.engine.edited import edited
from headscope.engine.generate import generate
from headscope.engine.load import load
from headscope.engine.pruning.prune import prune
from headscope.engine.recording import verify
from headscope.engine.recording.verify import relative_difference
from tests.models import SMALL, batch, network, text, tiny, tokenizer


def fresh(kind="bert", **changes):
    return load(network(kind, **changes), tokenizer=tokenizer())


def count_passes(model):
    passes = []
    model.network.register_forward_hook(lambda *_: passes.append(1))
    return passes


def scale_hidden(model, factor):
    """Let the last layer scale its output by `factor()`."""
    model.network.encoder.layer[-1].register_forward_hook(lambda _, __, hidden: hidden * factor())


def test_the_first_capture_costs_one_more_pass_and_later_ones_none():
    model = fresh()
    passes = count_passes(model)
    capture(model, text(5))
    assert len(passes) == 2
    capture(model, batch("bert"))
    by_layer(model, text(4), see=lambda trace: trace.layers)
    assert len(passes) == 4


@pytest.mark.parametrize("change", [lambda net: net.double(), lambda net: net.set_attn_implementation("eager")])
def test_another_setting_is_compared_again(change):
    model = fresh()
    capture(model, text(5))
    passes = count_passes(model)
    change(model.network)
    capture(model, text(5))
    assert len(passes) == 2


def test_what_was_compared_is_forgotten_with_the_network():
    model = fresh()
    capture(model, text(5))
    before = len(verify._verified)
    del model
    gc.collect()
    assert len(verify._verified) < before


def test_outputs_that_differ_from_the_models_own_are_refused_with_the_size_of_the_difference():
    model, passes = fresh(), []
    scale_hidden(model, lambda: 1.5 if len(passes) == 0 else 1.0)
    model.network.register_forward_hook(lambda *_: passes.append(1))
    with pytest.raises(CaptureError, match=r"type 'bert' is captured, its outputs differ .* by 0\.\d+ of"):
        capture(model, text(5))


def test_a_model_that_is_random_by_itself_is_not_compared_and_said_so():
    model, passes = fresh(), []
    scale_hidden(model, lambda: 1.0 + len(passes))
    model.network.register_forward_hook(lambda *_: passes.append(1))
    with pytest.warns(DataWarning, match=r"Two passes of this model of type 'bert' over one input differ by"):
        assert len(capture(model, text(5)).attention) == 2


def test_random_numbers_are_the_same_in_both_passes_and_afterwards():
    model = fresh()
    scale_hidden(model, lambda: torch.rand(()))
    states = []
    for _ in range(2):  # the first is compared, the second is not
        torch.manual_seed(3)
        capture(model, text(5))
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


def test_implementations_that_differ_by_themselves_are_named():
    model = fresh()
    config = model.network.config
    scale_hidden(model, lambda: 1.5 if config._attn_implementation == "sdpa" else 1.0)
    with pytest.warns(DataWarning, match=r"With 'sdpa' attention, .* 'bert' gives other outputs .* holds eager"):
        assert len(capture(model, text(5)).attention) == 2


def test_models_that_return_tuples_are_compared():
    model, passes = fresh(return_dict=False), []
    assert len(capture(model, text(5)).attention) == 2
    scale_hidden(model, lambda: 1.5 if len(passes) == 0 else 1.0)
    model.network.register_forward_hook(lambda *_: passes.append(1))
    model.network.double()
    with pytest.raises(CaptureError, match=r"its outputs differ"):
        capture(model, text(5))


def test_nan_is_not_compared():
    model = fresh()
    with torch.no_grad():
        model.network.encoder.layer[1].output.dense.bias[0] = torch.nan
    assert len(capture(model, text(5)).attention) == 2


def test_what_is_finite_beside_nan_is_compared():
    model, passes = fresh(), []
    with torch.no_grad():
        model.network.pooler.dense.bias[0] = torch.nan
    scale_hidden(model, lambda: 1.5 if len(passes) == 0 else 1.0)
    model.network.register_forward_hook(lambda *_: passes.append(1))
    with pytest.raises(CaptureError, match=r"its outputs differ .* by 0\.\d+ of"):
        capture(model, text(5))


def test_padding_on_the_left_is_not_compared():
    ids = torch.tensor([[0, 0, 7, 8, 9], [2, 7, 8, 9, 10]])
    capture(fresh("llama"), {"input_ids": ids, "attention_mask": (ids > 0).long()})


def test_a_pruned_model_is_compared():
    model = prune(fresh(), ["L0H1", "L1"])
    passes = count_passes(model)
    capture(model, text(5))
    assert len(passes) == 2


def test_an_edited_model_is_compared_without_its_edits_once():
    model = fresh()
    passes = count_passes(model)
    with edited(model, "zero_heads:heads=L0H0") as changed:
        capture(changed, text(5))
        assert len(passes) == 3
        capture(changed, text(5))
        assert len(passes) == 4
    scale_hidden(model, lambda: 1.5 if len(passes) == 4 else 1.0)
    model.network.double()
    with edited(model, "zero_heads:heads=L0H0") as changed, pytest.raises(CaptureError, match=r"its outputs differ"):
        capture(changed, text(5))


def test_generation_is_compared_on_the_prompt():
    passes = []
    model = load(transformers.GPT2LMHeadModel(network("gpt2").config).eval(), tokenizer=tokenizer())
    model.network.register_forward_hook(lambda *_: passes.append(1))
    model.network.transformer.h[1].register_forward_hook(lambda _, __, hidden: hidden * (1.5 if not passes else 1.0))
    with pytest.raises(CaptureError, match=r"its outputs differ"):
        generate(model, text(4), max_new_tokens=2)


class Aside(torch.nn.Module):
    """Attention without the interface, of one head, in a function that the class does not name."""

    def __init__(self):
        super().__init__()
        self.compute = lambda states: (states @ states.mT).softmax(-1) @ states

    def forward(self, hidden):
        return self.compute(hidden)


class Pooler(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = torch.nn.ModuleList([Aside(), Aside()])

    def forward(self, hidden):
        return sum(head(hidden) for head in self.heads)[:, 0]


def test_attention_that_reaches_no_site_is_named():
    model = fresh()
    model.network.pooler = Pooler()
    with pytest.warns(DataWarning, match=r"attention in pooler\.heads\.\* without .*the trace holds 'self'"):
        assert len(capture(model, text(5)).attention) == 2


def build_clap():
    sound = {
        "image_size": 60,
        "num_mel_bins": 16,
        "window_size": 4,
        "spec_size": 64,
        "patch_size": 2,
        "patch_stride": 2,
        "num_classes": 5,
        "hidden_size": 64,
        "patch_embeds_hidden_size": 32,
        "depths": [2, 2],
        "num_attention_heads": [2, 2],
        "intermediate_size": 37,
    }
    words = {"vocab_size": 40, "max_position_embeddings": 64, **SMALL}
    config = transformers.ClapConfig(text_config=words, audio_config=sound, projection_dim=16)
    inputs = {"input_features": torch.randn(1, 1, 60, 16), "is_longer": torch.tensor([[False]])}
    return transformers.ClapModel(config), inputs


def build_kosmos():
    words = {
        "vocab_size": 40,
        "max_position_embeddings": 64,
        "embed_dim": 32,
        "layers": 2,
        "ffn_dim": 48,
        "attention_heads": 4,
        "pad_token_id": 1,
    }
    picture = {**SMALL, "patch_embed_hidden_size": 768, "head_dim": 8, "max_num_patches": 16}
    config = transformers.Kosmos2_5Config(text_config=words, vision_config=picture, latent_query_num=4)
    patches = torch.rand(1, 16, 770)
    patches[..., 0], patches[..., 1] = torch.arange(16) // 4 + 1, torch.arange(16) % 4 + 1
    places = torch.tensor([[0, 1, 1, 1, 1, 0, 0, 0]])
    return transformers.Kosmos2_5Model(config), {"flattened_patches": patches, "image_embeds_position_mask": places}


@pytest.mark.parametrize(("build", "site"), [(build_clap, "audio_model"), (build_kosmos, "vision_model")])
def test_towers_that_bypass_the_interface_are_sites(build, site):
    torch.manual_seed(0)
    built, inputs = build()
    ids = torch.arange(5, 13)[None]
    assert site in capture(load(built.eval(), tokenizer=tokenizer()), {"input_ids": ids, **inputs}).sites


def test_a_site_that_lacks_a_layer_is_refused():
    model = fresh()
    self_attention = model.network.encoder.layer[1].attention.self

    def bypass(self, hidden, *_, **__):
        return torch.nn.functional.scaled_dot_product_attention(hidden, hidden, self.value(hidden)), None

    self_attention.forward = bypass.__get__(self_attention)
    with pytest.raises(CaptureError, match=r"Some layers .* \(encoder\.layer\.\*\.attention\.self\), so site 'self'"):
        capture(model, text(5))


def test_differences_are_a_share_of_the_largest_number_of_real_tokens():
    plain = torch.tensor([[[1.0], [4.0], [torch.finfo(torch.float32).min]]])
    other = torch.tensor([[[2.0], [4.0], [torch.finfo(torch.float32).min]]])
    assert relative_difference((plain, None), (other, None)) == 0.25
    assert relative_difference((plain,), (other,), [torch.tensor([[False, True, True]])]) == 0
    assert relative_difference((plain,), (other[:, :2],)) == torch.inf
    assert relative_difference({"attentions": plain}, {"attentions": other}) == 0
    assert relative_difference([plain / 0 * 0], [plain]) == 0


def test_sparse_experts_are_no_attention():
    capture(tiny("gpt_oss"), text(5))
