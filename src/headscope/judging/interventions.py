"""What the removal of an edge does: to the output of its attention block, to the last hidden state, to the score.

A batch runs once as it is, and what every block returns is kept. All edges of a layer are removed in passes over copies
of the batch, one edge in each row, that begin at the block of the layer: the blocks below return what they did, and so
do in that block all tokens but the query of the edge. Where that is not possible, every pass is a whole one.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headscope.core.errors import CaptureError
from headscope.core.progress import print_status
from headscope.core.trace import Trace
from headscope.engine.batch import Inputs
from headscope.engine.edited import edited
from headscope.engine.model import Model
from headscope.engine.readout import Readout, find_readout
from headscope.engine.recording.output_projection import find_projection
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
from headscope.engine.scorer import evaluating
from headscope.judging.removal import Remove, RemoveEdges
from headscope.judging.sampling import EdgeTable

TOKENS = {"cpu": 4_096, "cuda": 131_072}
"""Tokens of a pass, of all copies of a batch together."""

NUMBERS = 50_000_000
"""Numbers that the head of a model may return in a pass."""

CHECKED = 2
"""Examples of the first batch whose effects are compared with those of whole passes, layer by layer."""

ROUNDING = 2
"""Changes at the end of at most so many roundings, relative to what changes, are none: equal passes differ by that."""

EFFECTS = ("output", "hidden", "score", "score_signed")
"""What a removal changes: the attention block's output, the last hidden state, the score by size and with its sign."""


READS = ("first", "last", "target", "mean")
"""Tokens whose last hidden state is compared; "target" is where the score of the target is read."""


@dataclass(frozen=True)
class Seen:
    """What of a pass is compared with another pass."""

    hidden: Float[Tensor, "row hidden"]
    score: Float[Tensor, " row"] | None
    output: Float[Tensor, "row hidden"] | None = None  # of the attention block, at the query of the edge


@dataclass
class Interventions:
    """Removes edges from the attention of a model, batch by batch; counts what that costs."""

    model: Model
    site: str
    remove: Remove
    read: str  # auto, first, last or mean
    target: Any = None  # a PredictionTarget
    quiet: bool = True
    blocks: WatchedBlocks | None = None
    projections: Mapping[int, Any] = field(default_factory=dict)  # output projections by layer, where they are known
    resumes: bool | None = None  # None: not known before the first batch
    checked: set[int] = field(default_factory=set)  # layers whose first pass was compared with a whole one
    forwards: float = 0.0  # forward passes of single examples so far
    reads: Counter[str] = field(default_factory=Counter)  # of how many examples which token was read

    @contextmanager
    def open(self, inputs: Inputs, trace: Trace) -> Iterator["BatchPasses"]:
        """Run a batch as it is; in this block edges can be removed."""
        if self.resumes is None:
            self._prepare(trace)
        with torch.no_grad(), evaluating(self.model.network):
            yield self._run_base(inputs, trace)

    def give_up_resuming(self, reason: Exception) -> None:
        """Take whole passes from now on, and say why."""
        self.resumes = False
        if not self.quiet:
            print_status(f"Every edge takes a whole pass, because {reason}.")

    def _prepare(self, trace: Trace) -> None:
        """Find the blocks of the model, and the output projections of its attention."""
        try:
            self.blocks, self.resumes = find_blocks(self.model), True
        except ResumeError as reason:
            self.give_up_resuming(reason)
        for label, module in zip(trace.layers, trace.modules, strict=True):
            try:
                projection = find_projection(self.model, module)
            except CaptureError:
                continue
            if isinstance(projection, nn.Module):
                self.projections = {**self.projections, label: projection}

    def _run_base(self, inputs: Inputs, trace: Trace) -> "BatchPasses":
        """Return the passes of a batch, with the first of them, in which nothing is removed."""
        watched = Watched(self.projections, trace.site)
        unchanged = RemoveEdges.from_edges(trace.site, -1, self.remove, NO_EDGES, on_call=watched.notice)
        recording: Any = record_blocks(self.blocks) if self.resumes and self.blocks else nullcontext()
        with edited(self.model, unchanged), watched.watch(self.blocks), recording as recorded:
            output = self.run(inputs.tensors)
        if recorded is not None and not _returns_rows(recorded, len(inputs.examples)):
            self.give_up_resuming(ResumeError("its layers return something else than a row of states for each text"))
            self.blocks = None
            return self._run_base(inputs, trace)
        self.forwards += len(inputs.examples)
        readout = None if self.target is None else find_readout(self.model, inputs, output, self.target)
        tokens = inputs.source if inputs.target is None else inputs.target
        assert tokens is not None
        real = tokens.real.to(self.model.device)
        written = {layer: split_rows(output, len(real)) for layer, output in watched.outputs.items()}
        passes = BatchPasses(self, inputs, trace, recorded, readout, written, real)
        passes.find_token(output)
        logits = getattr(output, "logits", None)
        passes.numbers = logits.numel() if isinstance(logits, Tensor) else 0
        passes.base = passes.see(output, watched, copies=1)
        return passes

    def run(self, tensors: Mapping[str, Any]) -> Any:
        """Run the model; with its hidden states where its blocks are not known."""
        return self.model.network(**tensors, **({} if self.blocks else {"output_hidden_states": True}))


