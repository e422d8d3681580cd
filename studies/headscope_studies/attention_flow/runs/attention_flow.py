"""Run the study of attention rollout and flow, for docs/attention_flow.md.

First the sentences and the paper's model, by two other scripts; then one run for each model and task, which may be
parallel; then the pronouns of Figure 4; then all results are joined in a few files:

    python runs/agreement_data.py --treebank EWT --text WIKITEXT --test AGREEMENT --out DATA
    python runs/agreement_models.py --data DATA --out MODELS
    python runs/attention_flow.py run agreement --model paper --data DATA --models MODELS --work WORK --out FOUND
    python runs/attention_flow.py run templates --model paper --models MODELS --work WORK --out FOUND
    python runs/attention_flow.py run agreement --model e5-small --data DATA --work WORK --out FOUND
    python runs/attention_flow.py run templates --model e5-small --work WORK --out FOUND
    python runs/attention_flow.py run sst2 --model e5-small --glue GLUE --work WORK --out FOUND
    python runs/attention_flow.py collect --glue GLUE --models MODELS --work WORK --out FOUND
    python runs/attention_flow.py relate FOUND
    python runs/attention_flow.py appendix --data DATA --models MODELS --out FOUND
    python runs/attention_flow.py pronouns --model MLM --gap GAP.tsv --winogender SENTENCES.tsv --out FOUND
    python runs/attention_flow.py join FOUND --out results

`paper` is the paper's model with three seeds, as agreement_models.py trained it; other models are tuned here with
three seeds, for agreement and for sst2. The templates are studied with the models for agreement. `collect` keeps what
the authors' script for SST-2 reads of each input, of models tuned as for sst2, and `relate` computes its
correlations; only that needs a compiler. MLM is a masked language model that docs/runs/finetune.py trained. Runs
write small files of plain arrays into FOUND, and need neither HDF5 nor any dataset library. WORK holds the tuned
models and every step; a stopped run is resumed from it.
"""

import argparse
import csv
import json
import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

import headscope as hs
from headscope.core.estimate import with_interval
from headscope.core.example import sample_examples
from headscope.core.lens import Lens
from headscope.core.maps import Maps
from headscope.core.provenance import drop_attrs, read_provenance, stamp
from headscope.core.tokens import ROLES
from headscope.core.trace import Trace
from headscope.engine.batch import check_max_length
from headscope.experiments.runs import add_join, to_single
from headscope.experiments.seeds import join_seeds
from headscope.experiments.steps import print_progress
from headscope.experiments.study import stamp_tasks
from headscope.experiments.tuned import describe_tuning
from headscope.flow.graph import residual_graph
from headscope.flow.solver import flow_map
from headscope.results.hashes import fingerprint, fingerprint_examples
from headscope.results.npz import read_npz, write_npz
from headscope.uncertainty.intervals import wilson_interval
from headscope_studies.attention_flow import AttentionFlow
from headscope_studies.attention_flow.appendix import FIELD, SPECIAL, compare_heads, compare_lenses, show_sentences
from headscope_studies.attention_flow.masked_words import MASK, measure_masked, measure_sentences
from headscope_studies.attention_flow.measure import join_script, predict
from headscope_studies.attention_flow.paper import INPUTS, PRONOUNS, SHOWN
from headscope_studies.attention_flow.published import Reading, read_inputs, relate

PAPER = "paper"
PARTS = ("numbers", "shown", "maps")
ORDER = ("agreement", "templates", "sst2")
QUOTED = ("templates",)  # tasks whose sentences may be published: the licences of the others do not allow it
TUNING: dict[str, dict[str, Any]] = {
    "agreement": {"epochs": 3, "batch_size": 32, "learning_rate": 5e-5, "warmup": 0.06},
    "sst2": {"epochs": 1, "batch_size": 32, "learning_rate": 5e-5, "warmup": 0.06},
}
FORMS = {
    "she": ("he", "she"),
    "he": ("he", "she"),
    "his": ("his", "her"),
    "her": ("his", "her"),
    "him": ("him", "her"),
    "hers": ("his", "hers"),
}
"""The masculine and the feminine form of each pronoun; "her" counts as the possessive, as in the paper's sentences."""


