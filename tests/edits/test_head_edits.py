"""Edits of chosen heads, against models that are changed by hand."""

import copy
import itertools
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
import transformers
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

import headscope as hs
from headscope.core.catalog import edits as catalog
from headscope.core.edit import Edit
from headscope.core.errors import CaptureError, InputError
from headscope.core.provenance import read_provenance
from headscope.core.spec import to_spec
from headscope.edits.gate_heads import GateHeads
from headscope.edits.mean_heads import MeanHeads
from headscope.edits.resample_heads import ResampleHeads, choose_donors
from headscope.engine.capture import record
from headscope.engine.edited import edited
from headscope.engine.load import load
from headscope.engine.recording.output_projection import find_projection
from tests.heads import headed
from tests.laws.test_families import inputs_of
from tests.models import KINDS, SITES, TEXT_TO_TEXT, batch, network, sites, text, tiny, tokenizer

PLACES = [(kind, site) for kind in KINDS for site in sites(kind)]
FOLLOWED = ("bloom", "deberta-v2", "gpt_neo", "gptj", "mpnet", "xlnet")
INTERFACE = [kind for kind in KINDS if kind not in FOLLOWED]
CLOSE = {"atol": 1e-4, "rtol": 1e-3}  # float32 through layers whose weights are large


@dataclass(frozen=True)
class Written(Edit):
    """Changes nothing and keeps what heads write."""

    heads: dict = field(default_factory=dict)

    def __call__(self, heads):
        self.heads[heads.site, heads.layer] = heads


def run(model, tensors):
    """The last hidden states of real tokens."""
    with torch.no_grad():
        hidden = model.network(**tensors).last_hidden_state
    mask = tensors.get("decoder_attention_mask", tensors.get("attention_mask"))
    return hidden if mask is None else hidden[mask.bool()]


def run_edited(kind, *edits):
    with edited(tiny(kind), *edits) as changed:
        return run(changed, inputs_of(kind).tensors)


def written(model, tensors, *edits):
    """What the heads write under edits, by site and layer."""
    notes = Written()
    with edited(model, *edits, notes) as changed:
        run(changed, tensors)
    return notes.heads


def project_without(model, tensors, site, head):
    """The model's copy in which a head's columns of every output projection at a site are zero."""
    other = replace(model, network=copy.deepcopy(model.network))
    names = {layer: name for name, layer in model.network.named_modules()}
    for name in dict.fromkeys(call.name for call in record(model, tensors, site).calls):
        try:
            projection = find_projection(model, name)
        except CaptureError:  # AFMoE's gate comes between, for each head by itself
            projection = model.network.get_submodule(name).o_proj
        if isinstance(projection, torch.nn.Parameter):  # XLNet: hidden × head × value
            with torch.no_grad():
                other.network.get_parameter(f"{name}.o")[:, head] = 0
            continue
        projection = other.network.get_submodule(names[projection])
        width = projection.weight.shape[0 if type(projection).__name__ == "Conv1D" else 1] // 4
        part = slice(head * width, (head + 1) * width)
        with torch.no_grad():
            projection.weight[part if type(projection).__name__ == "Conv1D" else (slice(None), part)] = 0
    return other


@pytest.mark.parametrize(("kind", "site"), PLACES)
def test_a_zeroed_head_is_one_without_its_columns_of_the_output_projection(kind, site):
    model, tensors = tiny(kind), inputs_of(kind).tensors
    layers = len(record(model, tensors, site).calls)
    heads = [f"{site}.L{layer}H1" for layer in range(layers)]
    wanted = run(project_without(model, tensors, site, 1), tensors)
    gate = {where: torch.ones(layers, 4) for where in sites(kind)}
    gate[site][:, 1] = 0
    for edit in (catalog.make("zero_heads", heads=heads), GateHeads(heads, gate=0), GateHeads(gate=gate)):
        torch.testing.assert_close(run_edited(kind, edit), wanted, **CLOSE)
    assert (run(model, tensors) - wanted).norm() > 1e-3 * wanted.norm()