@contextmanager
def read_one_token(network: Any, token: Int[Tensor, " row"] | None, width: int) -> Iterator[None]:
    """Let the layer that predicts words do so for one token of each row: a vocabulary is many numbers for each token.

    What it returns for that token stands in the place of all.
    """
    layer = None if token is None else getattr(network, "get_output_embeddings", lambda: None)()
    if layer is None or token is None:
        yield
        return

    def select(_: Any, args: tuple[Any, ...]) -> Any:
        if len(args) != 1 or not isinstance(args[0], Tensor) or args[0].shape[:2] != (len(token), width):
            return None
        return (read_token(args[0], token)[:, None],)

    def expand(_: Any, __: Any, output: Any) -> Any:
        alone = isinstance(output, Tensor) and output.ndim == 3 and output.shape[:2] == (len(token), 1)
        return output.expand(-1, width, -1) if alone else None

    with layer.register_forward_pre_hook(select), layer.register_forward_hook(expand):
        yield


@dataclass
class Watched:
    """What output projections and the last block return in a pass."""

    projections: Mapping[int, Any]
    site: str
    only: int | None = None  # the layer whose projection is kept; None: all
    waiting: int | None = None  # the layer whose attention was computed and whose projection comes next
    outputs: dict[int, Tensor] = field(default_factory=dict)
    last: Any = None

    def notice(self, site: str, layer: int) -> None:
        """Take notice of the attention of a layer: its output projection is called next."""
        self.waiting = layer if site == self.site and self.only in (None, layer) else None

    @contextmanager
    def watch(self, blocks: WatchedBlocks | None) -> Iterator[None]:
        """Keep what they return in the passes of this block."""

        def keep_output(module: Any, _: Any, output: Tensor) -> None:
            if self.waiting is not None and self.projections.get(self.waiting) is module:
                self.outputs[self.waiting], self.waiting = output, None

        def keep_block(_: Any, __: Any, output: Any) -> None:
            self.last = output

        with ExitStack() as stack:
            for module in {id(module): module for module in self.projections.values()}.values():
                stack.enter_context(module.register_forward_hook(keep_output))
            for block in () if blocks is None else blocks.blocks:
                stack.enter_context(block.register_forward_hook(keep_block))
            yield