def run(chosen: argparse.Namespace) -> None:
    """Study one model on one task, seed by seed."""
    warnings.simplefilter("ignore", hs.DataWarning)
    label = Path(chosen.model or "all-MiniLM-L6-v2").name
    every: dict[str, list[xr.Dataset]] = {}
    for seed in chosen.seeds:
        results = study_seed(chosen, label, seed)
        for part in PARTS:
            every.setdefault(part, []).append(stamp(results[part], model=label))
    for part, tables in every.items():
        whole = tables[0] if part == "maps" else join_seeds([drop_attrs(table) for table in tables])
        write_npz(stamp(whole, **read_provenance(tables[0])), chosen.out / f"{label}.{chosen.task}.{part}.npz")


def study_seed(chosen: argparse.Namespace, label: str, seed: int) -> Any:
    """Return the results of one seed, along `task` and `seed`."""
    work = chosen.work / f"{label}-{chosen.task}-{seed}"
    options: dict[str, Any] = {"seed": 0, "limit": chosen.limit}
    if chosen.task == "sst2":
        options |= {"data": str(chosen.glue), "tasks": ("sst2",)}
    elif chosen.task == "templates":
        options["dev"] = hs.read(f"agreement_templates:test:{INPUTS}")
    else:
        options["dev"] = read_rows(chosen.data / "test.jsonl")
    model: Any = chosen.model
    if label == PAPER or chosen.task == "templates":
        tuned = find_models(chosen, label, seed)
        model, options["tuned"] = tuned, str(tuned)
    else:
        options |= {**TUNING[chosen.task], "seed": seed}
        options |= {"train": read_rows(chosen.data / "train.jsonl")} if chosen.task == "agreement" else {}
    results = AttentionFlow(**options).run(model, work, device=chosen.device, progress=print_progress)
    name = "SST-2" if chosen.task == "sst2" else chosen.task
    return {
        part: data.assign_coords(task=[name]).expand_dims(seed=[seed], axis=1) if "task" in data.dims else data
        for part, data in results.items()
    }


def find_models(chosen: argparse.Namespace, label: str, seed: int) -> Path:
    """Return the folder of the model for agreement that was trained with this seed."""
    if label == PAPER:
        return Path(chosen.models) / f"paper-{seed}"
    (folder,) = chosen.work.glob(f"{label}-agreement-{seed}/tasks/*/model")
    return Path(folder)


def collect(chosen: argparse.Namespace) -> None:
    """Tune a model on SST-2, and keep what the authors' script reads of each input of the dev set, seed by seed."""
    warnings.simplefilter("ignore", hs.DataWarning)
    label = Path(chosen.model or "all-MiniLM-L6-v2").name
    for seed in chosen.seeds:
        folder = chosen.models / f"{label}-sst2-{seed}"
        base, options = hs.load(chosen.model, device=chosen.device, dtype="float32"), dict(TUNING["sst2"])
        if not (folder / "config.json").is_file():
            train = hs.read(f"glue:SST-2:train@{chosen.glue}")
            limits = {"limit": chosen.train_limit, "max_length": 128}
            hs.finetune(base, train, out=folder, seed=seed, resume=True, progress=False, **limits, **options)
        study = AttentionFlow(data=str(chosen.glue), tasks=("sst2",), tuned=str(folder), limit=chosen.limit)
        (task,), _ = study.read_tasks()
        run = study.plan_task(task, base, chosen.work / folder.name, 1, device=chosen.device)
        learned = json.loads((folder / "finetune.json").read_text(encoding="utf-8"))["facts"]
        facts = run.describe(metric="accuracy", base=base.weights_hash).assign(train=learned["n"])
        facts["tuning"] = ((), describe_tuning({name: learned[name] for name in options}))
        readings = pack_readings(read_inputs(run.tuned, run.examples, max_length=run.max_length))
        scored = predict(run).rename({name: f"scored_{name}" for name in ("example",)})
        parts = [readings, facts.rename({name: f"fact_{name}" for name in facts}), scored.drop_attrs()]
        write_npz(stamp(xr.merge(parts), seed=seed, model=label), chosen.out / f"{label}.collected.{seed}.npz")


