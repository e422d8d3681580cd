"""How much of an attention row its output determines, weight by weight."""

import xarray as xr

from headscope.core.errors import InputError, NotCaptured
from headscope.core.tokens import token_labels
from headscope.core.trace import Trace, select_labels
from headscope.effective.identifiability import interval
from headscope.results.stamp import stamp


def identifiability(trace: Trace, layer: int, head: int, query: int, *, example: int = 0) -> xr.Dataset:
    """The least and greatest value of each weight of one query among all rows with the same output.

    A row is any set of weights on the keys that the query sees, none below 0, with the same sum. A wide interval says
    that the weight could be quite another without the head noticing: a picture of it means little. `least_row` and
    `greatest_row` hold, for each key, a whole row that reaches the bound. `query` counts the example's tokens from 0.
    """
    if trace.values is None:
        held = ", ".join(f"'{each}'" for each in sorted(trace.held))
        raise NotCaptured(
            f"Identifiability needs 'values', but this trace holds {held}. "
            "Capture again with keep=('values',), or give them to Trace.of."
        )
    if not -len(trace.examples) <= example < len(trace.examples):
        raise InputError(f"There is no example {example}: this trace holds {len(trace.examples)}.")
    (layer,), (head,) = select_labels(trace.layers, layer, "layer"), select_labels(trace.heads, head, "head")
    query, row = _row(trace, example, query)
    place, part = trace.layers.index(layer), (example, trace.heads.index(head))
    real = trace.keys.real[example].cpu()
    seen = trace.visible[place][example, row].cpu() & real
    weights, values = trace.attention[place][part][row].cpu()[seen], trace.values[place][part].cpu()[seen]
    if not len(weights):
        raise InputError(f"Query {query} of example {example} sees no key in layer {layer}. Give another query.")
    found = interval(weights, values)
    keys = (real.cumsum(0) - 1)[seen].numpy()  # counted in the example's own tokens
    columns = {"standard": weights.double().numpy()} | {
        name: getattr(found, name) for name in ("effective", "least", "greatest")
    }
    witnesses = {name: (("key", "other"), getattr(found, name)) for name in ("least_row", "greatest_row")}
    data = xr.Dataset(
        {name: ("key", column) for name, column in columns.items()} | witnesses,
        coords={
            "key": keys,
            "other": keys,
            "key_token": ("key", token_labels([trace.keys.text[example][key] for key in keys])),
            "key_special": ("key", trace.keys.special[example].cpu()[seen].numpy()),
        },
    )
    facts = {"layer": layer, "head": head, "query": query, "query_token": trace.queries.text[example][query]}
    return stamp(data, site=trace.site, example=trace.examples[example].id, **facts, n=len(keys), rank=found.rank)


def _row(trace: Trace, example: int, query: int) -> tuple[int, int]:
    """The query counted from 0, and its row in the batch, which may be padded in front."""
    (rows,) = trace.queries.real[example].cpu().nonzero(as_tuple=True)
    many = len(rows)
    if not -many <= query < many:
        raise InputError(f"There is no query {query}: this example has {many} query tokens, 0 to {many - 1}.")
    return query % many, int(rows[query])