@dataclass
class BatchPasses:
    """The passes of one batch: the one in which nothing is removed, and those in which edges are."""

    owner: Interventions
    inputs: Inputs
    trace: Trace
    recorded: RecordedPass | None
    readout: Readout | None
    output: Mapping[int, Tensor]  # what output projections return, by layer
    real: Bool[Tensor, "batch token"]  # which tokens of the last block are no padding
    token: Int[Tensor, " batch"] | None = None  # whose last hidden state is compared; None: the mean over all tokens
    base: Seen = field(default_factory=lambda: Seen(torch.empty(0, 0), None))
    numbers: int = 0  # that the head of the model returns for one copy of the batch

    @property
    def size(self) -> int:
        """Number of examples."""
        return len(self.inputs.examples)

    def find_token(self, output: Any) -> None:
        """Find the token whose last hidden state is compared, and whether the score needs no other."""
        owner, real = self.owner, self.real
        places = torch.arange(real.shape[1], device=real.device)
        ends = {"first": (real * places.flip(0)).argmax(-1), "last": (real * places).argmax(-1)}
        if owner.read == "mean":
            owner.reads["mean"] += self.size
            return
        candidates = [ends[owner.read]] if owner.read in ends else list(ends.values())
        position = None if self.readout is None else self.readout.position
        if owner.read == "auto" and position is not None:
            candidates = [position]
        alone = self._find_sufficient(candidates, self._read_answer(output, 1))
        self.token = candidates[0] if len(candidates) == 1 else alone
        if self.recorded is not None and self.token is not None and (alone is not None or self.readout is None):
            self.recorded.read = self.token
        owner.reads["mean" if self.token is None else _name_token(self.token, ends)] += self.size

    def find_only_queries(self) -> dict[int, Tensor]:
        """Return the only queries, one for each example, of layers in which no other changes what is read."""
        if self.recorded is None or self.recorded.read is None:
            return {}
        last, site = len(self.recorded.outputs) - 1, self.trace.site
        layers = enumerate(self.trace.layers)
        return {
            label: self.recorded.read.cpu() for place, label in layers if self.recorded.find_block(site, place) == last
        }

    def _find_sufficient(self, candidates: list[Tensor], expected: Tensor | None) -> Tensor | None:
        """Return the candidate that the model's answer needs alone."""
        owner = self.owner
        if expected is None or not owner.resumes or owner.blocks is None or self.recorded is None:
            return None
        if not owner.blocks.projections:
            return None

        def compute() -> Tensor:
            answer = self._read_answer(owner.run(self.inputs.tensors), 1)
            assert answer is not None
            return answer

        try:
            return find_read_token(owner.blocks, self.recorded, candidates, compute, expected)
        except ResumeError as reason:
            owner.give_up_resuming(reason)
            self.recorded = None
            return None

    def _read_answer(self, output: Any, copies: int) -> Tensor | None:
        """Return the scores, else the classes that a model predicts for each text; None without either."""
        if self.readout is not None:
            return score_copies(self.readout, output, self.size, copies)
        logits = getattr(output, "logits", None)
        return logits if isinstance(logits, Tensor) and logits.ndim == 2 else None

    def see(self, output: Any, watched: Watched, copies: int, layer: int | None = None, query: Any = None) -> Seen:
        """Return what of a pass over copies of the batch is compared."""
        hidden = _read_hidden(output) if watched.last is None else get_hidden(watched.last)
        score = None if self.readout is None else score_copies(self.readout, output, self.size, copies)
        written = None if layer is None else watched.outputs.get(layer)
        attended = None if written is None else read_token(written, query)
        return Seen(self._pool(hidden, copies).double(), score, attended)

    def _pool(self, hidden: Float[Tensor, "row token hidden"], copies: int) -> Float[Tensor, "row hidden"]:
        """Return the hidden state of the token that is read, or the mean over all tokens."""
        if self.token is not None:
            return read_token(hidden, self.token.repeat(copies))
        real = self.real.to(hidden.device).repeat(copies, 1)[:, : hidden.shape[1], None]
        return torch.where(real, hidden, 0).sum(1) / real.sum(1)

    def remove(self, layer: int, edges: EdgeTable) -> dict[str, Float[Tensor, "edge batch"]]:
        """Return the effects of removing edges of a layer, one after the other; NaN where there is no edge."""
        limit = self._count_copies()
        parts = []
        for start in range(0, len(edges.key), limit):
            parts.append(self._remove_some(layer, edges, slice(start, start + limit)))
        effects = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        return {name: values.masked_fill(edges.key < 0, torch.nan) for name, values in effects.items()}

    def _count_copies(self) -> int:
        copies = TOKENS["cuda" if self.owner.model.device.type == "cuda" else "cpu"]
        copies //= int(self.inputs.tensors["input_ids"].numel())
        if self.numbers and (self.recorded is None or self.recorded.read is None):
            copies = min(copies, NUMBERS // self.numbers)
        return max(1, copies)

    def _remove_some(self, layer: int, edges: EdgeTable, some: slice) -> dict[str, Float[Tensor, "edge batch"]]:
        """Return the effects of some of the edges, in one pass, which resumes at their layer where that is possible."""
        table = {name: getattr(edges, name)[some] for name in ("head", "query", "key")}
        owner = self.owner
        if owner.resumes and self.recorded is not None:
            try:
                effects = self._compare(layer, table, resumes=True)
                if layer not in owner.checked:
                    self._check(layer, table, effects)
                    owner.checked.add(layer)
                return effects
            except ResumeError as reason:
                owner.give_up_resuming(reason)
        return self._compare(layer, table, resumes=False)

    def _check(self, layer: int, table: Mapping[str, Tensor], effects: Mapping[str, Tensor]) -> None:
        """Raise ResumeError unless a whole pass gives the same effects, to a rounding."""
        forwards, few = self.owner.forwards, self._select_few()
        whole = few._compare(layer, {name: column[:1, : few.size] for name, column in table.items()}, resumes=False)
        self.owner.forwards = forwards  # so that a run that was resumed counts the same
        half = self.owner.model.network.dtype in (torch.float16, torch.bfloat16)
        for name, expected in whole.items():
            scale = 1.0 if name != "output" else float(self.output[layer].abs().amax()) if layer in self.output else 1.0
            tolerance = (5e-2 if half else 1e-4) * scale
            close = torch.allclose(effects[name][:1, : few.size], expected, rtol=1e-2, atol=tolerance, equal_nan=True)
            if not close:
                raise ResumeError("a pass that begins at a layer gives other effects than a whole pass")

    def _select_few(self) -> "BatchPasses":
        """Return the passes of the first examples; of all where the score is a function of the whole batch's output."""
        size, few = self.size, min(CHECKED, self.size)
        if self.readout is not None and self.readout.function is not None:
            return self
        tensors = slice_output(dict(self.inputs.tensors), slice(few), size)
        return replace(
            self,
            inputs=replace(self.inputs, tensors=tensors, examples=self.inputs.examples[:few]),
            readout=None if self.readout is None else self.readout.select(list(range(few))),
            output={layer: slice_output(output, slice(few), size) for layer, output in self.output.items()},
            real=self.real[:few],
            token=None if self.token is None else self.token[:few],
            base=Seen(self.base.hidden[:few], None if self.base.score is None else self.base.score[:few]),
        )

    def _compare(self, layer: int, table: Mapping[str, Tensor], *, resumes: bool) -> dict[str, Tensor]:
        """Return the effects of one edge in each row, in one pass over copies of the batch."""
        owner, copies = self.owner, len(table["key"])
        edges = {name: column.reshape(-1).to(owner.model.device) for name, column in table.items()}
        watched = Watched(owner.projections, self.trace.site, only=layer)
        block, first, skipped = self._find_place(layer) if resumes else (0, 0, {})
        more: dict[str, Any] = {"skipped": skipped, "on_call": watched.notice}
        edit = RemoveEdges.from_edges(self.trace.site, layer, owner.remove, edges, **more)
        resumed: Any = nullcontext()
        alone: Any = nullcontext()
        if resumes:
            assert owner.blocks is not None
            assert self.recorded is not None
            if self.recorded.read is not None:
                width = get_hidden(self.recorded.outputs[-1]).shape[1]
                alone = read_one_token(owner.model.network, self.recorded.read.repeat(copies), width)
            changed = edges["query"] if owner.blocks.projections else None
            resumed = resume_at(owner.blocks, self.recorded, block, copies, first, changed)
        with edited(owner.model, edit), watched.watch(owner.blocks), resumed, alone:
            output = owner.run(repeat_batch(self.inputs.tensors, self.size, copies))
        blocks = len(self.recorded.outputs) if self.recorded is not None else 1
        owner.forwards += copies * self.size * (blocks - block) / blocks
        return self._subtract(self.see(output, watched, copies, layer, edges["query"]), layer, edges["query"], copies)

    def _find_place(self, layer: int) -> tuple[int, int, dict[str, int]]:
        """Return the block of a layer, which of its attention calls it is, and how many layers do not run."""
        assert self.recorded is not None
        place, sites = self.trace.layers.index(layer), find_sites(self.owner.model)
        block = self.recorded.find_block(self.trace.site, place)
        counts = self.recorded.count_calls(block)
        skipped = {site: count for site, count in counts.items() if not sites.is_numbered(site)}
        return block, self.recorded.find_call(self.trace.site, place), skipped

    def _subtract(self, seen: Seen, layer: int, query: Tensor, copies: int) -> dict[str, Tensor]:
        """Return the sizes of all changes, `edge batch`."""
        rows = copies * self.size
        hidden = self.base.hidden.repeat(copies, 1)
        effects = {"output": torch.full((rows,), torch.nan, dtype=torch.float64)}
        if seen.output is not None and layer in self.output:
            before = read_token(self.output[layer].repeat(copies, *(1,) * (self.output[layer].ndim - 1)), query)
            effects["output"] = (seen.output.double() - before.double()).norm(dim=-1)  # of one product: exact enough
        change = (seen.hidden - hidden).norm(dim=-1) / hidden.norm(dim=-1)
        effects["hidden"] = self._drop_rounding(change, torch.ones_like(change))
        if seen.score is not None and self.base.score is not None:
            before = self.base.score.repeat(copies)
            change = self._drop_rounding(before - seen.score, before.abs().clamp(min=1.0))
            effects |= {"score": change.abs(), "score_signed": change}  # positive: the edge speaks for the target
        return {name: values.reshape(copies, self.size).cpu() for name, values in effects.items()}

    def _drop_rounding(self, change: Float[Tensor, " row"], scale: Float[Tensor, " row"]) -> Float[Tensor, " row"]:
        """Return changes without those that are no larger than roundings of numbers of this scale."""
        eps = torch.finfo(self.owner.model.network.dtype).eps
        return change.masked_fill(change.abs() <= ROUNDING * eps * scale, 0.0)


NO_EDGES = {name: torch.zeros(0, dtype=torch.long) for name in ("head", "query", "key")}


def _returns_rows(recorded: RecordedPass, rows: int) -> bool:
    """Whether all attention is in blocks, and all blocks return hidden states of each row of a batch."""
    try:
        return not recorded.outside and all(len(get_hidden(output)) == rows for output in recorded.outputs)
    except ResumeError:
        return False


def repeat_batch(tensors: Mapping[str, Any], size: int, copies: int) -> dict[str, Any]:
    """Return the arguments of a forward for several copies of a batch."""
    return {
        name: value.repeat(copies, *(1,) * (value.ndim - 1))
        if isinstance(value, Tensor) and value.ndim and len(value) == size
        else value
        for name, value in tensors.items()
    }


def read_token(states: Float[Tensor, "row token hidden"], token: Int[Tensor, " row"]) -> Float[Tensor, "row hidden"]:
    """Return one token of each row; of states that hold a single token, that."""
    states = split_rows(states, len(token))
    if states.ndim != 3 or len(states) != len(token):
        raise ResumeError(
            f"a layer returns a tensor of shape {list(states.shape)}, where a row for each text is expected"
        )
    rows = torch.arange(len(token), device=states.device)
    return states[rows, token if states.shape[1] > 1 else torch.zeros_like(token)]


def split_rows(states: Tensor, rows: int) -> Tensor:
    """Return states with an axis of rows, where rows and tokens share one."""
    return states.reshape(rows, -1, states.shape[-1]) if states.ndim == 2 else states


def score_copies(readout: Readout, output: Any, size: int, copies: int) -> Float[Tensor, " row"]:
    """Return the scores of all copies of a batch."""
    if readout.function is None:
        return readout.select(list(range(size)) * copies).score(output)
    parts = [slice_output(output, slice(copy * size, (copy + 1) * size), copies * size) for copy in range(copies)]
    return torch.cat([readout.score(part) for part in parts])


def slice_output(output: Any, rows: slice, count: int) -> Any:
    """Return some rows of what a model returned for a number of rows."""

    def cut(value: Any) -> Any:
        return value[rows] if isinstance(value, Tensor) and value.ndim and len(value) == count else value

    if not isinstance(output, Mapping):
        return cut(output)
    output_class: Callable[..., Any] = type(output)
    return output_class(**{name: cut(value) for name, value in output.items()})


def _read_hidden(output: Any) -> Tensor:
    """Return the last hidden states from a model's output."""
    for name in ("decoder_hidden_states", "hidden_states"):
        if states := getattr(output, name, None):
            hidden: Tensor = states[-1]
            return hidden
    raise CaptureError(
        f"The last hidden states of this model were not found: its blocks are not known, and its output, a "
        f"{type(output).__name__}, holds none. Judge lenses by tokens: judge='tokens'."
    )


def _name_token(token: Tensor, ends: Mapping[str, Tensor]) -> str:
    """Return which token of each row is read."""
    return next((name for name, end in ends.items() if torch.equal(token, end)), "target")
