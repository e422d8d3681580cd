"""How much of an attention row its output determines, weight by weight."""

import xarray as xr

from headscope.core.compiled import require_compiler
from headscope.core.errors import InputError, NotCaptured
from headscope.core.provenance import stamp
from headscope.core.tokens import token_labels
from headscope.core.trace import Trace, select_labels
from headscope.effective.identifiability import interval


def identifiability(trace: Trace, layer: int, head: int, query: int, *, example: int = 0) -> xr.Dataset:
    """Return the least and greatest value of each weight of one query among all rows with the same output.

    A row is any set of nonnegative weights, with the same sum, on the keys that the query sees. A wide interval says
    that the weight could be very different without a change of the head's output. `least_row` and `greatest_row`
    hold, for each key, a whole row that attains the bound.

    Needs `pip install 'headscope[compiled]'`.

    Parameters
    ----------
    trace
        A trace that holds the values.
    layer, head
        The head, by its numbers.
    query
        The query, counted in the example's tokens from 0.
    example
        The example, counted from 0.

    >>> data = hs.identifiability(trace, 0, 3, 5)  # layer, head, query
    >>> bool((data["least"] <= data["greatest"]).all())
    True
    """
    require_compiler("hs.identifiability")
    if trace.values is None:
        captured = ", ".join(f"'{name}'" for name in sorted(trace.held))
        raise NotCaptured(
            f"Identifiability needs 'values', but this trace holds {captured}. "
            "Capture again with keep=('values',), or give them to Trace.of."
        )
    if not -len(trace.examples) <= example < len(trace.examples):
        raise InputError(f"There is no example {example}: this trace holds {len(trace.examples)}.")
    (layer,), (head,) = select_labels(trace.layers, layer, "layer"), select_labels(trace.heads, head, "head")
    query, row = _find_row(trace, example, query)
    layer_index, map_index = trace.layers.index(layer), (example, trace.heads.index(head))
    real = trace.keys.real[example].cpu()
    visible = trace.visible[layer_index][example, row].cpu() & real
    weights = trace.attention[layer_index][map_index][row].cpu()[visible]
    if not len(weights):
        raise InputError(f"Query {query} of example {example} sees no key in layer {layer}. Give another query.")
    bounds = interval(weights, trace.values[layer_index][map_index].cpu()[visible])
    keys = (real.cumsum(0) - 1)[visible].numpy()  # counted in the example's own tokens
    columns = {"raw": weights.double().numpy()}
    columns |= {name: getattr(bounds, name) for name in ("effective", "least", "greatest")}
    rows = {name: (("key", "other"), getattr(bounds, name)) for name in ("least_row", "greatest_row")}
    data = xr.Dataset(
        {name: ("key", column) for name, column in columns.items()} | rows,
        coords={
            "key": keys,
            "other": keys,
            "key_token": ("key", token_labels([trace.keys.text[example][key] for key in keys])),
            "key_special": ("key", trace.keys.special[example].cpu()[visible].numpy()),
        },
    )
    facts = {"layer": layer, "head": head, "query": query, "query_token": trace.queries.text[example][query]}
    return stamp(
        data,
        kind="identifiability",
        site=trace.site,
        example=trace.examples[example].id,
        **facts,
        n=len(keys),
        rank=bounds.rank,
    )


def _find_row(trace: Trace, example: int, query: int) -> tuple[int, int]:
    """Return the query counted from 0, and its row in the batch, which may be padded on the left."""
    (rows,) = trace.queries.real[example].cpu().nonzero(as_tuple=True)
    count = len(rows)
    if not -count <= query < count:
        raise InputError(f"There is no query {query}: this example has {count} query tokens, 0 to {count - 1}.")
    return query % count, int(rows[query])
