"""Small Datasets of every kind that figures draw."""

import json
from functools import cache

import numpy as np
import xarray as xr
from scipy import stats

from headscope.core.tokens import token_labels
from headscope.results.cluster import cluster


def dataset(tokens="the cat sat", *, layers=2, heads=3, causal=False, shares=None) -> xr.Dataset:
    """Return maps of the lenses raw and effective; `shares` are the effective shares of heads."""
    words = token_labels(tokens.split(" "))
    count = len(words)
    visible = np.tril(np.ones((count, count), bool)) if causal else np.ones((count, count), bool)
    scores = np.random.default_rng(0).random((layers, heads, count, count)) * visible
    raw = scores / scores.sum(-1, keepdims=True)
    share = np.full((layers, heads), 0.5) if shares is None else np.asarray(shares, float)
    effective = raw * share[..., None, None] - 0.1 * (share < 1)[..., None, None] * visible
    missing = np.full(share.shape, np.nan)
    columns = np.arange(count) - 1  # after the first token, a row of patches
    return xr.Dataset(
        {
            "weights": (("lens", "layer", "head", "query", "key"), np.stack([raw, effective]).astype("float32")),
            "visible": (("layer", "query", "key"), np.stack([visible] * layers)),
            "n": (("lens", "layer", "head"), np.full((2, *share.shape), float(count))),
            "rank": (("lens", "layer", "head"), np.stack([missing, count - 1.0 * (share < 1)])),
            "null": (("lens", "layer", "head"), np.stack([missing, 1.0 * (share < 1)])),
            "share": (("lens", "layer", "head"), np.stack([missing, share])),
            "picture": (("row", "column", "colour"), np.full((4, 4 * count, 3), 200, dtype=np.uint8)),
        },
        coords={
            "lens": ["raw", "effective"],
            "signed": ("lens", [False, True]),
            "quantity": ("lens", np.array(["attention weight", "effective attention"], dtype=object)),
            "layer": list(range(layers)),
            "head": list(range(heads)),
            "query_token": ("query", words),
            "key_token": ("key", words),
            "query_special": ("query", np.arange(count) == 0),
            "key_special": ("key", np.arange(count) == 0),
            "key_row": ("key", np.minimum(columns, 0)),
            "key_column": ("key", columns),
        },
        attrs={"headscope": json.dumps({"site": "self", "example": "0"})},
    )


ONE_TEXT = {"words"}
"""Figures of importances, without maps."""

ONE_ROW = {"identifiability"}
"""Figures of a single row, without maps."""


OF_PRUNING = {"pruning_curve"}
"""Figures of pruning curves, without maps."""


OF_PROBES = {"accuracies"}
"""Figures of probes, without maps."""


OF_ABLATIONS = {"ablation"}
"""Figures of ablations, without maps."""


OF_CUES = {"cues"}
"""Figures of cues, without maps."""


def cues(names=("not", "is not", "can"), *, several=False) -> xr.Dataset:
    """Return a result like that of `hs.cues`."""
    size = len(names)
    rates, covered = np.linspace(0.8, 0.2, size), np.linspace(0.5, 0.05, size)
    chance = np.linspace(0.4, 0.6, size) if several else np.full(size, 0.5)
    tables = {"productivity": rates, "productivity_low": rates - 0.1, "productivity_high": rates + 0.1}
    tables |= {"coverage": covered, "coverage_low": covered / 2, "coverage_high": covered * 1.5, "chance": chance}
    tables |= {"gain": covered * (rates - chance), "pmi": np.log(rates / chance), "productivity_p": rates / 50}
    tables |= {"productivity_p_adjusted": rates / 12, "productivity_significant": (rates < 0.6).astype(np.int8)}
    tables |= {"applicability": (covered * 200).astype(int), "productive": (covered * rates * 200).astype(int)}
    facts = {"command": "hs.cues", "kind": "choice", "variant": "exclusive", "parts": ["choices"], "n": 200}
    names = [name.encode(errors="surrogatepass").decode(errors="replace") for name in names]
    coords = {"cue": np.array(names, object), "words": ("cue", np.ones(size, int))}
    data = xr.Dataset({name: ("cue", table) for name, table in tables.items()}, coords).assign(n=200)
    return data.assign_attrs(headscope=json.dumps(facts))


