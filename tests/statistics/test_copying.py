"""Copying: what heads add to the logits of the words that they attend to, against plain code and by hand."""

import pytest
import torch
import transformers

from headscope.core.errors import InputError, NotCaptured
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.load import load
from headscope.measuring.measure import measure
from tests.lenses.test_contributions import language_model
from tests.models import KINDS, batch, text, tiny, tokenizer

KEEP = ("values", "output", "unembedding")
SPEC = "logit:of=keys"


def test_the_weight_of_a_key_is_what_the_circuit_of_gpt2_adds_to_its_word():
    model = language_model("gpt2")
    network = model.network.transformer
    inputs = model.tokenizer(text(9), return_tensors="pt")
    with torch.no_grad():
        found = network(**inputs, output_hidden_states=True)
        last = []
        handle = network.ln_f.register_forward_pre_hook(lambda _, args: last.append(args[0][0]))
        network(**inputs)
        handle.remove()
        scale = (last[0].var(-1, correction=0) + network.ln_f.eps).sqrt()
        reads = model.network.lm_head.weight - model.network.lm_head.weight.mean(0)
        words = inputs["input_ids"][0]
        trace = capture(model, text(9), keep=KEEP)
        maps = view(trace, SPEC)
        ordinary = [place for place, word in enumerate(words) if word not in model.tokenizer.all_special_ids]
        for layer, block in enumerate(network.h):
            size, heads = found.hidden_states[0].shape[-1], len(trace.heads)
            values = block.attn.c_attn(block.ln_1(found.hidden_states[layer]))[0, :, 2 * size :].view(
                -1, heads, size // heads
            )
            for head in range(heads):
                matrix = block.attn.c_proj.weight[head * size // heads : (head + 1) * size // heads]
                written = values[:, head] @ matrix
                centered = (written - written.mean(-1, keepdim=True)) * network.ln_f.weight
                logits = centered @ reads.T  # key, word: what the circuit adds to each word, but for the scale
                weights = trace.attention[layer][0, head] / scale[:, None]
                expected = weights * logits[range(len(words)), words]
                torch.testing.assert_close(maps.layer(layer)[0, head], expected, rtol=1e-6, atol=1e-9)
                rows = weights[ordinary][:, ordinary]
                copied = (rows * logits[ordinary, words[ordinary]]).sum(-1).mean()
                mixed = (rows * logits[ordinary][:, words[ordinary]].mean(-1)).sum(-1).mean()
                for name, value in (("copying", copied), ("copying_shuffled", mixed)):
                    torch.testing.assert_close(maps.diagnostics[name][0, layer, head], value, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "cohere", "bloom", "olmo2", "gemma"])
def test_it_is_the_logit_lens_of_the_word_at_each_key(kind):
    model = language_model(kind)
    copied = view(capture(model, batch("bert")[:2], keep=KEEP), SPEC)
    trace = capture(model, batch("bert")[:2], keep=("values", "output"))
    ids = model.tokenizer(batch("bert")[:2], padding=True, return_tensors="pt")["input_ids"]
    for query, key in ((4, 2), (3, 3), (5, 1)):

        def above_mean(output, query=query, key=key):
            logits = output.logits[:, query]
            return logits[range(2), ids[:, key]] - logits.mean(-1)

        direct = view(
            capture(model, batch("bert")[:2], keep=("values", "output", "readout"), target=above_mean), "logit"
        )
        for layer in trace.layers:
            ours, theirs = (maps.layer(layer)[:, :, query, key] for maps in (copied, direct))
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-8)


def make_copier(sign):
    """A GPT-2 of one layer whose heads write what they read, or its opposite, in the space of the unembedding."""
    model = language_model("gpt2", n_layer=1)
    block, size = model.network.transformer.h[0].attn, KINDS["gpt2"]["n_embd"]
    with torch.no_grad():
        model.network.transformer.wpe.weight.zero_()
        block.c_attn.weight[:, 2 * size :] = torch.eye(size)
        block.c_attn.bias.zero_()
        block.c_proj.weight.copy_(sign * torch.eye(size))
        for norm in (model.network.transformer.h[0].ln_1, model.network.transformer.ln_f):
            norm.weight.fill_(1)
            norm.bias.zero_()
    return model


def test_heads_that_write_the_word_they_read_copy_and_those_that_write_its_opposite_do_not():
    for sign in (1, -1):
        data = measure(make_copier(sign), [text(9), text(7)], lens="raw", statistics=["copying"], progress=False)
        gain = sign * (data["copying"] - data["copying_shuffled"])
        assert (gain > 0).all()
    assert data["copying"].attrs["long_name"] == "logits of attended words"


def test_one_word_all_over_scores_its_null():
    model = language_model("gpt2")
    word = text(9).split()[0]
    data = measure(model, [" ".join([word] * 6)], lens="raw", statistics=["copying"], progress=False)
    torch.testing.assert_close(torch.tensor(data["copying"].values), torch.tensor(data["copying_shuffled"].values))


def test_it_is_the_same_with_padding_and_whichever_lens_is_measured():
    model = language_model("llama")
    both = measure(model, [text(9), text(5)], lens=["raw", "norm:merge=true"], statistics=["copying"], progress=False)
    alone = [measure(model, [part], lens="raw", statistics=["copying"], progress=False) for part in (text(9), text(5))]
    mean = sum(data["copying"].sel(lens="raw").values for data in alone) / 2
    for lens in both["lens"].values:
        torch.testing.assert_close(torch.tensor(both["copying"].sel(lens=lens).values), torch.tensor(mean))


def test_a_model_without_an_unembedding_says_so():
    torch.manual_seed(0)
    masked = load(transformers.BertForMaskedLM(transformers.BertConfig(**KINDS["bert"])).eval(), tokenizer=tokenizer())
    for model in (tiny("bert"), tiny("llama"), masked, language_model("gemma2")):  # whose logits are capped
        with pytest.raises(
            NotCaptured, match="needs 'unembedding', which this model does not have. It has no unembedding"
        ):
            measure(model, [text(9)], lens="raw", statistics=["copying"], progress=False)
    with pytest.raises(InputError, match="Leave out head=linearized"):
        view(capture(language_model("gpt2"), text(5), keep=KEEP), "logit:of=keys,head=linearized")
