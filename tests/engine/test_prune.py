"""Removing heads from models."""

from dataclasses import replace

import pytest
import torch
import transformers

import headscope as hs
from headscope.core.catalog import families
from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.edits.mean_heads import MeanHeads
from headscope.engine.capture import by_layer, capture, record
from headscope.engine.edited import edited
from headscope.engine.load import load
from headscope.engine.pruning.prune import prunable_kinds, prune
from headscope.engine.recording.output_projection import find_projection
from headscope.measuring.measure import measure
from headscope.results.store import save
from tests.ablation.test_ablate import with_head
from tests.laws.test_families import inputs_of
from tests.models import KINDS, batch, network, sites, tiny, tokenizer
from tests.training.data import labeled, plain

PRUNABLE = sorted(kind for family in families for kind in prunable_kinds(family))
NAMED = ("bert", "roberta", "distilbert", "gpt2", "llama", "t5", "bart")
SELECTIONS = {
    "heads": ("L0H1", "L1H0", "L1H3"),
    "first layer": ("L0", "L1H2"),
    "last layer": ("L1", "L0-L0H3"),
    "groups": ("L0H0", "L0H1", "L1H2", "L1H3"),
}
HEADS = {
    "gpt2": transformers.GPT2LMHeadModel,
    "llama": transformers.LlamaForCausalLM,
    "t5": transformers.T5ForConditionalGeneration,
    "bart": transformers.BartForConditionalGeneration,
}


def named(kind, heads):
    """Return names of heads at each site of a kind of model."""
    return [f"{site}.{head}" for site in sites(kind) for head in heads] if len(sites(kind)) > 1 else list(heads)


def zeroed(names):
    return f"zero_heads:heads={'+'.join(names)}"


def outputs(model, kind):
    """Return the last hidden states of tokens that are not padding."""
    tensors = inputs_of(kind).tensors
    with torch.no_grad():
        states = model.network(**tensors).last_hidden_state
    mask = tensors["decoder_attention_mask" if len(sites(kind)) > 1 else "attention_mask"]
    return states[mask.bool()]


