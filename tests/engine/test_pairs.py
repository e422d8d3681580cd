"""A tuple of two texts is one pair, a list of two texts is two texts, for every verb."""

from copy import deepcopy

import pytest

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.provenance import read_provenance
from tests.models import network, tiny, tokenizer

FIRST, SECOND = "cat sat", "dog ran dog"
QUIET = {"progress": False}


def writer():
    import transformers

    return hs.load(transformers.GPT2LMHeadModel(network("gpt2").config).eval(), tokenizer=tokenizer())


def masked():
    import transformers

    return hs.load(transformers.BertForMaskedLM(network("bert").config).eval(), tokenizer=tokenizer())


def n(result):
    return read_provenance(result)["n"]


VERBS = {
    "read": lambda data: len(hs.read(data)),
    "capture": lambda data: len(hs.capture(tiny("bert"), data).examples),
    "by_layer": lambda data: hs.by_layer(tiny("bert"), data, see=lambda trace: len(trace.examples))[0],
    "stream": lambda data: sum(len(trace.examples) for trace in hs.stream(tiny("bert"), data)),
    "generate": lambda data: len(hs.generate(writer(), data, max_new_tokens=1).examples),
    "importances": lambda data: len(hs.importances(masked(), data, target=lambda output: output.logits[:, 0, 0])),
    "measure": lambda data: n(hs.measure(tiny("bert"), data, statistics="entropy", **QUIET)),
    "average_heads": lambda data: n(hs.average_heads(tiny("bert"), data)),
    "score": lambda data: n(hs.score(masked(), data, **QUIET)),
    "ablate": lambda data: n(hs.ablate(masked(), data, sets="layers", **QUIET)),
    "head_importance": lambda data: n(hs.head_importance(masked(), data, **QUIET)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_tuple_is_a_pair_and_a_list_is_texts(verb):
    count = VERBS[verb]
    assert (count((FIRST, SECOND)), count([FIRST, SECOND]), count([(FIRST, SECOND)])) == (1, 2, 1)


def test_a_pair_is_what_text_and_pair_are():
    for trace in (hs.capture(tiny("bert"), (FIRST, SECOND)), hs.capture(tiny("bert"), [(FIRST, SECOND)])):
        assert trace.keys.text == hs.capture(tiny("bert"), FIRST, SECOND).keys.text
        assert trace.examples[0].pair == SECOND


def test_second_texts_are_no_pairs():
    with pytest.raises(InputError, match="pair was given, but example '0' has a second text already. Leave pair out"):
        hs.capture(tiny("bert"), (FIRST, SECOND), FIRST)
    with pytest.raises(InputError, match="pair holds second texts, but pairs of texts were given there. Give one text"):
        hs.capture(tiny("bert"), FIRST, (FIRST, SECOND))
    with pytest.raises(
        InputError, match="A tuple of two texts is a pair, but this one has 3 texts. Give several texts"
    ):
        hs.capture(tiny("bert"), (FIRST, SECOND, FIRST))


def test_a_chat_takes_no_pairs():
    model = hs.load(writer().network, tokenizer=deepcopy(tokenizer()))
    model.tokenizer.chat_template = "{{ messages[0].content }}"
    with pytest.raises(InputError, match="chat=True sends one text as the user's message, but example '0' is a pair"):
        hs.generate(model, (FIRST, SECOND), chat=True)