def pruning(by="random", *, seeds=3, end=100) -> xr.Dataset:
    """Return a result like that of `hs.pruning_curve`."""
    shares = np.arange(0, end + 1, 10.0)
    falls = np.array([[0.9 - (0.003 + 0.001 * seed) * share for share in shares] for seed in range(seeds)])
    dims = ("seed", "pruned") if by == "random" else ("pruned",)
    tables = {"score": falls, "score_low": falls - 0.05, "score_high": falls + 0.04, "change": falls - 0.9}
    tables |= {"change_low": falls - 0.93, "change_high": falls - 0.88}
    data = xr.Dataset(
        {name: (dims, table if by == "random" else table[0]) for name, table in tables.items()},
        coords={"pruned": shares, **({"seed": list(range(seeds))} if by == "random" else {})},
        attrs={"headscope": json.dumps({"by": by, "site": "self", "n": 408})},
    )
    data["score"].attrs["long_name"], data["change"].attrs["long_name"] = "accuracy", "change of accuracy"
    names = np.array(["+".join(f"L0H{head}" for head in range(count)) for count in range(len(shares))], dtype=object)
    heads = np.stack([names] * seeds) if by == "random" else names
    return data.assign(count=("pruned", np.arange(len(shares))), heads=(dims, heads))


def ablation(*dims: str, seed: int = 0) -> xr.Dataset:
    """Return a result like that of `hs.ablate`."""
    coords = {"layer": [0, 1, 2], "head": [0, 1, 2, 3], "heads": ["L0H1+L1H2", "L0", "all-L2"]}
    change = np.random.default_rng(seed).normal(0, 0.02, [len(coords[dim]) for dim in dims])
    sure = np.abs(change) > 0.025
    tables = {"change": change, "change_low": change - 0.02, "change_high": change + 0.03}
    tables |= {"change_p": np.where(sure, 0.001, 0.5), "change_p_adjusted": np.where(sure, 0.01, 1.0)}
    tables |= {"change_significant": sure.astype(np.int8), "change_n": np.full(change.shape, 408)}
    tables |= {"ablated": 0.9 + change, "ablated_low": 0.88 + change, "ablated_high": 0.92 + change}
    variables = {name: (dims, table) for name, table in tables.items()}
    variables |= {"score": ((), 0.9), "score_low": ((), 0.88), "score_high": ((), 0.92), "n": ((), 408)}
    facts = {"edit": "zero_heads", "site": "self", "n": 408, "level": 0.05, "correction": "holm", "model": "tuned"}
    data = xr.Dataset(variables, {dim: coords[dim] for dim in dims}, {"headscope": json.dumps(facts)})
    data["change"].attrs |= {"long_name": "accuracy", "title": "Change of accuracy without each head · zero_heads"}
    return data


OF_CLUSTERS = {"clusters", "dendrogram"}
"""Figures of clusters of heads, without maps."""


def head_distances(*, layers=2, heads=3, lenses=("raw", "effective")) -> xr.Dataset:
    """Return the distances of a measurement; heads of one layer are alike."""
    centres = 10 * np.random.default_rng(0).normal(size=(layers, 1, 3))
    points = centres + np.random.default_rng(1).normal(size=(len(lenses), layers, heads, 3))
    flat = points.reshape(len(lenses), -1, 3)
    table = np.linalg.norm(flat[:, :, None] - flat[:, None], axis=-1)
    axes = ("lens", "site", "layer", "head", "other_layer", "other_head")
    return xr.Dataset(
        {"head_distance": (axes, table.reshape(len(lenses), 1, *(layers, heads) * 2), {"units": "nats"})},
        coords={
            "lens": np.array(lenses, dtype=object),
            "site": np.array(["self"], dtype=object),
            **{axis: list(range(layers)) for axis in ("layer", "other_layer")},
            **{axis: list(range(heads)) for axis in ("head", "other_head")},
        },
        attrs={"headscope": json.dumps({"data": "texts", "model": "tiny", "n": 7})},
    )


