"""From what a user asks for to a job that can run."""

from collections.abc import Sequence
from typing import Any, Unpack

import psutil
import torch

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.spec import to_spec
from headscope.data.reading.read import read
from headscope.data.tagging.tag import tag_examples
from headscope.engine.edited import make_edit
from headscope.engine.model import Model, check_model
from headscope.measuring.job import MeasureJob, plan_name
from headscope.measuring.lengths import count_tokens
from headscope.measuring.observe import Observer
from headscope.measuring.options import MeasureOptions, split
from headscope.measuring.plan import BatchPlan, fingerprint_of, plan_of, sample_examples, shard_of
from headscope.measuring.settings import MeasureSettings, settings_of


def prepare_job(
    model: Model,
    data: Any,
    *,
    statistics: Any,
    lens: Any = "raw",
    against: Model | None = None,
    edit: Any = None,
    **options: Unpack[MeasureOptions],
) -> MeasureJob:
    """The job that the arguments of `hs.measure` ask for."""
    looking, choosing = split(options)
    edits = [] if edit is None else list(edit) if isinstance(edit, list | tuple) else [edit]
    return prepared(model, data, settings_of(lens, statistics, **looking), against=against, edits=edits, **choosing)


def prepared(
    model: Model,
    data: Any,
    settings: MeasureSettings,
    *,
    against: Model | None = None,
    edits: Sequence[Any] = (),
    shard: str | tuple[int, int] | None = None,
    limit: int | None = None,
    seed: int = 0,
    batch_size: int | None = None,
    tagger: str = "auto",
) -> MeasureJob:
    """Choose the examples, tag them where that is needed, and lay out the batches."""
    _check_models(model, against, settings)
    part, parts = shard_of(shard)
    examples = sample_examples(_examples(data), limit, seed)
    whole = fingerprint_of(examples)
    examples = examples[part - 1 :: parts]
    if not examples:
        raise InputError(f"Shard {part}/{parts} is empty: there are fewer examples than shards. Use fewer shards.")
    worded = settings.needs("tags") or settings.units != "tokens"  # tagging also says where words begin and end
    if worded:
        examples = tag_examples(examples, tagger)
    elif tagger != "auto":
        raise InputError(f"tagger={tagger!r} was given, but no statistic needs tags. Leave it out.")
    plan = plan_of(
        examples,
        [max(each, settings.pad_to or 0) for each in count_tokens(model, examples, settings.max_length)],
        shard=(part, parts),
        data=whole,
        size=batch_size,
        cells=_cells(model, settings),
        device=model.device.type,
    )
    observer = Observer(model, settings, against, tuple(make_edit(each) for each in edits))
    choice = {"limit": limit, "seed": seed, "tagger": tagger if worded else None}
    return MeasureJob(observer, plan, {**_facts(observer, plan), **choice})


def _cells(model: Model, settings: MeasureSettings) -> int:
    """How many cells of a map a batch may have, so that its maps take no more than an eighth of the memory there is.

    Where layers are measured one by one, one layer's maps are there at a time; otherwise all of them are.
    """
    config, near = model.network.config.get_text_config(), model.device.type == "cpu"
    layers = 1 if near and settings.streams else getattr(config, "num_hidden_layers", 12)
    maps = layers * getattr(config, "num_attention_heads", 12) * (2 + len(settings.seen))  # attention, and what is seen
    memory = psutil.virtual_memory().total if near else torch.cuda.get_device_properties(model.device).total_memory
    return int(memory) // 8 // (4 * maps)


def _facts(observer: Observer, plan: BatchPlan) -> dict[str, Any]:
    """What goes into the stamp, and what a run must have in common with the one it resumes."""
    model, against = observer.model, observer.against
    return {
        "model": model.spec,
        "weights_hash": model.weights_hash,
        "against": None if against is None else against.spec,
        "against_hash": None if against is None else against.weights_hash,
        "edits": [to_spec(each) for each in observer.edits],
        "data": plan.data,
        **observer.settings.described(),
        "signed_maps": "|w| / sum |w| for entropy, peak, distance and head_distance; masses signed and absolute",
        "site": observer.settings.site or ("encoder" if model.network.config.is_encoder_decoder else "self"),
        "shard": list(plan.shard),
        "n": len(plan.examples),
        "plan": plan_name(plan),
        "device": model.device.type,
        "dtype": str(model.network.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
    }


def _examples(data: Any) -> Sequence[Example]:
    if isinstance(data, list | tuple) and data and all(isinstance(each, Example) for each in data):
        return data
    return read(data)


def _check_models(model: Any, against: Any, settings: MeasureSettings) -> None:
    check_model(model)
    comparing = [to_spec(each) for each in settings.statistics if "against" in each.needs]
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
