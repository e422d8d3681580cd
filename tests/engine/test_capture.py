"""Captures of texts, pairs and tokenized batches."""

import warnings

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForMultipleChoice

from headscope.core.errors import DataWarning, InputError, NotCaptured
from headscope.core.example import Example
from headscope.core.lens import view
from headscope.engine.capture import capture, make_request, stream
from headscope.engine.load import load
from tests.models import GQA, WINDOW, batch, network, text, tiny, tokenizer

BERT = tiny("bert")


def test_one_text_has_one_row():
    trace = capture(BERT, "the cat sat on a mat")
    assert trace.queries.text == [["[CLS]", "the", "cat", "sat", "on", "a", "mat", "[SEP]"]]
    assert trace.queries.special.tolist() == [[True, *[False] * 6, True]]
    assert trace.queries.word.tolist() == [[-1, 0, 1, 2, 3, 4, 5, -1]]
    assert trace.examples == (Example("0", "the cat sat on a mat"),)


def test_a_pair_has_two_segments():
    trace = capture(BERT, "the cat", "a mat")
    assert trace.keys.text == [["[CLS]", "the", "cat", "[SEP]", "a", "mat", "[SEP]"]]
    assert trace.keys.segment.tolist() == [[0, 0, 0, 0, 1, 1, 1]]
    assert trace.keys.word.tolist() == [[-1, 0, 1, -1, 2, 3, -1]]


def test_pretokenised_words_keep_their_indices():
    trace = capture(BERT, Example("x", "the cat, old", words=("the", "cat,", "old")))
    assert trace.keys.text == [["[CLS]", "the", "cat", ",", "old", "[SEP]"]]
    assert trace.keys.word.tolist() == [[-1, 0, 1, 1, 2, -1]]


def test_a_tokenised_batch_is_passed_unchanged():
    ids = tokenizer()(["the cat sat", "a mat"], padding=True, padding_side="left", return_tensors="pt")
    trace = capture(BERT, ids)
    assert trace.keys.text == [["[CLS]", "the", "cat", "sat", "[SEP]"], ["[CLS]", "a", "mat", "[SEP]"]]
    assert trace.keys.real.tolist()[1] == [False, True, True, True, True]
    assert not trace.visible[0][1, :, 0].any()
    assert trace.attention[0].shape == (2, 4, 5, 5)


def test_a_tokenised_batch_equals_the_text():
    ids = tokenizer()("the cat sat on a mat", return_tensors="pt")
    assert torch.equal(capture(BERT, ids).attention[1], capture(BERT, "the cat sat on a mat").attention[1])


def test_layers_whose_heads_differ_in_size_make_one_trace():
    torch.manual_seed(0)
    kinds = ["sliding_attention", "full_attention"] * 2
    config = AutoConfig.for_model(
        "gemma4_text",
        **{**GQA, **WINDOW, "num_hidden_layers": 4, "layer_types": kinds},
        global_head_dim=12,
        hidden_size_per_layer_input=0,
    )
    model = load(AutoModel.from_config(config).eval(), tokenizer=tokenizer())
    trace = capture(model, batch("llama"))
    assert [layer.shape[-1] for layer in trace.values] == [layer.shape[-1] for layer in trace.context] == [8, 12, 8, 12]
    assert torch.equal(view(trace, "raw").weights, torch.stack(list(trace.attention), 1))
    result = view(trace, "effective")
    assert result.diagnostics["residual"].max() <= 1e-5
    assert result.diagnostics["rank"].amax((0, 2)).tolist() == [4, 12, 4, 12]  # a window of 4 keys


@pytest.mark.parametrize("heads", [[2, 0], [3, 1, 0, 2], [1, 1]])
def test_layers_and_heads_can_be_chosen(heads):
    every, part = capture(BERT, text(6)), capture(BERT, text(6), layers=[-1], heads=heads)
    assert (part.layers, part.heads) == ((1,), tuple(heads))
    assert torch.equal(part.attention[0], every.attention[1][:, heads])
    assert torch.equal(part.values[0], every.values[1][:, heads])
    assert torch.equal(part.output[0], every.output[1][heads])
    assert torch.equal(view(part, "effective").layer(1), view(every, "effective").layer(1)[:, heads])