def clustered(names=("the", "cat", "sat"), **shape) -> xr.Dataset:
    """Return a result of `hs.cluster`, whose heads are named in turn."""
    return _cluster_heads(tuple(names), tuple(shape.items())).copy(deep=True)


@cache
def _cluster_heads(names, shape):
    data = head_distances(**dict(shape))
    labels = np.resize(np.array(token_labels(list(names)), dtype=object), (data.sizes["layer"], data.sizes["head"]))
    behaviour = xr.DataArray(labels, {axis: data[axis] for axis in ("layer", "head")}, ("layer", "head"))
    return cluster(data, behaviour=behaviour, count=2, permutations=9)


def probed(relations=("all", "nsubj", "obj"), tasks=("dependency", "control")) -> xr.Dataset:
    """Return a result like that of `hs.probe`; the gain is significant for every second relation."""
    dims, shape = ("task", "predictor", "relation"), (len(tasks), 3, len(relations))
    accuracy = np.random.default_rng(0).uniform(0.2, 0.8, shape)
    gain, sure = accuracy[:, 0] - accuracy[:, 1], np.arange(len(relations)) % 2 == 0
    tables = {"accuracy": accuracy, "accuracy_low": accuracy - 0.1, "accuracy_high": accuracy + 0.05}
    tables["accuracy_n"] = np.full(shape, 120)
    gains = {"gain": np.abs(gain), "gain_low": gain - 0.1, "gain_high": gain + 0.1}
    gains["gain_p"] = np.where(sure, 0.01, 0.5) * np.ones_like(gain)
    best = np.arange(gain.size).reshape(gain.shape)
    gains |= {"best_layer": best, "best_head": best % 3, "best_offset": best - 2}
    gains["best_direction"] = np.where(best % 2, "dependent to head", "head to dependent").astype(object)
    variables = {name: (dims, table) for name, table in tables.items()}
    variables |= {name: (dims[::2], table) for name, table in gains.items()}
    coords = {"task": list(tasks), "predictor": ["head", "fixed_offset", "right_branching"]}
    facts = {"probe": "dependency", "lens": "raw", "model": "tuned", "documents_train": 7, "n": 50}
    data = xr.Dataset(variables, coords, {"headscope": json.dumps(facts)})
    return data.assign(documents=6).assign_coords(relation=token_labels(list(relations)))


OF_SCORES = {"scores"}
"""Figures of what `hs.score` returns."""


def scored(metrics=("accuracy", "f1")) -> xr.Dataset:
    """Metrics of a model, as `hs.score` returns them."""
    ends = {"": 0.75, "_low": 0.7, "_high": 0.8}
    numbers = {f"{metric}{end}": value for metric in metrics for end, value in ends.items()}
    facts = {"kind": "score", "command": "hs.score", "task": "sentiment", "n": 200}
    return xr.Dataset({**numbers, "majority": 0.5, "n": 200}, attrs={"headscope": json.dumps(facts)})


OF_JUDGING = {"faithfulness", "faithfulness_curve"}
"""Figures of what `hs.faithfulness` returns."""


