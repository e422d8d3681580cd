"""How much each head matters for a task, from one backward pass per batch (Michel et al., 2019)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from headscope.ablation.options import HeadImportanceOptions
from headscope.core.edit import Edit, LayerHeads
from headscope.core.errors import InputError, unknown_name
from headscope.core.estimate import with_interval
from headscope.core.heads import HeadSelection
from headscope.core.options import takes_options
from headscope.core.progress import show_progress
from headscope.core.prose import join_words
from headscope.core.provenance import stamp
from headscope.data.tokenizing.masking import IGNORED
from headscope.engine.edited import describe_edits, edited, make_edits
from headscope.engine.model import Model
from headscope.engine.pruning.pruned_config import pruned_heads
from headscope.engine.recording.sites import find_sites
from headscope.training.losses import compute_losses
from headscope.training.metrics import DRAWS, SEED
from headscope.training.predict import plan_batches
from headscope.training.scoring import ScoringJob, make_scoring_job, prepare_scoring
from headscope.training.task import run_network
from headscope.uncertainty.bootstrap import percentile_interval, resample_counts

Table = Float[np.ndarray, "*draws layer head"]
UNITS = {"example": "loss", "token": "loss per token", "batch": "loss per token"}


SCORE_DRAW = (0, 0)
"""The random numbers of a masked language model are those of its score."""


@dataclass(frozen=True)
class TokenGates(Edit):
    """A gate of 1 for each example, head and query of a site; the gates of one pass are kept, by layer."""

    site: str
    gates: dict[int, list[Tensor]] = field(default_factory=dict, repr=False)

    def __call__(self, heads: LayerHeads) -> Float[Tensor, "batch head query value"] | None:
        """Return what the heads wrote, with the gates in the graph."""
        if heads.site != self.site:
            return None
        context = heads.context
        gate = torch.ones((*context.shape[:3], 1), dtype=context.dtype, device=context.device, requires_grad=True)
        self.gates.setdefault(heads.layer, []).append(gate)
        return context * gate


@dataclass(frozen=True)
class HeadGradients:
    """The gradients of one batch: those of each example's own loss, summed over its tokens."""

    indices: list[int]  # the examples
    signed: list[Float[Tensor, "batch head"]]  # by layer: the sum, which is the gradient of one gate per head
    absolute: list[Float[Tensor, "batch head"]]  # by layer: the sum of absolute values, token by token
    layers: list[int]
    tokens: Float[Tensor, " batch"]  # number of tokens that ask at the site
    weights: Float[Tensor, " batch"]  # of the examples' losses in the loss of the batch


def compute_head_gradients(job: ScoringJob, *, site: str, edits: Sequence[Edit] = ()) -> Iterator[HeadGradients]:
    """Yield the gradients of each batch, from one backward pass; batches are those of `hs.score`.

    Examples of a batch do not depend on one another, so that the gradient of the sum of their losses with respect to
    the gates of one example is that of its own loss.
    """
    network = job.model.network
    was_training = network.training
    network.eval()
    try:
        for indices in plan_batches(job.rows, job.batch_size):
            with torch.inference_mode(False), torch.enable_grad():
                batch = job.task.make_batch(job.tokenizer, [job.rows[index] for index in indices], SCORE_DRAW)
                batch = {name: tensor.to(job.model.device) for name, tensor in batch.items()}
                gradients = _differentiate_batch(job, batch, indices, site=site, edits=edits)
            yield gradients
    finally:
        network.train(was_training)


def _differentiate_batch(
    job: ScoringJob, batch: Mapping[str, Tensor], indices: list[int], *, site: str, edits: Sequence[Edit]
) -> HeadGradients:
    gates = TokenGates(site)
    with edited(job.model, *edits, gates) as changed:
        output = run_network(job.task, changed.network, batch)
    losses, terms = compute_losses(job.task, output, batch)
    calls = [gates.gates[layer] for layer in sorted(gates.gates)]  # the gates of every call of a layer
    gradients = iter(torch.autograd.grad((losses / terms).sum(), [gate for layer in calls for gate in layer]))
    tables = [torch.cat([_by_example(next(gradients), len(indices)) for _ in layer], -1) for layer in calls]
    reads_target = find_sites(job.model).sides_of(site)[0] == "target"
    real = batch["labels"] != IGNORED if reads_target else batch["attention_mask"] != 0
    return HeadGradients(
        indices,
        signed=[table.sum(-1).cpu() for table in tables],
        absolute=[table.abs().sum(-1).cpu() for table in tables],
        layers=sorted(gates.gates),
        tokens=real.flatten(1).sum(-1).double().cpu(),
        weights=(terms.double() / terms.double().sum()).cpu(),
    )