@pytest.mark.parametrize("layers", [[1, 2], [2, 0], [2], [-1, 0]])
@pytest.mark.parametrize("lens", ["raw", "effective"])
def test_maps_of_captured_layers_are_found_by_label_in_any_order(layers, lens):
    whole, maps = (view(capture(tiny("albert"), text(6), layers=choice), lens) for choice in (None, layers))
    assert maps.layers == tuple(label % 3 for label in layers)
    for label in maps.layers:
        torch.testing.assert_close(maps.layer(label), whole.layer(label))
    for index in range(-len(layers), 0):
        assert torch.equal(maps.layer(index), maps.layer(maps.layers[index]))
    assert maps.weights.shape[1] == len(layers)
    assert maps.dataset().layer.values.tolist() == list(maps.layers)


@pytest.mark.parametrize(
    ("layers", "label", "sentence"),
    [
        ([2, 0], 1, r"There is no layer 1 here, only layers 2 and 0\."),
        ([2, 0], -3, r"There is no layer -3 here, only layers 2 and 0\."),
        ([1], 0, r"There is no layer 0 here, only layer 1\."),
        (None, 3, r"There is no layer 3 here, only layers 0 to 2\."),
    ],
)
def test_a_layer_that_was_not_captured_is_an_error_that_names_the_captured_ones(layers, label, sentence):
    maps = view(capture(tiny("albert"), text(6), layers=layers), "raw")
    with pytest.raises(InputError, match=sentence):
        maps.layer(label)


def test_an_encoder_decoder_captures_its_encoder_and_lists_the_other_sites():
    trace = capture(tiny("t5"), "the cat", "a mat")
    assert trace.site == "encoder"
    assert "also: cross, decoder" in repr(trace)


def test_the_second_text_of_an_encoder_decoder_is_what_its_decoder_reads():
    trace = capture(tiny("bart"), "the cat sat", "a mat", site="cross")
    assert trace.queries.text == [["[CLS]", "[CLS]", "a", "mat"]]
    assert trace.keys.text == [["[CLS]", "the", "cat", "sat", "[SEP]"]]
    assert trace.attention[0].shape[-2:] == (4, 5)


def test_a_stream_keeps_the_order_and_equals_one_capture():
    texts = [text(words, seed=words) for words in (3, 9, 5, 12, 4)]
    whole = capture(BERT, texts)
    traces = list(stream(BERT, texts, batch_size=2))
    assert [example.id for trace in traces for example in trace.examples] == ["0", "1", "2", "3", "4"]
    assert [len(trace.examples) for trace in traces] == [2, 2, 1]
    last = traces[2].attention[1][0]
    torch.testing.assert_close(whole.attention[1][4, :, : last.shape[-1], : last.shape[-1]], last, atol=1e-6, rtol=1e-4)


def test_truncating_a_text_is_a_warning():
    with pytest.warns(DataWarning, match=r"1 of 2 texts are longer than 64 tokens and were truncated: '1' \(92\)\."):
        trace = capture(BERT, [text(5), text(90)])
    assert trace.keys.counts.tolist() == [7, 64]
    assert trace.keys.text[1][-1] == "[SEP]"


def test_the_maximum_length_can_be_set():
    with pytest.warns(DataWarning, match="longer than 6 tokens"):
        assert capture(BERT, text(9), max_length=6).keys.counts.tolist() == [6]


def test_roberta_reads_two_tokens_less_than_it_has_positions():
    with pytest.warns(DataWarning, match="longer than 64 tokens"):
        capture(tiny("roberta"), text(90))


def test_there_is_no_warning_without_truncation():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        capture(BERT, text(20))