def generator(kind):
    """Return a model that generates, with random weights."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **KINDS[kind])
    return load(HEADS[kind](config).eval(), tokenizer=tokenizer())


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("kind", PRUNABLE)
def test_pruned_equals_zeroed(kind, selection):
    model, names = tiny(kind), named(kind, SELECTIONS[selection])
    pruned = prune(model, names)
    with edited(model, zeroed(names)):
        expected = outputs(model, kind)
    torch.testing.assert_close(outputs(pruned, kind), expected, rtol=0, atol=1e-5)  # float32, sums in another order
    assert (outputs(model, kind) - expected).abs().max() > 1e-2
    assert pruned.network.num_parameters() < model.network.num_parameters()


@pytest.mark.parametrize("kind", NAMED)
def test_pruned_equals_zeros_in_the_output_projection(kind):
    """The literal version: no edit, no interface, the columns of W_O set to zero by hand."""
    model = load(network(kind), tokenizer=tokenizer())
    pruned = prune(model, named(kind, ["L0H1", "L1H0", "L1H3"]))
    for site in sites(kind):
        names = [call.name for call in record(model, inputs_of(kind).tensors, site).calls]
        for name, heads in zip(names, ([1], [0, 3]), strict=True):
            projection = find_projection(model, name)
            for head in heads:
                columns = slice(8 * head, 8 * head + 8)
                weight = projection.weight.data if kind == "gpt2" else projection.weight.data.T
                weight[columns] = 0
    torch.testing.assert_close(outputs(pruned, kind), outputs(model, kind), rtol=0, atol=1e-5)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "t5", "bart"])
def test_each_attention_implementation_runs_without_heads(kind, implementation):
    model, names = tiny(kind), named(kind, ["L0", "L1H2"])
    built = network(kind)
    built.set_attn_implementation(implementation)
    with edited(model, zeroed(names)):
        expected = outputs(model, kind)
    pruned = prune(load(built, tokenizer=tokenizer()), names)
    torch.testing.assert_close(outputs(pruned, kind), expected, rtol=0, atol=1e-5)


def test_a_layer_without_heads_writes_the_bias():
    model = prune(tiny("distilbert"), "L0")
    module = model.network.transformer.layer[0].attention
    written = module(torch.randn(2, 5, 32))[0]
    torch.testing.assert_close(written, module.out_lin.bias.expand(2, 5, 32))


def test_the_model_given_is_not_changed():
    model = load(network("bert"), tokenizer=tokenizer())
    weights, before = model.weights_hash, repr(model.network)
    prune(model, ["L0H1"])
    assert model.weights_hash == weights
    assert repr(model.network) == before
    assert not hasattr(model.network.config, "headscope_pruned_heads")


def test_heads_keep_their_names():
    model = tiny("bert")
    twice, once = prune(prune(model, ["L0H1", "L1H0"]), ["L0H2"]), prune(model, "L0H1+L0H2+L1H0")
    assert torch.equal(outputs(twice, "bert"), outputs(once, "bert"))
    with edited(model, "zero_heads:heads=L0H1", "uniform_heads:heads=L0H2"):
        expected = outputs(model, "bert")
    with edited(prune(model, "L0H1"), "uniform_heads:heads=L0H2") as changed:
        torch.testing.assert_close(outputs(changed, "bert"), expected, rtol=0, atol=1e-5)


def test_key_value_heads_go_with_the_last_of_their_query_heads():
    model = tiny("llama")  # heads 0 and 1 share a key-value head, as do 2 and 3
    attention = prune(model, ["L0H0", "L0H1", "L1H0"]).network.layers
    first, second = attention[0].self_attn, attention[1].self_attn
    assert first.k_proj.weight.shape == (8, 32)
    assert first.num_key_value_groups == 2
    assert second.k_proj.weight.shape == (16, 32)  # L1H1 still needs the first of the two
    assert second.k_proj(torch.randn(1, 3, 32)).shape == (1, 3, 24)  # repeated, so that each query head has its own
    assert second.num_key_value_groups == 1


@pytest.mark.parametrize("selection", ["first layer", "heads"])
@pytest.mark.parametrize("kind", HEADS)
def test_a_pruned_model_generates_as_the_zeroed_one(kind, selection):
    model, names = generator(kind), named(kind, SELECTIONS[selection])
    inputs = {
        "input_ids": torch.tensor([[2, 7, 8, 9, 3], [2, 11, 12, 13, 3]]),
        "attention_mask": torch.ones(2, 5).long(),
    }
    options = {"max_new_tokens": 8, "do_sample": False, "output_scores": True, "return_dict_in_generate": True}
    options["eos_token_id"] = None
    with edited(model, zeroed(names)):
        expected = model.network.generate(**inputs, **options)
    found = prune(model, names).network.generate(**inputs, **options)
    assert torch.equal(found.sequences, expected.sequences)
    torch.testing.assert_close(torch.stack(found.scores), torch.stack(expected.scores), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_generated_text_of_a_pruned_model_is_captured(kind):
    model, names = generator(kind), ["L0H1", "L1H3"]
    with edited(model, zeroed(names)):
        expected = hs.generate(model, "the cat sat", max_new_tokens=4)
    trace = hs.generate(prune(model, names), "the cat sat", max_new_tokens=4)
    assert trace.pruned == {(0, 1), (1, 3)}
    assert trace.examples[0].columns["generated"] == expected.examples[0].columns["generated"]
    left = [0, 2]
    torch.testing.assert_close(trace.attention[1][:, left], expected.attention[1][:, left], rtol=0, atol=1e-5)
    assert trace.attention[1][:, 3].isnan().any()


@pytest.mark.parametrize("selection", ["first layer", "heads"])
@pytest.mark.parametrize("kind", NAMED)
def test_save_and_load(kind, selection, tmp_path):
    model = tiny(kind)
    pruned = prune(model, named(kind, SELECTIONS[selection]))
    save(model, tmp_path / "model")
    save(pruned, tmp_path / "pruned")
    read = load(tmp_path / "pruned")
    assert type(read.network) is type(model.network)
    assert read.weights_hash == pruned.weights_hash
    assert torch.equal(outputs(read, kind), outputs(pruned, kind))
    before, after = ((tmp_path / name / "model.safetensors").stat().st_size for name in ("model", "pruned"))
    assert before - after > 3.9 * (model.network.num_parameters() - pruned.network.num_parameters())


def test_prune_a_loaded_model_again(tmp_path):
    pruned = load(save(prune(tiny("t5"), "cross.L0H1+encoder.L0"), tmp_path / "pruned"))
    again = load(save(prune(pruned, "cross.L0H2+decoder.L1"), tmp_path / "again"))
    direct = prune(tiny("t5"), "cross.L0H1+cross.L0H2+encoder.L0+decoder.L1")
    assert torch.equal(outputs(again, "t5"), outputs(direct, "t5"))


def test_from_pretrained_refuses_a_pruned_folder(tmp_path):
    """It must not fill the missing weights with random numbers."""
    for heads in ("L0", "L0H1"):
        save(prune(tiny("bert"), heads), tmp_path / heads)
        with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
            transformers.AutoModel.from_pretrained(tmp_path / heads)


@pytest.mark.parametrize("kind", ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2"])
def test_from_pretrained_reads_a_llama_whose_layers_keep_equally_many_heads(kind, tmp_path):
    model = tiny(kind)
    pruned = prune(model, "L0H0+L0H1+L1H2+L1H3")
    save(pruned, tmp_path / "even")
    plain_network = transformers.AutoModel.from_pretrained(tmp_path / "even").eval()
    assert (plain_network.config.num_attention_heads, plain_network.config.num_key_value_heads) == (2, 1)
    expected = outputs(pruned, kind)
    torch.testing.assert_close(outputs(replace(model, network=plain_network), kind), expected, rtol=0, atol=1e-6)
    read = load(tmp_path / "even", tokenizer=tokenizer())
    assert torch.equal(outputs(read, kind), expected)
    assert capture(read, batch(kind)).pruned == {(0, 0), (0, 1), (1, 2), (1, 3)}  # under their own names
    uneven = prune(read, "L1H0")
    assert uneven.network.config.num_attention_heads == 4
    assert read.network.config.num_attention_heads == 2
    again = load(save(uneven, tmp_path / "uneven"), tokenizer=tokenizer())
    with edited(model, zeroed(["L0H0", "L0H1", "L1H2", "L1H3", "L1H0"])):
        torch.testing.assert_close(outputs(again, kind), outputs(model, kind), rtol=0, atol=1e-5)
    with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
        transformers.AutoModel.from_pretrained(tmp_path / "uneven")


def test_save_refuses_other_folders(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds something else than a model"):
        save(tiny("bert"), tmp_path / "other", overwrite=True)
    save(tiny("bert"), tmp_path / "model")
    with pytest.raises(InputError, match="exists already. Give another folder, or replace it with overwrite=True"):
        save(tiny("bert"), tmp_path / "model")
    save(prune(tiny("bert"), "L0H1"), tmp_path / "model", overwrite=True)
    assert load(tmp_path / "model").network.config.headscope_pruned_heads == ["L0H1"]


@pytest.mark.parametrize(
    ("kind", "site"), [(kind, site) for kind in ("bert", "llama", "t5", "bart") for site in sites(kind)]
)
def test_captures_hold_the_heads_that_are_left(kind, site):
    model, names = tiny(kind), named(kind, SELECTIONS["heads"])
    with edited(model, zeroed(names)):
        expected = capture(model, batch(kind), site=site)
    trace = capture(prune(model, names), batch(kind), site=site)
    assert trace.pruned == {(0, 1), (1, 0), (1, 3)}
    for lens in ("raw", "effective", "norm"):
        found, wanted = view(trace, lens).weights, view(expected, lens).weights
        for layer, left in enumerate(([0, 2, 3], [1, 2])):
            torch.testing.assert_close(found[:, layer, left], wanted[:, layer, left], rtol=0, atol=1e-5)
        assert found[:, 0, 1, 0].isnan().any()


def test_means_and_cards_leave_pruned_heads_out():
    model = prune(tiny("bert"), ["L0H1", "L1"])
    trace = capture(model, batch("bert"))
    assert repr(trace).endswith("; 5 heads pruned)")
    mean = view(trace, "raw").mean("head")
    left = view(trace, "raw").layer(0)[:, [0, 2, 3]].mean(1)
    torch.testing.assert_close(mean.layer(0)[:, 0], left)
    assert mean.layer(1)[0, 0, 0, 0].isnan()
    assert mean.averaged["head"] == "mean of 4 heads without pruned ones"
    for thing in (model, trace):
        assert "L0H1, L1H0, L1H1, L1H2 and L1H3" in thing._repr_html_()
    assert "<table>" in view(trace, "effective")._repr_html_()


def test_measured_values_of_pruned_heads_are_missing():
    model = prune(tiny("bert"), ["L0", "L1H2"])
    data = measure(model, batch("bert"), statistics=["entropy"], lens="raw", progress=False)
    assert data["entropy_n"].values[0, 0].tolist() == [[0, 0, 0, 0], [3, 3, 0, 3]]
    assert data["entropy"].isnull().values[0, 0].tolist() == [[True] * 4, [False, False, True, False]]
    labels = by_layer(model, batch("bert"), see=lambda trace: sorted(trace.pruned))
    assert labels == [[(0, 0), (0, 1), (0, 2), (0, 3)], [(1, 2)]]


def test_gradients_of_pruned_models_are_those_of_the_zeroed_one():
    model, names = tiny("bert"), ["L0H1", "L1"]
    pruned, options = prune(model, names), {"target": lambda output: output.last_hidden_state[:, 0, :4].sum(-1)}
    with edited(model, zeroed(names)):
        expected = capture(model, batch("bert"), **options)
    trace = capture(pruned, batch("bert"), **options)
    left = [0, 2, 3]
    torch.testing.assert_close(trace.gradient[0][:, left], expected.gradient[0][:, left], rtol=0, atol=1e-5)
    assert not trace.gradient[1].any()


@pytest.mark.parametrize(("kind", "task", "data"), [("bert", "classification", labeled), ("gpt2", "causal", plain)])
def test_a_pruned_head_has_no_importance_and_ablating_it_changes_nothing(kind, task, data):
    model, names = with_head(kind, task), ["L0", "L1H2"]
    examples, pruned = data(8), prune(model, names)
    found = hs.head_importance(pruned, examples, progress=False)["head_importance"].values
    left = [0, 1, 3]
    assert not found[0][found[0] > 0].any()
    assert not found[1, 2] > 0
    zero = hs.head_importance(model, examples, edit=zeroed(names), progress=False)["head_importance"].values
    torch.testing.assert_close(torch.tensor(found[1, left]), torch.tensor(zero[1, left]), rtol=1e-4, atol=1e-6)
    ablated = hs.ablate(pruned, examples, progress=False)
    literal = hs.score(pruned, examples, edit="zero_heads:heads=L1H1", progress=False)
    metric = ablated["score"].attrs["long_name"]
    assert float(ablated["ablated"][1, 1]) == pytest.approx(float(literal[metric]), rel=1e-6)
    assert not (abs(ablated["change"][0]) > 1e-6).any()


@pytest.mark.parametrize("kind", ["bert", "llama", "bart"])
def test_edits_of_the_heads_that_are_left(kind):
    model, names = tiny(kind), named(kind, SELECTIONS["first layer"])
    pruned, rest = prune(model, names), "+".join(named(kind, ["L1-L1H2"]))
    means = hs.average_heads(pruned, batch(kind))
    assert not means["head_output"].sel(layer=0).any()  # pruned heads write nothing
    edits = [f"uniform_heads:heads={rest}", f"gate_heads:gate=0.5,heads={rest}", MeanHeads(rest, means=means)]
    for edit in edits:
        with edited(model, zeroed(names), edit):
            expected = outputs(model, kind)
        with edited(pruned, edit):
            torch.testing.assert_close(outputs(pruned, kind), expected, rtol=0, atol=1e-5)
    for edit in ("uniform_heads", "resample_heads", "effective_attention", MeanHeads(means=means)):
        with edited(pruned, edit):
            assert not outputs(pruned, kind).isnan().any()


def test_lenses_that_merge_heads_refuse_pruned_models():
    trace = capture(prune(tiny("bert"), ["L0H1", "L1"]), batch("bert"))
    for lens in ("rollout", "rollout:heads=each", "norm:merge=true"):
        with pytest.raises(InputError, match=r"merges the heads of each layer, but .* were pruned \(L0H1, L1H0, L1H1"):
            view(trace, lens)


def test_errors():
    model = tiny("bert")
    with pytest.raises(InputError, match="There is no head 4 here"):
        prune(model, "L0H4")
    with pytest.raises(InputError, match="There is no layer 2 here"):
        prune(model, "L2H0")
    with pytest.raises(
        InputError, match="heads at the sites encoder, decoder and cross, and 'L0H1' does not say which"
    ):
        prune(tiny("t5"), "L0H1")
    with pytest.raises(InputError, match="'L0H1' is pruned already."):
        prune(prune(model, "L0"), ["L1H0", "L0H1"])
    with edited(model, "zero_heads:heads=L0H1") as changed, pytest.raises(InputError, match="outside of hs.edited"):
        prune(changed, "L0H1")
    quantised = network("bert")
    quantised.encoder.layer[0].attention.self.value.weight = torch.nn.Parameter(
        torch.zeros(32, 32, dtype=torch.int8), requires_grad=False
    )
    with pytest.raises(InputError, match="a Linear of torch.int8: it is quantised or has an adapter"):
        prune(replace(model, network=quantised), "L0H1")
