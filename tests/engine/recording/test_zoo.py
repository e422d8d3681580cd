"""Every model type of the installed transformers that can be built tiny: no capture is wrong without a word."""

import pytest
import torch

from headscope.engine.capture import capture
from headscope.engine.recording import verify
from tests import zoo
from tests.zoo import SECONDS, count, examine, list_types, silently_wrong

SAMPLE = ("bert", "deepseek_v32", "minimax_m3_vl", "neomme", "got_ocr2", "big_bird")


@pytest.mark.parametrize("model_type", SAMPLE)
def test_a_sample_of_types_is_captured_right_or_said_why_not(model_type):
    outcome = examine(model_type)
    assert outcome.status in ("captured", "refused")
    assert not silently_wrong(outcome), outcome
    assert outcome.warned == (model_type == "got_ocr2")  # its pictures are read without the interface


@pytest.mark.parametrize("weight", [0.5, torch.nan])
def test_a_capture_that_is_off_is_found(monkeypatch, weight):
    def capture_wrongly(*args, **options):
        trace = capture(*args, **options)
        trace.attention[0][0, 0, 0, 0] = weight
        return trace

    monkeypatch.setattr(zoo, "capture", capture_wrongly)
    outcome = examine("bert")
    assert outcome.status == "wrong"
    assert silently_wrong(outcome)


def test_attention_that_is_missing_without_a_word_is_found(monkeypatch):
    monkeypatch.setattr(verify, "_check_unseen", lambda *_: None)
    outcome = examine("siglip")
    assert outcome.unseen == ["vision_model.head.attention"]
    assert silently_wrong(outcome)


@pytest.mark.soak
@pytest.mark.timeout(len(list_types()) * SECONDS)
def test_no_type_is_captured_wrongly_without_a_word(capsys):
    outcomes = list(map(examine, list_types()))
    with capsys.disabled():
        print(count(outcomes))  # noqa: T201
    assert not [outcome for outcome in outcomes if silently_wrong(outcome)]
    assert sum(outcome.status == "captured" for outcome in outcomes) >= 250
