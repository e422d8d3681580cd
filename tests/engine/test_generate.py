"""What a model attends to while it writes."""

import copy

import pytest
import torch
import transformers

import headscope as hs
from headscope.core.errors import CaptureError, DataWarning, InputError
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.generate import generate
from headscope.engine.load import load
from tests.models import KINDS, SIZE, text, tiny, tokenizer

WRITERS = ("gpt2", "llama", "qwen3", "mistral", "gemma2", "phi3", "gpt_oss", "cohere", "gptj", "gpt_neo", "bloom")


def writer(kind, **changes):
    """A tiny model that can write, with attention far from uniform."""
    torch.manual_seed(0)
    settings = {**KINDS[kind], "eos_token_id": None, **changes}
    network = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(kind, **settings))
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.ndim > 1:
                weight.mul_(2 if "embed" in name or "wte" in name else 6)
    return load(network.eval(), tokenizer=tokenizer())


def ids_of(trace, row=0):
    return torch.tensor([tokenizer().convert_tokens_to_ids(trace.keys.text[row])])


def largest_difference(model, trace):
    """How far a trace is from one forward pass over the tokens of each of its rows."""
    apart = []
    for row in range(len(trace.examples)):
        whole = capture(model, {"input_ids": ids_of(trace, row)}, keep=sorted(trace.held))
        places = trace.keys.real[row].nonzero()[:, 0]
        for layer in range(len(whole.layers)):
            square = trace.attention[layer][row][:, places[:, None], places]
            apart += [square - whole.attention[layer][0]]
            apart += [trace.values[layer][row][:, places] - whole.values[layer][0]]
            apart += [trace.context[layer][row][:, places] - whole.context[layer][0]]
            assert torch.equal(trace.visible[layer][row][places[:, None], places], whole.visible[layer][0])
    return max(float(difference.abs().max()) for difference in apart)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_generation_is_the_same_as_one_forward_pass_over_its_tokens(kind):
    model = writer(kind)
    trace = generate(model, text(6), max_new_tokens=7)
    assert trace.keys.counts.tolist() == [15]
    assert trace.attention[0].shape == (1, 4, 15, 15)
    assert largest_difference(model, trace) < 1e-4


@pytest.mark.parametrize("kind", WRITERS)
def test_texts_of_mixed_lengths_are_padded_on_the_left_and_equal_single_ones(kind):
    model = writer(kind)
    texts = [text(3, seed=3), text(9, seed=9), text(5, seed=5)]
    trace = generate(model, texts, max_new_tokens=6)
    assert trace.keys.counts.tolist() == [11, 17, 13]
    assert trace.keys.real[0].tolist() == [*[False] * 6, *[True] * 11]
    assert largest_difference(model, trace) < 1e-4
    for row, prompt in enumerate(texts):
        assert generate(model, prompt, max_new_tokens=6).keys.text[0] == trace.keys.text[row]


def test_the_tokens_are_those_that_the_network_itself_generates():
    model = writer("llama")
    prompt = tokenizer()("the cat sat", return_tensors="pt", return_token_type_ids=False)
    plain = model.network.generate(**prompt, max_new_tokens=5, do_sample=False)
    assert torch.equal(ids_of(generate(model, "the cat sat", max_new_tokens=5)), plain)


def test_a_sliding_window_hides_earlier_keys():
    trace = generate(writer("mistral"), text(6), max_new_tokens=6)
    assert not trace.attention[0][0, :, -1, :-4].any()
    assert trace.visible[0][0, -1].tolist() == [*[False] * 10, *[True] * 4]


def test_new_tokens_have_segment_1_and_the_example_holds_the_generated_text():
    trace = generate(writer("gpt2"), "the cat", max_new_tokens=3)
    assert trace.queries.segment.tolist() == [[0, 0, 0, 0, 1, 1, 1]]
    assert trace.queries.word.tolist() == [[-1, 0, 1, -1, -1, -1, -1]]
    assert trace.queries.special[0, :4].tolist() == [True, False, False, True]
    written = tokenizer().decode(ids_of(trace)[0, 4:], skip_special_tokens=True)
    assert trace.examples[0].text == "the cat"
    assert trace.examples[0].columns["generated"] == written


def test_tokens_after_the_end_token_are_padding():
    model = writer("llama")
    texts = [text(4, seed=1), text(7, seed=2)]
    free = generate(model, texts, max_new_tokens=8)
    end = int(ids_of(free, 0)[0, 6 + 2])  # the third new token of the first text
    model.network.generation_config.eos_token_id = end
    trace = generate(model, texts, max_new_tokens=8)
    assert trace.keys.text[0] == free.keys.text[0][: 6 + 3]
    padding = ~trace.keys.real[0]
    assert padding.tolist() == [*[True] * 3, *[False] * 9, *[True] * (trace.keys.real.shape[1] - 12)]
    assert not trace.attention[0][0][:, padding].any()
    assert not trace.values[0][0][:, padding].any()
    assert largest_difference(model, trace) < 1e-4