def appendix_all(chosen: argparse.Namespace) -> None:
    """Measure what the paper names without a number, with its own models and one with a causal mask."""
    warnings.simplefilter("ignore", hs.DataWarning)
    examples = sample_examples(read_rows(chosen.data / "test.jsonl"), chosen.limit, 0)
    models = {seed: hs.load(chosen.models / f"{PAPER}-{seed}", dtype="float32") for seed in chosen.seeds}
    causal = hs.load(chosen.models / "causal-0", dtype="float32")
    lenses, plain = dict(zip(SHOWN, SHOWN, strict=True)), {name: SPECIAL[name] for name in ("blank-out", "gradient")}
    facts = {
        "command": "attention_flow/runs/attention_flow.py appendix",
        "model": PAPER,
        "weights_hash": models[chosen.seeds[0]].weights_hash,
        "data": fingerprint_examples(examples),
        "n": len(examples),
        "seed": list(models),
    }
    special = [compare_lenses(model, examples, lenses, SPECIAL) for model in models.values()]
    heads = [compare_heads(model, examples, SPECIAL["blank-out"]) for model in models.values()]
    field = compare_lenses(causal, examples, FIELD, plain)
    renamed: Any = {f"correlation{end}": f"head_correlation{end}" for end in ("", "_low", "_high")}
    every = [
        xr.concat(special, xr.Variable("seed", list(models))),
        xr.concat(heads, xr.Variable("seed", list(models))).rename(renamed),
        field.rename(lens="field_lens", **{name: f"field_{name}" for name in renamed}).sel(importance=list(plain)),
    ]
    whole = xr.merge(every, join="outer").map(to_single, keep_attrs=True)
    write_npz(stamp(whole, **facts), chosen.out / f"{PAPER}.appendix.npz")
    sentences = show_sentences(models[chosen.seeds[0]])
    write_npz(stamp(sentences, **facts), chosen.out / f"{PAPER}.sentences.npz")


def pack_readings(readings: list[Reading]) -> xr.Dataset:
    """Return readings as flat arrays, one after the other."""
    names = list(readings[0].gradients)
    gradients = [np.stack([reading.gradients[name] for name in names]) for reading in readings]
    return xr.Dataset(
        {
            "attention": ("weight", np.concatenate([reading.attention.ravel() for reading in readings]).astype("f4")),
            "gradients": (("gradient", "token"), np.concatenate(gradients, 1)),
            "special": ("token", np.concatenate([reading.special for reading in readings])),
            "length": ("reading", [len(reading.special) for reading in readings]),
            "read_from": ("reading", [reading.prediction for reading in readings]),
            "depth": ((), len(readings[0].attention)),
        },
        {"gradient": names},
    )


def unpack_readings(data: xr.Dataset) -> list[Reading]:
    """Return the readings that `pack_readings` packed; attention is that of single precision."""
    depth, lengths = int(data["depth"]), data["length"].values
    ends, cells = np.cumsum(lengths), np.cumsum(depth * lengths**2)
    attention, gradients = data["attention"].values.astype(float), data["gradients"].values
    readings = []
    for at, length in enumerate(lengths):
        tokens = slice(ends[at] - length, ends[at])
        weights = attention[cells[at] - depth * length**2 : cells[at]].reshape(depth, length, length)
        by_name = dict(zip(map(str, data["gradient"].values), gradients[:, tokens], strict=True))
        readings.append(Reading(weights, by_name, data["special"].values[tokens], int(data["read_from"][at])))
    return readings


def relate_all(chosen: argparse.Namespace) -> None:
    """Compute what the authors' script computes from what was collected, and join the seeds of each model."""
    every: dict[str, list[xr.Dataset]] = {}
    for path in sorted(chosen.folder.glob("*.collected.*.npz")):
        data, facts = read_npz(path), read_provenance(read_npz(path))
        names = {name: str(name).removeprefix("fact_") for name in data if str(name).startswith("fact_")}
        about = data[list(names)].rename(names).reset_coords(drop=True)
        scored = data[["prediction", "label", "accuracy", "accuracy_low", "accuracy_high", "majority"]]
        steps = relate(unpack_readings(data), [str(name) for name in data["scored_example"].values])
        numbers = join_script(steps, scored.rename(scored_example="example"), about.drop_vars("base"))
        numbers = numbers.expand_dims(seed=[facts["seed"]], axis=1)
        every.setdefault(facts["model"], []).append(
            stamp(numbers, model=facts["model"], weights_hash=str(about["base"].values))
        )
    for label, tables in every.items():
        whole = join_seeds([drop_attrs(table) for table in tables]).map(to_single, keep_attrs=True)
        facts = {"command": "attention_flow/runs/attention_flow.py collect and relate", **read_provenance(tables[0])}
        write_npz(stamp_tasks(whole, **facts), chosen.folder / f"{label}.script.npz")


