"""Attention, values and maps that are NaN are reported: which layer, head and example."""

import warnings
from dataclasses import dataclass

import pandas
import pytest
import torch
import xarray as xr
from transformers import LlamaForCausalLM

from headscope.core.errors import DataWarning
from headscope.core.kind import find_kind
from headscope.core.lens import Lens, view
from headscope.core.maps import make_maps
from headscope.core.trace.nan_attention import HeadLabels, warn_about_weights
from headscope.engine.capture import by_layer, capture, stream
from headscope.engine.generate import generate
from headscope.engine.load import load
from headscope.measuring.measure import measure
from headscope.measuring.merge import merge
from headscope.reporting.report import report
from headscope.results.select import main_variables
from tests.gpu import gpu
from tests.models import batch, network, text, tiny, tokenizer

NAN = float("nan")
TEXTS = ["the cat sat on a mat", "a dog ran", "the old man sang"]


def broken(layer=1, row=9):
    """A BERT with one NaN in the query weights: of head 1, whose rows are 8 to 15."""
    built = network("bert")
    with torch.no_grad():
        built.encoder.layer[layer].attention.self.query.weight[row, 0] = NAN
    return load(built, tokenizer=tokenizer())


def blind_to(word):
    """A BERT that has NaN for one word only."""
    built = network("bert")
    with torch.no_grad():
        built.embeddings.word_embeddings.weight[tokenizer().convert_tokens_to_ids(word)] = NAN
    return load(built, tokenizer=tokenizer())


def test_a_nan_weight_is_a_warning_that_names_layer_head_and_examples():
    expected = r"^Attention is NaN or infinite in 3 of 3 examples: layer 1, head 1 of examples '0', '1' and '2'\. "
    with pytest.warns(DataWarning, match=expected):
        capture(broken(), TEXTS)


def broken_values(layer=1, row=9, value=NAN):
    """A BERT with one NaN in the value weights: of head 1. Layer 1 is the last."""
    built = network("bert")
    with torch.no_grad():
        built.encoder.layer[layer].attention.self.value.weight[row, 0] = value
    return load(built, tokenizer=tokenizer())


@pytest.mark.parametrize("value", [NAN, float("inf")])
def test_nan_values_are_named_and_attention_is_not_blamed(value):
    expected = (
        r"^Values are NaN or infinite in 3 of 3 examples: layer 1, head 1 of examples '0', '1' and '2'\. "
        r"Attention is finite there\. Look for NaN or infinite weights in the model, or load it with another dtype\.$"
    )
    with pytest.warns(DataWarning, match=expected):
        capture(broken_values(value=value), TEXTS)


def test_what_follows_from_values_that_were_not_captured_is_said_to_follow():
    expected = (
        r"^Attention is NaN or infinite in 3 of 3 examples: layer 1, all heads of examples '0', '1' and '2'\. "
        r"The values of lower layers were not captured: NaN may begin there\. Look for"
    )
    with pytest.warns(DataWarning, match=expected):
        capture(broken_values(0), TEXTS, keep=("attention",))


