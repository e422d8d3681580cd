"""Scoring inputs that are padded to a given width."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError
from headscope.training.encode import pad_batch
from tests.models import tokenizer
from tests.training.data import labeled, plain
from tests.training.test_score import with_head

PAPER = "effective_attention:keys=paper"


def test_padding_changes_only_the_answers_of_the_paper_variant():
    model, data = with_head("bert", "AutoModelForSequenceClassification"), labeled(8)
    narrow, wide = (hs.score(model, data, pad_to=width, progress=False) for width in (None, 40))
    np.testing.assert_allclose(wide["logits"], narrow["logits"], atol=1e-6)  # float32
    narrow, wide = (hs.score(model, data, edit=PAPER, pad_to=width, progress=False) for width in (20, 40))
    assert float(abs(narrow["logits"] - wide["logits"]).max()) > 1e-5


def test_padding_does_not_change_the_loss_of_masked_tokens():
    model = with_head("bert", "AutoModelForMaskedLM")
    narrow, wide = (hs.score(model, plain(4), task="mlm", pad_to=width, progress=False) for width in (None, 40))
    np.testing.assert_allclose(wide["loss"], narrow["loss"], rtol=1e-4)  # float32


def test_a_width_below_the_longest_text_is_refused():
    batch = {"input_ids": torch.ones(2, 5, dtype=torch.long), "labels": torch.tensor([0, 1])}
    with pytest.raises(InputError, match="pad_to=4 is less than the longest text, which has 5 tokens"):
        pad_batch(tokenizer(), batch, 4)
    assert pad_batch(tokenizer(), batch, 7)["input_ids"].tolist() == [[1, 1, 1, 1, 1, 0, 0]] * 2
