"""The tables of docs/training.md, from docs/results/finetune.nc and translation_*.json."""

import json
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.core.estimate import estimate
from headscope.core.provenance import read_provenance
from headscope.results.store import open_result

DOCS = Path(__file__).parents[1]
MAIN = {"sst2": "accuracy", "mrpc": "accuracy", "stsb": "spearman", "rte": "accuracy", "mlm": "perplexity"}
TITLES = {"sst2": "SST-2", "mrpc": "MRPC", "stsb": "STS-B", "rte": "RTE", "mlm": "masked language modelling"}


def table() -> str:
    """Return the main score of every run with its interval, the majority class and the settings."""
    data = open_result(DOCS / "results" / "finetune.nc")
    facts = read_provenance(data)
    lines = ["| task | model | settings | score on dev | majority class | n |", "|---|---|---|---|---|---|"]
    runs = [data.isel(run=index) for index in range(data.sizes["run"])]
    lines += [_make_row(run, task) for task in MAIN for run in runs if run.task.item() == task]
    settings = "; ".join(f"`{name}` {_describe(tuning)}" for name, tuning in _read_settings(facts).items())
    made = f"{facts['command']}: one seed, float32, {_describe_devices(facts)}"
    return "\n".join(lines) + f"\n\nSettings: {settings}.\nMade by {made}.\n"


def translation() -> str:
    """Return the scores of the models that docs/runs/translation.py trained, seed by seed, and their settings."""
    paths = sorted((DOCS / "results").glob("translation_*.json"))
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    facts, circumstances = runs[0]["training"]["facts"], runs[0]["training"]["circumstances"]
    assert len({_describe(run["training"]["facts"]) for run in runs}) == 1, "all seeds are trained alike"
    config = facts["config"]
    seconds = max(run["training"]["circumstances"]["seconds"] for run in runs)
    packages = ", ".join(f"{name} {circumstances[name]}" for name in ("torch", "transformers"))
    rows = "".join(map(_make_translation_row, runs))
    return (
        "| seed | training pairs | BLEU | chrF | log-likelihood of a token | test pairs |\n|---|---|---|---|---|---|\n"
        f"{rows}\n"
        f"A {config['model_type'].upper()} with {config['encoder_layers']} + {config['decoder_layers']} layers of "
        f"{config['encoder_attention_heads']} heads, width {config['d_model']} and {config['vocab_size']:,} subwords; "
        f"training {_describe(facts)}; float32, at most {seconds:.0f} s on {circumstances['device']}.\nMade by "
        f"{runs[0]['command']} with {packages}.\n"
    )


def _make_translation_row(run: dict[str, Any]) -> str:
    facts, scores = run["training"]["facts"], run["scores"]
    forms = {"bleu": ".1f", "chrf": ".1f", "log_likelihood": ".2f"}
    cells = [estimate(xr.Dataset(scores), name).format(form) for name, form in forms.items()]
    return f"| {facts['seed']} | {facts['n']:,} | {' | '.join(cells)} | {int(scores['n']):,} |\n"


def _make_row(run: xr.Dataset, task: str) -> str:
    metric = MAIN[task]
    score = f"{metric} {estimate(run, metric).format('.1f' if metric == 'perplexity' else '.3f')}"
    majority = "" if bool(run.majority.isnull()) else f"{float(run.majority):.3f}"
    return (
        f"| {TITLES[task]} | {run.model.item()} | `{run.settings.item()}` | {score} | {majority} | {int(run['n']):,} |"
    )


def _read_settings(facts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of the runs by name."""
    names = {label.rpartition(" ")[2]: run["tuning"] for label, run in facts["runs"].items()}
    return {name: names[name] for name in facts["settings"] if name in names}


def _describe(tuning: dict[str, Any]) -> str:
    return (
        f"is batch {tuning['batch_size']}, {tuning['epochs']} epochs, learning rate {tuning['learning_rate']:g}, "
        f"warm-up {tuning['warmup']:.0%}, {tuning['max_length']} tokens"
    )


def _describe_devices(facts: dict[str, Any]) -> str:
    took = [run["took"] for run in facts["runs"].values()]
    packages = ", ".join(f"{name} {took[0][name]}" for name in ("torch", "transformers"))
    return f"on {', '.join(sorted({run['device'] for run in took}))}, {packages}"
