"""Gradients of a task's loss with respect to gates on the heads, one example at a time and one batch at a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.edit import Edit, LayerHeads
from headscope.data.tokenizing.masking import IGNORED
from headscope.engine.edited import edited
from headscope.engine.recording.sites import find_sites
from headscope.training.losses import compute_losses
from headscope.training.predict import plan_batches
from headscope.training.scoring import ScoringJob
from headscope.training.task import run_network

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
                gradients = _differentiate(job, batch, indices, site=site, edits=edits)
            yield gradients
    finally:
        network.train(was_training)


def _differentiate(
    job: ScoringJob, batch: Mapping[str, Tensor], indices: list[int], *, site: str, edits: Sequence[Edit]
) -> HeadGradients:
    gates = TokenGates(site)
    with edited(job.model, *edits, gates) as changed:
        output = run_network(job.task, changed.network, batch)
    losses, terms = compute_losses(job.task, output, batch)
    calls = [gates.gates[layer] for layer in sorted(gates.gates)]  # the gates of every call of a layer
    gradients = iter(torch.autograd.grad((losses / terms).sum(), [gate for layer in calls for gate in layer]))
    layers = [torch.cat([_by_example(next(gradients), len(indices)) for _ in layer], -1) for layer in calls]
    reads_target = find_sites(job.model).sides_of(site)[0] == "target"
    real = batch["labels"] != IGNORED if reads_target else batch["attention_mask"] != 0
    return HeadGradients(
        indices,
        signed=[layer.sum(-1).cpu() for layer in layers],
        absolute=[layer.abs().sum(-1).cpu() for layer in layers],
        tokens=real.flatten(1).sum(-1).double().cpu(),
        weights=(terms.double() / terms.double().sum()).cpu(),
    )


def _by_example(gradient: Float[Tensor, "row head query 1"], examples: int) -> Float[Tensor, "example head token"]:
    """Return the gradients of all tokens of an example together; each choice of a multiple choice has its own rows."""
    rows, heads = gradient.shape[:2]
    gathered = gradient.double().reshape(examples, rows // examples, heads, -1)
    return gathered.transpose(1, 2).flatten(2)