@pytest.mark.parametrize("kind", KINDS)
def test_a_gate_of_ones_changes_nothing(kind):
    ones = {site: torch.ones(len(record(tiny(kind), inputs_of(kind).tensors, site).calls), 4) for site in sites(kind)}
    wanted = run_edited(kind, Written())  # eager attention
    for edit in (GateHeads(), GateHeads(gate=ones)):
        assert torch.equal(run_edited(kind, edit), wanted)


def attend_alike(module, query, key, value, attention_mask, **_):
    """Attention that gives each visible key the same weight, one query after the other."""
    count = query.shape[1]
    output = torch.zeros(*query.shape[:3], value.shape[-1])
    for example, head, place in itertools.product(*map(range, query.shape[:3])):
        values = value[example, head * value.shape[1] // count]
        if attention_mask is not None:
            mask = attention_mask[example % len(attention_mask), 0, place % attention_mask.shape[2], : len(values)]
            values = values[mask > -1e30] if (mask > -1e30).any() else values
        output[example, head, place] = values.sum(0) / len(values)
    return output.transpose(1, 2).contiguous(), None


@pytest.mark.parametrize("kind", INTERFACE)
def test_uniform_attention_equals_a_literal_attention_function(kind):
    AttentionInterface.register("alike", attend_alike)
    AttentionMaskInterface.register("alike", eager_mask)
    model, tensors = tiny(kind), inputs_of(kind).tensors
    other = copy.deepcopy(model.network)
    other.set_attn_implementation("alike")
    wanted = run(replace(model, network=other), tensors)
    torch.testing.assert_close(run_edited(kind, "uniform_heads"), wanted, **CLOSE)
    assert (run(model, tensors) - wanted).norm() > 1e-3 * wanted.norm()


def test_uniform_attention_of_a_model_that_is_followed_equals_a_literal_softmax(monkeypatch):
    made = run_edited("mpnet", "uniform_heads")
    monkeypatch.setattr(
        torch.nn.functional, "softmax", lambda scores, dim: (scores > -1e30) / (scores > -1e30).sum(dim, keepdim=True)
    )
    torch.testing.assert_close(made, run(tiny("mpnet"), inputs_of("mpnet").tensors), **CLOSE)


@pytest.mark.parametrize("edit", ["zero_heads", "uniform_heads", "gate_heads:gate=0.5", "resample_heads"])
@pytest.mark.parametrize(
    ("kind", "site"), [("llama", "self"), ("mpnet", "self"), *(("t5", site) for site in SITES["t5"])]
)
def test_only_the_named_heads_of_the_named_site_change(edit, kind, site):
    model, tensors = tiny(kind), inputs_of(kind).tensors
    separator = "," if ":" in edit else ":"
    plain, changed = written(model, tensors), written(model, tensors, f"{edit}{separator}heads={site}.L1H2+{site}.L1H0")
    seen = next(iter(plain[site, 1].visible))
    assert seen.any()
    for place, heads in changed.items():
        if place == (site, 1):
            assert torch.equal(heads.context[:, [1, 3]], heads.product[:, [1, 3]])
            assert (heads.context - heads.product)[:, [0, 2]].abs().amax((0, 2, 3)).min() > 1e-3
        else:
            assert heads.product is None  # not edited


@pytest.mark.parametrize(
    ("kind", "site"), [("bert", "self"), ("gpt2", "self"), ("llama", "self"), ("bart", "cross"), ("mpnet", "self")]
)
def test_the_gradient_of_gates_equals_finite_differences(kind, site):
    model = load(network(kind).double(), tokenizer=tokenizer())
    tensors = inputs_of(kind).tensors
    layers = len(record(model, tensors, site).calls)

    def loss(gate):
        with edited(model, GateHeads(f"{site}.all", gate={site: gate})) as changed:
            return changed.network(**tensors).last_hidden_state[:, 0, :10].sum(1).square()

    gate = torch.rand(layers, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0)).requires_grad_()
    (gradient,) = torch.autograd.grad(loss(gate).sum(), gate)
    each = gate.detach().expand(3, layers, 4).clone().requires_grad_()
    (by_example,) = torch.autograd.grad(loss(each).sum(), each)
    torch.testing.assert_close(by_example.sum(0), gradient)
    for layer, head in itertools.product(range(layers), range(4)):
        step = torch.zeros_like(gate)
        step[layer, head] = 1e-3
        slope = (loss((gate + step).detach()) - loss((gate - step).detach())).detach() / 2e-3
        scale = float(gradient.abs().max())  # the softmax of some kinds is in float32, which blurs small slopes
        torch.testing.assert_close(by_example[:, layer, head], slope, rtol=1e-3, atol=1e-3 * scale)