@pytest.mark.parametrize("options", [{}, {"layers": [0, 1]}], ids=["streaming", "stack"])
def test_nan_values_change_no_lens_that_reads_no_values(options):
    options = {"statistics": ["entropy", "offsets"], "progress": False, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = measure(broken_values(), TEXTS, lens="raw", **options)
    with pytest.warns(DataWarning, match="^Values are NaN or infinite") as caught:
        both = measure(broken_values(), TEXTS, lens=["raw", "effective"], **options)
    assert len(caught) == 1
    for name in ("entropy", "entropy_n", "offsets", "offsets_n"):
        xr.testing.assert_identical(both[name].sel(lens=["raw"]), alone[name])
    assert "entropy_nan" not in alone
    assert both["entropy_nan"].sum("site").sel(lens="raw").values.tolist() == [[0] * 4, [0] * 4]
    assert both["entropy_nan"].sum("site").sel(lens="effective").values.tolist() == [[0] * 4, [0, 3, 0, 0]]
    assert both["entropy_n"].sel(lens="effective", layer=1, head=1).item() == 0


def test_a_statistic_that_reads_the_effective_lens_too_leaves_nan_values_out():
    with pytest.warns(DataWarning, match="^Values are NaN or infinite"):
        data = measure(broken_values(), TEXTS, lens="raw", statistics=["entropy", "effective_share"], progress=False)
    assert data["effective_share_nan"].sel(lens="raw", layer=1, head=1).item() == 3
    assert "entropy_nan" not in data


@pytest.mark.parametrize("lens", ["flow", "rollout"])
def test_a_lens_of_all_layers_has_no_value_from_the_layer_with_nan_on(lens):
    with pytest.warns(DataWarning, match="^Attention is NaN or infinite"):
        data = measure(broken(), TEXTS, lens=[lens, "raw"], statistics=["entropy"], progress=False)
    assert data["entropy_n"].sum("site").sel(lens=lens, head=0).values.tolist() == [3, 0]
    assert data["entropy_n"].sum("site").sel(lens="raw").values.tolist() == [[3] * 4, [3, 0, 3, 3]]


@dataclass(frozen=True)
class WithoutFirst(Lens):
    """Attention to all keys but the first; NaN in a row that has all its weight there, and in rows of padding."""

    def __call__(self, trace):
        layers = []
        for layer in trace.attention:
            rest = layer.index_fill(-1, torch.tensor([0]), 0)
            rest[0, 1, 2] = 0
            layers.append(rest / rest.sum(-1, keepdim=True))
        return make_maps(trace, layers, self)


def test_nan_of_a_lens_of_ones_own_is_counted_and_said():
    expected = (
        r"^The lens 'without_first' gives NaN or infinite weights in 1 of 3 examples: layer 0, head 1 of example '0'\. "
        r"Attention is finite there\. Statistics leave these maps out: x_nan counts them, x_n the others\.$"
    )
    with pytest.warns(DataWarning, match=expected) as caught:
        data = measure(
            tiny("bert"), TEXTS, lens=["raw", WithoutFirst()], statistics=["entropy", "offsets"], progress=False
        )
    assert len(caught) == 1
    for name in ("entropy", "offsets"):
        assert data[f"{name}_nan"].sum("site").sel(lens="without_first").values.tolist() == [[0, 1, 0, 0]] * 2
        counts = data[f"{name}_n"] if name == "entropy" else data[f"{name}_n"].sel(offset=0)
        assert counts.sum("site").sel(lens="without_first").values.tolist() == [[3, 2, 3, 3]] * 2
        assert (data[f"{name}_nan"].sel(lens="raw") == 0).all()


def test_counts_of_nan_add_up_over_batches_and_shards(tmp_path):
    def count(**options):
        with pytest.warns(DataWarning):
            return measure(blind_to("dog"), TEXTS * 2, statistics="entropy", lens="raw", progress=False, **options)

    whole = count(batch_size=1)
    for shard in (1, 2):
        count(shard=f"{shard}/2", out=tmp_path / f"{shard}.state")
    merged = merge(tmp_path / "1.state", tmp_path / "2.state")
    assert (whole["entropy_nan"] == 2).all()
    assert whole["entropy_nan"].dtype == "int64"
    xr.testing.assert_equal(merged["entropy_nan"], whole["entropy_nan"])
    assert main_variables(whole) == ["entropy"]


def test_only_the_examples_with_nan_are_named():
    with pytest.warns(
        DataWarning, match=r"^Attention and values are .* 1 of 3 examples: layer 0, all heads of example '1'\."
    ):
        capture(blind_to("dog"), TEXTS)


def test_the_labels_are_those_of_the_chosen_heads():
    with pytest.warns(DataWarning, match=r"layer 1, head 1 of example '0'"):
        capture(broken(), text(5), layers=[1], heads=[3, 1])


def test_a_stream_and_a_capture_by_layer_say_it_once_for_each_batch():
    for run in (lambda: list(stream(broken(0), TEXTS)), lambda: by_layer(broken(0), TEXTS, see=lambda trace: None)):
        with pytest.warns(DataWarning, match="layer 0, head 1 of examples") as caught:
            run()
        assert len(caught) == 1


def test_generation_says_it():
    built = network("llama")
    model = load(LlamaForCausalLM(built.config).eval(), tokenizer=tokenizer())
    with torch.no_grad():
        model.network.model.layers[1].self_attn.q_proj.weight[0, 0] = NAN
    with pytest.warns(DataWarning, match="layer 1, head 0 of example '0'"):
        generate(model, "the cat", max_new_tokens=2)


def test_a_model_without_a_family_says_it_too():
    built = network("cohere")
    with torch.no_grad():
        built.layers[1].self_attn.q_proj.weight[0, 0] = NAN
    with pytest.warns(DataWarning, match="layer 1, head 0 of example '0'"):
        capture(load(built, tokenizer=tokenizer()), text(5))


@pytest.mark.parametrize("kind", ["mistral", "gemma2", "modernbert", "llama"])
def test_float64_with_mixed_lengths_has_no_nan_and_equals_float32(kind):
    model = load(network(kind).double(), tokenizer=tokenizer())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = capture(model, batch(kind))
    plain = capture(tiny(kind), batch(kind))
    for ours, theirs, seen, same in zip(trace.attention, plain.attention, trace.visible, plain.visible, strict=True):
        torch.testing.assert_close(ours.float(), theirs, atol=1e-5, rtol=1e-4)  # float32 is the coarser one
        assert torch.equal(seen, same)


@pytest.mark.parametrize("lens", ["raw", "effective"])
@pytest.mark.parametrize("options", [{}, {"layers": [0, 1]}], ids=["streaming", "stack"])
def test_a_measurement_leaves_nan_out_and_says_so(lens, options):
    with pytest.warns(
        DataWarning, match=r"example '1'\..*Statistics leave these maps out: x_nan counts them, x_n the others\."
    ) as caught:
        data = measure(
            blind_to("dog"),
            TEXTS,
            lens=lens,
            statistics=["entropy", "peak", "offsets"],
            batch_size=1,
            rows=True,
            progress=False,
            **options,
        )
    assert len(caught) == 1
    whole = measure(tiny("bert"), [TEXTS[0], TEXTS[2]], lens=lens, statistics=["entropy", "peak"], progress=False)
    for name in ("entropy", "peak"):
        assert (data[f"{name}_n"] == 2).all()
        assert data[f"{name}_rows"].sel(example="1").isnull().all()
        torch.testing.assert_close(
            torch.tensor(data[name].values), torch.tensor(whole[name].values), rtol=1e-5, atol=1e-6
        )
    assert (data["offsets_n"] <= 2).all()


def test_tables_of_a_report_show_the_count_of_every_cell(tmp_path):
    with pytest.warns(DataWarning):
        data = measure(broken(), TEXTS, lens=["raw", "effective"], statistics=["entropy"], progress=False)
    report(data, tmp_path)
    table = pandas.read_csv(tmp_path / "tables" / "entropy.csv", index_col="layer")
    assert table["n (raw)"].to_dict() == table["n (effective)"].to_dict() == {"0": "3", "1": "0 to 3", "all": "0 to 3"}
    assert "0 to 3" in (tmp_path / "report.html").read_text()


def test_the_shell_shows_the_range_of_counts():
    with pytest.warns(DataWarning):
        data = measure(broken(), TEXTS, lens="raw", statistics=["entropy"], progress=False)
    assert find_kind(data).tables(data)["overview"].frame["n"].tolist() == ["0 to 3"]


def test_lenses_keep_nan_where_it_is():
    with pytest.warns(DataWarning):
        trace = capture(broken(), TEXTS)
    for lens in ("raw", "effective", "null", "norm"):
        maps = view(trace, lens)
        assert not maps.layer(0).isnan().any()
        assert not maps.layer(1)[:, [0, 2, 3]].isnan().any()
        assert maps.layer(1)[:, 1].isnan().any()


def test_fetched_weights_that_are_nan_are_named():
    weights = torch.zeros(2, 3, 4, 4)
    weights[1, 2, 3] = NAN
    with pytest.warns(
        DataWarning, match="^These maps are NaN or infinite in 1 of 1 example: layer 5, head 2 of example 'x'"
    ):
        warn_about_weights(weights, HeadLabels(["x"], (4, 5), (0, 1, 2)))


@gpu
def test_on_a_gpu_it_is_said_when_maps_are_fetched_and_when_a_measurement_arrives():
    model = broken()
    model.network.cuda()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        maps = view(capture(model, TEXTS), "raw")
    with pytest.warns(DataWarning, match="layer 1, head 1 of example '2'"):
        maps.dataset(2)
    with pytest.warns(DataWarning, match="layer 1, head 1 of examples '0', '1' and '2'"):
        data = measure(model, TEXTS, lens=["raw", "effective"], statistics=["entropy"], progress=False)
    assert data["entropy_n"].sel(layer=1, head=1).max() == 0
