"""The sites of an encoder-decoder model that translates: encoder and decoder self-attention, and cross-attention."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.ablation.ablate import ablate
from headscope.core.example import sample_examples
from headscope.core.provenance import stamp
from headscope.data.reading.read import read
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.experiments.steps import Steps
from headscope.experiments.tuned import hash_model_files, ignore_truncation
from headscope.results.hashes import fingerprint_examples
from headscope.training.find_task import find_task_of_head
from headscope.training.finetuning.folder import list_steps
from headscope_studies.sixteen_heads.claims import ALL
from headscope_studies.sixteen_heads.measure import LEARNED, follow_training, measure_curves, measure_heads

SITES = ("encoder", "decoder", "cross")

BATCH = {"cpu": 8, "cuda": 512}
"""Number of texts that are translated at once, by device."""


def measure_sites(
    folder: str,
    parallel: Any,
    out: Path,
    *,
    limit: int | None,
    seed: int,
    orders: int,
    learned: Any = None,
    sites: Sequence[str] = (ALL, *SITES),
    device: str | None = None,
    progress: Any = None,
    overwrite: bool = False,
) -> xr.Dataset:
    """Return what is measured at each site, along `task`; steps are stored as those of tasks are.

    Importance is estimated on `learned`, the parallel text that the model was trained on, if it is given.
    """
    examples = sample_examples(read(parallel), limit, seed)
    trained = [] if learned is None else sample_examples(read(learned), LEARNED, seed)
    steps = Steps(out / "translation", "translation", 4, progress)
    data = {"data": fingerprint_examples(examples), "random_orders": orders}
    data |= {"examples to learn from": fingerprint_examples(trained) if trained else None}
    steps.begin({**data, **hash_model_files(Path(folder))}, overwrite=overwrite)
    model = load(folder, device=device, dtype="float32")
    folders = list(list_steps(Path(folder)).values())
    measure = partial(_measure_site, model, examples, trained, folders, orders=orders, steps=steps)
    tables = [steps.keep(site, partial(measure, site)) for site in sites]
    joined = xr.concat(tables, "task", join="outer", combine_attrs="drop")
    facts = {"command": "headscope study sixteen-heads", "model": model.spec, "weights_hash": model.weights_hash}
    return stamp(joined, **facts, data=data["data"], n=len(examples), main=str(joined["metric"].values[0]))


def _measure_site(
    model: Model, examples: Any, learned: Any, folders: Sequence[Path], site: str, *, orders: int, steps: Steps
) -> xr.Dataset:
    steps.say(2, "pruning heads of all sites" if site == ALL else f"removing one head at a time, {site}")
    options: dict[str, Any] = {"site": site, "progress": steps.bars, "batch_size": BATCH[model.device.type]}
    with ignore_truncation():
        if site == ALL:
            heads = measure_curves(model, examples, orders, {**options, "importance_data": learned or None})
        else:
            ablation = ablate(model, examples, **options)
            heads = measure_heads(model, examples, ablation, learned=learned, orders=orders, **options)
            during = follow_training(folders, learned or examples, heads, device=model.device.type, **options)
            heads = heads.merge(during)
    more = {"n": ((), len(examples)), "learned": ((), len(learned))}
    metric = find_task_of_head("auto", model.network, examples).main
    return heads.assign(more).assign(metric=((), metric)).expand_dims(task=[site])