@pytest.mark.parametrize(("kind", "site"), PLACES)
def test_resampled_heads_write_what_they_wrote_for_another_example(kind, site):
    model, tensors = tiny(kind), inputs_of(kind).tensors
    before = written(model, tensors)[site, 0].context
    after = written(model, tensors, f"resample_heads:heads={site}.L0H1,seed=3")[site, 0].context
    source, target = tensors.get("attention_mask"), tensors.get("decoder_attention_mask")
    mask = source if site in ("self", "encoder") else target
    mask = torch.ones(before.shape[0], before.shape[2]) if mask is None else mask
    donors = choose_donors(len(before), 3)
    for example, donor in enumerate(donors.tolist()):
        assert donor != example
        rows, others = mask[example].nonzero().flatten().tolist(), mask[donor].nonzero().flatten().tolist()
        for place, row in enumerate(rows):
            assert torch.equal(after[example, 1, row], before[donor, 1, others[place % len(others)]])


def test_the_seed_decides_which_example_is_taken():
    choices = {tuple(choose_donors(5, seed).tolist()) for seed in range(20)}
    assert len(choices) > 5
    assert choose_donors(5, 1).tolist() == choose_donors(5, 1).tolist()
    assert ResampleHeads(seed=1) != ResampleHeads(seed=2)


def test_a_single_example_cannot_be_resampled():
    with (
        edited(tiny("bert"), "resample_heads") as changed,
        pytest.raises(InputError, match=r"this batch has only one\."),
    ):
        hs.capture(changed, text(5))


@pytest.mark.parametrize("kind", ["bert", "llama", "t5", "mpnet"])
def test_means_of_heads_equal_means_over_tokens_one_by_one(kind):
    model, examples = tiny(kind), batch(kind, (5, 14, 9, 3))
    means = hs.average_heads(model, examples, batch_size=3)
    for site in sites(kind):
        rows = [[], []]
        for example in examples:
            trace = hs.capture(model, [example], site=site, keep=("values",))
            for layer, context in enumerate(trace.context):
                rows[layer] += [context[0, :, row].double() for row in range(int(trace.queries.real.sum()))]
        for layer in range(2):
            wanted = torch.stack(rows[layer]).mean(0)
            torch.testing.assert_close(
                torch.tensor(means["head_output"].sel(site=site, layer=layer).values), wanted, atol=1e-5, rtol=1e-4
            )
        assert int(means["head_output_n"].sel(site=site)) == len(rows[0])