def test_padding_to_a_width_is_possible():
    assert capture(BERT, text(5), pad_to=20).attention[0].shape[-1] == 20
    with pytest.raises(InputError, match="pad_to=4 is less than the longest text, which has 7 tokens"):
        capture(BERT, text(5), pad_to=4)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("",), r"The text is empty\. Give it at least one word\."),
        (("  \n",), r"The text is empty"),
        (([],), r"There are no examples in the list: it has no rows"),
        ((["the cat", ""],), r"the list, row 1: the text \(column 'text'\) is empty"),
        ((["the cat"], ["a", "b"]), r"There are 1 texts but 2 second texts"),
        (([("a", "b")], ["c"]), r"pair was given, but example '0' has a second text already"),
        (([3],), r"the list, row 0: 3 is neither a text nor a pair of texts"),
        (("missing.csv",), r"There is no file 'missing.csv'"),
        (
            ({"attention_mask": [[1]]},),
            r"holds input_ids or pixel_values, but this one holds attention_mask\. Give texts as a list, a Data",
        ),
        (({"input_ids": torch.zeros(1, 0, dtype=torch.long)},), r"at least one token, not \[1, 0\]"),
        (({"input_ids": torch.ones(3, dtype=torch.long)},), r"must have shape \[batch, token\]"),
    ],
)
def test_invalid_texts_are_an_error(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        capture(BERT, *arguments)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"layers": [7]}, r"There is no layer 7 here, only layers 0 and 1\."),
        ({"heads": [9]}, r"There is no head 9 here, only heads 0 to 3\."),
        ({"layers": []}, r"asks for no layer at all"),
        ({"site": "cross"}, r"This model has no attention site 'cross'\. Its sites: self\."),
        (
            {"keep": ["value"]},
            r"Cannot keep value\. What can be kept: attention, blocks, model_output, output, pads, readout, residual",
        ),
    ],
)
def test_invalid_options_are_an_error(options, sentence):
    with pytest.raises(InputError, match=sentence):
        capture(BERT, "the cat", **options)


def test_a_text_of_special_tokens_only_is_an_error():
    with pytest.raises(InputError, match="has only special tokens"):
        capture(BERT, "[SEP]")


def test_a_bare_network_is_not_a_model():
    with pytest.raises(
        InputError, match=r"made by hs\.load, but got BertModel.*hs\.load\(network, tokenizer=tokenizer\)"
    ):
        make_request(BERT.network, None, None, None, ())  # capture itself would be stopped by the tests' type checks


def test_without_a_tokenizer_only_a_tokenised_batch_can_be_read():
    model = load(network("bert"))
    with pytest.raises(InputError, match="This model has no tokenizer"):
        capture(model, "the cat")
    assert capture(model, {"input_ids": [[2, 7, 3]]}).keys.text == [["2", "7", "3"]]


def test_length_options_with_a_tokenised_batch_are_an_error():
    with pytest.raises(InputError, match="leave out pair, max_length and pad_to"):
        capture(BERT, {"input_ids": [[2, 7, 3]]}, pad_to=9)


def test_a_lens_without_its_inputs_names_the_capture_to_make():
    trace = capture(BERT, text(5), keep=("values",))
    with pytest.raises(
        NotCaptured,
        match=r"The lens 'norm' needs 'output', but this trace holds 'attention' and 'values'\. "
        r"Capture again with keep=\('attention', 'output', 'values'\)",
    ):
        view(trace, "norm")
    with pytest.raises(NotCaptured, match=r"'effective:keys=paper' needs 'pads'"):
        view(trace, "effective:keys=paper")


def test_a_kind_without_a_family_has_its_output_projection_too():
    trace = capture(tiny("cohere"), batch("cohere"))
    assert trace.held == {"attention", "values", "output", "model_output"}
    layer = tiny("cohere").network.layers[1].self_attn.o_proj
    torch.testing.assert_close(trace.output[1], layer.weight.detach().mT.unflatten(0, (len(trace.heads), -1)))


def test_a_batch_size_of_0_is_an_error():
    with pytest.raises(InputError, match="batch_size must be at least 1"):
        stream(BERT, ["the cat"], batch_size=0)


def test_a_mask_that_hides_nothing_can_be_changed_cell_by_cell():
    trace = capture(tiny("bert"), text(6))
    before = view(trace, "effective").layer(0)
    trace.visible[0][0, 2, 3] = False
    assert int((~trace.visible[0]).sum()) == 1
    assert torch.equal(view(trace, "effective").layer(0)[:, :, 0], before[:, :, 0])


def test_a_model_with_a_head_for_multiple_choice_attends_as_the_model_without():
    plain = tiny("bert")
    choosing = AutoModelForMultipleChoice.from_config(plain.network.config)
    choosing.bert.load_state_dict(plain.network.state_dict(), strict=False)
    traces = [capture(model, ["the cat sat", "it slept"]) for model in (plain, load(choosing, tokenizer=tokenizer()))]
    for first, second in zip(traces[0].attention, traces[1].attention, strict=True):
        torch.testing.assert_close(first, second)
