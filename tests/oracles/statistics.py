"""Slow, literal versions of all statistics: loops over examples, layers, heads, rows and cells, in float64."""

from math import fabs, isnan, log, nan, sqrt

import numpy as np
from scipy.stats import spearmanr

from headscope.core.spec import entry_name, to_spec
from headscope.core.tokens import ROLES


def oracle(statistic, batch):
    """Return the values of a statistic by variable, each `batch layer head …`."""
    CACHE.clear()
    return globals()[entry_name(type(statistic))](statistic, batch)


def over_maps(maps, function):
    """Return a function of (example, layer, head) as an array."""
    examples, layers, heads = (range(len(each)) for each in (maps.examples, maps.layers, maps.heads))
    return np.array([[[function(a, b, c) for c in heads] for b in layers] for a in examples], dtype=np.float64)


def row(maps, example, layer, head, query):
    """Return the weights of one row by visible key."""
    weights, seen = read(maps)[layer]
    row, visible = weights[example][head][query], seen[example][query]
    return {key: row[key] for key in range(len(row)) if visible[key]}


CACHE = {}


def read(maps):
    """Return the weights and masks of every layer as lists, cached because reading a tensor by element is slow."""
    if id(maps) not in CACHE:
        weights = [maps.layer(label).double().tolist() for label in maps.layers]
        CACHE[id(maps)] = list(zip(weights, [each.tolist() for each in maps.visible], strict=True))
    return CACHE[id(maps)]


def rows(maps, example, layer, head):
    """Return the rows that see any key, by query."""
    values = {query: row(maps, example, layer, head, query) for query in range(maps.queries.real.shape[1])}
    return {query: each for query, each in values.items() if each}


def shares(weights):
    """Return |w| / Σ|w|, or None without any weight."""
    whole = sum(fabs(each) for each in weights.values())
    return {key: fabs(each) / whole for key, each in weights.items()} if whole else None


def smooth(share, smoothing):
    return {key: (1 - smoothing) * each + smoothing / len(share) for key, each in share.items()}


def mean(numbers):
    valid = [each for each in numbers if not isnan(each)]
    return sum(valid) / len(valid) if valid else nan


def nats(share):
    return -sum(each * log(each) for each in share.values() if each > 0)


def per_row(maps, function, only=None):
    """Return the mean over rows of a function of (example, query, distribution)."""

    def one_map(example, layer, head):
        values = []
        for query, weights in rows(maps, example, layer, head).items():
            share = shares(weights)
            if share is not None and (only is None or only(example, query)):
                values.append(function(example, query, share))
        return mean(values)

    return over_maps(maps, one_map)


def entropy(statistic, batch):
    def is_cls(example, query):
        return ROLES[batch.focus.queries.roles[example, query]] == "cls"

    def value(example, query, share):
        return nats(smooth(share, statistic.smoothing))

    return {"entropy": per_row(batch.focus, value, is_cls if statistic.rows == "cls" else None)}


def peak(statistic, batch):
    return {"peak": per_row(batch.focus, lambda example, query, share: max(share.values()))}


def activity(statistic, batch):
    maps = batch.focus

    def ordinary(example, key):
        special, real = bool(maps.keys.special[example, key]), bool(maps.keys.real[example, key])
        return real and not special and position(maps.keys, example, key) > 0

    def one_map(example, layer, head):
        values = []
        for query, weights in rows(maps, example, layer, head).items():
            share, keys = shares(weights), [key for key in weights if ordinary(example, key)]
            if (
                share is not None
                and keys
                and maps.queries.real[example, query]
                and not maps.queries.special[example, query]
            ):
                values.append(sum(share[key] for key in keys))
        return mean(values)

    return {"activity": over_maps(maps, one_map)}


def position(tokens, example, token):
    """Return the number of real tokens before this one."""
    return sum(tokens.real[example, :token].tolist())


def distance(statistic, batch):
    def value(example, query, share):
        start = position(batch.focus.queries, example, query)
        return sum(each * abs(start - position(batch.focus.keys, example, key)) for key, each in share.items())

    return {"distance": per_row(batch.focus, value)}


