"""Models with several attention sites: every site is a trace of its own, whatever the shapes of the maps."""

import pytest
import torch
import transformers

from headscope.core.errors import DataWarning, InputError, NotCaptured
from headscope.core.lens import view
from headscope.engine.capture import by_layer, capture
from headscope.engine.edited import _visible, edited
from headscope.engine.load import load
from headscope.engine.recording.recorder import AttentionCall
from headscope.engine.recording.sites import _label_cross, _nearest, find_sites
from tests.engine.test_edited import Noting
from tests.models import GQA, SIZE, SMALL, network, text, tiny, tokenizer

IDS = torch.randint(5, 30, (2, 17), generator=torch.Generator().manual_seed(0))  # as many tokens as CLIP has patches
PIXELS = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))
VISION = {**SMALL, "image_size": 16, "patch_size": 4, "projection_dim": 16}
PATCHES = ["[CLS]", *(f"{row},{column}" for row in range(4) for column in range(4))]
IMAGE = 28
CROSSING = ("bert", "roberta", "electra", "gpt2")


def build(kind, **config):
    torch.manual_seed(0)
    return transformers.AutoModel.from_config(transformers.AutoConfig.for_model(kind, **config)).eval()


def clip(kind="clip"):
    texts = {**SMALL, **SIZE, "max_position_embeddings": 64, "eos_token_id": 3, "projection_dim": 16}
    return build(kind, text_config=texts, vision_config=VISION, projection_dim=16)


def llava():
    vision = {**VISION, "model_type": "clip_vision_model"}
    return build("llava", text_config={**GQA, "model_type": "llama"}, vision_config=vision, image_token_index=IMAGE)


def qwen2_vl():
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    vision = {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "patch_size": 4, "mlp_ratio": 2}
    texts = {**GQA, "rope_parameters": rope}
    return build("qwen2_vl", text_config=texts, vision_config=vision, image_token_id=IMAGE, vision_start_token_id=29)


def eager_attention(built, inputs, *path):
    """What the model itself returns with eager attention, under a name or a path of names."""
    built.set_attn_implementation("eager")
    with torch.no_grad():
        output = built(**inputs, output_attentions=True)
    for name in path:
        output = output[name]
    built.set_attn_implementation("sdpa")
    return output