def judged(lenses=("raw", "effective"), *, tokens=False) -> xr.Dataset:
    """Return a result like that of `hs.faithfulness`, by edges and pictures or by tokens."""
    random, count = np.random.default_rng(0), len(lenses)
    effects, layers, shares = ["output", "hidden", "score", "score_signed"], [0, 1, 2], np.linspace(0, 1, 6)
    variables = {}

    def add(name, dims, shape, **attrs):
        value = random.uniform(0.2, 0.8, shape)
        ends = {"": (dims, value, attrs), "_low": (dims, value - 0.1), "_high": (dims, value + 0.1)}
        variables.update({f"{name}{end}": table for end, table in ends.items()})
        variables[f"{name}_n"] = (dims, np.full(shape, 40))

    def add_differences(name, dims, shape):
        add(f"{name}_difference", dims, shape)
        sure = random.uniform(0, 0.1, shape)
        variables.update({f"{name}_difference_p": (dims, sure), f"{name}_difference_p_adjusted": (dims, 2 * sure)})

    names = ("deletion_area", "sufficiency") if tokens else ("rank_correlation", "top_share", "mass_without_effect")
    more = {} if tokens else {"effect": len(effects)}
    for name in names:
        label = {"long_name": name.replace("_", " ")}
        add(name, ("lens", *more), (count, *more.values()), **label)
        add_differences(name, ("lens", "other_lens", *more), (count, count, *more.values()))
        if not tokens:
            add(f"{name}_layer", ("lens", "effect", "layer"), (count, len(effects), len(layers)))
    coords = {"lens": np.array(lenses, dtype=object), "other_lens": np.array(lenses, dtype=object)}
    if tokens:
        for name in ("deletion", "insertion"):
            add(name, ("lens", "share"), (count, len(shares)), long_name=f"score after {name}")
        coords["share"] = shares
    else:
        add("top_share_chance", ("effect",), (len(effects),))
        add("edges_without_effect", ("effect",), (len(effects),))
        variables |= {"edges": 960, "row_count": ("layer", [40, 40, 40]), "nan_edges": ("effect", [0, 0, 0, 2])}
        coords |= {"effect": effects, "layer": layers}
    facts = {"model": "tuned", "n": 40, "lenses": list(lenses), "heads": "each", "threshold": 1e-3}
    data = xr.Dataset(variables, coords, {"headscope": json.dumps(facts)})
    return data.assign(n=40, forwards=29.5)


OF_STUDIES = {"tasks"}
"""Figures of what `hs.study` returns."""


def studied(tasks=("RTE", "MRPC"), *, lenses=("raw", "effective"), seeds=1) -> xr.Dataset:
    """Return the main result of a study: a score and a quantity by lens of every task, each with an interval."""
    random = np.random.default_rng(0)
    variables = {"n": (("task", "seed"), np.full((len(tasks), seeds), 100))}
    for name, others in {"share": {"lens": lenses}, "score": {}}.items():
        dims = ("task", "seed", *others)
        value = random.uniform(0.3, 0.7, (len(tasks), seeds, *map(len, others.values())))
        variables |= {name: (dims, value), f"{name}_low": (dims, value - 0.1), f"{name}_high": (dims, value + 0.05)}
    coords = {"task": token_labels(list(tasks)), "seed": list(range(seeds)), "lens": list(lenses)}
    facts = {"study": "sixteen_heads", "model": "tiny", "n": 100 * len(tasks)}
    data = xr.Dataset(variables, coords, {"headscope": json.dumps(facts)})
    return data if seeds > 1 else data.isel(seed=0, drop=True)


def data_for(figure: str, tokens="the cat sat", *, causal=False) -> xr.Dataset:
    """Return data that a figure draws; token types are named like the tokens."""
    if figure in MEASURED:
        return measured(types=tokens.split(" "))
    if figure in OF_PATTERNS:
        return evaluated(tokens.split(" ")) if figure == "confusion" else typical(tokens.split(" "))
    if figure in ONE_TEXT:
        return importances(tokens)
    if figure == "layered":
        return add_graph(dataset(tokens, causal=causal))
    if figure in OF_PRUNING:
        return pruning()
    if figure in OF_CLUSTERS:
        return clustered(tokens.split(" ")[:7])
    if figure in OF_ABLATIONS:
        return ablation("layer")
    if figure in OF_PROBES:
        return probed(tokens.split(" "))
    if figure in OF_CUES:
        return cues(tokens.split(" "))
    if figure in OF_JUDGING:
        return judged(token_labels(tokens.split(" ")[:5]))
    if figure in OF_STUDIES:
        return studied(tokens.split(" "))
    if figure in OF_SCORES:
        return scored(tokens.split(" ")[:7])
    return intervals(tokens) if figure in ONE_ROW else dataset(tokens, causal=causal)


