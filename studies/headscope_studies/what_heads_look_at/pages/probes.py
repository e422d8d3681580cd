"""The page docs/probes.md and that of all relations, from results/probes_*.nc."""

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.provenance import read_provenance
from headscope.experiments.pages.generate import Generated, fill_page, write_pictures
from headscope.experiments.pages.tables import to_grid
from headscope.experiments.template import fill_template
from headscope.plotting.draw import draw
from headscope.results.accuracies import select_adjusted_p
from headscope.results.probe_table import make_probe_table
from headscope.results.store import open_result
from headscope_studies.what_heads_look_at.pages.facts import RESULTS
from headscope_studies.what_heads_look_at.paper import RELATIONS

FOLDER = Path(__file__).parent
TRAINED = {"attention": "attention", "attention_and_words": "attention and words"}
PICTURED = "EWT"
LEVEL = 0.05


@cache
def read_probe(name: str) -> xr.Dataset:
    """Return the joined runs of a probe."""
    return open_result(RESULTS / f"probes_{name}.nc").load()


def list_cells(name: str = "dependency", attention: str = "raw") -> list[tuple[str, str]]:
    """Return every model and treebank that a probe was fitted to, with the first seed."""
    data = read_probe(name)["accuracy"].isel(seed=0)
    if attention not in data["attention"].values:
        return []
    cells = product(map(str, data["model"].values), map(str, data["treebank"].values))
    fitted = data.sel(attention=attention).notnull().any(("task", "predictor", "relation"))
    return [cell for cell in cells if bool(fitted.sel(model=cell[0], treebank=cell[1]))]


def select_run(name: str, model: str, treebank: str, attention: str = "raw", seed: int = 0) -> xr.Dataset:
    """Return one run as `hs.probe` returns it: without relations and predictors that it does not have."""
    data = read_probe(name).sel(model=model, treebank=treebank, attention=attention, seed=seed)
    data = data.dropna("relation", subset=["accuracy"], how="all").dropna("predictor", subset=["accuracy"], how="all")
    return data.assign_attrs(headscope=f'{{"probe": "{name}", "lens": "{attention}"}}')


def list_seeds(name: str, model: str, treebank: str) -> list[int]:
    """Return the seeds of the runs of raw attention."""
    data = read_probe(name)["accuracy"].sel(model=model, treebank=treebank, attention="raw")
    return [int(seed) for seed in data["seed"].values if bool(data.sel(seed=seed).notnull().any())]


def pictures() -> dict[str, Figure]:
    """Return the page's figures by file name."""
    return {
        f"probes_{model}.svg": draw(
            select_run("dependency", model, treebank).drop_sel(predictor="random_weights"),
            title=f"{model} · {treebank} dev",
        )
        for model, treebank in list_cells()
        if treebank == PICTURED
    }


def write_page(docs: Path) -> Generated:
    """Yield the page on probes, filled in, with its pictures."""
    yield from write_pictures(pictures())
    parsers = tabulate_parsers()
    measured = fill_template(
        FOLDER / "probes.md",
        treebanks=read_treebanks(),
        divisions=len(list_seeds("dependency", *list_cells()[0])),
        heads=tabulate_heads(),
        parsers=parsers.set_index(["model", "treebank", "probe"]),
        attention=parsers[parsers["probe"] == "attention"],
        words=parsers[parsers["probe"] == "attention and words"],
        behind=list_behind(),
        better=find_better(),
        models=[model for model, treebank in list_cells() if treebank == PICTURED],
        variants=tabulate_variants(),
        paper=tabulate_paper(),
        to_grid=to_grid,
    )
    yield from fill_page(docs / "probes.md", {"measured": measured})


def write_tables() -> Generated:
    """Yield the page of all tables."""
    relations = {cell: tabulate_relations(*cell) for cell in list_cells()}
    text = fill_template(
        FOLDER / "probes_tables.md",
        treebanks=read_treebanks(),
        divisions=len(list_seeds("dependency", *list_cells()[0])),
        relations=relations,
        to_grid=to_grid,
    )
    yield "probes_tables.md", text.encode()


def read_treebanks() -> dict[str, dict[str, Any]]:
    """Return how many sentences and documents of each treebank a probe was fitted to, and reported on."""
    runs = read_provenance(read_probe("dependency"))["runs"]
    return {run["treebank"]: run for run in runs if run["seed"] == 0}


def tabulate_relations(model: str, treebank: str) -> pd.DataFrame:
    """Return the best head of every relation beside the baselines."""
    run = select_run("dependency", model, treebank)
    table = make_probe_table(run)
    table.insert(0, "count", run["count"].values.astype(int))
    return table


def count_gains(name: str, model: str, treebank: str, task: str, attention: str = "raw", seed: int = 0) -> list[int]:
    """Return the numbers of relations, and of those whose gain is above, or below, 0 for sure."""
    relations = select_run(name, model, treebank, attention, seed).sel(task=task).isel(relation=slice(1, None))
    significant, gain = select_adjusted_p(relations, "gain").values < LEVEL, relations["gain"].values
    return [relations.sizes["relation"], int((significant & (gain > 0)).sum()), int((significant & (gain < 0)).sum())]


