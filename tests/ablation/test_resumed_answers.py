"""A pass that begins at a layer gives what a whole pass gives, for every kind of model that can be edited."""

import numpy as np
import pytest

import headscope as hs
from headscope.ablation.head_sets import count_heads
from headscope.ablation.resumed_answers import answer_edits
from headscope.core.catalog import edits as catalog
from headscope.engine.resuming.resume import ResumeError, find_blocks
from headscope.training.scoring import prepare_scoring
from tests.heads import headed_network
from tests.laws.test_edits import some_means
from tests.models import KINDS, sites, tokenizer
from tests.training.data import choosing, labeled, plain

QUIET = {"progress": False}
WITHOUT = ("m2m_100", "marian", "pegasus", "cohere", "vit", "afmoe")  # no classifier of texts in transformers
SINGLE = ("gpt_oss",)  # whose experts have no float64
TIME_FIRST = ("xlnet",)  # whose hidden states begin with the tokens, so that copies of a batch do not fit
EDITED = [kind for kind in KINDS if kind not in (*WITHOUT, *SINGLE, *TIME_FIRST)]
CLOSE = {"rtol": 1e-9, "atol": 1e-9}  # in float64


def make_job(kind, head="classification"):
    """Eight texts in two batches; eager attention, as edits have it: others round differently."""
    network = headed_network(kind, head, attn_implementation="eager").double()
    data = labeled(8) if head == "classification" else choosing(8) if head == "choice" else plain(8)
    return prepare_scoring(hs.load(network, tokenizer=tokenizer()), data, task="auto", batch_size=5, max_length=None)


def make_edits(name, kind):
    """Edits of one head, a layer, all of a layer but one and two layers, at the last site; and at two sites."""
    site = f"{sites(kind)[-1]}." if len(sites(kind)) > 1 else ""
    parameters = {"mean_heads": {"means": some_means()}, "gate_heads": {"gate": 0.3}}
    chosen = [f"{site}L1H2", f"{site}L0", f"{site}L1-L1H0", f"{site}L0H1+{site}L1H3"]
    chosen += ["encoder.L1+cross.L0H2"] if site else []
    kind = catalog.find(name)
    return [kind(heads=heads, **parameters.get(name, {})) for heads in chosen]


def check(job, edits):
    counts = count_heads(job.model, lambda: job.answer(rows=slice(1)))
    whole, found = answer_edits(job, edits, counts, quiet=True)
    np.testing.assert_array_equal(whole["logits" if "logits" in whole else "loss"], _literal(job, []))
    for edit, answers in zip(edits, found, strict=True):
        np.testing.assert_allclose(answers["logits" if "logits" in answers else "loss"], _literal(job, [edit]), **CLOSE)


def _literal(job, edits):
    answers = job.answer(edits)
    return answers["logits" if "logits" in answers else "loss"]


@pytest.mark.parametrize("kind", EDITED)
def test_every_kind_of_model_resumes_at_a_layer(kind):
    job = make_job(kind)
    check(job, make_edits("zero_heads", kind))


@pytest.mark.parametrize("name", ["uniform_heads", "mean_heads", "gate_heads", "resample_heads"])
@pytest.mark.parametrize("kind", ["bert", "llama", "bart", "mpnet"])
def test_every_edit_of_heads_resumes_at_a_layer(kind, name):
    job = make_job(kind)
    check(job, make_edits(name, kind))


@pytest.mark.parametrize(
    ("kind", "head"), [("gpt2", "causal"), ("llama", "causal"), ("bert", "mlm"), ("bert", "choice")]
)
def test_language_models_resume_at_a_layer(kind, head):
    job = make_job(kind, head)
    check(job, make_edits("zero_heads", kind))


def test_a_model_that_is_edited_already_is_ablated_by_whole_evaluations(capsys):
    job = make_job("bert")
    with hs.edited(job.model, "uniform_heads:heads=L1H0") as changed:
        with pytest.raises(ResumeError, match="the model is being edited already"):
            find_blocks(changed)
        found = hs.ablate(changed, labeled(8), sets=["L0H1"])
    said = "Every set of heads takes a whole evaluation, because the model is being edited already."
    assert said in capsys.readouterr().err
    both = ["uniform_heads:heads=L1H0", "zero_heads:heads=L0H1"]
    literal = hs.score(job.model, labeled(8), edit=both, **QUIET)
    np.testing.assert_array_equal(found["prediction"][0], literal["prediction"])


def test_layers_that_are_not_what_they_seem_are_noticed(monkeypatch):
    job = make_job("bert")
    monkeypatch.setattr("headscope.engine.resuming.resume.repeat_rows", lambda output, *_: _double(output))
    with pytest.raises(ResumeError, match="gives other answers than a whole pass"):
        check(job, [catalog.make("zero_heads:heads=L1H0")])


def _double(output):
    return type(output)(map(_double, output)) if isinstance(output, tuple) else 2 * output


def test_the_layers_below_the_edited_one_do_not_run():
    job, calls = make_job("bert"), []
    for number, layer in enumerate(job.model.network.bert.encoder.layer):
        layer.attention.output.dense.register_forward_hook(lambda *_, number=number: calls.append(number))
    counts = count_heads(job.model, lambda: job.answer(rows=slice(1)))
    calls.clear()
    edits = [catalog.make(f"zero_heads:heads=L1H{head}") for head in range(4)]
    answer_edits(job, edits, counts, quiet=True)
    whole, checked, resumed = [0, 1], [0, 1], [1]
    assert calls == [*whole, *resumed, *checked, *whole, *resumed]  # of two batches, four copies in one pass
