"""What is measured: the surface, tokens of two tuned models by every measure, clusters, syntax and coreference."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from headscope.core.example import Example, sample_examples
from headscope.core.prose import count_noun
from headscope.core.provenance import stamp
from headscope.core.study import ProgressCallback, Results
from headscope.data.reading.read import read
from headscope.engine.fingerprint import fingerprint_model
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.experiments.relation_heads import read_relations
from headscope.experiments.steps import Steps
from headscope.experiments.tasks import TaskData, read_bundled, read_files
from headscope.experiments.tuned import ignore_truncation
from headscope.measuring.measure import measure
from headscope.measuring.probe import probe
from headscope.results.cluster import cluster
from headscope.results.hashes import fingerprint_examples
from headscope.version import __version__
from headscope_studies.what_heads_look_at import networks, no_op, surface

if TYPE_CHECKING:
    from headscope_studies.what_heads_look_at import WhatHeadsLookAt

LENSES = {name: no_op.MEASURES[name] for name in no_op.OF_WEIGHTS}
BUNDLED = {"limit": 48, "train_limit": 160, "probe_limit": 100, "min_count": 20}
"""Sizes with the bundled data, which take less than four minutes."""

MIN_COUNT = 100
"""Occurrences that a relation must have to be probed."""


def measure_all(
    study: "WhatHeadsLookAt",
    model: Any,
    out: Path,
    *,
    device: str | None,
    progress: ProgressCallback | None,
    overwrite: bool,
) -> Results:
    """Return the results of the study by name; every step is stored in a folder."""
    base = model if isinstance(model, Model) else load(model, device=device, dtype="float32")
    networks.check_encoder(base)
    name, inputs = read_inputs(study)
    task, trees = read_task(study), read_relations(study.treebank)
    facts = {
        "version": __version__,
        **fingerprint_model(base),
        "max_length": study.max_length,
        "seed": study.seed,
        "inputs": fingerprint_examples(inputs),
        "task": fingerprint_examples(task.dev, labels=True),
        "treebank": fingerprint_examples(trees),
        "train limit": study.train_limit,
        "epochs": study.epochs,
        "mlm": study.mlm,
        "tuned": study.tuned,
        "mlm text": str(study.mlm_text),
        "train": str(study.train),
        "coreference": str(study.coreference),
        "probe limit": study.probe_limit,
        "trained probes": study.trained_probes,
    }
    steps = Steps(out / "steps", name, 5, progress)
    steps.begin(facts, overwrite=overwrite)
    with ignore_truncation():
        steps.say(1, f"{count_noun(len(inputs), 'input')}: neighbours, special tokens, punctuation, entropy, distances")
        options: dict[str, Any] = {"max_length": study.max_length, "progress": steps.bars}
        clusters = steps.keep("clusters", partial(measure_clusters, base, inputs, **options))
        numbers = steps.keep("surface", partial(measure_surface, base, inputs, **options))
        tokens = [
            steps.keep(f"no_op_{seed}", partial(measure_tokens, study, base, inputs, task, steps, seed))
            for seed in range(study.seed, study.seed + study.seeds)
        ]
        steps.say(4, f"syntax of {count_noun(len(trees), 'sentence')}")
        probes = measure_syntax(study, base, trees, steps)
        steps.say(5, "coreference")
        probes |= {"coreference": steps.keep("coreference", partial(measure_coreference, study, base, steps))}
    numbers = surface.add_claimed(numbers, clusters).expand_dims(task=[name])
    joined = tokens[0] if study.seeds == 1 else xr.concat(tokens, "seed", combine_attrs="drop")
    stamped = {
        "command": "headscope study what-heads-look-at",
        "study": "what_heads_look_at",
        "model": base.spec,
        "weights_hash": base.weights_hash,
        "data": {name: facts["inputs"]},
        "n": len(inputs),
        "max_length": study.max_length,
        "seed": study.seed,
        "device": base.device.type,
    }
    results = {"numbers": numbers, "no_op": joined, "clusters": clusters}
    return {part: stamp(data.drop_attrs(deep=False), **stamped) for part, data in results.items()} | probes


def read_inputs(study: "WhatHeadsLookAt") -> tuple[str, list[Example]]:
    """Return the inputs, or those of the package, and what they are called."""
    bundled = study.text is None
    limit = study.limit or (BUNDLED["limit"] if bundled else 1000)
    examples = sample_examples(read("gap_halves:development" if bundled else study.text), limit, study.seed)
    named = isinstance(study.text, str | Path)
    return "GAP" if bundled else Path(str(study.text).rpartition("@")[2]).stem if named else "inputs", examples


def read_task(study: "WhatHeadsLookAt") -> TaskData:
    """Return the labelled data of the classifier."""
    if study.dev is None:
        return read_bundled()
    return read_files(study.dev, study.train, seed=study.seed, tuned=study.tuned is not None)


def measure_surface(model: Model, inputs: Sequence[Example], **options: Any) -> xr.Dataset:
    """Return what heads look at on the surface, raw, effective and norm-based, and as the published code counts."""
    options |= {"lens": list(LENSES.values()), "rows": True}
    rows, clark = (
        measure(model, list(inputs), statistics=list(names), **options).isel(site=0, drop=True)
        for names in (surface.STATISTICS, surface.CLARK)
    )
    return surface.summarise_surface(*(data.assign_coords(lens=list(LENSES)) for data in (rows, clark)))


def measure_clusters(model: Model, inputs: Sequence[Example], **options: Any) -> xr.Dataset:
    """Return the clusters of heads by the distances between their raw attention, and their distances from [CLS]."""
    statistics = ["head_distance:reduce=mean", "offsets:reach=1", "special_tokens:roles=cls+sep", "peak"]
    clusters = cluster(measure(model, list(inputs), lens="raw", statistics=statistics, **options))
    return clusters.assign(cls_distance=measure_from_cls(model, inputs, **options))


def measure_from_cls(model: Model, inputs: Sequence[Example], **options: Any) -> xr.DataArray:
    """Return the distances between heads in the row of [CLS] alone, raw attention."""
    statistics = ["head_distance:reduce=mean,rows=cls"]
    measured = measure(model, list(inputs), lens="raw", statistics=statistics, **options)
    return measured["head_distance"].isel(site=0, lens=0, drop=True)


def measure_tokens(
    study: "WhatHeadsLookAt", base: Model, inputs: Sequence[Example], task: TaskData, steps: Steps, seed: int
) -> xr.Dataset:
    """Return what one token of each group counts beside an ordinary one, along `task`: the model and two tuned ones."""
    options: dict[str, Any] = {"max_length": study.max_length, "progress": steps.bars}
    tuning = {
        "epochs": study.epochs,
        "max_length": study.max_length,
        "seed": seed,
        "limit": study.train_limit or BUNDLED["train_limit"],
    }
    steps.say(2, f"a masked language model, seed {seed}, and the gradient of its loss")
    texts = read("gap_halves:validation" if study.mlm_text is None else study.mlm_text)
    masked = networks.tune_masked(base, study.mlm, texts, out=steps.folder / f"masked_{seed}", **tuning)
    parts = [networks.compare_pretrained(base, inputs, **options)]
    parts.append(networks.compare_masked(masked, inputs, seed=seed, **options))
    steps.say(3, f"a classifier of {task.name}, seed {seed}, and the gradient of its loss")
    out, dev = steps.folder / f"classifier_{seed}", sample_examples(task.dev, len(inputs), study.seed)
    tuned = networks.tune_classifier(base, study.tuned, task.train, out=out, **tuning)
    parts.append(networks.compare_classifier(tuned, dev, f"{task.name} ({task.kind.rstrip('?')})", **options))
    return networks.join_networks(*parts)


def measure_syntax(study: "WhatHeadsLookAt", base: Model, trees: Sequence[Example], steps: Steps) -> dict[str, Any]:
    """Return the best head of every relation, and the trained probes where they are asked for."""
    least = BUNDLED["min_count"] if study.treebank is None else MIN_COUNT
    options: dict[str, Any] = {
        "lens": "raw",
        "seed": study.seed,
        "max_length": study.max_length,
        "progress": steps.bars,
    }
    names = ["dependency", *(["attention", "attention_and_words"] if study.trained_probes else [])]
    return {
        name: steps.keep(name, partial(probe, base, list(trees), f"{name}:min_count={least}", **options))
        for name in names
    }


def measure_coreference(study: "WhatHeadsLookAt", base: Model, steps: Steps) -> xr.Dataset:
    """Return how often one head finds the antecedent, beside simple baselines."""
    bundled = study.coreference is None
    limit = study.probe_limit or (BUNDLED["probe_limit"] if bundled else None)
    data = "gap:validation" if bundled else study.coreference
    options: dict[str, Any] = {"lens": "raw", "limit": limit, "seed": study.seed, "progress": steps.bars}
    return probe(base, data, "coreference", **options)
