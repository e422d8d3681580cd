"""Every model type of the installed transformers that can be built tiny: nothing is wrong without a word."""

import copy
from dataclasses import replace

import pytest
import torch

from benchmarks.zoo import examine as zoo
from benchmarks.zoo.build import build, list_types
from benchmarks.zoo.examine import SECONDS, VERBS, examine, silently_wrong
from benchmarks.zoo.summary import count, summarize
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.recording import interface, verify

SAMPLE = (
    "bert deberta electra fnet longformer opt gpt_neox qwen3 deepseek_v32 gemma3_text minimax_m3_vl_text neomme mamba2 "
    "t5 marian pegasus fsmt dinov2 beit swin detr resnet clip siglip got_ocr2 blip qwen2_vl glm4v_vision pix2struct "
    "vision-encoder-decoder whisper wav2vec2 hubert speech_to_text audio-spectrogram-transformer patchtst informer "
    "perceiver decision_transformer big_bird squeezebert granite_swa lilt prophetnet"
).split()
SHAPES = ("swin", "swinv2", "mask2former", "segformer", "hiera", "florence2")
"""Kinds whose layers differ in the shape of their maps."""

FULL = ("bert", "llama", "whisper", "gpt_neox", "vit", "prophetnet")
"""Kinds on which every verb is tried."""

CAPTURED = {"text": 0.95, "text to text": 0.9, "pictures": 0.8, "pictures with text": 0.9, "sound": 0.85}
"""The least share of the kinds with attention that is captured at every site, by what they read."""


@pytest.mark.parametrize("model_type", SAMPLE)
def test_a_sample_of_types_is_captured_right_or_said_why_not(model_type):
    outcome = examine(model_type, ("capture",))
    assert outcome.status == "built", outcome.reason
    assert outcome.cells["capture"].status in ("yes", "in part", "refused"), outcome.cells
    assert not silently_wrong(outcome), outcome
    assert outcome.attention == (model_type not in ("fnet", "mamba2", "resnet"))


@pytest.mark.parametrize("model_type", SHAPES)
def test_layers_of_different_shapes_are_held_to_the_same(model_type):
    outcome = examine(model_type, ("capture", "effective", "norm", "edit"))
    assert {cell.status for cell in outcome.cells.values()} == {"yes"}, outcome.cells
    assert not silently_wrong(outcome)


@pytest.mark.parametrize("model_type", FULL)
def test_every_verb_works_or_is_refused(model_type):
    outcome = examine(model_type)
    assert {cell.status for cell in outcome.cells.values()} <= {"yes", "in part", "refused", "none"}, outcome.cells
    assert list(outcome.cells) == list(VERBS)
    assert not silently_wrong(outcome)
    assert outcome.cells["prune"].status == "yes"


@pytest.mark.parametrize("weight", [0.5, torch.nan])
def test_a_capture_that_is_off_is_found(monkeypatch, weight):
    def capture_wrongly(*args, **options):
        trace = capture(*args, **options)
        trace.attention[0][0, 0, 0, 0] = weight
        return trace

    monkeypatch.setattr(zoo, "capture", capture_wrongly)
    outcome = examine("bert", ("capture",))
    assert outcome.cells["capture"].status == "wrong"
    assert silently_wrong(outcome)


def test_attention_that_is_missing_without_a_word_is_found(monkeypatch):
    monkeypatch.setattr(interface, "is_followed", lambda _: False)
    monkeypatch.setattr(verify, "_check_unseen", lambda *_: None)
    outcome = examine("siglip", ("capture",))
    assert outcome.unseen == ["vision_model.head.attention"]
    assert silently_wrong(outcome)


def test_an_effective_view_that_is_off_is_found(monkeypatch):
    monkeypatch.setattr(zoo, "view", lambda trace, lens: view(trace, "raw" if lens == "effective" else lens))
    specimen = build("bert")
    specimen.network.encoder.layer[0].attention.self.value.weight.data[:8, :30] = 0  # values of a low rank
    trace = capture(zoo.load(specimen.network, tokenizer=zoo.tokenizer()), specimen.inputs)
    with pytest.raises(zoo.WrongError, match=r"layer 0, head 0, query 0 differs by"):
        zoo._try_effective(trace)


def test_a_pruned_model_that_is_off_is_found(monkeypatch):
    monkeypatch.setattr(
        zoo, "prune", lambda model, heads, example: replace(model, network=copy.deepcopy(model.network))
    )
    assert examine("bert", ("capture", "prune")).cells["prune"].status == "wrong"


@pytest.mark.parametrize("fault", ["no edit", "another head", "no edit, and no layer reads the context"])
def test_an_edit_that_is_off_is_found(monkeypatch, fault):
    sentence = "writes something else than the other heads do"
    if "no edit" in fault:
        monkeypatch.setattr(zoo, "edited", lambda model, edit: zoo.silence())
    else:
        monkeypatch.setattr(zoo, "_name_head", lambda model, trace: "L0H1")
    if "no layer" in fault:
        monkeypatch.setattr(zoo, "find_reader", lambda specimen, trace: None)
        sentence = "the output does not change"
    cell = examine("bert", ("capture", "edit")).cells["edit"]
    assert cell.status == "wrong"
    assert sentence in cell.reason


@pytest.mark.soak
@pytest.mark.timeout(len(list_types()) * SECONDS)
def test_no_type_is_captured_wrongly_without_a_word(capsys):
    outcomes = list(map(examine, list_types()))
    with capsys.disabled():
        print(count(outcomes), *summarize(outcomes), sep="\n")  # noqa: T201
    assert not [outcome for outcome in outcomes if silently_wrong(outcome)]
    assert not [outcome for outcome in outcomes if any(cell.status == "raw error" for cell in outcome.cells.values())]
    assert sum(outcome.status == "built" for outcome in outcomes) >= 500
    for category, least in CAPTURED.items():
        kinds = [outcome for outcome in outcomes if outcome.category == category and outcome.attention]
        assert sum(outcome.cells["capture"].status == "yes" for outcome in kinds) >= least * len(kinds), category