@pytest.mark.parametrize("kind", ["gpt2", "t5", "mpnet"])
def test_a_head_writes_its_mean_for_every_token(kind, tmp_path):
    model, tensors, site = tiny(kind), inputs_of(kind).tensors, sites(kind)[-1]
    means = hs.average_heads(model, batch(kind, (4, 8)))
    path = hs.save(means, tmp_path / "means.nc")
    wanted = torch.tensor(means["head_output"].sel(site=site, layer=1, head=2).values).float()
    for edit in (
        MeanHeads(f"{site}.L1H2", means),
        MeanHeads([f"{site}.L1H2"], path),
        f"mean_heads:heads={site}.L1H2,means={path}",
    ):
        heads = written(model, tensors, edit)[site, 1]
        real = heads.visible.any(-1)
        torch.testing.assert_close(heads.context[:, 2][real], wanted.expand(int(real.sum()), -1))
        assert torch.equal(heads.context[:, [0, 1, 3]], heads.product[:, [0, 1, 3]])
    assert catalog.make(to_spec(MeanHeads("L1", path))) == MeanHeads("L1", path)


def test_means_that_do_not_fit_are_refused(tmp_path):
    means = hs.average_heads(tiny("bert"), [text(4)])
    with pytest.raises(InputError, match=r"mean_heads needs means, .* Make it with hs\.average_heads"):
        catalog.make("mean_heads:heads=L0")
    with pytest.raises(
        InputError, match=r"means must be a result of hs\.average_heads, but this Dataset has no 'head_output'"
    ):
        MeanHeads(means=means.drop_vars("head_output"))
    with pytest.raises(InputError, match=r"Cannot open .*none\.nc"):
        MeanHeads(means=tmp_path / "none.nc")
    with (
        edited(tiny("albert"), MeanHeads(means=means)) as changed,
        pytest.raises(InputError, match=r"are not of this model"),
    ):
        hs.capture(changed, text(4))
    with pytest.raises(InputError, match=r"means has tensors for self, but heads are chosen at 'encoder'"):
        edited(tiny("t5"), MeanHeads("encoder.L0", means)).__enter__()


@pytest.mark.parametrize(
    ("kind", "edit", "said"),
    [
        ("bert", "zero_heads:heads=L2H0", r"There is no layer 2 here, only layers 0 and 1\."),
        ("bert", "uniform_heads:heads=L1H4", r"There is no head 4 here, only heads 0 to 3\."),
        ("bert", "zero_heads:heads=all-L0H9", r"There is no head 9 here, only heads 0 to 3\."),
        ("bert", "zero_heads:heads=cross.L0", r"'cross\.L0' names no attention site of this model\. Its sites: self\."),
        ("t5", "zero_heads:heads=L0H1", r"'L0H1' does not say which\. Write encoder\.L0H1"),
        ("t5", "zero_heads:heads=cross.L2", r"There is no layer 2 here"),
        ("bert", GateHeads(gate=torch.ones(2, 3)), r"gate has the shape \[2, 3\], but layer 0 of 'self' has 4 heads"),
        ("bert", GateHeads(gate=torch.ones(5, 2, 4)), r"gate has the shape \[5, 2, 4\], .* and the batch 3 examples"),
        ("bert", GateHeads(gate=torch.ones(3, 4)), r"gate has 3 layers, but 'self' has 2\."),
        (
            "t5",
            GateHeads(gate=torch.ones(2, 4)),
            r"gate is one tensor, but heads are chosen at the sites encoder, decoder and cross",
        ),
    ],
)
def test_heads_layers_and_sites_that_are_not_there_are_named(kind, edit, said):
    with pytest.raises(InputError, match=said):
        run_edited(kind, edit)


def test_gates_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match=r"gate must be a finite number, but got nan"):
        GateHeads(gate=float("nan"))
    with pytest.raises(
        InputError, match=r"tensor of shape \[layer, head\] or \[batch, layer, head\], but got one of shape \[4\]"
    ):
        GateHeads(gate=torch.ones(4))
    with pytest.raises(InputError, match=r"The parameter 'gate' of 'gate_heads' must be a number, but got 'half'"):
        catalog.make("gate_heads:gate=half")


