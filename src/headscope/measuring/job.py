"""A measurement that is ready to run: everything is read and checked, and the batches are planned."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example, sample_examples, tabulate_examples
from headscope.core.spec import to_spec
from headscope.data.tagging.tag import tag_examples
from headscope.engine.batch import Inputs, make_batches, read_inputs
from headscope.engine.edited import describe_edits, make_edits
from headscope.engine.fingerprint import fingerprint_model
from headscope.engine.images import check_reads_texts
from headscope.engine.model import Model, check_model
from headscope.engine.recording.sites import find_sites
from headscope.measuring.long_texts import check_blocks
from headscope.measuring.observe import Observer, States
from headscope.measuring.plan import BatchPlan, count_tokens, make_plan, max_cells, parse_shard
from headscope.measuring.settings import MeasureSettings
from headscope.results.hashes import fingerprint_columns, fingerprint_examples, fingerprint_labels
from headscope.version import __version__


@dataclass(frozen=True)
class MeasureJob:
    """An observer, the plan of its batches, and the facts of the run."""

    observer: Observer
    plan: BatchPlan
    facts: dict[str, Any]

    def observe(self, start: int = 0, stop: int | None = None) -> Iterator[States]:
        """Yield the states of the plan's batches from `start` on, in order."""
        return observe_batches(self.observer, map(self.plan.batch, range(start, stop or len(self.plan.batches))))

    def tabulate(self) -> dict[str, list[Any]]:
        """Return the fields of the examples with their row numbers in the whole data; nothing unless rows=True."""
        if not self.observer.settings.rows:
            return {}
        shard, shards = self.facts["shard"]
        rows = range(shard - 1, shard - 1 + shards * len(self.plan.examples), shards)
        return {"row": list(rows), **tabulate_examples(self.plan.examples)}


def prepare_job(
    model: Model, data: Any, settings: MeasureSettings, *, against: Model | None = None, edit: Any = None
) -> MeasureJob:
    """Select the examples, tag them where needed, and plan the batches."""
    _check_models(model, against, settings)
    shard, shards = parse_shard(settings.shard)
    examples = sample_examples(read_inputs(model, data), settings.limit, settings.seed)
    data_facts = {
        "data": fingerprint_examples(examples),
        "labels": fingerprint_labels(examples),
        "columns": fingerprint_columns(examples),
    }
    examples = examples[shard - 1 :: shards]
    if not examples:
        raise InputError(f"Shard {shard}/{shards} is empty: there are fewer examples than shards. Use fewer shards.")
    if settings.uses_words:
        check_reads_texts(model, "words are parts of texts, and one of the statistics or units needs them")
        examples = tag_examples(examples, settings.tagger)
    elif settings.tagger != "auto":
        raise InputError(f"tagger={settings.tagger!r} was given, but no statistic needs tags. Leave it out.")
    lengths = [max(length, settings.pad_to or 0) for length in count_tokens(model, examples, settings.max_length)]
    observer = Observer(model, settings, against, make_edits(edit))
    cells = _max_cells(observer)
    observer = replace(observer, max_cells=cells)
    plan = make_plan(examples, lengths, batch_size=settings.batch_size, cells=cells, device=model.device.type)
    check_blocks(observer, plan)
    facts = {
        **_model_facts(observer),
        **data_facts,
        "shard": [shard, shards],
        "n": len(examples),
        "plan": plan.fingerprint,
        "limit": settings.limit,
        "seed": settings.seed,
        "tagger": settings.tagger if settings.uses_words else None,
    }
    return MeasureJob(observer, plan, facts)


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
