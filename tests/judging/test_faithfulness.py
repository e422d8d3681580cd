"""hs.faithfulness as a whole: judges that are right on models built for it, and runs that do not depend on how."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.core.errors import InputError, OutputError
from headscope.core.provenance import read_provenance
from headscope.engine.load import load
from headscope.judging.faithfulness import JudgingJob
from headscope.measuring import measure
from tests.heads import headed, headed_network
from tests.models import text, tiny, tokenizer

TEXTS = [text(7, 0), text(11, 1), text(5, 2), text(9, 3)]
QUIET = {"progress": False}
CAUSAL = ["raw", "norm", "gradient:times_attention=true"]


@dataclass(frozen=True)
class RandomWeights(hs.Lens):
    seed: int = 0

    def __call__(self, trace):
        torch.manual_seed(self.seed + sum(map(len, trace.queries.text)))
        return hs.make_maps(trace, [torch.rand_like(layer) for layer in trace.attention], self)


@dataclass(frozen=True)
class RawAgain(hs.Lens):
    def __call__(self, trace):
        return hs.make_maps(trace, trace.attention, self)


PLANTED = (0, 2, 0, 4)  # layer, head, query, key


def plant():
    """Return a classifier that reads [CLS], where one head of one layer reads one token, and no other head any."""
    built = headed_network("bert", "classification").double()
    layer, head, _, key = PLANTED
    size = built.config.hidden_size // built.config.num_attention_heads
    own = slice(head * size, (head + 1) * size)
    model = load(built, tokenizer=tokenizer())
    with torch.no_grad():
        states = built.bert.embeddings(torch.tensor([model.tokenizer(TEXTS[0])["input_ids"]]))[0]
        wanted = torch.zeros(len(states), dtype=torch.double)
        wanted[key] = 5.0  # what the first value dimension of each token is
        direction = torch.linalg.lstsq(states, wanted[:, None]).solution[:, 0]
        for block in built.bert.encoder.layer:
            block.attention.output.dense.weight[:, torch.arange(32) != own.start] = 0
        built.bert.encoder.layer[1 - layer].attention.output.dense.weight.zero_()
        values = built.bert.encoder.layer[layer].attention.self.value
        values.weight[own.start], values.bias[own.start] = direction, 0
    return model


@pytest.mark.parametrize("remove", ["zero", "renormalize"])
def test_every_effect_ranks_a_planted_edge_first(remove):
    # with renormalization all keys of that row matter, but none as much
    result = hs.faithfulness(
        plant(), TEXTS[:1], lenses=CAUSAL, target="class=0", rows=99, keys=16, keep_edges=True, remove=remove, **QUIET
    )
    places = np.stack([result[f"edge_{name}"].values for name in ("layer", "head", "query", "key")], 1)
    for effect in ("hidden", "score"):
        sizes = result["edge_effect"].sel(effect=effect).values
        assert tuple(places[sizes.argmax()]) == PLANTED
        others = np.sort(sizes)[:-1]
        assert others.max() < (1e-9 if remove == "zero" else 1.0) * sizes.max()
    columns = places[result["edge_effect"].sel(effect="output").values > 1e-9]
    assert len(columns) > 1
    if remove == "zero":  # the head writes what it read at every query, but only one of them is read
        assert {(layer, head, key) for layer, head, _, key in columns.tolist()} == {(0, 2, 4)}


def test_lenses_that_see_values_find_a_planted_edge_and_raw_attention_does_not():
    result = hs.faithfulness(plant(), TEXTS[:1], lenses=CAUSAL, target="class=0", rows=99, keys=16, top=1, **QUIET)
    share = result["top_share"].sel(effect="score")
    assert share.sel(lens="norm").item() == pytest.approx(1.0)
    assert share.sel(lens="gradient:times_attention=true").item() == pytest.approx(1.0)
    assert result["top_share_chance"].sel(effect="score").item() == pytest.approx(1 / 9)


def test_rows_without_an_effect_are_not_judged_by_rounding():
    result = hs.faithfulness(
        plant(), TEXTS[:1], lenses=CAUSAL, target="class=0", rows=99, keys=16, keep_edges=True, **QUIET
    )
    for effect in ("score", "score_signed"):
        assert np.count_nonzero(result["edge_effect"].sel(effect=effect)) == 1


def test_a_picture_of_a_planted_edge_shows_little_else():
    result = hs.faithfulness(
        plant(), TEXTS[:1], lenses=["raw", "norm"], judge="pictures", rows=99, keys=16, layers=0, read="first", **QUIET
    )
    mass = result["mass_without_effect"].sel(effect="hidden")
    assert result["edges_without_effect"].sel(effect="hidden").item() == pytest.approx(1 - 1 / (4 * 81))
    trace = hs.capture(plant(), TEXTS[0])
    raw = 1 - trace.attention[0][0, 2, 0, 4].item() / (4 * 9)
    assert mass.sel(lens="raw").item() == pytest.approx(raw)
    norms = hs.view(trace, "norm").weights[0, 0]
    assert mass.sel(lens="norm").item() == pytest.approx(1 - (norms[2, 0, 4] / norms.sum()).item())


def test_replacing_the_planted_token_first_is_more_comprehensive_than_random_orders():
    result = hs.faithfulness(
        plant(), TEXTS[:1], lenses=["norm", "gradient:times_attention=true"], judge="tokens", target="class=0", **QUIET
    )
    first = result["deletion"].sel(share=0.1)
    assert first.sel(lens="norm").item() == first.sel(lens="gradient:times_attention=true").item()
    drop = abs(result["score"].item() - first)
    assert drop.sel(lens="norm") > drop.sel(lens="random")


def test_random_weights_score_at_chance():
    data = [text(8 + index % 5, index) for index in range(40)]
    result = hs.faithfulness(tiny("bert"), data, lenses=[RandomWeights(), "norm"], **QUIET).isel(lens=0)
    for name, chance in {"rank_correlation": 0.0, "top_share": result["top_share_chance"].sel(effect="hidden")}.items():
        low, high = (float(result[f"{name}_{end}"].sel(effect="hidden")) for end in ("low", "high"))
        assert low < float(chance) < high
        assert high - low < 0.25
    assert float(result["rank_correlation_difference_p_adjusted"].sel(effect="hidden", other_lens="norm")) < 0.05


def test_random_weights_show_as_much_that_does_nothing_as_there_is_and_name_tokens_at_random():
    data = [text(8 + index % 5, index) for index in range(40)]
    model = headed("bert", "classification")
    threshold = 1e-2  # of these weights about half of all edges do less
    seen = hs.faithfulness(
        model, data, lenses=[RandomWeights(), "norm"], judge="pictures", threshold=threshold, keys=99, rows=4, **QUIET
    ).sel(effect="hidden")
    chance = float(seen["edges_without_effect"])
    assert 0.2 < chance < 0.8
    assert float(seen["mass_without_effect"][0]) == pytest.approx(chance, abs=0.03)
    assert float(seen["mass_without_effect"][1]) < chance - 0.05
    named = hs.faithfulness(
        model, data, lenses=[RandomWeights(), "relevance"], judge="tokens", target="predicted", **QUIET
    )
    change = {name: float(named[f"comprehensiveness_difference{name}"][0, -1]) for name in ("_low", "", "_high")}
    assert named["lens"].values[-1] == "random"
    assert change["_low"] < 0 < change["_high"]
    assert change["_high"] - change["_low"] < 0.1


def test_the_effect_on_the_output_of_a_block_is_the_norm_lens():
    model = headed("bert", "classification", double=True)
    result = hs.faithfulness(model, TEXTS[:2], lenses=["norm", "raw"], rows=4, keep_edges=True, **QUIET)
    edges = result.sel(effect="output")
    maps = [hs.view(hs.capture(model, part), "norm") for part in TEXTS[:2]]
    places = zip(*(edges[f"edge_{name}"].values for name in ("example", "layer", "head", "query", "key")), strict=True)
    names = list(map(str, result["example"].values))
    expected = [float(maps[names.index(str(row))].layer(layer)[0, head, i, j]) for row, layer, head, i, j in places]
    np.testing.assert_allclose(edges["edge_effect"], expected, rtol=1e-9, atol=1e-12)
    assert float(edges["rank_correlation"].sel(lens="norm")) == pytest.approx(1)
    assert float(edges["rank_correlation"].sel(lens="raw")) < 0.99


def test_lenses_of_the_same_weights_differ_by_exactly_0_with_p_1():
    for options in ({}, {"judge": "tokens"}):
        model = headed("bert", "classification")
        result = hs.faithfulness(model, TEXTS, lenses=["raw", RawAgain()], target="predicted", **options, **QUIET)
        names = [name.removesuffix("_p") for name in map(str, result) if name.endswith("_difference_p")]
        assert len(names) == (2 if not options else 4)
        for name in names:
            pair = result.isel(lens=0, other_lens=1)
            known = np.isfinite(pair[name].values)
            assert known.any()
            assert (pair[name].values[known] == 0).all()
            assert (pair[f"{name}_p"].values[known] == 1).all()


def judge(data, **options):
    model = options.pop("model", None) or headed("bert", "classification", double=True)
    rows = {} if options.get("judge") == "tokens" else {"rows": 1}
    settings = {"lenses": CAUSAL, "target": "class=0", **rows, **QUIET, **options}
    return hs.faithfulness(model, hs.read(data), **settings)


@pytest.mark.parametrize("mode", ["edges", "pictures", "tokens"])
def test_one_by_one_equals_together(mode):
    together, one_by_one = (judge(TEXTS, judge=mode, batch_size=size) for size in (8, 1))
    xr.testing.assert_allclose(together.drop_vars("forwards"), one_by_one.drop_vars("forwards"), atol=1e-6)


@pytest.mark.parametrize("mode", ["edges", "tokens"])
def test_wider_padding_changes_nothing(mode):
    xr.testing.assert_allclose(judge(TEXTS, judge=mode), judge(TEXTS, judge=mode, pad_to=20), atol=1e-6)


class KilledError(Exception):
    pass


@pytest.mark.parametrize("mode", ["edges", "tokens"])
def test_a_killed_run_resumes_to_the_same_numbers(mode, tmp_path, monkeypatch):
    whole, out = judge(TEXTS, judge=mode, batch_size=1), tmp_path / "judged.nc"
    monkeypatch.setattr(measure, "MIN_INTERVAL", 0)
    monkeypatch.setattr(measure, "WRITE_FACTOR", 0)
    judge_batch, judged = JudgingJob._judge_batch, []

    def stop(self, batch):
        if len(judged) == 2:
            raise KilledError
        judged.append(batch)
        return judge_batch(self, batch)

    with monkeypatch.context() as patched, pytest.raises(KilledError):
        patched.setattr(JudgingJob, "_judge_batch", stop)
        judge(TEXTS, judge=mode, batch_size=1, out=out)
    assert not out.exists()
    with pytest.raises(InputError, match="holds 2 of 4 examples of an unfinished measurement"):
        judge(TEXTS, judge=mode, batch_size=1, out=out)
    resumed = judge(TEXTS, judge=mode, batch_size=1, out=out, resume=True)
    xr.testing.assert_identical(resumed, whole)
    assert [path.name for path in tmp_path.iterdir()] == ["judged.nc"]
    xr.testing.assert_equal(hs.open_result(out), whole)


def test_another_run_is_not_resumed(tmp_path):
    out = tmp_path / "judged.nc"
    judge(TEXTS, out=out)
    with pytest.raises(InputError, match="is finished"):
        judge(TEXTS, out=out, resume=True)
    with pytest.raises(OutputError, match="would be a shard"):
        judge(TEXTS, out=tmp_path / "judged.state")


def test_merged_lenses_are_judged_by_cuts_in_all_heads():
    result = judge(TEXTS, lenses=["raw", "norm", "norm:merge=true"], heads="all", keep_edges=True)
    assert result["merging"].values.tolist() == ["mean over heads", "merge=true", "one map per layer"]
    assert (result["edge_head"] == -1).all()
    own = result.sel(effect="output")
    assert own["edge_effect"].values == pytest.approx(own["edge_weight"].sel(lens="norm").values, rel=1e-6, abs=1e-9)
    assert (own["edge_weight"].sel(lens="norm") == own["edge_weight"].sel(lens="norm:merge=true")).all()


def test_edges_of_the_last_layer_are_those_of_the_token_that_is_read():
    result = judge(TEXTS, keep_edges=True, rows=3)
    last = result["edge_layer"].values == result["layer"].values[-1]
    assert set(result["edge_query"].values[last].tolist()) == {0}
    assert len(set(result["edge_query"].values[~last].tolist())) > 3
    assert read_provenance(result)["reads"] == {"first": 4}
    assert not result["rows_without_effect"].any()


@pytest.mark.parametrize(("kind", "reads"), [("bert", {"first": 4}), ("llama", {"last": 4})])
def test_the_token_is_the_one_that_the_head_reads(kind, reads):
    assert read_provenance(judge(TEXTS, model=headed(kind, "classification")))["reads"] == reads
    result = hs.faithfulness(tiny(kind), TEXTS, lenses=["raw"], rows=1, **QUIET)
    assert read_provenance(result)["reads"] == {"mean": 4}
    assert np.isnan(result["rank_correlation"].sel(effect="score").values).all()


def test_targets_of_every_kind_are_read_from_copies():
    model, labeled = headed("bert", "classification", double=True), [{"text": t, "label": 1} for t in TEXTS]
    one = judge(TEXTS, target=lambda output: output.logits.softmax(-1)[:, 0], model=model, keep_edges=True)
    other = judge(TEXTS, target="class=0", model=model, keep_edges=True)
    xr.testing.assert_allclose(one["edge_effect"], other["edge_effect"])
    loss = judge(labeled, target="loss", model=model, keep_edges=True, lenses=["raw"])
    right = judge(labeled, target="label", model=model, keep_edges=True, lenses=["raw"])
    signs = [data["edge_effect"].sel(effect="score_signed").values for data in (loss, right)]
    assert np.abs(signs[0]).max() > 1e-6
    assert (np.sign(signs[0]) == -np.sign(signs[1])).mean() > 0.95  # the loss rises as the score falls
    words = hs.faithfulness(headed("bert", "mlm"), TEXTS, lenses=["raw"], target="loss:seed=3", rows=1, **QUIET)
    assert float(words["rank_correlation_n"].sel(effect="score").max()) > 0


def test_comprehensiveness_and_sufficiency_are_those_of_texts_written_by_hand():
    model = headed("bert", "classification", double=True)
    result = judge(TEXTS[:1], lenses=["raw"], judge="tokens", shares=(0.5,))
    trace = hs.capture(model, TEXTS[0])
    weights = torch.stack(list(trace.attention)).mean((0, 2))[0, 0, 1:-1]
    words, order = TEXTS[0].split(), weights.argsort(descending=True).tolist()
    top = set(order[:4])  # half of 7, rounded up

    def score(replaced):
        text = " ".join("[MASK]" if index in replaced else word for index, word in enumerate(words))
        ids = torch.tensor([model.tokenizer(text)["input_ids"]])
        with torch.no_grad():
            return model.network(ids).logits.softmax(-1)[0, 0].item()

    raw = result.sel(lens="raw")
    assert raw["score"].item() == pytest.approx(score(set()))
    assert raw["comprehensiveness"].item() == pytest.approx(score(set()) - score(top))
    assert raw["sufficiency"].item() == pytest.approx(score(set()) - score(set(range(7)) - top))
    curve = raw["deletion"].sel(share=[0, 0.5, 1]).values
    assert curve == pytest.approx([score(set()), score(top), score(set(range(7)))])
    assert raw["insertion"].values[[0, -1]] == pytest.approx(curve[[-1, 0]])
    counts = np.ceil(result["share"].values * 7 - 1e-9)
    assert raw["deletion_area"].item() == pytest.approx(np.trapezoid(raw["deletion"].values, counts / 7))


def test_the_most_important_tokens_first_lower_the_score_most_by_their_own_blank_out():
    importances = hs.importances(headed("bert", "classification", double=True), TEXTS[:1], target="class=0")
    scores = importances.scores[0][1:-1]
    result = judge(TEXTS[:1], judge="tokens")
    drop = result["score"].item() - result["deletion"].sel(lens="blank_out", share=0.1).item()
    assert drop == pytest.approx(scores.max())


def test_lenses_through_the_layers_are_judged_by_tokens():
    result = judge(TEXTS, lenses=["rollout", "raw"], judge="tokens")
    assert np.isfinite(result["deletion_area"]).all()
    assert "top layer: rollout" in read_provenance(result)["importance"]
    with pytest.raises(InputError, match=r"'rollout' follows attention through the layers .* judge='tokens'"):
        judge(TEXTS, lenses=["rollout"])


BAD = {
    "judge='edge'": ({"judge": "edge"}, "No judge is called 'edge'. Did you mean 'edges'"),
    "both": ({"judge": ["edges", "tokens"]}, "once with judge='tokens', and once without"),
    "no judge": ({"judge": []}, "No judge was given"),
    "heads": ({"heads": "some"}, "heads='some' is none of each, all"),
    "remove": ({"remove": "cut"}, "remove='cut' is none of zero, renormalize"),
    "read": ({"read": "cls"}, "read='cls' is none of auto, first, last, mean"),
    "rows": ({"rows": 0}, "rows=0 is too small. Give at least 1"),
    "keys": ({"keys": 3}, "min_keys=4 is more than the keys=3"),
    "top": ({"top": 4}, "top=4 of rows with as few as min_keys=4 keys would be all of them"),
    "threshold": ({"threshold": 0.0}, "threshold=0.0 must be above 0"),
    "shares": ({"shares": (2,)}, "shares must be numbers above 0 and up to 1"),
    "site": ({"site": "cross"}, "no attention site 'cross'. Its sites: self"),
    "layers": ({"layers": 7}, "There is no layer 7 here"),
    "lens": ({"lenses": []}, "No lens was given"),
    "twice": ({"lenses": ["raw", "raw"]}, "The lens 'raw' was given twice"),
    "merged": ({"lenses": ["norm:merge=true"]}, "'norm:merge=true' gives one map for all heads .* heads='all'"),
    "gradient": ({"lenses": ["gradient"], "target": None}, "needs a prediction. Say which"),
    "no target": ({"judge": "tokens", "target": None, "lenses": ["raw"], "rows": 2}, "Tokens are judged by the score"),
    "unused": ({"judge": "tokens", "rows": 2, "layers": 0}, "layers=0 says which edges are removed"),
    "loss": ({"judge": "tokens", "target": "loss", "rows": 2}, "target='loss' is the loss of a whole task"),
    "seed": ({"seed": -1}, "seed=-1 cannot seed"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_a_sentence(name):
    options, sentence = BAD[name]
    with pytest.raises(InputError, match=sentence):
        judge(TEXTS, **options)


def test_a_model_of_choices_is_refused():
    with pytest.raises(InputError, match="compares several choices, but lenses are judged by what a model says"):
        hs.faithfulness(headed("bert", "choice"), TEXTS, **QUIET)


def test_effects_that_are_not_finite_are_counted_and_left_out(monkeypatch):
    calls = []

    def target(output):
        calls.append(1)
        scores = output.logits.softmax(-1)[:, 0]
        return torch.full_like(scores, torch.nan) if len(calls) % 7 == 0 else scores

    result = judge(TEXTS, lenses=["raw"], target=target, read="first", keep_edges=True)
    missing = int(result["edge_effect"].sel(effect="score").isnull().sum())
    assert missing > 0
    assert result["nan_edges"].values.tolist() == [0, 0, missing, missing]


def test_the_cost_is_that_of_the_layers_that_run():
    result = judge(TEXTS[:2], lenses=["raw"], rows=2)
    assert int(result["edges"]) == 2 * 2 * 2 * 8
    assert float(result["forwards"]) == 2 + 16 * 1.0 + 16 * 0.5  # a capture, a pass, and both layers or one of them