def test_the_spec_of_gates_shows_which_numbers_they_are():
    first, same, other = (GateHeads("L0", torch.full((2, 4), value)) for value in (0.5, 0.5, 0.25))
    assert to_spec(first) == to_spec(same) != to_spec(other)
    assert to_spec(first).startswith("gate_heads:heads=L0,gate=tensor-")


def test_a_list_of_heads_and_a_string_are_the_same_edit():
    assert catalog.make("zero_heads", heads=["L3H7", "L0H1"]) == catalog.make("zero_heads:heads=L3H7+L0H1")
    assert to_spec(catalog.make("zero_heads", heads="L3H7+L0H1")) == "zero_heads:heads=L3H7+L0H1"


@pytest.mark.parametrize(
    "edit",
    ["zero_heads", "uniform_heads:heads=cross.L1", "gate_heads:heads=decoder.all-L0H1,gate=0.3", "resample_heads"],
)
def test_generating_runs_under_an_edit(edit):
    torch.manual_seed(0)
    writer = transformers.T5ForConditionalGeneration(transformers.T5Config(**TEXT_TO_TEXT)).eval()
    ids = torch.tensor([[7, 8, 9, 3, 0], [7, 8, 9, 10, 3]])
    given = {"input_ids": ids, "attention_mask": (ids > 0).long()}
    with torch.no_grad(), edited(load(writer, tokenizer=tokenizer()), edit) as changed:
        made = changed.network.generate(
            **given,
            max_new_tokens=4,
            min_new_tokens=4,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
        whole = changed.network(**given, decoder_input_ids=made.sequences[:, :-1]).logits
    torch.testing.assert_close(torch.stack(made.logits, 1), whole, **CLOSE)


HEAD_EDITS = ["zero_heads", "uniform_heads", "gate_heads:gate=0.5", "resample_heads", "mean_heads"]


def make_spec(edit, model, folder):
    """The spec of an edit of one head; means come from a file."""
    if edit != "mean_heads":
        name, _, gate = edit.partition(":")
        return f"{name}:heads=L0H1{',' * bool(gate)}{gate}"
    path = folder / "means.nc"
    return f"mean_heads:heads=L0H1,means={path if path.exists() else hs.save(hs.average_heads(model, [text(6)]), path)}"


@pytest.mark.parametrize("edit", HEAD_EDITS)
def test_a_measurement_under_an_edit_is_stamped_with_it(edit, tmp_path):
    model, texts = tiny("gpt2"), [text(6, seed) for seed in range(4)]
    spec = make_spec(edit, model, tmp_path)
    plain, changed = (
        hs.measure(model, texts, statistics="entropy", progress=False, **options) for options in ({}, {"edit": spec})
    )
    assert bool((plain["entropy"].sel(layer=0) == changed["entropy"].sel(layer=0)).all())
    assert bool((plain["entropy"].sel(layer=1) != changed["entropy"].sel(layer=1)).any())
    facts = read_provenance(changed)
    assert facts["edits"] == [spec]
    assert ("edit_files" in facts) == (edit == "mean_heads")


@pytest.mark.parametrize("edit", HEAD_EDITS)
def test_a_score_under_an_edit_differs(edit, tmp_path):
    model = headed("bert", "classification")
    rows = [{"text": text(6, seed), "label": seed % 2} for seed in range(4)]
    spec = make_spec(edit, model, tmp_path)
    plain, changed = (hs.score(model, rows, progress=False, **options) for options in ({}, {"edit": spec}))
    assert bool((plain["logits"] != changed["logits"]).any())
    assert read_provenance(changed)["edits"] == [spec]


def test_importances_of_words_change_with_the_heads():
    model = headed("bert", "classification")
    plain = hs.importances(model, [text(6)], "input_gradient", progress=False)
    with hs.edited(model, "uniform_heads:heads=L0") as changed:
        edited_scores = hs.importances(changed, [text(6)], "input_gradient", progress=False).scores[0]
    assert not np.allclose(plain.scores[0], edited_scores)