def signed_and_absolute(name, maps, function):
    """Return a weight and its absolute version; `function` gets the transformation of a weight."""
    plain = over_maps(maps, lambda *where: function(*where, lambda weight: weight))
    return {name: plain, f"{name}_absolute": over_maps(maps, lambda *where: function(*where, fabs))}


def offsets(statistic, batch):
    maps = batch.focus

    def one_map(example, layer, head, size):
        values = {offset: [] for offset in range(-statistic.reach, statistic.reach + 1)}
        asking = rows(maps, example, layer, head)
        for query, weights in asking.items():
            for key, weight in weights.items():
                offset = position(maps.keys, example, key) - position(maps.queries, example, query)
                if offset in values:
                    values[offset].append(size(weight))
        if statistic.rows == "clark":
            return [sum(each) / len(asking) if asking else nan for each in values.values()]
        return [mean(each) for each in values.values()]

    return signed_and_absolute("offsets", maps, one_map)


def several_of(how, numbers):
    return {"sum": sum, "max": max, "mean": mean}[how](numbers)


def each_reduction(how, function):
    """Return a function of a reduction, or for "all" the results of every reduction along a last axis."""
    if how != "all":
        return function(how)
    return np.stack([function(one) for one in ("max", "mean", "sum")], axis=-1)


def special_tokens(statistic, batch):
    maps = batch.focus
    asking, asked = maps.queries.roles.tolist(), maps.keys.roles.tolist()

    def one_map(example, layer, head, size):
        return each_reduction(statistic.reduce, lambda how: one_reduction(example, layer, head, size, how))

    def one_reduction(example, layer, head, size, how):
        table = []
        for role in map(ROLES.index, statistic.roles):
            others, itself, clark = [], [], []
            for query, weights in rows(maps, example, layer, head).items():
                on = [size(weight) for key, weight in weights.items() if asked[example][key] == role]
                clark.append(several_of(how, on) if on else 0.0)
                if on:
                    (itself if asking[example][query] == role else others).append(several_of(how, on))
            sources = {"others": [mean(others)], "itself": [mean(itself)], "both": [mean(others), mean(itself)]}
            sources["clark"] = [mean(clark)]
            table.append(sources[statistic.source])
        return table

    return signed_and_absolute("special_tokens", maps, one_map)


def token_types(statistic, batch):
    maps = batch.focus

    def has_type(example, key, kind):
        tokens = maps.keys
        role, word = ROLES[tokens.roles[example, key]], int(tokens.word[example, key])
        if kind in ROLES:
            return role == kind
        if kind in ("period_comma", "other_text"):
            spelling = tokens.text[example][position(tokens, example, key)]
            return not role and (spelling in (".", ",")) == (kind == "period_comma")
        if role or word < 0:
            return False
        if statistic.subtokens == "first" and word in tokens.word[example, :key].tolist():
            return False
        if kind == "word":
            return batch.examples[example].columns["tags"][word] not in ("PUNCT", "_", "")
        wanted = {"noun": {"NOUN"}, "pronoun": {"PRON"}, "verb": {"VERB"}, "punctuation": {"PUNCT"}}[kind]
        wanted = wanted | ({"PROPN"} if statistic.proper_nouns and kind == "noun" else set())
        wanted = wanted | ({"AUX"} if statistic.auxiliaries and kind == "verb" else set())
        return batch.examples[example].columns["tags"][word] in wanted

    def one_map(example, layer, head, size):
        return each_reduction(statistic.reduce, lambda how: one_reduction(example, layer, head, size, how))

    def one_reduction(example, layer, head, size, how):
        values = []
        for kind in statistic.types:
            masses = []
            for query, weights in rows(maps, example, layer, head).items():
                if statistic.source == "cls" and ROLES[maps.queries.roles[example, query]] != "cls":
                    continue
                on = [size(weight) for key, weight in weights.items() if has_type(example, key, kind)]
                if on or statistic.source == "clark":
                    masses.append(several_of(how, on) if on else 0.0)
            values.append(mean(masses))
        return values

    def count(example, layer, head):
        numbers = []
        for kind in statistic.types:
            seen = [
                sum(has_type(example, key, kind) for key in weights)
                for query, weights in rows(maps, example, layer, head).items()
                if statistic.source != "cls" or ROLES[maps.queries.roles[example, query]] == "cls"
            ]
            numbers.append(mean([each for each in seen if each or statistic.source == "clark"]))
        return each_reduction(statistic.reduce, lambda how: numbers)

    if statistic.counts:
        ones = {"token_types_count": over_maps(maps, lambda *where: count(*where))}
        return signed_and_absolute("token_types", maps, one_map) | ones
    return signed_and_absolute("token_types", maps, one_map)