def read_rows(path: Path) -> list[hs.Example]:
    """Return the sentences that agreement_data.py wrote."""
    return hs.read(str(path), words="words", label="label")


def pronouns(chosen: argparse.Namespace) -> None:
    """Look at the masked pronouns of the paper's two sentences, of GAP and of Winogender."""
    warnings.simplefilter("ignore", hs.DataWarning)
    label, lenses = chosen.label or Path(chosen.model).name, {name: name for name in SHOWN}
    model = hs.load(chosen.model, device=chosen.device, dtype="float32")
    masked = measure_sentences(model, PRONOUNS, lenses)
    assert masked is not None, "the model predicts no masked words"
    facts = {
        "command": "attention_flow/runs/attention_flow.py pronouns",
        "model": label,
        "masked_model": label,
    }
    write_npz(stamp(masked, **facts), chosen.out / f"{label}.pronouns.npz")
    sets = {"GAP": read_masked_gap(chosen.gap), "Winogender": read_masked_winogender(chosen.winogender)}
    counts = [count_pronouns(model, name, examples) for name, examples in sets.items()]
    facts |= {"weights_hash": model.weights_hash, "n": sum(map(len, sets.values()))}
    facts["data"] = {name: fingerprint_examples(examples) for name, examples in sets.items()}
    write_npz(stamp(xr.concat(counts, "set"), **facts), chosen.out / f"{label}.referents.npz")


def count_pronouns(model: hs.Model, name: str, examples: list[hs.Example]) -> xr.Dataset:
    """Return how often the mask attends more to its referent than to the other name, by lens and layer: `referent`.

    `filled` is the share of texts in which the form of the pronoun that was masked is more probable than the other, and
    `nearest` what a rule without any model would reach: see `count_nearest`.
    """
    lenses: dict[str, Any] = {**dict(zip(SHOWN, SHOWN, strict=True)), "flow": MaskFlow()}
    longest = check_max_length(model, examples, None) or np.inf
    lengths = [
        len(model.tokenizer(list(example.words or ()), is_split_into_words=True).input_ids) for example in examples
    ]
    examples = [example for example, length in zip(examples, lengths, strict=True) if length <= longest]
    masked = measure_masked(model, examples, lenses)
    answer = np.array([example.columns["answer"] for example in examples])
    heavier = masked["weight"].argmax("candidate")
    right = (heavier == xr.DataArray(answer, dims="example")).transpose("lens", "layer", "example").values
    ends = [[(row.mean(), *wilson_interval(int(row.sum()), len(row))) for row in table] for table in right]
    wanted = np.array([example.columns["form"] for example in examples])
    filled = masked["probability"].argmax("candidate").values == wanted
    return xr.Dataset(
        {
            **with_interval("referent", ("lens", "layer"), np.moveaxis(np.array(ends), -1, 0)),
            **_share("filled", filled),
            **count_nearest(examples),
            "n": len(examples),
        },
        {"lens": masked["lens"], "layer": masked["layer"]},
    ).expand_dims(set=[name])


def count_nearest(examples: list[hs.Example]) -> dict[str, Any]:
    """Return the share of texts in which the referent is nearer to the mask than the other name: `nearest`.

    Distances are counted in words, to the first word of a name; where both are the same, neither is the nearest.
    """
    right = []
    for example in examples:
        mask, answer = (example.words or ()).index(MASK), example.columns["answer"]
        apart = [abs(position - mask) for position in example.columns["candidates"]]
        right.append(apart[answer] < apart[1 - answer])
    return _share("nearest", np.array(right))


def _share(name: str, flags: Any) -> dict[str, Any]:
    ends = flags.mean(), *wilson_interval(int(flags.sum()), len(flags))
    return with_interval(name, (), [np.asarray(end) for end in ends])


@dataclass(frozen=True)
class MaskFlow(Lens):
    """Attention flow from the mask alone, which takes far less time than from every token; other rows are zero."""

    def __call__(self, trace: Trace) -> Maps:
        """Return the flow from the mask above every layer to the input tokens."""
        maps = hs.view(trace, "raw")
        graph = residual_graph(maps, residual=0.5)
        parts = [torch.zeros_like(layer) for layer in graph]
        for row, mask in enumerate((trace.keys.roles == ROLES.index("mask")).int().argmax(-1).tolist()):
            real = trace.keys.real[row].nonzero()[:, 0].cpu()
            edges = np.stack([layer[row, 0][real][:, real].cpu().numpy() for layer in graph])
            source = real.tolist().index(mask)
            for depth, part in enumerate(parts, start=1):
                flow = torch.from_numpy(flow_map(edges[:depth], [source]))
                part[row, 0, mask, real] = flow[0].to(part)
        return replace(maps, parts=parts, lens="flow from the mask", merged=True, heads=(0,))


