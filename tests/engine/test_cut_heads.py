"""Removing heads of kinds that no family describes: their weights are found by data flow, and the result is proved."""

import pytest
import torch
import transformers

import headscope as hs
from headscope.core.errors import CaptureError, DataWarning, InputError
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.edited import edited
from headscope.engine.load import load
from headscope.engine.pruning import cut_heads
from headscope.engine.pruning.cut_heads import find_rows, read_example
from headscope.engine.pruning.head_rows import HeadRows
from headscope.engine.pruning.prune import make_pruned_class, prune
from headscope.results.store import save
from tests.engine.test_prune import PRUNABLE, named, outputs, zeroed
from tests.laws.test_families import inputs_of
from tests.models import KINDS, SIZE, SMALL, batch, network, tiny, tokenizer

REFUSED = ("albert", "xlnet", "afmoe")
CUT = [kind for kind in KINDS if kind not in PRUNABLE and kind not in (*REFUSED, "vit")]
HALVES = {"layers": 2, "attention_heads": 4, "ffn_dim": 48}
HEADS = ("L0H1", "L1H0", "L1H1")  # where two heads share a key-value head, both of them in layer 1


def built(kind, **config):
    torch.manual_seed(0)
    settings = transformers.AutoConfig.for_model(kind, **{**SMALL, **SIZE, "max_position_embeddings": 64, **config})
    made = transformers.AutoModel.from_config(settings).eval()
    for weight in made.parameters():
        weight.data.mul_(4 if weight.ndim > 1 else 1)
    return load(made, tokenizer=tokenizer())


@pytest.mark.parametrize("kind", CUT)
def test_a_cut_model_equals_the_zeroed_one(kind):
    model, names = tiny(kind), named(kind, HEADS)
    smaller = prune(model, names)
    with edited(model, zeroed(names)):
        expected = outputs(model, kind)
    torch.testing.assert_close(outputs(smaller, kind), expected, rtol=0, atol=1e-5)  # float32, other implementations
    assert (outputs(model, kind) - expected).abs().max() > 1e-2
    assert smaller.network.num_parameters() < model.network.num_parameters()
    assert not hasattr(model.network.config, "headscope_cut_layers")


def layout(model, removed):
    """Return which rows of each linear layer only some heads of the first layer need."""
    rows = find_rows(model, read_example(model, None))
    gone = {("self", 0, head) for head in removed}
    found = {name: rows.find_removable(name, gone).nonzero().flatten().tolist() for name in rows.users}
    return {name.split(".")[-1]: numbers for name, numbers in found.items() if numbers}


def test_the_layouts_of_packed_projections_are_found():
    one = list(range(8, 16))  # the second of heads of 8
    assert layout(built("gpt_neox"), [1]) == {"query_key_value": list(range(24, 48))}  # q, k and v of each head
    assert layout(tiny("bloom"), [1]) == {"query_key_value": list(range(24, 48))}
    packed = tiny("phi3")  # 4 queries, 2 keys, 2 values
    assert layout(packed, [1]) == {"qkv_proj": one}
    assert layout(packed, [0, 1]) == {"qkv_proj": [*range(16), *range(32, 40), *range(48, 56)]}
    falcon = built("falcon", multi_query=True, new_decoder_architecture=False)
    assert layout(falcon, [1]) == {"query_key_value": one}  # all heads need the one key and value


def test_a_norm_over_all_heads_keeps_the_rows_that_it_reads():
    """In OLMo 2 each query and key depends on all rows; values do not."""
    assert layout(tiny("olmo2"), [0, 1]) == {"v_proj": list(range(8))}


def test_cut_layers_are_smaller():
    smaller = prune(tiny("phi3"), ["L0H0", "L0H1", "L1H3"])
    first, second = (layer.self_attn for layer in smaller.network.layers)
    assert first.qkv_proj.weight.shape == (64 - 32, 32)
    assert second.qkv_proj.weight.shape == (64 - 8, 32)
    assert first.o_proj.weight.shape == (32, 16)
    assert second.o_proj.weight.shape == (32, 24)
    assert first.qkv_proj(torch.randn(1, 3, 32)).shape == (1, 3, 64)