def _by_example(gradient: Float[Tensor, "row head query 1"], examples: int) -> Float[Tensor, "example head token"]:
    """Return the gradients of all tokens of an example together; each choice of a multiple choice has its own rows."""
    rows, heads = gradient.shape[:2]
    gathered = gradient.double().reshape(examples, rows // examples, heads, -1)
    return gathered.transpose(1, 2).flatten(2)


@takes_options(HeadImportanceOptions)
def head_importance(options: HeadImportanceOptions) -> xr.Dataset:
    """Return how much each head matters for a task: the size of the loss's gradient with respect to a gate on it.

    The gate multiplies what a head writes, and is 1. Its gradient, Attₕ · ∂L/∂Attₕ, estimates how the loss changes when
    the head is removed (Michel et al., 2019); all heads take one backward pass per batch. `head_importance`, along
    layer and head, has the percentile interval of 1,000 bootstrap draws of examples, or of batches.

    `reduction` says where absolute values are taken: "example", of each example's gradient, as in the paper's formula;
    "token", of the share of each token, as in its code; "batch", of the gradient of each batch's mean loss, as in
    `run_bertology.py` of transformers, which depends on `batch_size`. The first is a mean over examples, the others
    are divided by the number of tokens. Heads that an `edit` sets to zero have importance 0.

    >>> from transformers import BertForSequenceClassification
    >>> untrained = hs.load(BertForSequenceClassification(model.network.config), tokenizer=model.tokenizer)
    >>> hs.head_importance(untrained, [{"text": "Good.", "label": 1}], progress=False)["head_importance"].shape
    (6, 12)
    """
    reduction, normalize = options.reduction, options.normalize
    _check_options(reduction, normalize)
    job = make_scoring_job(options)
    where, edits = find_site(job.model, options.site), make_edits(options.edit)
    batches = _differentiate(job, where, edits, quiet=not options.progress)
    facts = {"reduction": reduction, "normalize": normalize, "site": where, **describe_edits(edits)}
    result = _without_pruned(_make_dataset(batches, reduction, normalize), job.model, where)
    return stamp(result, kind="head_importance", **job.describe("hs.head_importance"), **facts)


def compute_reductions(
    model: Any,
    data: Any,
    reductions: Sequence[str],
    *,
    site: str | None = None,
    batch_size: int = 32,
    max_length: int | None = None,
    progress: bool = True,
) -> xr.DataArray:
    """Return `head_importance` by several reductions, along `reduction`, from the same backward passes."""
    job = prepare_scoring(model, data, task="auto", batch_size=batch_size, max_length=max_length)
    where = find_site(job.model, site)
    batches = _differentiate(job, where, [], quiet=not progress)
    tables = [_without_pruned(_make_dataset(batches, name, None), job.model, where) for name in reductions]
    return xr.concat(
        [table["head_importance"].drop_attrs() for table in tables], xr.Variable("reduction", list(reductions))
    )


def _differentiate(job: ScoringJob, site: str, edits: Sequence[Edit], *, quiet: bool) -> list[HeadGradients]:
    batches = []
    with show_progress(len(job.rows), quiet=quiet) as advance:
        for batch in compute_head_gradients(job, site=site, edits=edits):
            batches.append(batch)
            advance(len(batch.indices))
    return batches


def find_site(model: Model, site: str | None) -> str:
    """Return the main site, or the named one; raise InputError for one that the model does not have."""
    sites = find_sites(model)
    site_names = list(dict.fromkeys(sites.table.values()))
    if site is not None and site not in site_names:
        raise InputError(f"The model has no attention site '{site}'. Its sites: {join_words(site_names)}.")
    return sites.main if site is None else site


def _without_pruned(result: xr.Dataset, model: Model, site: str) -> xr.Dataset:
    """Return NaN, of 0 examples, for heads that `hs.prune` removed."""
    if not (names := pruned_heads(model.network.config)):
        return result
    gone = np.zeros(result["head_importance"].shape, bool)
    selection = HeadSelection.parse(names)
    for row, layer in enumerate(result["layer"].values.tolist()):
        gone[row, selection.select(site, layer, gone.shape[1])] = True
    left = xr.DataArray(~gone, dims=("layer", "head"))
    return result.where(left).assign(head_importance_n=result["head_importance_n"].where(left, 0))


def _check_options(reduction: str, normalize: str | None) -> None:
    if reduction not in list(UNITS):
        raise unknown_name("reduction", reduction, list(UNITS))
    if normalize not in (None, "layer"):
        raise InputError(f"normalize={normalize!r} is not known. Give 'layer' for the L2 norm of each layer, or None.")


def _make_dataset(batches: Sequence[HeadGradients], reduction: str, normalize: str | None) -> xr.Dataset:
    sizes, counts = _reduce(batches, reduction)
    value = _divide(sizes.sum(0), counts.sum(), normalize)
    times = resample_counts(np.ones(len(sizes)), draws=DRAWS, seed=SEED).astype(float)
    if len(sizes) > 1:
        draws = _divide(np.tensordot(times, sizes, 1), (times @ counts)[:, None, None], normalize)
        low, high = percentile_interval(draws)
    else:
        low, high = np.full_like(value, np.nan), np.full_like(value, np.nan)
    over = "batches" if reduction == "batch" else "examples"
    dims, name = ("layer", "head"), "head_importance"
    units = "" if normalize else UNITS[reduction]
    interval = f"95 %, bootstrap of {over}" if len(sizes) > 1 else f"unknown: one of the {over} only"
    return xr.Dataset(
        {
            **with_interval(
                name, dims, (value, low, high), long_name="head importance", units=units, interval=interval
            ),
            "head_importance_n": (dims, np.where(np.isnan(value), 0, sum(len(batch.indices) for batch in batches))),
        },
        {"layer": batches[0].layers, "head": np.arange(value.shape[1])},
    )


def _reduce(
    batches: Sequence[HeadGradients], reduction: str
) -> tuple[Float[np.ndarray, "unit layer head"], Float[np.ndarray, " unit"]]:
    """Return absolute values of each unit, an example or a batch, and what their sum is divided by, unit by unit."""
    tokens = torch.cat([batch.tokens for batch in batches]).numpy()
    if reduction == "token":
        return np.concatenate([_stack(batch.absolute) for batch in batches]), tokens
    signed = [_stack(batch.signed) for batch in batches]
    if reduction == "example":
        return np.abs(np.concatenate(signed)), np.ones(len(tokens))
    weighted = [
        np.abs(np.tensordot(batch.weights.numpy(), gradients, 1))
        for batch, gradients in zip(batches, signed, strict=True)
    ]
    return np.stack(weighted), np.array([float(batch.tokens.sum()) for batch in batches])


def _stack(layers: Sequence[torch.Tensor]) -> Float[np.ndarray, "unit layer head"]:
    """Return the layers as one array; NaN for heads that a layer does not have."""
    heads = max(layer.shape[1] for layer in layers)
    padded = [torch.nn.functional.pad(layer, (0, heads - layer.shape[1]), value=torch.nan) for layer in layers]
    return torch.stack(padded, 1).numpy()


def _divide(sums: Table, count: Any, normalize: str | None) -> Table:
    """Return means, divided by the norm of their layer if asked for; a layer of zeros stays zero."""
    means: Table = sums / count
    if normalize is None:
        return means
    norm = np.sqrt(np.nansum(means**2, -1, keepdims=True))
    normalized: Table = means / np.where(norm > 0, norm, 1.0)
    return normalized
