"""Laws that hold for every probe."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from headscope.core.catalog import probes
from headscope.core.provenance import read_provenance
from headscope.core.spec import to_spec
from headscope.engine.load import load
from headscope.measuring.probe import probe
from headscope.results.store import open_result, save
from tests.models import network, tokenizer
from tests.probes.data import make_tree

FEW = {"min_count": 1, "iterations": 5}
ENTRIES = [kind(**{field.name: FEW[field.name] for field in fields(kind) if field.name in FEW}) for kind in probes]
every_probe = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: to_spec(entry).partition(":")[0])


def make_data():
    """Sentences with trees and with mentions, four of a document."""
    examples = []
    for seed in range(16):
        tree = make_tree(seed, document=f"d{seed // 4}")
        last = len(tree.words) - 1
        mentions = ((0, 0, "e1", "person"), (1, 1, "e2", "person"), (last, last, f"e{seed % 2 + 1}", "person"))
        tags = ("NOUN",) * len(tree.words)
        examples.append(replace(tree, columns={**tree.columns, "mentions": mentions, "tags": tags}))
    return examples


def run(entry, model, **options):
    return probe(model, make_data(), entry, lens="raw", progress=False, **options)


def test_a_probe_rebuilds_from_its_spec():
    for entry in ENTRIES:
        assert probes.make(to_spec(entry)) == entry


@every_probe
def test_other_batches_give_the_same_and_so_does_a_second_run(entry, tmp_path):
    model = load(network("bert").double(), tokenizer=tokenizer())
    first = run(entry, model)
    assert run(entry, model).identical(first)
    alone = run(entry, model, batch_size=1)
    for name, variable in first.data_vars.items():
        if variable.dtype.kind == "f":
            np.testing.assert_allclose(alone[name], variable, rtol=1e-4, atol=1e-6)  # L-BFGS amplifies roundings
        else:
            assert (alone[name] == variable).all()
    save(first, tmp_path / "probe.nc")
    assert open_result(tmp_path / "probe.nc")["accuracy"].identical(first["accuracy"])


@every_probe
def test_the_result_has_accuracies_with_intervals_baselines_and_counts(entry):
    result = run(entry, load(network("bert"), tokenizer=tokenizer()), random_weights=True)
    accuracy, group = result["accuracy"], result["accuracy"].dims[-1]
    assert accuracy.dims == ("task", "predictor", group)
    assert result[group].values[0] == "all"
    assert result["predictor"].values[-1] == "random_weights"
    assert len(result["predictor"]) > 2
    assert ((result["accuracy_low"] <= accuracy + 1e-9) & (accuracy <= result["accuracy_high"] + 1e-9)).all()
    assert (result["accuracy_n"] > 0).all()
    assert result["gain"].dims == result["gain_p"].dims == result["gain_p_adjusted"].dims == ("task", group)
    facts = read_provenance(result)
    assert facts["probe"] == to_spec(entry)
    assert facts["documents"] + facts["documents_train"] == 4


@every_probe
def test_the_model_is_left_as_it_was(entry):
    whole = network("bert").train()
    before = {name: weight.clone() for name, weight in whole.state_dict().items()}
    run(entry, load(whole, tokenizer=tokenizer()))
    assert all(module.training for module in whole.modules())
    assert all(weight.grad is None for weight in whole.parameters())
    assert all(torch.equal(weight, before[name]) for name, weight in whole.state_dict().items())
    assert not any(module._forward_hooks for module in whole.modules())