@pytest.mark.parametrize("kind", ["phi3", "bloom", "m2m_100", "deberta-v2"])
def test_captures_hold_the_heads_that_are_left(kind):
    model, names = tiny(kind), named(kind, HEADS)
    with edited(model, zeroed(names)):
        expected = capture(model, batch(kind))
    trace = capture(prune(model, names), batch(kind))
    assert trace.pruned == {(0, 1), (1, 0), (1, 1)}
    for lens in ("raw", "effective", "norm"):
        found, wanted = view(trace, lens).weights, view(expected, lens).weights
        for layer, left in enumerate(([0, 2, 3], [2, 3])):
            torch.testing.assert_close(found[:, layer, left], wanted[:, layer, left], rtol=0, atol=1e-5)
        assert found[:, 0, 1, 0].isnan().any()


@pytest.mark.parametrize("kind", ["phi3", "bloom", "m2m_100"])
def test_save_load_and_prune_again(kind, tmp_path):
    model = tiny(kind)
    once = prune(model, named(kind, ["L0H1"]))
    save(once, tmp_path / "once")
    read = load(tmp_path / "once")
    assert read.weights_hash == once.weights_hash
    assert torch.equal(outputs(read, kind), outputs(once, kind))
    again = load(save(prune(read, named(kind, ["L1H0", "L0H0"])), tmp_path / "again"))
    names = named(kind, ["L0H0", "L0H1", "L1H0"])
    with edited(model, zeroed(names)):
        expected = outputs(model, kind)
    torch.testing.assert_close(outputs(again, kind), expected, rtol=0, atol=1e-5)
    with pytest.raises(InputError, match="is pruned already"):
        prune(again, named(kind, ["L0H1"]))


def test_a_cut_model_is_tuned_with_the_head_of_a_task(tmp_path):
    pruned = load(save(prune(tiny("mpnet"), ["L0H1"]), tmp_path / "mpnet"))
    classifier = transformers.MPNetForSequenceClassification
    architecture = make_pruned_class(classifier, pruned.family, ["L0H1"])
    made, report = architecture.from_pretrained(tmp_path / "mpnet", output_loading_info=True)
    assert type(made) is classifier
    assert not report["mismatched_keys"]
    assert torch.equal(
        made.mpnet.encoder.layer[0].attention.attn.q.weight, pruned.network.encoder.layer[0].attention.attn.q.weight
    )


def test_a_cut_model_generates_as_the_zeroed_one():
    torch.manual_seed(0)
    config = transformers.Phi3Config(**KINDS["phi3"])
    model = load(transformers.Phi3ForCausalLM(config).eval(), tokenizer=tokenizer())
    smaller, options = prune(model, HEADS), {"max_new_tokens": 4, "min_new_tokens": 4}
    with edited(model, zeroed(HEADS)):
        expected = hs.generate(model, "the cat sat", **options)
    trace = hs.generate(smaller, "the cat sat", **options)
    assert trace.examples[0].columns["generated"] == expected.examples[0].columns["generated"]
    torch.testing.assert_close(trace.attention[0][:, [0, 2, 3]], expected.attention[0][:, [0, 2, 3]], rtol=0, atol=1e-5)


def test_pictures_need_an_example():
    model = tiny("vit")
    with pytest.raises(InputError, match=r"it reads pixel_values\. Give something that it reads: .*example="):
        prune(model, "L0H1")
    inputs = inputs_of("vit").tensors
    smaller = prune(model, "L0H1", example=inputs)
    with edited(model, "zero_heads:heads=L0H1"), torch.no_grad():
        expected = model.network(**inputs).last_hidden_state
    with torch.no_grad():
        torch.testing.assert_close(smaller.network(**inputs).last_hidden_state, expected, rtol=0, atol=1e-5)


def test_layers_that_share_a_module_lose_a_head_together():
    model = tiny("albert")
    with pytest.raises(InputError, match="only they need. Several layers share one attention module: name a head in"):
        prune(model, "L0H1")
    names = ["L0H1", "L1H1", "L2H1"]
    smaller = prune(model, names)
    with edited(model, zeroed(names)):
        torch.testing.assert_close(outputs(smaller, "albert"), outputs(model, "albert"), rtol=0, atol=1e-5)