def read_masked_gap(path: Path) -> list[hs.Example]:
    """Return the texts of GAP whose pronoun refers to one of the two names, with the pronoun masked."""
    examples = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            true = [row[f"{name}-coref"].upper() == "TRUE" for name in "AB"]
            if sum(true) == 1 and row["Pronoun"].lower() in FORMS:
                places = [int(row[f"{name}-offset"]) for name in "AB"]
                examples.append(
                    _mask(row["ID"], row["Text"], int(row["Pronoun-offset"]), row["Pronoun"], places, true[1])
                )
    return examples


def read_masked_winogender(path: Path) -> list[hs.Example]:
    """Return the sentences of Winogender with its masculine pronoun masked: without it, all genders are the same."""
    examples = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            occupation, participant, answer, gender, _ = row["sentid"].split(".")
            text, lower = row["sentence"], row["sentence"].lower()
            words = [word.strip(",.") for word in lower.split()]
            pronoun = next((word for word in words if word in FORMS), None)
            if gender == "male" and pronoun:
                places = [_find_name(row["sentid"], lower, name) for name in (occupation, participant)]
                start = f" {lower} ".replace(",", " ").replace(".", " ").find(f" {pronoun} ")
                examples.append(_mask(row["sentid"], text, start, pronoun, places, answer == "1"))
    return examples


def _find_name(sentence: str, text: str, name: str) -> int:
    """Return the character at which a name begins that stands in a text as a word."""
    found = re.search(rf"\b{re.escape(name)}\b", text)
    if found is None:
        raise ValueError(f"The sentence {sentence} has no '{name}': {text}")
    return found.start()


def _mask(name: str, text: str, start: int, pronoun: str, places: list[int], second: bool) -> hs.Example:
    """Return a text with its pronoun masked; `places` are the characters at which the two names begin.

    The word of a name is the one that holds its first character, whatever punctuation it is joined to.
    """
    end = start + len(pronoun)
    before, after = text[:start].split(), text[end:].split()
    candidates = [
        len(text[: place + 1].split()) - 1
        if place < start
        else len(before) + len(text[end : place + 1].split())  # the mask is a word, too
        for place in places
    ]
    forms = FORMS[pronoun.lower()]
    columns = {
        "candidates": tuple(candidates),
        "fillers": forms,
        "answer": int(second),
        "form": int(pronoun.lower() == forms[1]),
    }
    words = (*before, MASK, *after)
    return hs.Example(name, " ".join(words), words=words, columns=columns)


def join(chosen: argparse.Namespace) -> None:
    """Join the tasks and seeds of each model in one file, single precision; shown examples and pronouns in others."""
    for label in sorted({path.name.partition(".")[0] for path in chosen.folder.glob("*.numbers.npz")}):
        for part in PARTS:
            tasks = ORDER if part == "numbers" else QUOTED
            paths = [chosen.folder / f"{label}.{task}.{part}.npz" for task in tasks]
            every = [read_npz(path) for path in paths if path.is_file()]
            if not every:
                continue
            facts = {
                **read_provenance(every[0]),
                "command": "attention_flow/runs/attention_flow.py, one run for each task and all its seeds, joined",
            }
            facts.pop("options", None)  # those of a task stand in its `tuning`
            whole = every[0] if part == "maps" else _join_tasks(every)
            whole = stamp_tasks(whole, **facts) if part == "numbers" else stamp(whole, **facts)
            name = f"attention_flow_{label}{'' if part == 'numbers' else f'_{part}'}.nc"
            hs.save(whole.map(to_single, keep_attrs=True), chosen.out / name, overwrite=True)
    if accuracy := read_accuracy(chosen.folder):
        hs.save(xr.concat(accuracy, "seed"), chosen.out / f"attention_flow_{PAPER}_accuracy.nc", overwrite=True)
    for kind in ("pronouns", "referents", "script", "appendix", "sentences"):
        for path in sorted(chosen.folder.glob(f"*.{kind}.npz")):
            data = read_npz(path)
            if "data" not in read_provenance(data):
                data = stamp(data, data=fingerprint(map(str, data["text"].values)))
            hs.save(data, chosen.out / f"attention_flow_{path.name.split('.')[0]}_{kind}.nc", overwrite=True)


