"""The report: verdicts first, then no-ops, surface, entropy, clusters, syntax and coreference."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core import catalog
from headscope.core.document import Document, Paragraph, Part, Section
from headscope.core.prose import count_noun
from headscope.core.provenance import read_provenance
from headscope.core.study import Results
from headscope.experiments.claims import HOLDS, MOOT, NOT_REPRODUCED, UNDECIDED, JudgedClaim
from headscope.experiments.rendering import report
from headscope.experiments.rendering.report import Captioner, paragraphs
from headscope.experiments.rendering.sentences import (
    describe_tests,
    verdict_numbers,
    verdict_table,
)
from headscope.experiments.seeds import combine_seeds, describe_seeds
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import fill_template
from headscope.plotting.draw import draw
from headscope.plotting.facets import interval_facets
from headscope.plotting.verdict_grid import verdict_grid
from headscope_studies.what_heads_look_at import WhatHeadsLookAt, claims, no_op, paper, probe_numbers, surface
from headscope_studies.what_heads_look_at import networks as models
from headscope_studies.what_heads_look_at.no_op_figures import answer_table, draw_no_ops, list_no_ops, no_op_table
from headscope_studies.what_heads_look_at.probe_tables import coreference_table, relation_table, uas_table
from headscope_studies.what_heads_look_at.surface_tables import TITLES, clark_table, list_table, measure_clark

TEXTS, CAPTIONS = report.read_prose(__package__)
TITLE = "What heads look at: surface, no-ops, syntax, coreference"
KINDS = (HOLDS, NOT_REPRODUCED, UNDECIDED, MOOT)
OPEN = f"{UNDECIDED}, or differs by data"
GRID = ("surface", "no-op", "trees", "coreference")
"""The groups of claims that are in the grid; those on single relations are counted in a table."""

MEASURED = ("Is it a no-op?", "Neighbours, special tokens, punctuation", "Clusters of heads", "Entropy")


def document(results: Results) -> Document:
    """Return the report on the results of the study."""
    numbers = results["numbers"]
    judged = claims.judge_claims({"": collect_numbers(results)})[""]
    every = [claim for part in judged.values() for claim in part]
    sample, provenance = _make_sample(numbers), read_provenance(numbers)
    networks = combine_seeds(results["no_op"])
    values = {
        "model": str(provenance["model"]).rstrip("/").rpartition("/")[2],
        "name": list_tasks(numbers)[0],
        "inputs": count_noun(int(numbers["n"].item()), "input"),
        "layers": numbers.sizes["layer"],
        "heads": numbers.sizes["head"],
        "answer": answer_no_ops(networks.sel(task=models.MASKED)),
        "length": provenance["max_length"],
        "tuning": list_quality(networks),
    }
    method = fill_template(TEXTS["method"], **values).split("\n\n")
    sections = [
        report_verdicts(sample, judged, describe_seeds(results["no_op"])),
        Section(MEASURED[0], report_no_ops(networks)),
        Section(MEASURED[1], report_surface(numbers, sample)),
        Section("Entropy", report_entropy(numbers, sample)),
        Section(MEASURED[2], report_clusters(results["clusters"], sample)),
        *([Section("Syntax", report_syntax(results))] if "dependency" in results else []),
        *([Section("Coreference", report_coreference(results["coreference"]))] if "coreference" in results else []),
        report.report_thresholds(sample, every),
        Section(
            "How it was measured, and what differs from the paper",
            [sample.table("verdict_numbers", verdict_numbers(every)), *paragraphs(*method)],
        ),
    ]
    stamps = [{"name": name, **read_provenance(data)} for name, data in results.items()]
    return Document(TITLE, fill_template(TEXTS["lead"], **values), sections, WhatHeadsLookAt.cites, stamps)


def collect_numbers(results: Results) -> dict[str, xr.Dataset]:
    """Return the numbers of every part that claims are judged on; parts that were not measured are left out."""
    parts = {"surface": results["numbers"], "no-op": results["no_op"]}
    if "dependency" in results:
        trained = results.get("attention"), results.get("attention_and_words")
        parts["syntax"] = probe_numbers.number_relations(results["dependency"])
        parts["trees"] = probe_numbers.number_trees(results["dependency"], *trained, "treebank")
    if "coreference" in results:
        parts["coreference"] = probe_numbers.number_coreference({"coreference": results["coreference"]})
    return {name: data for name, data in parts.items() if data.sizes.get("task", 1)}


def _make_sample(numbers: xr.Dataset) -> Captioner:
    n = int(numbers["n"].item())
    reduced = f"{n:,} inputs, where the paper has {paper.INPUTS:,}" if n < paper.INPUTS else None
    return Captioner(CAPTIONS, f"{list_tasks(numbers)[0]} {count_noun(n, 'input')}", reduced)


def report_verdicts(sample: Captioner, judged: dict[str, list[JudgedClaim]], seeds: str) -> Section:
    """Return the section with all verdicts; of relations, their number."""
    every = [claim for part in judged.values() for claim in part]
    parts: list[Part] = [report.picture_verdicts(sample, draw_grid({"": judged})), *paragraphs(seeds)]
    parts += [sample.table("verdicts", verdict_table(every)), *paragraphs(TEXTS["judged"], describe_tests(every))]
    return Section("What holds", parts)


def draw_grid(models: Mapping[str, Mapping[str, Sequence[JudgedClaim]]]) -> Figure:
    """Draw the verdict on every claim of the paper for each model; where data sets differ it is undecided."""
    rows: dict[str, dict[tuple[str, str], str]] = {}
    for label, topics in models.items():
        for judged in (claim for topic in GRID for claim in topics.get(topic, ())):
            if judged.claim.where.get("group", "sep") in ("cls", "sep"):
                cell = judged.verdict if judged.verdict in KINDS else UNDECIDED
                rows.setdefault(judged.text.rstrip("."), {})["", label] = cell
    kinds = [OPEN if kind == UNDECIDED else kind for kind in KINDS]
    return verdict_grid(pd.DataFrame.from_dict(rows, "index").replace(UNDECIDED, OPEN), kinds)


def list_quality(networks: xr.Dataset) -> str:
    """Return how good the tuned models are."""
    rows = {name: networks.sel(task=name) for name in (models.MASKED, models.CLASSIFIER)}
    return "; ".join(f"{name}: {models.describe_quality(row)} on {row['data'].values}" for name, row in rows.items())


def answer_no_ops(network: xr.Dataset) -> str:
    """Return for each group of one network by which measures attention to it is a no-op, in sentences."""
    return " ".join(fill_template(TEXTS["answer"], tokens=list_no_ops(network)).splitlines())


def report_no_ops(networks: xr.Dataset) -> list[Part]:
    """Return the headline: the figure, by which measures attention is a no-op, and all ratios."""
    sizes = dict(zip(list_tasks(networks), networks["n"].values.astype(int).tolist(), strict=True))
    fewer = f"fewer than the paper's {paper.INPUTS:,} inputs" if min(sizes.values()) < paper.INPUTS else None
    sample = Captioner(CAPTIONS, ", ".join(f"{name} {n:,}" for name, n in sizes.items()) + " inputs", fewer)
    rows = {}
    for group in ("cls", "sep", "period_comma"):
        weights = networks.sel(group=group, drop=True).rename(measure="lens")
        rows[no_op.GROUPS[group]] = {
            name: report.select_interval(weights.sel(task=name, drop=True), "ratio_layer").map(np.log2)
            for name in list_tasks(networks)
        }
    sentences = [f"**{name}**: {answer_no_ops(networks.sel(task=name))}" for name in list_tasks(networks)]
    return [
        Paragraph(fill_template(TEXTS["no_op"], tuning=list_quality(networks))),
        sample.picture("no_op", draw_no_ops(networks)),
        *paragraphs(*sentences),
        sample.table("answers", answer_table(networks)),
        sample.table("no_ops", no_op_table(networks)),
        sample.picture("layers", interval_facets(rows, x="layer", label="layer", lines=True)),
    ]


def report_surface(numbers: xr.Dataset, sample: Captioner) -> list[Part]:
    """Return shares by layer for every lens, lists of heads, and the published way to count."""
    data = numbers.isel(task=0)
    return [
        Paragraph(TEXTS["depth"]),
        sample.picture("depth", _draw_depth(data, "neighbours (%)", surface.TARGETS[:3])),
        sample.picture("depth_special", _draw_depth(data, "special, marks (%)", surface.TARGETS[3:6])),
        Paragraph(fill_template(TEXTS["lists"], clark=measure_clark(data))),
        sample.table("lists", list_table(data), _theirs_of_lists()),
        sample.table("clark", clark_table(data)),
    ]


def _draw_depth(data: xr.Dataset, title: str, targets: Sequence[str]) -> Figure:
    """Draw the shares of targets by layer, a column for each lens."""
    lines = report.select_interval(data, "share_layer", 100).sel(target=list(targets))
    lines = lines.assign_coords(target=[TITLES[target] for target in targets])
    lenses = map(str, data["lens"].values)
    panels = {lens: lines.sel(lens=lens, drop=True).rename(target="lens") for lens in lenses}
    return interval_facets({title: panels}, x="layer", label="layer", lines=True)


def _theirs_of_lists() -> pd.DataFrame:
    rows = {"more than half on previous": paper.PREVIOUS, "more than half on next": paper.NEXT}
    return pd.DataFrame({"raw": rows}).rename_axis("heads")


def report_entropy(numbers: xr.Dataset, sample: Captioner) -> list[Part]:
    """Return the entropy of all rows and of the row of [CLS], by layer and lens."""
    data = numbers.isel(task=0)
    names = {"all tokens": "entropy_layer", "[CLS]": "cls_entropy_layer"}
    columns = {title: report.select_interval(data, name) for title, name in names.items()}
    tokens = float(np.exp(numbers["uniform_entropy"].values[0]))
    text = fill_template(TEXTS["entropy"], tokens=tokens, uniform=np.log(tokens), last=paper.CLS_LAST)
    figure = interval_facets({"entropy (nats)": columns}, x="layer", label="layer", lines=True)
    return [Paragraph(text), sample.picture("entropy", figure)]


def report_clusters(clusters: xr.Dataset, sample: Captioner) -> list[Part]:
    """Return heads in two dimensions, coloured by layer and by behaviour."""
    values = {name: float(clusters[name].sel(lens="raw")) for name in ("within", "between", "p")}
    return [
        Paragraph(fill_template(TEXTS["clusters"], **values)),
        sample.picture("clusters", draw(clusters, "clusters:colour=layer")),
        sample.picture("behaviour", draw(clusters, "clusters:colour=behaviour")),
    ]


def report_syntax(results: Results) -> list[Part]:
    """Return the best head of each relation, and the trained probes."""
    relations, facts = probe_numbers.number_relations(results["dependency"]), read_provenance(results["dependency"])
    sample = Captioner(CAPTIONS, count_noun(int(facts["n"]), "sentence"))
    least = catalog.probes.make(facts["probe"]).min_count
    trained = {name: results[name] for name in ("attention", "attention_and_words") if name in results}
    text = fill_template(TEXTS["syntax"], least=least, trained=trained, paper_uas=paper.UAS.values())
    parts: list[Part] = [Paragraph(text)]
    if relations.sizes["task"]:
        parts.append(sample.table("relations", relation_table(results["dependency"]), _theirs_of_relations()))
    return [*parts, *([sample.table("uas", uas_table(trained), _theirs_of_uas())] if trained else [])]


def _theirs_of_relations() -> pd.DataFrame:
    return pd.DataFrame({"head": paper.RELATIONS}).rename_axis("relation")


def _theirs_of_uas() -> pd.DataFrame:
    rows = {f"{name.replace('_', ' ')}, dependency": {"probe": uas} for name, uas in paper.UAS.items()}
    return pd.DataFrame.from_dict(rows, "index").rename_axis("probe")


def report_coreference(result: xr.Dataset) -> list[Part]:
    """Return the accuracies of one head and of the baselines, by kind of mention."""
    sample = Captioner(CAPTIONS, count_noun(int(read_provenance(result)["n"]), "text"))
    table = sample.table("coreference", coreference_table(result), paper.table_of_coreference())
    return [Paragraph(TEXTS["coreference"]), table]
