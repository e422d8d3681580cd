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
from headscope.experiments.tuned import ABLATION_BATCH, hash_model_files, ignore_truncation
from headscope.results.hashes import fingerprint_examples
from headscope.training.find_task import find_task_of_head
from headscope_studies.sixteen_heads.measure import measure_curves, measure_heads

SITES = ("encoder", "decoder", "cross")
ALL = "all"
"""All sites together, which are pruned only."""


def measure_sites(
    folder: str,
    parallel: Any,
    out: Path,
    *,
    limit: int | None,
    seed: int,
    orders: int,
    sites: Sequence[str] = (ALL, *SITES),
    device: str | None = None,
    progress: Any = None,
    overwrite: bool = False,
) -> xr.Dataset:
    """Return what is measured at each site, along `task`; steps are stored as those of tasks are."""
    examples = sample_examples(read(parallel), limit, seed)
    steps = Steps(out / "translation", "translation", 4, progress)
    data = {"data": fingerprint_examples(examples), "random_orders": orders}
    steps.begin({**data, **hash_model_files(Path(folder))}, overwrite=overwrite)
    model = load(folder, device=device, dtype="float32")
    tables = [steps.keep(site, partial(_measure_site, model, examples, site, orders, steps)) for site in sites]
    joined = xr.concat(tables, "task", join="outer", combine_attrs="drop")
    facts = {"command": "headscope study sixteen-heads", "model": model.spec, "weights_hash": model.weights_hash}
    return stamp(joined, **facts, data=data["data"], n=len(examples), main=str(joined["metric"].values[0]))


def _measure_site(model: Model, examples: Any, site: str, orders: int, steps: Steps) -> xr.Dataset:
    steps.say(2, "pruning heads of all sites" if site == ALL else f"removing one head at a time, {site}")
    with ignore_truncation():
        options: dict[str, Any] = {"site": site, "progress": steps.bars}
        size = ABLATION_BATCH[model.device.type]
        if site == ALL:
            heads = measure_curves(model, examples, orders, {"batch_size": size, **options})
        else:
            ablation = ablate(model, examples, batch_size=size, **options)
            heads = measure_heads(model, examples, ablation, orders=orders, **options)
    more = {"n": ((), len(examples)), "metric": ((), find_task_of_head("auto", model.network, examples).main)}
    return heads.assign(more).expand_dims(task=[site])
