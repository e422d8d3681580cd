"""Attention that is NaN is reported: which layer, head and example."""

import warnings

import pandas
import pytest
import torch
from transformers import LlamaForCausalLM

from headscope.cli.measure import _summarise
from headscope.core.errors import DataWarning
from headscope.core.lens import view
from headscope.core.trace.nan_attention import HeadLabels, warn_about_weights
from headscope.engine.capture import by_layer, capture, stream
from headscope.engine.generate import generate
from headscope.engine.load import load
from headscope.measuring.measure import measure
from headscope.reporting.report import report
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
    expected = r"^Attention or its values are NaN in 3 of 3 examples: layer 1, head 1 of examples '0', '1' and '2'\. "
    with pytest.warns(DataWarning, match=expected):
        capture(broken(), TEXTS)


def test_only_the_examples_with_nan_are_named():
    with pytest.warns(DataWarning, match=r"NaN in 1 of 3 examples: layer 0, all heads of example '1'\."):
        capture(blind_to("dog"), TEXTS)


def test_the_labels_are_those_of_the_chosen_heads():
    with pytest.warns(DataWarning, match=r"layer 1, head 1 of example '0'"):
        capture(broken(), text(5), layers=[1], heads=[3, 1])


def test_a_stream_and_a_capture_by_layer_say_it_once_for_each_batch():
    for run in (lambda: list(stream(broken(0), TEXTS)),
                lambda: by_layer(broken(0), TEXTS, see=lambda trace: None)):  # fmt: skip
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
        DataWarning, match=r"example '1'\..*Statistics leave these out, and x_n counts the others"
    ) as caught:
        data = measure(blind_to("dog"), TEXTS, lens=lens, statistics=["entropy", "peak", "offsets"], batch_size=1,
                       rows=True, progress=False, **options)  # fmt: skip
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
    assert _summarise(data, "entropy", "raw")[-1] == "0 to 3"


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
    with pytest.warns(DataWarning, match="NaN in 1 of 1 example: layer 5, head 2 of example 'x'"):
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