def test_what_is_not_in_linear_layers_is_refused():
    with pytest.raises(InputError, match="type 'xlnet' cannot be removed: no weight of a linear layer .* switched off"):
        prune(tiny("xlnet"), "L0H1")


def test_a_gated_head_that_shares_its_values_is_refused_with_the_difference():
    model = tiny("afmoe")
    with pytest.raises(InputError, match=r"zero_heads by 0\.\d+ of .* They share keys and values with self\.L0H1: try"):
        prune(model, "L0H0")
    smaller = prune(model, ["L0H0", "L0H1"])  # with both the values go
    with edited(model, zeroed(["L0H0", "L0H1"])):
        torch.testing.assert_close(outputs(smaller, "afmoe"), outputs(model, "afmoe"), rtol=0, atol=1e-5)


def test_a_row_that_another_head_needs_is_noticed(monkeypatch):
    find_removable = HeadRows.find_removable

    def find_one_more(self, layer, removed):
        return torch.nn.functional.pad(find_removable(self, layer, removed)[:-1], (1, 0))

    monkeypatch.setattr(HeadRows, "find_removable", find_one_more)
    with pytest.raises(InputError, match="the outputs differ from those under zero_heads by"):
        prune(tiny("bloom"), "L0H1")


def test_heads_whose_projections_are_not_found_lose_the_output_projection_only(monkeypatch):
    whole = cut_heads.find_rows

    def find_columns(model, inputs):
        rows = whole(model, inputs)
        rows.users.clear()
        return rows

    monkeypatch.setattr("headscope.engine.pruning.prune.find_rows", find_columns)
    with pytest.warns(DataWarning, match=r"Of self\.L0H1 only the part of the output projection was removed"):
        smaller = prune(tiny("bloom"), "L0H1")
    with edited(tiny("bloom"), "zero_heads:heads=L0H1"):
        expected = outputs(tiny("bloom"), "bloom")
    torch.testing.assert_close(outputs(smaller, "bloom"), expected, rtol=0, atol=1e-5)


def test_an_example_that_the_model_does_not_read_is_said():
    with pytest.raises(
        InputError, match="did not run on an example of input_ids.*: IndexError.* Give one that it reads"
    ):
        prune(tiny("bloom"), "L0H1", example={"input_ids": torch.tensor([[5, 999]])})


def test_quantised_weights_are_refused():
    model = load(network("bloom"), tokenizer=tokenizer())
    model.network.h[0].self_attention.dense.weight = torch.nn.Parameter(
        torch.zeros(32, 32, dtype=torch.float8_e4m3fn), requires_grad=False
    )
    rows = find_rows(tiny("bloom"), read_example(tiny("bloom"), None))
    with pytest.raises(InputError, match="a Linear of torch.float8_e4m3fn: it is quantised or has an adapter"):
        cut_heads.cut_heads(model, model, rows, {("self", 0, 1)}, "L0H1", {})


def test_a_model_without_attention_is_told_so():
    config = transformers.MambaConfig(**SIZE, hidden_size=32, num_hidden_layers=1, state_size=4)
    model = load(transformers.MambaModel(config).eval(), tokenizer=tokenizer())
    with pytest.raises(
        CaptureError, match="Nothing was captured: .* Models of convolutions or recurrences have no att"
    ):
        prune(model, "L0H0")


def test_an_example_whose_padding_turns_out_differently_is_refused_and_says_so():
    """Nothing tells which frames were padding, and edits leave its rows as they are."""
    config = {"num_mel_bins": 8, "conv_channels": 16, "input_feat_per_channel": 8, "max_source_positions": 64}
    sizes = {f"{half}_{name}": size for half in ("encoder", "decoder") for name, size in HALVES.items()}
    model = built("speech_to_text", d_model=32, max_target_positions=64, **config, **sizes)
    inputs = {"input_features": torch.randn(2, 64, 8), "decoder_input_ids": torch.full((2, 3), 5)}
    mask = torch.ones(2, 64, dtype=torch.long)
    mask[1, 40:] = 0
    with pytest.raises(InputError, match="What becomes of padding may differ: give an example without any"):
        prune(model, "encoder.L0H1", example={**inputs, "attention_mask": mask})
    assert prune(model, "encoder.L0H1", example=inputs)