def test_a_generation_that_ends_at_its_first_token_has_all_rows():
    model = writer("gpt2")
    first = int(ids_of(generate(model, "the cat", max_new_tokens=1))[0, -1])
    trace = generate(model, "the cat", max_new_tokens=9, eos_token_id=first)
    assert trace.keys.counts.tolist() == [5]
    assert torch.allclose(trace.attention[0].sum(-1), torch.ones(1, 4, 5), atol=1e-5)  # a float32 softmax
    assert largest_difference(model, trace) < 1e-4


def test_lenses_apply_to_a_generation_as_to_any_trace():
    model = writer("llama")
    trace = generate(model, [text(4), text(12)], max_new_tokens=5)
    alone = view(capture(model, {"input_ids": ids_of(trace, 0)}), "effective").dataset()
    both = view(trace, "effective").dataset(0)
    assert both["query_token"].values.tolist() == alone["query_token"].values.tolist()
    assert abs(both["weights"] - alone["weights"]).max() < 1e-4


def test_layers_heads_and_keep_can_be_chosen():
    model = writer("llama")
    every = generate(model, text(4), max_new_tokens=3)
    part = generate(model, text(4), max_new_tokens=3, layers=[-1], heads=[2, 0], keep=("values",))
    assert (part.layers, part.heads, part.held) == ((1,), (2, 0), {"attention", "values"})
    assert torch.equal(part.attention[0], every.attention[1][:, [2, 0]])
    assert part.output is None


def test_sampling_follows_the_seed():
    model = writer("gpt2")
    result = []
    for _ in range(2):
        torch.manual_seed(3)
        result.append(generate(model, text(4), max_new_tokens=8, do_sample=True, temperature=2.0))
    assert result[0].keys.text == result[1].keys.text
    assert result[0].keys.text != generate(model, text(4), max_new_tokens=8).keys.text
    assert largest_difference(model, result[0]) < 1e-4


def test_chunked_prefill_gives_the_same_trace():
    model = writer("llama")
    whole, pieces = (generate(model, text(9), max_new_tokens=3, **more) for more in ({}, {"prefill_chunk_size": 4}))
    assert torch.allclose(whole.attention[1], pieces.attention[1], atol=1e-5)  # sums in another order


def test_the_chat_template_is_applied_to_the_prompt():
    words = copy.deepcopy(tokenizer())
    words.chat_template = (
        "{% for message in messages %}[CLS] {{ message.content }} [SEP]{% endfor %}"
        "{% if add_generation_prompt %} the man{% endif %}"
    )
    model = load(writer("gpt2").network, tokenizer=words)
    trace = generate(model, ["the cat", "a blue mat"], chat=True, max_new_tokens=2)
    assert trace.keys.text[0][:6] == ["[CLS]", "the", "cat", "[SEP]", "the", "man"]
    assert trace.examples[1].text == "a blue mat"


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_is_restored(fails):
    model = writer("gpt2")
    model.network.train()
    before = copy.deepcopy(model.network.generation_config), model.network.state_dict(), model.network.config.to_dict()
    if fails:
        hook = model.network.register_forward_pre_hook(lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            generate(model, text(4))
        hook.remove()
    else:
        generate(model, text(4), max_new_tokens=3, repetition_penalty=1.5)
    assert model.network.generation_config.to_dict() == before[0].to_dict()
    assert model.network.config.to_dict() == before[2]
    assert model.network.config._attn_implementation == "sdpa"
    assert model.network.training
    assert not model.network._forward_hooks
    assert all(torch.equal(before[1][name], tensor) for name, tensor in model.network.state_dict().items())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"num_beams": 3},
            r"follows greedy search and sampling, but these options ask for beam search, which reorders",
        ),
        (
            {"assistant_model": object()},
            r"these options ask for assisted generation.*Leave out assistant_model and the like, and let",
        ),
        ({"prompt_lookup_num_tokens": 3}, r"these options ask for assisted generation"),
        ({"do_sample": True, "num_return_sequences": 2}, r"cannot follow num_return_sequences=2.*Leave num_return_seq"),
        ({"use_cache": False}, r"cannot follow use_cache=False: it needs the growing cache"),
        ({"cache_implementation": "static"}, r"cannot follow cache_implementation='static'"),
        ({"guidance_scale": 1.5}, r"cannot follow guidance_scale=1\.5"),
        ({"attention_mask": torch.ones(1, 4)}, r"hs\.generate makes attention_mask from the text itself"),
        ({"max_new_tokens": 0}, r"max_new_tokens must be at least 1, but got 0"),
        ({"max_new_tokens": 90}, r"prompt has 6 tokens, and max_new_tokens=90 may follow, but this model reads 64 at"),
        ({"chat": True}, r"chat=True needs a tokenizer with a chat template, but this one has none"),
        ({"site": "cross"}, r"This model has no attention site 'cross'\. Its sites: self\."),
    ],
)
def test_unsupported_options_are_an_error(options, sentence):
    with pytest.raises(InputError, match=sentence):
        generate(writer("gpt2"), text(4), **options)