def mixing_ratio(statistic, batch):
    """As the norm lens with the residual says; its own test writes every vector out."""
    return {"mixing_ratio": batch.maps["model", "norm:residual=true"].diagnostics["mixing_ratio"].double().numpy()}


def copying(statistic, batch):
    """As the logit lens says of keys; its own test writes every product out."""
    said = batch.maps["model", "logit:of=keys"].diagnostics
    return {name: said[name].double().numpy() for name in ("copying", "copying_shuffled")}


def effective_share(statistic, batch):
    """As the effective lens says, whose own oracle is elsewhere."""
    lens = batch.lens if batch.lens.startswith("effective") else "effective"
    share = batch.maps["model", lens].diagnostics["share"].double().tolist()
    return {"effective_share": np.array(share)}


def relative_change(statistic, batch):
    raw = batch.maps["model", "raw"]

    def distance(left, right):
        change = sum((a - b) ** 2 for a, b in zip(left, right, strict=True))
        whole = sum(b * b for b in right)
        return sqrt(change / whole) if whole else nan

    return {"relative_change": pairs(batch.focus, raw, distance)}


def row_distance(statistic, batch):
    def one_map(example, layer, head):
        found = [shares(weights) for weights in rows(batch.focus, example, layer, head).values()]
        found = [share for share in found if share]
        apart = []
        for at, left in enumerate(found):
            for right in found[:at]:
                apart.append(sum(fabs(left.get(key, 0) - right.get(key, 0)) for key in {**left, **right}) / 2)
        return mean(apart)

    return {"row_distance": over_maps(batch.focus, one_map)}


def sink(statistic, batch):
    maps, raw = batch.focus, batch.maps["model", "raw"]
    tokens = maps.keys

    def kind_of(example, key):
        role, word = ROLES[tokens.roles[example, key]], int(tokens.word[example, key])
        if role in ("cls", "sep"):
            return role
        if role:
            return "special"
        return "punctuation" if word >= 0 and batch.examples[example].columns["tags"][word] == "PUNCT" else "word"

    def find(example, layer):
        received = {}
        for head in range(len(raw.heads)):
            for query, weights in rows(raw, example, layer, head).items():
                for key, weight in weights.items():
                    received[key] = received.get(key, 0.0) + (weight if key != query else 0.0)
        most = max(received.values())
        return min(key for key, weight in received.items() if weight == most)

    def one_map(example, layer, head):
        if maps.site.endswith("cross"):
            return [nan] * 5
        key = find(example, layer)
        values = [
            weights[key]
            for query, weights in rows(maps, example, layer, head).items()
            if query != key and key in weights
        ]
        kinds = ("cls", "sep", "special", "punctuation", "word")
        return [mean(values) if kind == kind_of(example, key) else nan for kind in kinds]

    return {"sink": over_maps(maps, one_map)}


def followed(maps, name, chosen):
    """The mean weight of rows on the keys that a function of (example, query, key) chooses, and the same spread evenly.

    Queries and keys are tokens of one text: none is chosen in cross-attention.
    """

    def one_map(example, layer, head, even):
        values = []
        for query, weights in rows(maps, example, layer, head).items():
            keys = [key for key in weights if not maps.site.endswith("cross") and chosen(example, query, key)]
            if keys:
                spread = len(keys) * sum(weights.values()) / len(weights)
                values.append(spread if even else sum(weights[key] for key in keys))
        return mean(values)

    return {
        name: over_maps(maps, lambda *place: one_map(*place, even=False)),
        f"{name}_uniform": over_maps(maps, lambda *place: one_map(*place, even=True)),
    }


def written(tokens, example):
    """The tokens of a text by their places in the map, in order; a special token is None."""
    places = [place for place, real in enumerate(tokens.real[example].tolist()) if real]
    special = tokens.special[example].tolist()
    return {place: None if special[place] else word for place, word in zip(places, tokens.text[example], strict=True)}


