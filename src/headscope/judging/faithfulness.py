"""Which lens is true: what lenses say of a model's attention beside what interventions do."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.core.errors import DataWarning, InputError, OutputError
from headscope.core.example import Example, example_coordinates, sample_examples, tabulate_examples
from headscope.core.options import takes_options
from headscope.core.prose import join_words
from headscope.core.provenance import stamp
from headscope.core.state import Rows, State, Total
from headscope.core.target import PredictionTarget, parse_target
from headscope.core.trace import Trace, select_labels
from headscope.engine.batch import Inputs, make_batches, read_inputs
from headscope.engine.capture import capture_batch, make_request
from headscope.engine.fingerprint import fingerprint_model
from headscope.engine.images import check_reads_texts
from headscope.engine.loss import mask_inputs
from headscope.engine.model import Model, check_model
from headscope.engine.recording.make_trace import Request
from headscope.engine.recording.sites import find_sites
from headscope.judging.checks import check_options, list_judges
from headscope.judging.edge_result import EdgeScoring
from headscope.judging.edges import EdgeJudge
from headscope.judging.interventions import READS, Interventions
from headscope.judging.lenses import (
    JudgedLens,
    check_units,
    describe_merging,
    describe_through,
    list_needs,
    make_lenses,
    view_all,
)
from headscope.judging.options import FaithfulnessOptions
from headscope.judging.sampling import SamplePlan
from headscope.judging.tokens import TokenJudge
from headscope.measuring.checkpoint import Checkpoint
from headscope.measuring.measure import check_out, run_batches
from headscope.measuring.observe import States
from headscope.measuring.plan import BatchPlan, PlannedBatch, count_tokens, max_cells, plan_batches
from headscope.results.hashes import fingerprint_data, hash_configs
from headscope.results.lock import lock_output
from headscope.results.store import save
from headscope.uncertainty.corrections import LEVEL
from headscope.version import __version__

MAX_EDGES = 1_000_000
"""Edges of one example; their numbers are unique up to this many."""

EDGE_OPTIONS = ("heads", "remove", "rows", "keys", "min_keys", "top", "threshold")
TOKEN_OPTIONS = ("replace", "order", "shares", "random_orders")


@takes_options(FaithfulnessOptions)
def faithfulness(options: FaithfulnessOptions) -> xr.Dataset:
    """Compare what lenses say of a model's attention with what interventions do.

    `judge="edges"` removes sampled edges, one at a time: the attention of a query to a key, in one head or in all heads
    of a layer. Along `effect` is what changes: "output", the norm of the change of the attention block's output;
    "hidden", that of the last hidden state, as a part of its norm; "score", the change of the score of `target`;
    "score_signed", the same with its sign. `rank_correlation` is Spearman's, of a lens's weights (by size) and the
    effects, within rows: keys of one query. `top_share` is the part of the effect of a row's sampled keys that the
    `top` largest by the lens have, beside `top_share_chance` of random order.

    `judge="pictures"` says how much of a lens's weight is on edges whose removal changes nothing:
    `mass_without_effect`, beside `edges_without_effect`. `judge="tokens"` replaces tokens in the order of a lens:
    `deletion` and `insertion` along `share`, the areas under them, `comprehensiveness` and `sufficiency` (DeYoung et
    al., 2020), beside the orders of blank-out and random ones.

    Each quantity has a 95 % interval over examples, its value by layer (`_layer`) and by example (`_rows`), and paired
    differences between lenses (`_difference`, along `lens` and `other_lens`) with p-values of a permutation test, raw
    and corrected (Holm). `forwards` is the cost in forward passes of the data.

    >>> texts = ["The cat sat down because it was tired.", "It rained all day, so they stayed at home."]
    >>> judged = hs.faithfulness(model, texts, lenses=["raw", "norm"], rows=1, progress=False)
    >>> judged["rank_correlation"].dims, judged["rank_correlation_layer"].dims
    (('lens', 'effect'), ('lens', 'effect', 'layer'))
    >>> judged["rank_correlation"].sel(lens="norm", effect="output").round(2).item()  # the norm lens, by definition
    1.0
    """
    mode: Any = {"resume": options.resume, "overwrite": options.overwrite}
    path = check_out(options.out, **mode)
    if path is not None and path.suffix == ".state":
        raise OutputError(f"{path.name} would be a shard, but hs.faithfulness has none. Give a name that ends in .nc.")
    with nullcontext() if path is None else lock_output(path):
        job = prepare_judging(options)
        saved = None if path is None else path.with_name(f"{path.name}.state")
        checkpoint = run_batches(job.plan, job.facts, job.judge_batches, saved, quiet=not options.progress, **mode)
        result = job.summarize(checkpoint)
        if path is not None and saved is not None:
            save(result, path, overwrite=options.overwrite)
            saved.unlink(missing_ok=True)
    return result


@dataclass(frozen=True)
class JudgingJob:
    """Everything read and checked, and the batches planned."""

    options: FaithfulnessOptions
    judges: tuple[str, ...]
    lenses: tuple[JudgedLens, ...]
    plan: BatchPlan
    target: PredictionTarget | None
    site: str
    facts: Mapping[str, Any]
    interventions: Interventions = field(repr=False)

    def judge_batches(self, batches: Iterable[PlannedBatch]) -> Iterator[States]:
        """Yield the states of batches of the plan, in order."""
        for batch in batches:
            before, reads = self.interventions.forwards, dict(self.interventions.reads)
            tables, labels = self._judge_batch(batch)
            spent = self.interventions.forwards - before
            read = [self.interventions.reads.get(name, 0) - reads.get(name, 0) for name in READS]
            leaves = {**tables, "cost": Total(np.array([spent])), "reads": Total(np.array(read))}
            yield {(self.judges[0], "faithfulness"): State("faithfulness", leaves, labels)}

    def _judge_batch(self, batch: PlannedBatch) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what was found in a batch, and the labels of its axes."""
        numbers, options = list(batch.positions), self.options
        inputs, trace = self._capture(batch.examples)
        labels: dict[str, Any] = {"layer": [int(label) for label in self._select_layers(trace)]}
        if self.judges == ("tokens",):
            tokens = self._make_token_judge()
            counts = tokens.count(inputs)
            curves = Rows.from_values(np.array(numbers), tokens(inputs, trace))
            return {"curves": curves, "counts": Rows.from_values(np.array(numbers), counts)}, labels
        plan = SamplePlan(
            options.rows, options.keys, options.min_keys, options.seed, options.heads == "all", tuple(labels["layer"])
        )
        maps = view_all(trace, self.lenses)
        check_units(maps, merged=plan.merged)
        if plan.merged:
            labels["merging"] = describe_merging(self.lenses, maps)
        table = EdgeJudge(self.interventions, self.lenses, plan)(inputs, trace, maps, numbers)
        return {"edges": Rows.from_values(_number_edges(table), table)}, labels

    def _capture(self, examples: Sequence[Example]) -> tuple[Inputs, Trace]:
        """Return the inputs of a batch, and its trace with all that the lenses need."""
        options = self.options
        sizes: Any = {"max_length": options.max_length, "pad_to": options.pad_to}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # truncated texts were reported with the plan
            (inputs,) = make_batches(options.model, examples, len(examples), **sizes)
        request, target = self._make_request(), self.target
        masked = inputs if target is None or target.kind != "loss" else mask_inputs(options.model, inputs, target.seed)
        trace = capture_batch(options.model, masked if request.target is None else inputs, request)
        if trace.other_layers:
            raise InputError(
                f"The maps of layers {list(trace.layers)} differ in shape from those of "
                f"{trace.describe_other_layers()}, so their edges are not judged together. Use a model whose layers "
                "attend among the same tokens."
            )
        self.interventions.forwards += len(examples)
        return masked, trace

    def _make_request(self) -> Request:
        needs = list_needs(self.lenses)
        target = self.target if any(lens.lens.needs_target for lens in self.lenses) else None
        return make_request(self.options.model, self.site, keep=tuple(needs - {"gradient"}), target=target)

    def _select_layers(self, trace: Trace) -> tuple[int, ...]:
        return tuple(sorted(select_labels(trace.layers, self.options.layers, "layer")))

    def _make_token_judge(self) -> TokenJudge:
        options = self.options
        assert self.target is not None
        return TokenJudge(
            self.interventions,
            self.lenses,
            self.target,
            options.replace,
            options.order == "signed",
            tuple(options.shares),
            options.random_orders,
            options.seed,
        )

    def summarize(self, checkpoint: Checkpoint) -> xr.Dataset:
        """Return the result, from what was found in all batches."""
        (state,) = checkpoint.states.values()
        options, count = self.options, len(self.plan.examples)
        leaves: dict[str, Any] = dict(state.leaves)
        if self.judges == ("tokens",):
            data = self._make_token_judge().summarize(leaves["curves"].values, leaves["counts"].values)
        else:
            names = [lens.name for lens in self.lenses]
            layers = [int(label) for label in state.labels["layer"]]
            scoring = EdgeScoring(names, layers, options.min_keys, options.top, options.threshold, self.judges)
            data = scoring(leaves["edges"].values, count)
            if options.keep_edges:
                data = data.merge(scoring.list_edges(leaves["edges"].values))
            if "merging" in state.labels:
                data = data.assign_coords(merging=("lens", list(state.labels["merging"])))
        forwards = float(leaves["cost"].sum[0]) / count
        data = data.assign(n=count, forwards=((), forwards, {"long_name": "cost in forward passes of the data"}))
        fields = tabulate_examples(list(self.plan.examples))
        coords = {name: column for name, column in fields.items() if name not in data.variables}
        reads = {name: int(number) for name, number in zip(READS, leaves["reads"].sum, strict=True) if number}
        facts = {**hash_configs(self.facts), "reads": reads, "level": LEVEL, "correction": "holm", "paired": True}
        data = data.assign_coords(example_coordinates(coords))
        return stamp(data, kind="faithfulness", command="hs.faithfulness", **facts)