def test_stopping_criteria_for_several_texts_are_an_error():
    with pytest.raises(InputError, match=r"With stop_strings, nothing says where each text of a batch ended\."):
        generate(writer("gpt2"), [text(4), text(5)], stop_strings=["cat"])


def test_a_model_that_cannot_generate_is_an_error():
    with pytest.raises(InputError, match=r"GPT2Model cannot generate text\. Load the class of its kind that can"):
        generate(tiny("gpt2"), text(4))


def translator(kind):
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **{**KINDS[kind], "eos_token_id": None})
    return load(transformers.AutoModelForSeq2SeqLM.from_config(config).eval(), tokenizer=tokenizer())


@pytest.mark.parametrize("kind", ["t5", "bart", "m2m_100", "umt5"])
@pytest.mark.parametrize("site", ["cross", "decoder"])
def test_what_a_decoder_writes_is_the_same_as_one_forward_pass(kind, site):
    model, texts = translator(kind), [text(7), text(4)]
    trace = generate(model, texts, max_new_tokens=5, site=site)
    alone = generate(model, texts[1], max_new_tokens=5, site=site)
    written = torch.tensor([tokenizer().convert_tokens_to_ids(row) for row in trace.queries.text])
    whole = capture(
        model, {**tokenizer()(texts, padding=True, return_tensors="pt"), "decoder_input_ids": written}, site=site
    )
    assert trace.queries.segment.tolist() == [[0, 1, 1, 1, 1, 1]] * 2
    for name in ("attention", "values", "context", "visible"):
        for ours, theirs in zip(getattr(trace, name), getattr(whole, name), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(alone.attention[1][0], trace.attention[1][1][..., : alone.attention[1].shape[-1]])
    assert "generated" in trace.examples[0].columns


def test_the_default_site_of_a_translator_is_what_it_reads():
    trace = generate(translator("t5"), text(7), max_new_tokens=3)
    assert (trace.site, trace.keys.text[0][0], trace.queries.segment.tolist()) == ("cross", "[CLS]", [[0, 1, 1, 1]])
    assert view(trace, "effective").weights.shape == (1, 2, 4, 4, len(trace.keys.text[0]))
    with pytest.raises(InputError, match=r"The encoder reads a text before anything is generated: hs\.capture"):
        generate(translator("t5"), text(7), site="encoder")


def test_an_encoder_whose_tokens_see_later_ones_is_refused():
    config = transformers.BertConfig(**KINDS["bert"])
    model = load(transformers.BertLMHeadModel(config).eval(), tokenizer=tokenizer())
    with pytest.raises(
        CaptureError, match=r"of type 'bert' tokens see those after them.* is_decoder=True in its config"
    ):
        generate(model, text(4), max_new_tokens=3)
    config.is_decoder = True
    decoder = load(transformers.BertLMHeadModel(config).eval(), tokenizer=tokenizer())
    assert generate(decoder, text(4), max_new_tokens=3).visible[0][0, 0].tolist() == [True] + [False] * 8


class Shifted(transformers.GPT2LMHeadModel):
    """Positions count from 1, as in PaliGemma."""

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **kwargs):
        inputs = super().prepare_inputs_for_generation(input_ids, attention_mask=attention_mask, **kwargs)
        return {**inputs, "position_ids": inputs["position_ids"] + 1}


def test_the_last_row_has_the_position_that_follows_the_others():
    model = writer("gpt2")
    model.network.__class__ = Shifted
    with pytest.warns(DataWarning, match="differs from a forward pass over the same tokens by up to"):
        trace = generate(model, text(6), max_new_tokens=4)
    ids = ids_of(trace)
    whole = capture(model, {"input_ids": ids, "position_ids": torch.arange(1, ids.shape[1] + 1)[None]})
    torch.testing.assert_close(trace.attention[1], whole.attention[1])


def test_generate_is_public():
    assert hs.generate is generate


def test_a_checkpoint_that_asks_for_beams_generates_greedily():
    model = writer("gpt2")
    expected = generate(model, text(4), max_new_tokens=4)
    model.network.generation_config.num_beams = 4
    trace = generate(model, text(4), max_new_tokens=4)
    assert trace.keys.text == expected.keys.text
    with pytest.raises(InputError, match="let num_beams be 1"):
        generate(model, text(4), max_new_tokens=4, generation_config=model.network.generation_config)


def test_a_model_that_reads_a_placeholder_is_refused():
    torch.manual_seed(0)
    config = transformers.XLMConfig(**SIZE, emb_dim=32, n_layers=2, n_heads=4, mask_token_id=4)
    model = load(transformers.XLMWithLMHeadModel(config).eval(), tokenizer=tokenizer())
    with pytest.raises(
        CaptureError, match=r"generated 9 tokens it computed attention for \d+ before the last: it adds"
    ):
        generate(model, text(4), max_new_tokens=3, min_new_tokens=3)
