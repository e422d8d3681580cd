"""Layers of models in which only some attend have the numbers of the model's own layers."""

from functools import cache

import numpy as np
import pytest
import torch
import transformers
import xarray as xr

import headscope as hs
from headscope.ablation.head_sets import count_heads
from headscope.ablation.resumed_answers import answer_edits
from headscope.core.catalog import edits as catalog
from headscope.core.errors import InputError
from headscope.edits import GateHeads, MeanHeads
from headscope.engine.model import Model
from headscope.engine.pruning.pruned_config import list_pruned, pruned_heads
from headscope.engine.recording.numbers import number_modules, read_numbers
from headscope.engine.recording.sites import find_sites
from headscope.training.scoring import prepare_scoring
from headscope.viewer.long_input import open_long_input
from headscope.viewer.source import make_source
from tests.models import SMALL, text, tiny, tokenizer

DATA = [{"text": text(words, seed=words), "label": words % 2} for words in (3, 5, 7, 8)]
QUIET = {"progress": False}
LAYERS = (3, 7)


@cache
def qwen3_next() -> Model:
    """Eight layers, of which the fourth and the eighth attend; the others are recurrent."""
    linear = {"linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8}
    experts = {"linear_value_head_dim": 8, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16}
    experts |= {"num_experts": 2, "num_experts_per_tok": 1, "pad_token_id": 0}
    size = {**SMALL, "vocab_size": len(tokenizer()), "num_key_value_heads": 2, "head_dim": 8, "num_hidden_layers": 8}
    config = transformers.AutoConfig.for_model("qwen3_next", **size, **linear, **experts)
    torch.manual_seed(0)
    network = transformers.Qwen3NextForSequenceClassification(config)
    torch.nn.init.normal_(network.score.weight)
    return hs.load(network.eval(), tokenizer=tokenizer())


def logits(model, words=5):
    return hs.capture(model, text(words)).model_output.logits


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (["layers.3.attn", "layers.11.attn"], [3, 11]),
        (["blocks.0.layer.1.attn", "blocks.2.layer.1.attn"], [0, 2]),
        (["layers.5.attn"], [5]),
        (["block.0.layer.1.attn"], []),  # nothing says which of the two counts
        (["stages.0.blocks.0.attn", "stages.1.blocks.1.attn"], []),
        (["layers.3.attn", "layers.3.other"], []),
        (["layers.3.attn", "3.layers.attn"], []),
        (["attn"], []),
        (["layers.0._orig_mod.attn", "layers.4.attn"], [0, 4]),
    ],
)
def test_the_only_number_that_differs_is_that_of_the_layer(names, numbers):
    assert read_numbers(names) == numbers


@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5", "albert"])
def test_where_every_layer_attends_the_order_of_calls_numbers_layers(kind):
    assert not find_sites(tiny(kind)).numbers


def test_one_module_that_serves_several_layers_numbers_none():
    attention = torch.nn.Module()
    layers = [torch.nn.Module() for _ in range(3)]
    for layer in layers[1:]:
        layer.attn = attention
    shared = torch.nn.Sequential(*layers)
    assert number_modules(shared, [["1.attn"]]) == {}
    layers[2].attn = torch.nn.Module()
    assert number_modules(shared, [["1.attn", "2.attn"]]) == {"1.attn": 1, "2.attn": 2}