def add_graph(data: xr.Dataset, kind: str = "edges") -> xr.Dataset:
    """Return maps of one head per layer like those of rollout or flow, with their graph: half of it the residual."""
    raw = data["weights"].isel(lens=[0, 0], head=0).values.astype(float)
    graph = 0.5 * raw + 0.5 * np.eye(raw.shape[-1])
    product = [graph[:, 0]]
    for index in range(1, graph.shape[1]):
        product.append(graph[:, index] @ product[-1])
    weights = np.stack(product, 1)[:, :, None]
    data = data.isel(head=[0]).assign(weights=(data["weights"].dims, weights.astype("float32")))
    data = data.assign_coords(lens=["rollout", "rollout:residual=0.3"], signed=("lens", [False, False]))
    return data.assign({kind: (("lens", "layer", "query", "key"), graph.astype("float32"))})


def importances(tokens="the cat sat", *, method="blank_out", signed=True, example="0", scale=1.0) -> xr.Dataset:
    """Return one text like `Importances.dataset`; its special tokens have no score."""
    words = tokens.split(" ")
    special = np.array([word in ("[CLS]", "[SEP]") for word in words])
    scores = scale * np.random.default_rng(len(words)).normal(0, 1, len(words)) ** 3
    first = [index == 0 or word.startswith("##") or word in (",", "'") for index, word in enumerate(words)]
    pieces = [word.removeprefix("##") if joined else f" {word}" for word, joined in zip(words, first, strict=True)]
    names = {"method": [method], "quantity": ["change of the score"], "target": ["label"], "answer": ["positive"]}
    return xr.Dataset(
        {
            "importance": (("method", "token"), np.where(special, np.nan, scores if signed else np.abs(scores))[None]),
            "score": ("method", [0.93]),
        },
        coords={
            **{name: ("method", token_labels(values)) for name, values in names.items()},
            "signed": ("method", [signed]),
            "token_text": ("token", token_labels(words)),
            "piece": ("token", token_labels(pieces)),
            "special": ("token", special),
            "word": ("token", np.arange(len(words))),
            "text": tokens,
            "example": example,
        },
        attrs={"headscope": json.dumps({"methods": [method], "target": "label"})},
    )


def intervals(tokens="the cat sat", *, certain=False) -> xr.Dataset:
    """Return a result like that of `hs.identifiability`; each weight is in the middle of its interval."""
    words = token_labels(tokens.split(" "))
    count = len(words)
    raw = np.full(count, 1 / count)
    width = 0.0 if certain else 0.8 * raw
    facts = {"layer": 3, "head": 7, "query": 0, "query_token": words[0], "n": count, "rank": max(1, count - 2)}
    return xr.Dataset(
        {
            "raw": ("key", raw),
            "effective": ("key", raw - (0 if certain else 0.4) * (np.arange(count) % 2)),
            "least": ("key", raw - width / 2),
            "greatest": ("key", raw + width / 2),
            "least_row": (("key", "other"), np.tile(raw, (count, 1))),
            "greatest_row": (("key", "other"), np.tile(raw, (count, 1))),
        },
        coords={
            "key": np.arange(count),
            "other": np.arange(count),
            "key_token": ("key", words),
            "key_special": ("key", np.arange(count) == 0),
        },
        attrs={"headscope": json.dumps(facts)},
    )


MEASURED = {"bars", "curve", "distribution", "heads", "scatter", "stacked_bars"}
"""Figures of results of `hs.measure`."""

LABELS = {
    "entropy": {"units": "nats"},
    "distance": {"units": "tokens", "long_name": "attention distance"},
    "token_types": {"long_name": "attention weight"},
}