def tabulate_heads() -> pd.DataFrame:
    """Return the best head for all words, and the number of relations with a head better than the best fixed offset."""
    rows = []
    for model, treebank in list_cells():
        run = select_run("dependency", model, treebank)
        whole = make_probe_table(run).iloc[0]
        total, better, worse = count_gains("dependency", model, treebank, "dependency")
        control = count_gains("dependency", model, treebank, "control")
        row: dict[str, Any] = {"model": model, "treebank": treebank}
        row |= {name: whole[name] for name in ("best head", "head", "head_low", "head_high")}
        row |= {name: whole[name] for name in ("fixed offset", "random weights")}
        row |= {"relations": total, "better": better, "worse": worse, "better, control": control[1]}
        row["median gain"] = float(run["gain"].sel(task="dependency").isel(relation=slice(1, None)).median())
        rows.append(row)
    return pd.DataFrame(rows).set_index(["model", "treebank"])


def list_behind() -> list[float]:
    """Return the share of relations whose chosen head is no better than a fixed offset, by model and treebank."""
    runs = [select_run("dependency", *cell).sel(task="dependency") for cell in list_cells()]
    return [float((run["gain"].isel(relation=slice(1, None)) <= 0).mean()) for run in runs]


def find_better() -> dict[str, float]:
    """Return the least gain of relations that have a significantly better head in all models and treebanks."""
    runs = [select_run("dependency", *cell).sel(task="dependency") for cell in list_cells()]
    gains = [run["gain"].to_series() for run in runs]
    p_values = [select_adjusted_p(run, "gain").to_series() for run in runs]
    least = pd.concat(gains, axis=1, join="inner").min(axis=1).drop("all")
    largest_p = pd.concat(p_values, axis=1, join="inner").max(axis=1).reindex(least.index)
    better = least[(largest_p < LEVEL) & (least > 0)].sort_values(ascending=False)
    return {str(name): float(gain) for name, gain in better.items()}


def tabulate_variants() -> pd.DataFrame:
    """Return the accuracy and the number of better relations for each kind of attention, and over random halves."""
    rows = []
    for model, treebank in list_cells():
        row = {"model": model, "treebank": treebank}
        for attention in ("raw", *_list_lenses("dependency")):
            whole = make_probe_table(select_run("dependency", model, treebank, attention)).iloc[0]
            better = count_gains("dependency", model, treebank, "dependency", attention)[1]
            row[attention] = f"{whole['head']:.3f} ({better})"
        rows.append(row | {"raw, halves": format_halves("dependency", model, treebank)})
    return pd.DataFrame(rows)


def format_halves(name: str, model: str, treebank: str) -> str:
    """Return the range of the accuracy on all words over the seeds."""
    runs = [select_run(name, model, treebank, seed=seed) for seed in list_seeds(name, model, treebank)]
    accuracies = [make_probe_table(run).iloc[0]["head" if name == "dependency" else "probe"] for run in runs]
    return f"{min(accuracies):.3f} … {max(accuracies):.3f}"


def tabulate_paper() -> pd.DataFrame:
    """Return the accuracies that the paper prints beside ours, in percent."""
    tables = {cell: make_probe_table(select_run("dependency", *cell)) for cell in list_cells()}
    ours = {", ".join(cell): 100 * table["head"].reindex(list(RELATIONS)) for cell, table in tables.items()}
    return pd.DataFrame({"BERT-base": pd.Series(RELATIONS), **ours}).rename_axis("relation")


def tabulate_parsers() -> pd.DataFrame:
    """Return the UAS of trained probes, of their baselines, and of the control task."""
    cells = [(name, *cell) for name in TRAINED for cell in list_cells(name)]
    rows = []
    for name, model, treebank in sorted(cells, key=lambda cell: cell[1:]):
        run = select_run(name, model, treebank)
        whole, control = (make_probe_table(run, task).iloc[0] for task in ("dependency", "control"))
        row = {"model": model, "treebank": treebank, "probe": TRAINED[name], "n": whole["n"]}
        row |= {f"UAS{end}": whole[f"probe{end}"] for end in ("", "_low", "_high")}
        row["halves"] = format_halves(name, model, treebank)
        row |= {other: whole[other] for other in ("fixed offset", "right branching")}
        row |= {"distances": whole.get("distances"), "random weights": whole["random weights"]}
        row |= {attention: _score_lens(name, model, treebank, attention) for attention in _list_lenses("attention")}
        rows.append(row | {"control": control["probe"], "control, fixed offset": control["fixed offset"]})
    return pd.DataFrame(rows)


def _list_lenses(name: str) -> list[str]:
    """Return the kinds of attention that a probe was fitted to beside raw attention."""
    return [attention for attention in map(str, read_probe(name)["attention"].values) if attention != "raw"]


def _score_lens(name: str, model: str, treebank: str, attention: str) -> float:
    """Return the score of a probe of another attention; NaN where it was not fitted."""
    if (model, treebank) not in list_cells(name, attention):
        return float("nan")
    return float(make_probe_table(select_run(name, model, treebank, attention)).iloc[0]["probe"])
