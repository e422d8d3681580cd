"""Positions of padding: the model's own, or one for each token of padding, as in BERT."""

from copy import deepcopy

import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.provenance import read_provenance
from tests.models import network, text, tiny, tokenizer

TEXTS = [text(5), text(9)]


def padded_by_one(kind):
    """A tiny model whose token of padding has the id 1, as those that count positions from it have."""
    padding = deepcopy(tokenizer())
    padding.pad_token = "[UNK]"
    return tiny(kind) if kind == "bert" else hs.load(network(kind), tokenizer=padding)


def values(kind, **options):
    """The values of the first layer, those of padding too, which is that of the first text."""
    trace = hs.capture(padded_by_one(kind), TEXTS, keep=("values", "pads", "model_output"), pad_to=24, **options)
    return trace, trace.values[0][0][:, ~trace.keys.real[0]]  # head token value


@pytest.mark.parametrize("kind", ["mpnet", "roberta"])
def test_padding_shares_one_position_unless_it_is_asked_to_be_distinct(kind):
    same, distinct = (values(kind, **options)[1] for options in ({}, {"pad_positions": "distinct"}))
    assert torch.linalg.matrix_rank(same[0], rtol=1e-4) <= 1  # one vector, at every token of padding
    assert torch.linalg.matrix_rank(distinct[0], rtol=1e-4) > 1


@pytest.mark.parametrize("kind", ["bert", "mpnet", "roberta"])
def test_distinct_positions_of_padding_change_nothing_on_real_tokens(kind):
    (own, _), (distinct, _) = (values(kind, **options) for options in ({}, {"pad_positions": "distinct"}))
    real = own.keys.real
    torch.testing.assert_close(
        distinct.model_output.last_hidden_state[real], own.model_output.last_hidden_state[real], rtol=0, atol=1e-6
    )
    for layer in range(len(own.layers)):
        torch.testing.assert_close(distinct.attention[layer], own.attention[layer], rtol=0, atol=1e-6)


def test_bert_has_distinct_positions_of_its_own():
    (_, own), (_, distinct) = (values("bert", **options) for options in ({}, {"pad_positions": "distinct"}))
    torch.testing.assert_close(own, distinct)


def test_positions_of_padding_are_stamped_into_results():
    options = {"lens": "effective:keys=padded", "statistics": ["relative_change"], "pad_to": 24, "progress": False}
    own, distinct = (
        hs.measure(padded_by_one("mpnet"), TEXTS, pad_positions=name, **options) for name in ("model", "distinct")
    )
    assert "pad_positions" not in read_provenance(own)
    assert read_provenance(distinct)["pad_positions"] == "distinct"
    assert float(abs(own["relative_change"] - distinct["relative_change"]).max()) > 1e-3


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("mpnet", {"pad_positions": "unlike"}, "pad_positions='unlike' is none of model, distinct"),
        ("t5", {"pad_positions": "distinct"}, "T5.* takes no position_ids. Leave it out"),
        ("mpnet", {"pad_positions": "distinct", "pad_to": 65}, "needs 65 positions, but .* has 64. Give pad_to=64"),
    ],
)
def test_positions_that_cannot_be_given_are_refused(kind, options, message):
    with pytest.raises(InputError, match=message):
        hs.capture(tiny(kind), TEXTS, **options)


def test_a_tokenized_batch_has_its_own_positions():
    with pytest.raises(InputError, match="goes in as it is"):
        hs.capture(tiny("mpnet"), {"input_ids": [[2, 7, 3]]}, pad_positions="distinct")