def test_jamba_has_the_numbers_of_its_layers():
    torch.manual_seed(0)
    sizes = {**SMALL, "vocab_size": len(tokenizer()), "num_hidden_layers": 4, "num_key_value_heads": 2}
    kinds = {"attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False, "num_experts": 2}
    config = transformers.AutoConfig.for_model("jamba", **sizes, **kinds)
    model = hs.load(transformers.AutoModel.from_config(config).eval(), tokenizer=tokenizer())
    assert hs.capture(model, text(5)).layers == (1, 3)


def test_a_trace_is_of_the_models_layers():
    model = qwen3_next()
    trace = hs.capture(model, text(5))
    assert trace.layers == LAYERS
    assert trace.modules == ("model.layers.3.self_attn", "model.layers.7.self_attn")
    for chosen, layer in ((-1, 7), ([3], 3), (7, 7), ([-2], 3)):
        part = hs.capture(model, text(5), layers=chosen)
        assert part.layers == (layer,)
        assert torch.equal(part.attention[0], trace.attention[LAYERS.index(layer)])
    with pytest.raises(InputError, match=r"There is no layer 0 here, only layers 3 and 7\."):
        hs.capture(model, text(5), layers=0)
    seen = hs.by_layer(model, text(5), see=lambda layer: (layer.layers, layer.attention[0]))
    assert [labels for labels, _ in seen] == [(3,), (7,)]
    assert all(torch.equal(one, other) for (_, one), other in zip(seen, trace.attention, strict=True))
    gradient = hs.capture(model, text(5), target="predicted", layers=7).gradient
    assert torch.equal(gradient[0], hs.capture(model, text(5), target="predicted").gradient[1])


@pytest.mark.parametrize("layer", LAYERS)
def test_an_edit_changes_the_layer_that_it_names(layer):
    model = qwen3_next()
    with hs.edited(model, f"zero_heads:heads=L{layer}H1") as changed:
        edited = logits(changed)
    cut = model.network.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(
        lambda _, args: (args[0].index_fill(-1, torch.arange(8, 16), 0),)
    )
    with cut:
        by_hand = logits(model)
    torch.testing.assert_close(edited, by_hand)
    assert not torch.allclose(edited, logits(model))


@pytest.mark.parametrize("edit", ["zero_heads:heads=L0H0", "zero_heads:heads=all-L1", "effective_attention:layers=0"])
def test_a_layer_without_attention_is_refused(edit):
    with (
        pytest.raises(InputError, match=r"There is no layer [01] here, only layers 3 and 7\."),
        hs.edited(qwen3_next(), edit) as changed,
    ):
        hs.capture(changed, text(5))


def test_layers_called_one_by_one_have_their_numbers():
    model = qwen3_next()
    inputs = model.tokenizer(text(5), return_tensors="pt")
    with hs.edited(model, "zero_heads:heads=L7"):
        expected = model.network(**inputs).logits
    seen = []

    class Noting(hs.Edit):
        def __call__(self, heads):
            seen.append(heads.layer)

    with hs.edited(model, Noting()) as changed:
        model.network(**inputs)
        hidden = torch.zeros(1, 5, 32)
        layer = changed.network.model.layers[7]
        rotary = changed.network.model.rotary_emb(hidden, torch.arange(5)[None])
        layer.self_attn(hidden, rotary, attention_mask=torch.zeros(1, 1, 5, 5))
    assert seen == [3, 7, 7]
    assert not torch.equal(expected, model.network(**inputs).logits)


def test_gates_are_of_the_models_layers():
    model, gate = qwen3_next(), torch.ones(8, 4)
    gate[3, 2] = 0
    with hs.edited(model, GateHeads(gate=gate)) as changed:
        gated = logits(changed)
    with hs.edited(model, "zero_heads:heads=L3H2") as changed:
        torch.testing.assert_close(gated, logits(changed))
    with (
        pytest.raises(InputError, match="gate has 9 layers, but 'self' has 8"),
        hs.edited(model, GateHeads(gate=torch.ones(9, 4))) as changed,
    ):
        logits(changed)


def test_means_are_of_the_models_layers():
    model, texts = qwen3_next(), [row["text"] for row in DATA]
    means = hs.average_heads(model, texts)
    assert means["layer"].values.tolist() == list(LAYERS)
    mean = hs.capture(model, texts).context[1][:, 2].sum((0, 1)) / means["head_output_n"].item()
    np.testing.assert_allclose(means["head_output"].sel(site="self", layer=7, head=2), mean, atol=1e-6)
    found = []

    class Noting(hs.Edit):
        def __call__(self, heads):
            found.append(heads.context[0, 2, 0])

    with hs.edited(model, MeanHeads("L7H2", means=means), Noting()) as changed:
        logits(changed)
    torch.testing.assert_close(found[-1], mean)
    counted = means.assign_coords(layer=[3, 4])  # as of another model, or of a time when attention calls were counted
    with (
        pytest.raises(InputError, match=r"of the layers 3 and 4 of 'self', and it has the layers 3 and 7"),
        hs.edited(model, MeanHeads("L3", means=counted)) as changed,
    ):
        logits(changed)


def test_results_are_of_the_models_layers():
    model = qwen3_next()
    measured = hs.measure(model, DATA, statistics=["entropy"], **QUIET)
    assert measured["layer"].values.tolist() == list(LAYERS)
    one = hs.measure(model, DATA, statistics=["entropy"], layers=[7], **QUIET)
    xr.testing.assert_allclose(measured["entropy"].sel(layer=[7]), one["entropy"])
    importance = hs.head_importance(model, DATA, **QUIET)["head_importance"]
    assert importance["layer"].values.tolist() == list(LAYERS)
    silenced = hs.head_importance(model, DATA, edit="zero_heads:heads=L7H2", **QUIET)["head_importance"]
    assert (silenced == 0).to_series().loc[lambda zero: zero].index.tolist() == [(7, 2)]


@pytest.mark.parametrize("edit", ["zero_heads", "uniform_heads"])
def test_ablation_is_of_the_models_layers(edit):
    job = prepare_scoring(qwen3_next(), DATA, task="auto", batch_size=3, max_length=None)
    counts = count_heads(job.model, lambda: job.answer(rows=slice(1)))
    assert counts == {"self": {3: 4, 7: 4}}
    chosen = [catalog.make(f"{edit}:heads={heads}") for heads in ("L3H0", "L7H1", "L7", "L3-L3H2", "L3H1+L7H2")]
    whole, answers = answer_edits(job, chosen, counts, quiet=True)
    for one, found in zip(chosen, answers, strict=True):
        np.testing.assert_allclose(found["logits"], job.answer([one])["logits"], atol=1e-5)
        assert not np.allclose(found["logits"], whole["logits"], atol=1e-5)
    ablated = hs.ablate(job.model, DATA, edit=edit, sets="layers", **QUIET)
    assert ablated["layer"].values.tolist() == list(LAYERS)
    heads = hs.ablate(job.model, DATA, edit=edit, **QUIET)
    assert heads["change"].shape == (2, 4)
    assert heads["layer"].values.tolist() == list(LAYERS)
    with pytest.raises(InputError, match=r"There is no layer 0 here, only layers 3 and 7\."):
        hs.ablate(job.model, DATA, edit=edit, sets=["L0H0"], **QUIET)


def test_pruned_heads_are_of_the_models_layers(tmp_path):
    model = qwen3_next()
    smaller = hs.prune(model, ["L7H2", "L7H3"])  # which share keys and values
    assert pruned_heads(smaller.network.config) == ["L7H2", "L7H3"]
    assert hs.capture(smaller, text(5)).pruned == {(7, 2), (7, 3)}
    with hs.edited(model, "zero_heads:heads=L7H2+L7H3") as changed:
        torch.testing.assert_close(logits(smaller), logits(changed))
    importance = hs.head_importance(smaller, DATA, **QUIET)["head_importance"]
    assert importance.isnull().to_series().loc[lambda missing: missing].index.tolist() == [(7, 2), (7, 3)]
    assert hs.ablate(smaller, DATA, **QUIET)["change"].sel(layer=7).isnull().values.tolist() == [
        False,
        False,
        True,
        True,
    ]
    with pytest.raises(InputError, match="'L7H2' is pruned already"):
        hs.prune(smaller, "L7H2")
    with pytest.raises(InputError, match=r"There is no layer 0 here, only layers 3 and 7\."):
        hs.prune(model, "L0H0")
    curve = hs.pruning_curve(smaller, DATA, steps=50, **QUIET)
    assert set("+".join(curve["heads"].values.tolist()[1:]).split("+")) <= {
        *(f"L3H{n}" for n in range(4)),
        "L7H0",
        "L7H1",
    }
    hs.save(smaller, tmp_path / "new")
    assert hs.capture(hs.load(tmp_path / "new"), text(5)).pruned == {(7, 2), (7, 3)}
    smaller.network.config.headscope_pruned_heads = []
    list_pruned(smaller.network.config, ["L1H2", "L1H3"])  # as they were numbered before
    hs.save(smaller, tmp_path / "old")
    with pytest.raises(InputError, match="lists L1H2 and L1H3 as pruned, but its modules lack L7H2 and L7H3"):
        hs.load(tmp_path / "old")


def test_pages_and_figures_name_the_models_layers():
    model = qwen3_next()
    header = make_source([hs.view(hs.capture(model, text(5)), "raw")]).header()["sheets"][0]
    assert header["layers"] == list(LAYERS)
    source = open_long_input(model, text(5), lenses=["raw"])
    assert source.header()["sheets"][0]["layers"] == list(LAYERS)
    assert source.block("0/0/map/1/2")
    figure = hs.draw(hs.measure(model, DATA, statistics=["entropy"], **QUIET), "heads")
    ticks = {label.get_text() for axes in figure.axes for label in axes.get_yticklabels()}
    assert {"L3", "L7"} <= ticks


@pytest.mark.parametrize("lens", ["rollout", "flow", "rollout:start=3"])
def test_nothing_is_followed_through_layers_without_attention(lens):
    with pytest.raises(InputError, match=r"these maps hold layers 3 and 7 only\. .* \(hybrids\), they mix tokens"):
        hs.view(hs.capture(qwen3_next(), text(5)), lens)
    assert hs.view(hs.capture(qwen3_next(), text(5), layers=7), "rollout:start=7").layers == (7,)