def measured(
    *,
    layers=2,
    heads=3,
    examples=7,
    lenses=("raw", "effective"),
    types=("noun", "verb", "sep"),
    rows=True,
    seed=0,
    stamp=("texts", "tiny"),
) -> xr.Dataset:
    """Return a result like that of `hs.measure`: entropy, distance, and the weight on token types."""
    random = np.random.default_rng(seed)
    shape = (len(lenses), 1, layers, heads)
    level = 2.5 - 0.6 * np.arange(len(lenses))[:, None, None, None] + 0.1 * np.arange(layers)[:, None]
    tables = {
        "entropy": level + random.normal(0, 0.4, shape) + random.normal(0, 0.2, (examples, *shape)),
        "distance": 8 - 2 * level + random.normal(0, 0.5, shape) + random.normal(0, 0.2, (examples, *shape)),
        "token_types": random.normal(0.2, 0.2, (*shape, len(types)))
        + random.normal(0, 0.05, (examples, *shape, len(types))),
    }
    dims = ("lens", "site", "layer", "head")
    variables = {}
    for name, table in tables.items():
        axes = (*dims, "type") if name == "token_types" else dims
        half = stats.t.ppf(0.975, examples - 1) * table.std(0, ddof=1) / np.sqrt(examples)
        variables |= {name: (axes, table.mean(0), LABELS[name]), f"{name}_sd": (axes, table.std(0, ddof=1))}
        variables |= {f"{name}_n": (axes, np.full(table.shape[1:], examples))}
        variables |= {f"{name}_low": (axes, table.mean(0) - half), f"{name}_high": (axes, table.mean(0) + half)}
        if rows:
            variables[f"{name}_rows"] = (("example", *axes), table)
    ids = {"example": np.array([f"t{each:03d}" for each in range(examples)], dtype=object)} if rows else {}
    return xr.Dataset(
        variables,
        coords={
            "lens": np.array(lenses, dtype=object),
            "site": np.array(["self"], dtype=object),
            "layer": list(range(layers)),
            "head": list(range(heads)),
            "type": np.array(types),
            **ids,
        },
        attrs={"headscope": json.dumps({"data": stamp[0], "model": stamp[1], "n": examples})},
    )


OF_PATTERNS = {"confusion": "map", "typical_maps": "map"}
"""Figures of classifiers of patterns, and what their data cannot be without."""


def evaluated(patterns=("vertical", "block", "heterogeneous")) -> xr.Dataset:
    """Return a result like that of `headscope patterns evaluate`."""
    classes = token_labels(list(patterns))
    count = len(classes)
    table = 9 * np.eye(count, count + 1, dtype=int) + np.random.default_rng(0).integers(0, 4, (2, 2, count, count + 1))
    table[0, ..., -1] = 0  # the cnn is never unsure
    dims = ("classifier", "subset")
    return xr.Dataset(
        {
            "confusion": ((*dims, "pattern", "predicted"), table),
            "macro_f1": (dims, np.full((2, 2), 0.7)),
            "macro_f1_low": (dims, np.full((2, 2), 0.6)),
            "macro_f1_high": (dims, np.full((2, 2), 0.8)),
        },
        coords={
            "classifier": np.array(["cnn", "both"], dtype=object),
            "subset": np.array(["all", "random"], dtype=object),
            "pattern": classes,
            "predicted": np.array([*classes, "unsure"], dtype=object),
            "map": np.arange(table[0, 0].sum()),
        },
        attrs={"headscope": json.dumps({"trainings": 5})},
    )


def typical(patterns=("vertical", "block", "heterogeneous")) -> xr.Dataset:
    """Return a result like that of `headscope patterns typical`: two maps of each class, one of them shorter."""
    classes = token_labels([each for each in patterns for _ in range(2)])
    weights = np.random.default_rng(0).random((len(classes), 8, 8)).astype("float32")
    weights[1::2, 6:] = weights[1::2, :, 6:] = np.nan
    return xr.Dataset(
        {"weights": (("map", "query", "key"), weights)},
        coords={
            "map": np.arange(len(classes)),
            "label": ("map", classes),
            "confidence": ("map", np.linspace(1, 0.5, len(classes))),
            "source": ("map", np.array([f"bert (rte) L{each}H0, raw, 8 tokens" for each in range(len(classes))])),
        },
        attrs={"headscope": "{}"},
    )
