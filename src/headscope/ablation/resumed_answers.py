"""Answers of a model under many edits, each computed from the first edited layer on.

A batch runs once as it is, and what every layer returns is kept. Edits whose first edited layer is the same share a
pass: the batch is repeated, each copy has its own edit, and the layers below return what they returned before.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from headscope.core.edit import Edit, HeadEdit, LayerHeads
from headscope.data.tokenizing.encode import EncodedExample
from headscope.engine.edited import edited
from headscope.engine.recording.sites import find_sites
from headscope.engine.resuming.resume import (
    RecordedPass,
    ResumeError,
    find_blocks,
    find_read_token,
    get_hidden,
    record_blocks,
    resume_at,
)
from headscope.engine.resuming.watch import WatchedBlocks
from headscope.training.predict import predict
from headscope.training.scoring import ScoringJob
from headscope.training.task import Answers, Task, run_network

TOKENS = {"cpu": 8_192, "cuda": 131_072}
"""Tokens of a pass, of all copies of a batch together."""

LOGITS = 100_000_000
"""Numbers that a pass may return, of all copies together: those of language models are many."""

WHOLE = "whole"


def answer_edits(
    job: ScoringJob, edits: Sequence[HeadEdit], counts: Mapping[str, Mapping[int, int]], *, quiet: bool
) -> tuple[Answers, list[Answers]]:
    """Return the answers of the whole model, and those under each edit; raise ResumeError where that is not possible.

    `counts` are the numbers of heads by site and layer.
    """
    if type(job.task).answer is not Task.answer:
        raise ResumeError(f"the answers of the task '{job.task.name}' take more than one pass")
    for edit in edits:
        edit.check_heads(counts)
    answer = _AnswerBatch(job, edits, counts, find_blocks(job.model))
    sizes: dict[str, Any] = {"batch_size": job.batch_size, "pad_to": job.pad_to}
    predictions = predict(job.model.network, job.tokenizer, job.task, job.rows, **sizes, quiet=quiet, answer=answer)
    tables: dict[str, Answers] = {}
    for key, values in predictions.items():
        name, _, column = key.partition(" ")
        tables.setdefault(name, {})[column] = values
    return tables[WHOLE], [tables[str(index)] for index in range(len(edits))]


@dataclass
class _AnswerBatch:
    """Answers one batch under every edit."""

    job: ScoringJob
    edits: Sequence[HeadEdit]
    counts: Mapping[str, Mapping[int, int]]
    blocks: WatchedBlocks
    checked: bool = field(default=False)  # whether the first batch was compared with a pass through all layers

    def __call__(
        self, network: Any, tokenizer: Any, rows: Sequence[EncodedExample], batch: Mapping[str, Tensor]
    ) -> Mapping[str, Any]:
        """Return the answers by name of the edit and of the answer."""
        task = self.job.task
        with record_blocks(self.blocks) as recorded:
            output = run_network(task, network, batch)
        self._check_pass(recorded, batch)
        answers = {WHOLE: task.compute_answers(output, batch)}
        limit, recorded.read = _count_copies(network, output, batch), self._find_read(network, recorded, output, batch)
        del output
        for block, indices in self._group(recorded).items():
            for start in range(0, len(indices), limit):
                edit_indices = indices[start : start + limit]
                answers |= self._answer_copies(network, batch, recorded, block, edit_indices)
            if not self.checked:
                self._check_answers(answers[str(indices[0])], self.edits[indices[0]], network, tokenizer, rows, batch)
        self.checked = True
        return {f"{edit} {name}": values for edit, columns in answers.items() for name, values in columns.items()}

    def _find_read(
        self, network: Any, recorded: RecordedPass, output: Any, batch: Mapping[str, Tensor]
    ) -> Tensor | None:
        """Return the only token of each row that the head reads, the first or the last one, if it reads no other."""
        logits, ids = getattr(output, "logits", None), batch["input_ids"].flatten(0, -2)
        if not isinstance(logits, Tensor) or logits.ndim != 2 or not self.blocks.projections:
            return None
        real = batch.get("attention_mask", torch.ones_like(batch["input_ids"])).flatten(0, -2)
        last = (real * torch.arange(ids.shape[1], device=ids.device)).argmax(-1)
        return find_read_token(
            self.blocks,
            recorded,
            (torch.zeros_like(last), last),
            lambda: run_network(self.job.task, network, batch).logits,
            logits,
        )

    def _group(self, recorded: RecordedPass) -> dict[int, list[int]]:
        """Return the indices of the edits by the first block that they change."""
        groups: dict[int, list[int]] = {}
        for index, edit in enumerate(self.edits):
            layers = _list_layers(edit, self.counts)
            groups.setdefault(min(recorded.find_block(*layer) for layer in layers), []).append(index)
        return groups

    def _answer_copies(
        self, network: Any, batch: Mapping[str, Tensor], recorded: RecordedPass, block: int, edit_indices: Sequence[int]
    ) -> dict[str, Any]:
        """Return the answers of one pass over copies of the batch, one for each of the chosen edits."""
        size, task = len(batch["input_ids"]), self.job.task
        copied = {name: tensor.repeat(len(edit_indices), *(1,) * (tensor.ndim - 1)) for name, tensor in batch.items()}
        edits = [self.edits[index] for index in edit_indices]
        sites = find_sites(self.job.model)
        skipped = {site: n for site, n in recorded.count_calls(block).items() if not sites.is_numbered(site)}
        edit = CopiedEdits.from_edits(edits, skipped)
        layers = {layer for changed in edits for layer in _list_layers(changed, self.counts)}
        first = min(recorded.find_call(*layer) for layer in layers if recorded.find_block(*layer) == block)
        with edited(self.job.model, edit), resume_at(self.blocks, recorded, block, len(edit_indices), first):
            answers = task.compute_answers(run_network(task, network, copied), copied)
        return {
            str(index): {name: values[copy * size : (copy + 1) * size] for name, values in answers.items()}
            for copy, index in enumerate(edit_indices)
        }

    def _check_pass(self, recorded: RecordedPass, batch: Mapping[str, Tensor]) -> None:
        """Raise ResumeError unless all attention is in blocks that return the hidden states of a batch."""
        expected = {site: len(layers) for site, layers in self.counts.items()}
        if recorded.outside or dict(recorded.count_calls(len(recorded.calls))) != expected:
            raise ResumeError("some attention is computed outside the layers")
        ids = batch["input_ids"]
        for output in recorded.outputs:
            if len(get_hidden(output)) != ids.numel() // ids.shape[-1]:
                raise ResumeError("layers return something else than a row of hidden states for each text")

    def _check_answers(self, answers: Mapping[str, Any], edit: HeadEdit, *batch: Any) -> None:
        """Raise ResumeError unless the answers are those of a pass through all layers."""
        with edited(self.job.model, edit):
            expected = self.job.task.answer(*batch)
        for name, values in expected.items():
            if isinstance(values, Tensor) and values.is_floating_point() and not _are_close(answers[name], values):
                raise ResumeError("a pass that begins at a layer gives other answers than a whole pass")


def _are_close(first: Tensor, second: Tensor) -> bool:
    """Whether two runs differ by rounding only."""
    half = second.dtype in (torch.float16, torch.bfloat16)
    tolerance = (5e-2 if half else 1e-3) * float(second.abs().amax())
    return torch.allclose(first, second, rtol=0.0, atol=tolerance, equal_nan=True)


def _list_layers(edit: HeadEdit, counts: Mapping[str, Mapping[int, int]]) -> Iterator[tuple[str, int]]:
    """Yield site and place of the layers of an edit, in the order of calls; of one without any, the first."""
    selection = edit.selection
    layers = [
        (site, place)
        for site in selection.find_sites(list(counts))
        for place, (layer, heads) in enumerate(counts[site].items())
        if selection.select(site, layer, heads)
    ]
    return iter(layers or [(next(iter(counts)), 0)])


def _count_copies(network: Any, output: Any, batch: Mapping[str, Tensor]) -> int:
    """Return how many copies of a batch share a pass."""
    tokens = TOKENS["cuda" if network.device.type == "cuda" else "cpu"] // batch["input_ids"].numel()
    logits = getattr(output, "logits", None)
    return max(1, min(tokens, LOGITS // logits.numel() if isinstance(logits, Tensor) else tokens))


class CopiedEdits(Edit):
    """Applies one edit to each of several copies of a batch, in a pass that may begin at a later layer."""

    edits: Sequence[Edit]
    skipped: Mapping[str, int]  # the number of layers that do not run, at sites where the order of calls numbers them

    @classmethod
    def from_edits(cls, edits: Sequence[Edit], skipped: Mapping[str, int]) -> "CopiedEdits":
        """Return an edit that applies each of `edits` to its copy of the batch."""
        copied = cls()
        copied.edits, copied.skipped = edits, skipped
        return copied

    def check_sites(self, sites: Sequence[str]) -> None:
        """Raise InputError for an edit that does not fit the model."""
        for edit in self.edits:
            edit.check_sites(sites)

    def check_heads(self, heads: Any) -> None:
        """Accept any number of layers: some of them did not run."""

    def __call__(self, heads: LayerHeads) -> Tensor | None:
        """Return what the heads of all copies write; None where no edit changes anything."""
        layer = heads.layer + self.skipped.get(heads.site, 0)
        edits_layer = [edit.layers is None or layer in edit.layers for edit in self.edits]
        if not any(edits_layer):
            return None
        size = len(heads.context) // len(self.edits)
        copies = [select_rows(heads, slice(start, start + size), layer) for start in range(0, len(heads.context), size)]
        written = [
            edit(copy) if edits_this else None
            for edit, copy, edits_this in zip(self.edits, copies, edits_layer, strict=True)
        ]
        if all(copy is None for copy in written):
            return None
        contexts = zip(written, copies, strict=True)
        return torch.cat([copy.context if context is None else context for context, copy in contexts])


def select_rows(heads: LayerHeads, rows: slice, layer: int) -> LayerHeads:
    """Return some rows of a batch, at a layer with another number."""
    product, own = heads.product, heads.own_visible
    return replace(
        heads,
        layer=layer,
        attention=heads.attention[rows],
        values=heads.values[rows],
        context=heads.context[rows],
        visible=heads.visible[rows],
        product=None if product is None else product[rows],
        own_visible=None if own is None else own[rows],
    )