def induction(statistic, batch):
    maps = batch.focus

    def follows_a_copy(example, query, key):
        text = written(maps.keys, example)
        order = list(text)
        if order.index(key) == 0 or order.index(key) >= order.index(query) or text[key] is None or text[query] is None:
            return False
        return text[order[order.index(key) - 1]] == text[query]

    return followed(maps, "induction", follows_a_copy)


def duplicate_token(statistic, batch):
    maps = batch.focus

    def is_copy(example, query, key):
        text = written(maps.keys, example)
        return list(text).index(key) < list(text).index(query) and text[key] == text[query] is not None

    return followed(maps, "duplicate_token", is_copy)


def previous_token(statistic, batch):
    maps = batch.focus

    def is_before(example, query, key):
        order = list(written(maps.keys, example))
        return order.index(key) + 1 == order.index(query)

    return followed(maps, "previous_token", is_before)


def sink_rate(statistic, batch):
    maps = batch.focus

    def one_map(example, layer, head, even):
        first = min(place for place, real in enumerate(maps.keys.real[example].tolist()) if real)
        values = []
        for weights in rows(maps, example, layer, head).values():
            share = shares(weights)
            if share is not None and first in weights:
                values.append(1 / len(weights) if even else share[first])
        if statistic.rows == "mean":
            return nan if not values else float(mean(values) > statistic.threshold + 1e-6)
        return mean([float(value > statistic.threshold + 1e-6) for value in values])

    return {
        "sink_rate": over_maps(maps, lambda *place: one_map(*place, even=False)),
        "sink_rate_uniform": over_maps(maps, lambda *place: one_map(*place, even=True)),
    }


def saturation(statistic, batch):
    """As the flow lens says, whose own test is elsewhere; nothing for other lenses."""
    shape = (len(batch.examples), len(batch.focus.layers), len(batch.focus.heads))
    return {"saturation": np.full(shape, np.nan), "saturation_same": np.full(shape, np.nan)}


def flat(maps, example, layer, head, padded=False):
    """All cells that a query sees, or all there are, in one list."""
    if padded:
        return maps.layer(maps.layers[layer])[example, head].double().flatten().tolist()
    values = rows(maps, example, layer, head)
    return [weight for query in sorted(values) for _, weight in sorted(values[query].items())]


def cosine(left, right):
    product = sum(a * b for a, b in zip(left, right, strict=True))
    sizes = sqrt(sum(a * a for a in left)) * sqrt(sum(b * b for b in right))
    return product / sizes if sizes else nan


def pairs(left, right, function, padded=False):
    """A function of two flattened maps, where one head stands for all if a lens merges them."""
    wide = left if len(left.heads) >= len(right.heads) else right

    def one_pair(example, layer, head):
        both = ((each, head if len(each.heads) > 1 else 0) for each in (left, right))
        return function(*(flat(each, example, layer, which, padded) for each, which in both))

    return over_maps(wide, one_pair)


def lens_agreement(statistic, batch):
    other = batch.maps["model", to_spec(statistic.other)]

    def spearman(left, right):
        constant = len(set(left)) < 2 or len(set(right)) < 2
        return nan if constant else spearmanr(left, right).statistic

    return {
        "lens_agreement": pairs(batch.focus, other, cosine),
        "lens_agreement_rank": pairs(batch.focus, other, spearman),
    }


def similarity(statistic, batch):
    model, against = (batch.maps[role, batch.lens] for role in ("model", "against"))
    return {"similarity": pairs(model, against, cosine, statistic.padded)}


def head_distance(statistic, batch):
    maps = batch.focus

    def divergence(left, right):
        keys = set(left) | set(right)
        middle = {key: (left.get(key, 0) + right.get(key, 0)) / 2 for key in keys}
        return nats(middle) - (nats(left) + nats(right)) / 2

    def one_map(example, layer, head):
        return [
            [one_pair(example, layer, head, la, h) for h in range(len(maps.heads))] for la in range(len(maps.layers))
        ]

    def one_pair(example, layer, head, other_layer, other_head):
        values = []
        for query in range(maps.queries.real.shape[1]):
            if statistic.rows == "cls" and ROLES[maps.queries.roles[example, query]] != "cls":
                continue
            left = shares(row(maps, example, layer, head, query))
            right = shares(row(maps, example, other_layer, other_head, query))
            if left and right:
                values.append(divergence(*(smooth(each, statistic.smoothing) for each in (left, right))))
        if not values:
            return nan
        return sum(values) / (len(values) if statistic.reduce == "mean" else 1)

    return {"head_distance": over_maps(maps, one_map)}