def read_accuracy(folder: Path) -> list[xr.Dataset]:
    """Return the accuracy of the paper's model by attractors, seed by seed, from what agreement_models.py wrote."""
    tables = []
    for path in sorted(folder.glob(f"{PAPER}-*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        groups = record["by_attractors"]
        names = {
            "accuracy": "accuracy",
            "accuracy_low": "low",
            "accuracy_high": "high",
            "majority": "majority",
            "n": "n",
        }
        variables = {name: ("attractors", [group[key] for group in groups.values()]) for name, key in names.items()}
        data = xr.Dataset(variables, {"attractors": list(groups)}).expand_dims(seed=[int(path.stem.rpartition("-")[2])])
        facts = {
            "command": "attention_flow/runs/agreement_models.py",
            "model": PAPER,
            "n": groups["all"]["n"],
        }
        studied = read_npz(folder / f"{PAPER}.agreement.numbers.npz")  # of the same test sentences
        facts |= {"data": str(studied["data_hash"].values.flat[0]), "weights_hash": record["facts"]["tuned_hash"]}
        tables.append(stamp(data, **facts))
    return tables


def _join_tasks(tables: list[xr.Dataset]) -> xr.Dataset:
    """Join tasks whose seeds are joined already."""
    runs = [drop_attrs(table).isel(seed=[at]) for table in tables for at in range(table.sizes["seed"])]
    return join_seeds(runs)


def main() -> None:
    """Run, look at pronouns, or join."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs: Any = options.add_subparsers(required=True)
    running = verbs.add_parser("run")
    running.add_argument("task", choices=ORDER)
    running.add_argument("--model", help="a hub id, a folder, or 'paper'; nothing: the default")
    running.add_argument("--data", type=Path, help="what agreement_data.py wrote, for agreement")
    running.add_argument("--models", type=Path, help="what agreement_models.py wrote, for the paper's model")
    running.add_argument("--glue", type=Path, help="the folder of GLUE, for sst2")
    running.add_argument("--work", type=Path, required=True, help="where steps and tuned models are kept")
    running.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    running.add_argument("--limit", type=int, default=INPUTS)
    running.set_defaults(what=run)
    collecting = verbs.add_parser("collect")
    collecting.add_argument("--model", help="a hub id or a folder; nothing: the default")
    collecting.add_argument("--glue", type=Path, required=True, help="the folder of GLUE")
    collecting.add_argument("--models", type=Path, required=True, help="where tuned models are kept")
    collecting.add_argument("--work", type=Path, required=True, help="where steps are kept")
    collecting.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    collecting.add_argument("--train-limit", type=int, help="number of training sentences; all by default")
    collecting.add_argument("--limit", type=int, help="number of inputs; all by default")
    collecting.set_defaults(what=collect)
    relating = verbs.add_parser("relate")
    relating.add_argument("folder", type=Path, help="what `collect` wrote")
    relating.set_defaults(what=relate_all)
    naming = verbs.add_parser("appendix")
    naming.add_argument("--data", type=Path, required=True, help="what agreement_data.py wrote")
    naming.add_argument("--models", type=Path, required=True, help="what agreement_models.py wrote, with causal-0")
    naming.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    naming.add_argument("--limit", type=int, default=500, help="number of sentences")
    naming.set_defaults(what=appendix_all)
    masking = verbs.add_parser("pronouns")
    masking.add_argument("--model", required=True, help="a masked language model")
    masking.add_argument("--label", help="the name of the model in the docs; its folder's by default")
    masking.add_argument("--gap", type=Path, required=True, help="a file of GAP")
    masking.add_argument("--winogender", type=Path, required=True, help="all_sentences.tsv of Winogender")
    masking.set_defaults(what=pronouns)
    for verb in (running, collecting, naming, masking):
        verb.add_argument("--out", type=Path, required=True, help="where the small results go")
        verb.add_argument("--device", choices=("cpu", "cuda"))
    add_join(verbs, join)
    chosen = options.parse_args()
    chosen.what(chosen)


if __name__ == "__main__":
    main()
