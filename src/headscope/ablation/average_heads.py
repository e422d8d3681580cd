"""The mean output of every head over a dataset."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.provenance import stamp
from headscope.core.trace import Trace
from headscope.engine.batch import read_inputs
from headscope.engine.capture import stream
from headscope.engine.model import Model
from headscope.engine.recording.sites import find_sites
from headscope.results.hashes import fingerprint_examples

Sums = tuple[int, dict[int, npt.NDArray[np.float64]]]
"""The number of tokens, and by layer the sum of what the heads wrote: `head value`."""


def average_heads(
    model: Model, data: Any, *, batch_size: int = 8, max_length: int | None = None, pad_to: int | None = None
) -> xr.Dataset:
    """Average what each head writes, A·V, over all real tokens of a dataset, at every attention site.

    This is what the edit `mean_heads` puts in place of a head's output. `head_output` has the dims `site layer head
    value` (NaN where a site has fewer), `head_output_n` is the number of tokens.

    Parameters
    ----------
    model
        A model, as `hs.load` returns it.
    data
        Anything that `hs.read` reads: a path, glue:rte:dev@DIR, examples, texts or pairs.
    batch_size
        Number of examples per batch.
    max_length
        Truncate texts to this number of tokens. Default: what the model can read.
    pad_to
        Pad texts to this number of tokens. Default: the longest of the batch.

    >>> means = hs.average_heads(model, ["The cat sat down.", "It rained."])
    >>> means["head_output"].dims, int(means["head_output_n"].sel(site="self"))
    (('site', 'layer', 'head', 'value'), 12)
    >>> from headscope.edits import MeanHeads
    >>> with hs.edited(model, MeanHeads("L3H7", means=means)) as changed:
    ...     trace = hs.capture(changed, "The cat sat down.")
    """
    examples = read_inputs(model, data)
    sizes: dict[str, Any] = {"batch_size": batch_size, "max_length": max_length, "pad_to": pad_to}
    tables: dict[str, Sums] = {}
    source = None
    for site in dict.fromkeys(find_sites(model).table.values()):
        for trace in stream(model, examples, site=site, keep=("values",), **sizes):
            if trace.other_layers:
                raise InputError(
                    f"Means of heads are a table of layers that are alike, but at '{site}' the maps of layers "
                    f"{list(trace.layers)} and of {trace.describe_other_layers()} differ in shape or in their tokens. "
                    "Of such a model use the edits zero_heads or uniform_heads."
                )
            source = trace.source
            tables[site] = _add(tables.get(site), trace)
    facts = {} if source is None else source.describe()
    result = stamp(
        _make_dataset(tables), kind="numbers", command="hs.average_heads", **facts, data=fingerprint_examples(examples)
    )
    return stamp(result, n=len(examples), **{name: size for name, size in sizes.items() if size is not None})


def _add(sums: Sums | None, trace: Trace) -> Sums:
    assert trace.context is not None
    real = trace.queries.real
    pruned = [[head for pruned_layer, head in trace.pruned if pruned_layer == layer] for layer in trace.layers]
    contexts = zip(trace.context, pruned, strict=True)
    rows = (_sum_rows(context.index_fill(1, _index(heads, context), 0), real) for context, heads in contexts)
    count, batch = int(real.sum()), dict(zip(trace.layers, rows, strict=True))
    if sums is None:
        return count, batch
    return sums[0] + count, {layer: sums[1][layer] + more for layer, more in batch.items()}


def _index(heads: list[int], context: Tensor) -> Tensor:
    """Return the indices of pruned heads, which write nothing."""
    return torch.tensor(heads, dtype=torch.long, device=context.device)


def _sum_rows(context: Tensor, real: Tensor) -> npt.NDArray[np.float64]:
    """Return the sum over the real queries of all examples, `head value`; rows of padding may hold anything."""
    rows = context.double().masked_fill(~real.to(context.device)[:, None, :, None], 0)
    return np.asarray(rows.sum((0, 2)).cpu(), dtype=np.float64)


def _make_dataset(tables: dict[str, Sums]) -> xr.Dataset:
    sites, layers = list(tables), [layer for _, sums in tables.values() for layer in sums.values()]
    numbers = sorted({number for _, sums in tables.values() for number in sums})
    shape = (len(sites), len(numbers), max(map(len, layers)), max(layer.shape[1] for layer in layers))
    means = np.full(shape, np.nan)
    for site_index, (count, sums) in enumerate(tables.values()):
        for number, total in sums.items():
            means[site_index, numbers.index(number), : total.shape[0], : total.shape[1]] = total / count
    coords: dict[str, Iterable[Any]] = {
        "site": sites,
        "layer": numbers,
        "head": range(shape[2]),
        "value": range(shape[3]),
    }
    counts = [count for count, _ in tables.values()]
    return xr.Dataset(
        {"head_output": (("site", "layer", "head", "value"), means), "head_output_n": (("site",), counts)},
        {name: list(labels) for name, labels in coords.items()},
    )