def assert_same_layers(trace, expected):
    assert len(trace.attention) == len(expected)
    for ours, theirs in zip(trace.attention, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", ["m2m_100", "umt5", "t5", "bart"])
@pytest.mark.parametrize("site", ["encoder", "decoder", "cross"])
def test_sites_of_equal_length_do_not_mix(kind, site):
    model = tiny(kind)
    inputs = {"input_ids": IDS, "decoder_input_ids": IDS.flip(1)}
    trace = capture(model, inputs, site=site)
    assert_same_layers(trace, eager_attention(network(kind), inputs, f"{site}_attentions"))
    assert trace.sites == ("cross", "decoder", "encoder")


@pytest.mark.parametrize("kind", ["clip", "chinese_clip"])
def test_the_towers_of_clip_are_two_sites(kind):
    built = clip(kind)
    model, inputs = load(built, tokenizer=tokenizer()), {"input_ids": IDS, "pixel_values": PIXELS}
    words, picture = capture(model, inputs), capture(model, inputs, site="vision_model")
    assert (words.site, words.sites) == ("text_model", ("text_model", "vision_model"))
    assert words.keys.text[0] == tokenizer().convert_ids_to_tokens(IDS[0])
    assert picture.keys.text == [PATCHES] * 2
    assert [example.text for example in picture.examples] == ["image", "image"]
    assert_same_layers(words, eager_attention(built, inputs, "text_model_output", "attentions"))
    assert_same_layers(picture, eager_attention(built, inputs, "vision_model_output", "attentions"))


def test_texts_alone_for_clip_are_an_error_that_says_what_it_reads():
    with pytest.raises(InputError, match="A CLIPModel reads texts and images together. Give both as a tokenized batch"):
        capture(load(clip(), tokenizer=tokenizer()), ["a b", "c"])


def test_clip_with_more_texts_than_pictures_has_one_example_for_each_picture():
    model = load(clip(), tokenizer=tokenizer())
    trace = capture(model, {"input_ids": IDS, "pixel_values": PIXELS[:1]}, site="vision_model")
    assert len(trace.examples) == len(trace.attention[0]) == 1


def test_llava_captures_its_language_model_and_lists_the_vision_tower():
    built, ids = llava(), IDS.clone()
    ids[:, 1:] = IMAGE
    model, inputs = load(built, tokenizer=tokenizer()), {"input_ids": ids, "pixel_values": PIXELS}
    trace = capture(model, inputs)
    assert_same_layers(trace, eager_attention(built, inputs, "attentions"))
    assert "also: vision_tower" in repr(trace)
    assert trace.site == capture(model, text(5)).site == "language_model"
    assert capture(model, inputs, site="vision_tower").keys.text == [PATCHES] * 2


@pytest.mark.parametrize("kind", CROSSING)
def test_cross_attention_beside_self_attention_is_a_site_of_its_own(kind):
    built = network(kind, add_cross_attention=True, is_decoder=True)
    hidden, mask = torch.randn(2, 17, 32), torch.ones(2, 17, dtype=torch.long)
    mask[1, 9:] = 0
    inputs = {"input_ids": IDS, "encoder_hidden_states": hidden, "encoder_attention_mask": mask}
    model = load(built, tokenizer=tokenizer())
    own, cross = capture(model, inputs), capture(model, inputs, site="cross")
    assert (own.site, own.sites) == ("self", ("cross", "self"))
    assert_same_layers(own, eager_attention(built, inputs, "attentions"))
    assert_same_layers(cross, eager_attention(built, inputs, "cross_attentions"))
    assert cross.queries.text == own.queries.text
    assert cross.keys.text[1] == [f"#{index}" for index in range(9)]  # what the encoder read is not known
    assert not cross.visible[0][1, :, 9:].any()


def test_a_decoder_of_a_translation_model_has_self_and_cross_attention():
    config = network("mbart").config
    config.is_encoder_decoder, config.is_decoder = False, True
    built = transformers.MBartForCausalLM(config).eval()
    sites = find_sites(load(built, tokenizer=tokenizer()))
    assert set(sites.table.values()) == {"self", "cross"}


def test_an_edit_counts_the_layers_of_each_site_by_itself():
    model, noting = load(clip(), tokenizer=tokenizer()), Noting()
    with edited(model, noting):
        model.network(input_ids=IDS, pixel_values=PIXELS)
    assert sorted(noting.places) == [(site, layer) for site in ("text_model", "vision_model") for layer in (0, 1)]


def test_an_edit_of_attention_computed_in_parts_knows_the_layer():
    model, noting = load(qwen2_vl(), tokenizer=tokenizer()), Noting()
    with edited(model, noting):
        model.network(**pictures(3))
    assert [call for call in noting.places if call[0] == "visual"] == [("visual", 0)] * 3 + [("visual", 1)] * 3


def test_a_model_that_passes_its_mask_by_name_is_captured():
    built, ids = qwen2_vl(), IDS
    model = load(built, tokenizer=tokenizer())
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    trace = capture(model, {"input_ids": ids, "attention_mask": mask})
    eager = eager_attention(built, {"input_ids": ids, "attention_mask": mask}, "attentions")
    real = trace.queries.real[:, None, :, None]
    assert_same_layers(trace, [layer * real for layer in eager])
    assert trace.site == "language_model"


def pictures(count):
    """As many pictures of 4 × 4 patches as asked for, in the form that Qwen2-VL takes, with their image tokens."""
    ids = torch.tensor([[5, *[29, *[IMAGE] * 4] * count, 6]])
    patches = torch.randn(count * 16, 3 * 2 * 4 * 4, generator=torch.Generator().manual_seed(2))
    types = (ids == IMAGE).long()
    return {
        "input_ids": ids,
        "pixel_values": patches,
        "image_grid_thw": torch.tensor([[1, 4, 4]] * count),
        "mm_token_type_ids": types,
    }


def test_attention_computed_in_parts_does_not_count_as_layers():
    model = load(qwen2_vl(), tokenizer=tokenizer())
    assert capture(model, pictures(1), site="visual").layers == (0, 1)
    trace = capture(model, pictures(2), site="visual")
    assert (trace.layers, len(trace.examples), trace.attention[0].shape) == ((0, 1), 2, (2, 4, 16, 16))
    layers = by_layer(model, pictures(2), see=lambda layer: (layer.layers, layer.attention[0]), site="visual")
    assert [labels for labels, _ in layers] == [(0,), (1,)]
    assert all(torch.equal(ours, theirs) for (_, ours), theirs in zip(layers, trace.attention, strict=True))
    assert capture(model, pictures(2)).layers == (0, 1)


def test_attention_that_one_call_computes_in_two_places_is_two_sites():
    """Each head of DiffLlama weighs the values twice, once each half of them."""
    model = load(build("diffllama", **GQA), tokenizer=tokenizer())
    with pytest.warns(DataWarning, match=r"layers\.\*\.self_attn computes attention in several places .*'self\.2' is"):
        first = capture(model, text(5))
    second = capture(model, text(5), site="self.2")
    assert first.sites == second.sites == ("self", "self.2")
    assert first.layers == second.layers == (0, 1)
    assert first.keys.text == second.keys.text
    assert torch.equal(first.attention[1], second.attention[1])
    for trace in (first, second):
        torch.testing.assert_close(trace.attention[1] @ trace.values[1], trace.context[1])
    assert not torch.equal(first.values[1], second.values[1])


def test_the_flows_of_text_and_layout_have_output_projections_of_their_own():
    model = load(
        build("lilt", **{**SMALL, **SIZE, "hidden_size": 48}, max_position_embeddings=64, pad_token_id=0),
        tokenizer=tokenizer(),
    )
    with pytest.warns(DataWarning, match="several places"):
        layout = capture(model, {"input_ids": IDS})
    words = capture(model, {"input_ids": IDS}, site="self.2")
    for trace, name in ((layout, "layout_output"), (words, "output")):
        dense = model.network.encoder.layer[1].attention.get_submodule(name).dense
        written = torch.einsum("bhqv,hvx->bqx", trace.context[1], trace.output[1])
        read = trace.context[1].transpose(1, 2).flatten(2)
        torch.testing.assert_close(written + dense.bias, dense(read).detach())


def test_a_site_that_an_input_does_not_reach_is_an_error_that_names_the_others():
    model = load(llava(), tokenizer=tokenizer())
    with pytest.raises(
        InputError, match=r"at site 'vision_tower'\. This input reaches these .*: language_model\. Choose"
    ):
        capture(model, text(5), site="vision_tower")  # which was not called


def test_a_family_may_name_its_sites():
    class Named(type(tiny("bert").family)):
        sites = (("attention", "mine"),)

    model = load(network("bert"), tokenizer=tokenizer())
    object.__setattr__(model, "family", Named())
    assert set(find_sites(model).table.values()) == {"mine"}


def test_cross_attention_of_several_towers_is_named_after_them():
    parts = [("qformer", "layer", "crossattention"), ("language_model", "layers", "cross_attn")]
    assert list(_label_cross(parts).values()) == ["qformer.cross", "language_model.cross"]


@pytest.mark.parametrize(("site", "second"), [("self", False), ("cross", True), ("qformer.cross", True)])
def test_a_query_of_cross_attention_is_not_the_key_of_its_number(site, second):
    mask = torch.tensor([[[[0.0, torch.finfo(torch.float32).min]] * 2]])  # the second key is hidden
    attention, values = torch.tensor([[[[1.0, 0.0]] * 2]]), torch.ones(1, 1, 2, 3)
    call = AttentionCall("layer", attention, values, attention @ values, mask)
    assert _visible(call, site).any(-1).tolist() == [[True, second]]


def test_layers_beside_the_word_embeddings_are_the_main_site_before_deeper_ones():
    """Evolla's resampler of proteins has more modules than the layers that read the text."""
    assert _nearest("embed_tokens", {("protein", "resampler", "layers"): 6, ("layers", "self_attn"): 2}) == (
        "layers",
        "self_attn",
    )
    assert _nearest("", {("stages", "blocks", "attn"): 6, ("head", "attn"): 1}) == ("stages", "blocks", "attn")


def test_a_trace_names_the_modules_of_its_layers():
    config = {
        **SMALL,
        **SIZE,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "num_hidden_layers": 4,
        "num_experts": 2,
        "num_experts_per_tok": 1,
    }
    linear = {"linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8}
    experts = {"linear_value_head_dim": 8, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16}
    model = load(build("qwen3_next", **config, **linear, **experts), tokenizer=tokenizer())
    trace = capture(model, text(5))
    assert trace.modules == ("layers.3.self_attn",)  # the others are recurrent
    assert capture(tiny("bert"), text(5), layers=[-1]).modules == ("encoder.layer.1.attention.self",)
    gated = r"needs 'output', which this model does not have\. In layers\.3\.self_attn no linear layer reads .* a gate"
    with pytest.raises(NotCaptured, match=gated):
        view(trace, "norm")
