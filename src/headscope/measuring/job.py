"""A measurement that is ready to run: everything is read and checked, and the batches are planned."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from headscope.core.errors import DataWarning, InputError
from headscope.core.example import (
    Example,
    Examples,
    ExampleStream,
    sample_examples,
    sample_stream,
    tabulate_examples,
)
from headscope.core.progress import show_progress
from headscope.core.spec import to_spec
from headscope.data.reading.options import ReadOptions
from headscope.data.reading.scan import can_scan, open_stream
from headscope.data.tagging.tag import tag_examples
from headscope.engine.batch import Inputs, make_batches, read_inputs
from headscope.engine.edited import describe_edits, make_edits
from headscope.engine.fingerprint import fingerprint_model
from headscope.engine.images import check_reads_texts, reads_images
from headscope.engine.main_input import check_is_text
from headscope.engine.model import Model, check_model
from headscope.engine.recording.sites import find_sites
from headscope.engine.sound import reads_sounds
from headscope.measuring.long_texts import check_blocks
from headscope.measuring.observe import Observer, States
from headscope.measuring.plan import BatchPlan, PlannedBatch, count_tokens, max_cells, parse_shard, plan_batches
from headscope.measuring.settings import MeasureSettings
from headscope.results.hashes import fingerprint_data
from headscope.version import __version__


@dataclass(frozen=True)
class MeasureJob:
    """An observer, the plan of its batches, and the facts of the run."""

    observer: Observer
    plan: BatchPlan
    facts: dict[str, Any]

    def observe(self, batches: Iterable[PlannedBatch]) -> Iterator[States]:
        """Yield the states of batches of the plan, in order."""
        return observe_batches(self.observer, (batch.examples for batch in batches))

    def tabulate(self) -> dict[str, list[Any]]:
        """Return the fields of the examples with their row numbers in the whole data; nothing unless rows=True."""
        if not self.observer.settings.rows:
            return {}
        shard, shards = self.facts["shard"]
        rows = range(shard - 1, shard - 1 + shards * len(self.plan.examples), shards)
        return {"row": list(rows), **tabulate_examples(list(self.plan.examples))}


def prepare_job(
    model: Model,
    data: Any,
    settings: MeasureSettings,
    *,
    against: Model | None = None,
    edit: Any = None,
    quiet: bool = True,
) -> MeasureJob:
    """Select the examples, and plan the batches; `quiet` hides how many rows of a file were counted."""
    _check_models(model, against, settings)
    if settings.uses_words:
        check_reads_texts(model, "words are parts of texts, and one of the statistics or units needs them")
    elif settings.tagger != "auto":
        raise InputError(f"tagger={settings.tagger!r} was given, but no statistic needs tags. Leave it out.")
    shard, shards = parse_shard(settings.shard)
    examples = open_sample(model, data, settings.limit, settings.seed, quiet=quiet)
    with show_progress(len(examples), unit="rows checked", quiet=quiet or isinstance(examples, list)) as advance:
        data_facts = fingerprint_data(examples, advance)
    examples = examples[shard - 1 :: shards]
    if not len(examples):
        raise InputError(f"Shard {shard}/{shards} is empty: there are fewer examples than shards. Use fewer shards.")
    observer = Observer(model, settings, against, make_edits(edit))
    observer = replace(observer, max_cells=_max_cells(observer))
    plan = BatchPlan(examples, _Split(observer, len(examples)), settings.window)
    facts = {
        **_model_facts(observer),
        **data_facts,
        "shard": [shard, shards],
        "n": len(examples),
        "window": settings.window,
        "plan": plan.fingerprint,
        "limit": settings.limit,
        "seed": settings.seed,
        "tagger": settings.tagger if settings.uses_words else None,
    }
    return MeasureJob(observer, plan, facts)


def open_sample(model: Model, data: Any, limit: int | None, seed: int, *, quiet: bool) -> Examples:
    """Return the examples of a run: a stream of those in a file or a dataset, otherwise a list."""
    if reads_images(model) or reads_sounds(model) or not (isinstance(data, ExampleStream) or can_scan(data)):
        return sample_examples(read_inputs(model, data), limit, seed)
    check_is_text(model, data)
    with show_progress(None, unit="rows counted", quiet=quiet) as advance:
        return sample_stream(open_stream(ReadOptions(data), advance), limit, seed)


class _Split:
    """Splits a window into batches: its examples are tagged where needed, and their tokens counted.

    What there is to say of texts is said of the first window with any.
    """

    def __init__(self, observer: Observer, count: int) -> None:
        self.observer, self.count, self.warned = observer, count, False

    def __call__(self, window: Sequence[Example], first: int) -> list[PlannedBatch]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DataWarning)
            batches = self._split(window, first)
        for warning in caught:
            if not issubclass(warning.category, DataWarning):
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
            elif not self.warned:
                warnings.warn(self._place(str(warning.message), first, len(window)), DataWarning, stacklevel=4)
        self.warned |= any(issubclass(warning.category, DataWarning) for warning in caught)
        return batches

    def _split(self, window: Sequence[Example], first: int) -> list[PlannedBatch]:
        model, settings = self.observer.model, self.observer.settings
        examples = tag_examples(window, settings.tagger) if settings.uses_words else window
        lengths = [max(length, settings.pad_to or 0) for length in count_tokens(model, examples, settings.max_length)]
        batches = plan_batches(
            examples,
            lengths,
            first=first,
            batch_size=settings.batch_size,
            cells=self.observer.max_cells,
            device=model.device.type,
        )
        check_blocks(self.observer, batches)
        return batches

    def _place(self, text: str, first: int, count: int) -> str:
        if count == self.count:
            return text
        return f"Examples {first + 1:,} to {first + count:,} of {self.count:,}: {text} Later ones are not reported."


def observe_batches(observer: Observer, batches: Iterable[tuple[Example, ...]]) -> Iterator[States]:
    """Yield the states of one batch after another."""
    return observer(make_inputs(observer, examples) for examples in batches)


def make_inputs(observer: Observer, examples: tuple[Example, ...]) -> tuple[Inputs, Inputs | None]:
    """Return one batch for each of the two models, which must read the same tokens."""
    sizes = {name: getattr(observer.settings, name) for name in ("max_length", "pad_to", "pad_positions")}
    models = [model for model in (observer.model, observer.against) if model is not None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # truncated texts were reported with the plan
        inputs, *rest = (next(make_batches(model, examples, len(examples), **sizes)) for model in models)
    if not rest:
        return inputs, None
    (second,) = rest
    name = observer.model.network.main_input_name
    if name not in second.tensors or not torch.equal(inputs.tensors[name].cpu(), second.tensors[name].cpu()):
        raise InputError(
            f"The two models read different tokens, for instance in example '{inputs.examples[0].id}': their "
            "tokenizers differ. Compare models that share a tokenizer."
        )
    return inputs, second


def _max_cells(observer: Observer) -> int:
    """Return how many cells of one map a batch may have.

    Where layers are measured one by one, only one layer's maps are in memory; otherwise all of them are.
    """
    one_by_one = observer.streams_always and observer.settings.streams
    return max_cells(observer.model, observer.settings.copies, layers=1 if one_by_one else None)


def _model_facts(observer: Observer) -> dict[str, Any]:
    """Return the models and settings as stamped, and as compared with those of a run to resume."""
    model, against = observer.model, observer.against
    return {
        "version": __version__,
        "model": model.spec,
        **fingerprint_model(model),
        "against": None if against is None else against.spec,
        **({} if against is None else {f"against_{name}": fact for name, fact in fingerprint_model(against).items()}),
        **describe_edits(observer.edits),
        **observer.settings.to_facts(),
        "signed_maps": "|w| / sum |w| for entropy, peak, distance and head_distance; masses signed and absolute",
        "site": observer.settings.site or find_sites(model).main,
        "device": model.device.type,
        "dtype": str(model.network.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
    }


def _check_models(model: Any, against: Any, settings: MeasureSettings) -> None:
    check_model(model)
    comparing = [to_spec(statistic) for statistic in settings.statistics if "against" in statistic.needs]
    if comparing and against is None:
        raise InputError(
            f"The statistic '{comparing[0]}' compares two models, but only one was given. Add against=hs.load(…), in "
            "the shell --against."
        )
    if against is not None:
        check_model(against)
        if not comparing:
            raise InputError(
                "A second model was given with against, but none of the statistics compares two. Add 'similarity', or "
                "leave it out."
            )
