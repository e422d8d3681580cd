"""Removing edges while the model runs, from their layer on, is removing them in a whole run."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.core.example import Example
from headscope.engine.load import load
from headscope.engine.resuming.resume import ResumeError
from headscope.judging import interventions
from tests.heads import headed, headed_network
from tests.judging.oracle import Oracle
from tests.models import network, text, tokenizer

TEXTS = [text(7, 0), text(9, 1), text(6, 2)]
PAIRS = [Example(str(index), text(7 + index, index), text(6, 9 - index)) for index in range(2)]
QUIET = {"progress": False, "keep_edges": True}
CASES = [("bert", "self"), ("gpt2", "self"), ("llama", "self"), ("t5", "encoder"), ("t5", "cross"), ("bart", "cross")]


def double(kind):
    return load(network(kind).double(), tokenizer=tokenizer())


def list_edges(result):
    names = [f"edge_{name}" for name in ("example", "layer", "head", "query", "key")]
    return np.stack([result[name].values for name in names], 1).tolist()


def check_against(oracles, result, read, **options):
    effects = result["edge_effect"].values
    assert len(effects) >= 8
    for edge, found in list(zip(list_edges(result), effects, strict=True))[:: max(1, len(effects) // 12)]:
        example, *place = edge
        expected = oracles[example].effects(tuple(place), read, **options)
        assert found == pytest.approx(expected, abs=1e-7, rel=1e-4, nan_ok=True), edge


@pytest.mark.parametrize(("kind", "site"), CASES)
def test_effects_are_those_of_whole_runs_with_plain_hooks(kind, site):
    model, data = double(kind), PAIRS if kind in ("t5", "bart") else TEXTS
    result = hs.faithfulness(model, data, lenses=["raw", "norm"], site=site, rows=1, keys=4, **QUIET)
    oracles = [Oracle(model, kind, each, site) for each in data]
    check_against(oracles, result, slice(None))
    norms = result["edge_weight"].sel(lens="norm").values
    assert result["edge_effect"].sel(effect="output").values == pytest.approx(norms, abs=1e-12, rel=1e-4)
    assert result["rank_correlation_rows"].sel(lens="norm", effect="output").values == pytest.approx(1.0)


@pytest.mark.parametrize(("kind", "read"), [("bert", 0), ("llama", -1)])
@pytest.mark.parametrize("options", [{}, {"remove": "renormalize"}, {"heads": "all"}], ids=str)
def test_scores_and_variants_are_those_of_whole_runs(kind, read, options):
    model = headed(kind, "classification", double=True)
    result = hs.faithfulness(
        model, TEXTS, lenses=["raw"], target="class=0", rows=1, keys=4, read="auto", **QUIET, **options
    )

    def score(output):
        return output.logits.softmax(-1)[:, 0]

    oracles = [Oracle(model, kind, each, "self", score) for each in TEXTS]
    whole = {"merged": True} if "heads" in options else options
    check_against(oracles, result, read, **whole)


def test_words_are_predicted_at_the_token_that_is_read():
    model = headed("llama", "causal", double=True)
    result = hs.faithfulness(model, TEXTS, lenses=["raw"], target="next:word=cat", rows=1, keys=4, **QUIET)
    word = model.tokenizer.convert_tokens_to_ids("cat")

    def score(output):
        return output.logits[:, oracle_position].softmax(-1)[:, word]

    for example, each in enumerate(TEXTS):
        oracle_position = len(each.split())  # before [SEP], after [CLS]
        oracle = Oracle(model, "llama", each, "self", score)
        edges = zip(list_edges(result), result["edge_effect"].values, strict=True)
        own = [(edge, found) for edge, found in edges if edge[0] == example][::2]
        assert len(own) == 4
        for edge, found in own:
            expected = oracle.effects(tuple(edge[1:]), oracle_position)
            assert found == pytest.approx(expected, abs=1e-7, rel=1e-4)


def test_a_model_that_cannot_be_resumed_takes_whole_passes_and_says_why(monkeypatch, capsys):
    model = headed("bert", "classification", double=True)
    options = {"lenses": ["raw"], "target": "class=0", "rows": 1, "keys": 4, "read": "first", "keep_edges": True}
    resumed = hs.faithfulness(model, TEXTS, progress=False, **options)

    def refuse(*_):
        raise ResumeError("it is only a test")

    monkeypatch.setattr(interventions, "find_blocks", refuse)
    whole = hs.faithfulness(model, TEXTS, progress=True, **options)
    assert "Every edge takes a whole pass, because it is only a test." in capsys.readouterr().err
    shared = [edge for edge in list_edges(whole) if edge in list_edges(resumed)]
    assert len(shared) >= 8
    pairs = [zip(map(str, list_edges(data)), data["edge_effect"].values, strict=True) for data in (whole, resumed)]
    first, second = map(dict, pairs)
    for edge in shared:
        assert first[str(edge)] == pytest.approx(second[str(edge)], rel=1e-6, abs=1e-10)
    assert float(whole["forwards"]) > float(resumed["forwards"])


def test_effects_that_differ_from_those_of_a_whole_pass_are_not_used(monkeypatch, capsys):
    model = headed("bert", "classification", double=True)
    compare = interventions.BatchPasses._compare

    def wrong(self, layer, table, *, resumes):
        effects = compare(self, layer, table, resumes=resumes)
        return {name: values + 1.0 if resumes else values for name, values in effects.items()}

    monkeypatch.setattr(interventions.BatchPasses, "_compare", wrong)
    result = hs.faithfulness(model, TEXTS, lenses=["raw"], rows=1, keys=4, keep_edges=True)
    assert "gives other effects than a whole pass" in capsys.readouterr().err
    assert float(result["edge_effect"].sel(effect="hidden").max()) < 1.0


def test_the_model_is_left_as_it_was():
    network_ = headed_network("bert", "classification").train()
    model = load(network_, tokenizer=tokenizer())
    before = {name: value.clone() for name, value in network_.state_dict().items()}
    hooks = sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in network_.modules())
    training = [module.training for module in network_.modules()]
    hs.faithfulness(model, TEXTS, lenses=["raw"], target="predicted", rows=1, progress=False)
    assert [module.training for module in network_.modules()] == training
    assert sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in network_.modules()) == hooks
    assert not any("forward" in vars(module) for module in network_.modules())
    assert all(torch.equal(before[name], value) for name, value in network_.state_dict().items())