def patterns(statistic, batch):
    """So many loops that they have a file of their own."""
    from tests.oracles.patterns import patterns as classify_maps

    return classify_maps(statistic, batch)


def marked_words(_, batch):
    maps = batch.focus

    def one_map(example, layer, head):
        numbers, chosen = maps.keys.word[example].tolist(), batch.examples[example].columns["marked"]
        marked = [key for key, number in enumerate(numbers) if number >= 0 and number in chosen]
        others = [key for key, number in enumerate(numbers) if number >= 0 and number not in chosen]
        sources = {"cls": [], "all": []}
        for query, weights in rows(maps, example, layer, head).items():
            if not any(key in weights for key in marked):
                continue
            sums = [sum(weights.get(key, 0.0) for key in marked), sum(fabs(weights.get(key, 0.0)) for key in marked)]
            sums.append(sum(weights.get(key, 0.0) for key in others))
            sources["all"].append(sums)
            if ROLES[maps.queries.roles[example, query]] == "cls":
                sources["cls"].append(sums)
        result = []
        for values in sources.values():
            signed, absolute, other = (mean([value[at] for value in values]) for at in range(3))
            gain = signed - other * len(marked) / len(others) if others else nan
            result.append([signed, absolute, gain])
        return result

    table = over_maps(maps, one_map)
    names = ("marked_words", "marked_words_absolute", "marked_words_gain")
    return {name: table[..., at] for at, name in enumerate(names)}


def relations(statistic, batch):
    maps, related = batch.focus, ("relations", "relations_baseline", "relations_gain")

    def words_of(tokens, example):
        """Return the tokens of every word by its number, in order."""
        words = {}
        for token, number in enumerate(tokens.word[example].tolist()):
            if number >= 0 and tokens.real[example, token]:
                words.setdefault(number, []).append(token)
        return words

    def weight(example, layer, head, first, second):
        """Return the weight from one word to another, None where it is not seen."""
        sums, seen = [], False
        for query in first if statistic.query == "mean" else first[:1]:
            weights = row(maps, example, layer, head, query)
            seen = seen or any(key in weights for key in second)
            sums.append(sum(weights.get(key, 0.0) for key in second))
        return sum(sums) / len(sums) if seen else None

    def one_map(example, layer, head):
        words = words_of(maps.keys, example)
        order = {number: place for place, number in enumerate(words)}

        def directed(how, i, j):
            there, back = (weight(example, layer, head, words[a], words[b]) for a, b in ((i, j), (j, i)))
            known = [each for each in (there, back) if each is not None]
            return {"i to j": there, "j to i": back, "larger": max(known, default=None)}[how]

        return [
            [
                _compare_pairs(batch.examples[example], words, order, directed, name, how)
                for how in ("i to j", "j to i", "larger")
            ]
            for name in statistic.names
        ]

    if maps.site.endswith("cross"):
        empty = np.full((len(maps.examples), len(maps.layers), len(maps.heads), len(statistic.names), 3), nan)
        return dict.fromkeys(related, empty)
    table = over_maps(maps, one_map)
    return {
        "relations": table[..., 0],
        "relations_baseline": table[..., 1],
        "relations_gain": table[..., 0] - table[..., 1],
    }


def _compare_pairs(example, words, order, directed, name, how):
    """Return the mean weight of the pairs of a relation, and of all pairs at their distances."""
    values, baselines = [], []
    for i, j, relation in example.columns["word_pairs"]:
        if i not in words or j not in words or not (name in ("all", relation) or relation.startswith(f"{name}:")):
            continue
        value = directed(how, i, j)
        if value is not None:
            same = [directed(how, a, b) for a in words for b in words if order[b] - order[a] == order[j] - order[i]]
            values.append(value)
            baselines.append(mean([each for each in same if each is not None]))
    return mean(values), mean(baselines)