def _number_edges(table: Any) -> Any:
    """Return a number for each edge, by which edges of all batches are sorted: that of its example comes first."""
    examples = table[:, 0].astype(np.int64)
    order = np.argsort(examples, kind="stable")
    counts = np.bincount(examples, minlength=1)
    within = np.empty(len(table), np.int64)
    within[order] = np.arange(len(table)) - np.repeat(np.cumsum(counts) - counts, counts)
    return examples * MAX_EDGES + within


def prepare_judging(options: FaithfulnessOptions) -> JudgingJob:
    """Read and check everything, and plan the batches."""
    check_model(options.model)
    check_options(options)
    model, judges = options.model, list_judges(options.judge)
    _check_network(model)
    lenses = make_lenses(options.lenses, merged=options.heads == "all", edges=judges != ("tokens",))
    target = None if options.target is None else parse_target(options.target)
    _check_target(target, judges, lenses)
    site = _find_site(model, options.site, judges)
    examples = sample_examples(read_inputs(model, options.data), options.limit, options.seed)
    cells = max_cells(model, 2 + len(lenses) + 4 * any(lens.lens.needs_target for lens in lenses))
    plan = BatchPlan(examples, partial(_split, options, cells), len(examples))
    interventions = Interventions(
        model,
        site,
        options.remove,  # type: ignore[arg-type]  # checked to be one of the choices
        options.read,
        target,
        quiet=not options.progress,
    )
    names = TOKEN_OPTIONS if judges == ("tokens",) else EDGE_OPTIONS
    facts = {
        "version": __version__,
        "model": model.spec,
        **fingerprint_model(model),
        "lenses": [lens.name for lens in lenses],
        "judge": list(judges),
        "target": None if target is None else target.spec,
        **{name: _to_plain(getattr(options, name)) for name in (*names, "read", "layers", "max_length", "pad_to")},
        **({"importance": describe_through(lenses)} if judges == ("tokens",) else {}),
        **fingerprint_data(examples),
        "n": len(examples),
        "plan": plan.fingerprint,
        "limit": options.limit,
        "seed": options.seed,
        "site": site,
        "device": model.device.type,
        "dtype": str(model.network.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
    }
    return JudgingJob(options, judges, lenses, plan, target, site, facts, interventions)


def _split(options: FaithfulnessOptions, cells: int, examples: Sequence[Example], first: int) -> list[PlannedBatch]:
    """Split the examples into batches; those of one batch have at most this number of cells of a map."""
    model = options.model
    lengths = [max(length, options.pad_to or 0) for length in count_tokens(model, examples, options.max_length)]
    device = model.device.type
    return plan_batches(examples, lengths, first=first, batch_size=options.batch_size, cells=cells, device=device)


def _to_plain(value: Any) -> Any:
    return [_to_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _check_network(model: Model) -> None:
    check_reads_texts(model, "edges are removed among the tokens of texts")
    class_name = type(model.network).__name__
    if class_name.endswith("ForMultipleChoice"):
        raise InputError(
            f"{class_name} compares several choices, but lenses are judged by what a model says of one text. Load the "
            "model without this head, or with one that classifies."
        )


def _check_target(target: PredictionTarget | None, judges: Sequence[str], lenses: Sequence[JudgedLens]) -> None:
    """Raise InputError where a target is missing, or does not fit the judge."""
    deriving = [lens.name for lens in lenses if lens.lens.needs_target]
    if target is None and deriving:
        raise InputError(
            f"The lens '{deriving[0]}' needs a prediction. Say which: target='predicted', in the shell --target."
        )
    if judges != ("tokens",):
        return
    if target is None:
        raise InputError(
            "Tokens are judged by the score of a prediction. Say which: target='predicted', in the shell --target."
        )
    if target.kind == "loss":
        raise InputError(
            "target='loss' is the loss of a whole task, but tokens are judged by one prediction. Give 'label' or "
            "'predicted'."
        )


def _find_site(model: Model, site: str | None, judges: Sequence[str]) -> str:
    """Return the main site, or the named one; raise InputError for one that cannot be judged."""
    sites = find_sites(model)
    names = list(dict.fromkeys(sites.table.values()))
    if site is not None and site not in names:
        raise InputError(f"The model has no attention site '{site}'. Its sites: {join_words(names)}.")
    chosen = sites.main if site is None else site
    if judges == ("tokens",) and sites.sides_of(chosen)[1] != "source":
        raise InputError(
            f"Tokens of the first text are replaced, but '{chosen}' attends to others. Give site='encoder' or 'cross'."
        )
    return chosen
