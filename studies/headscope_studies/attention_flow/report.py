"""The report: verdicts first, then every table and figure of the paper, then what it could not say."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Section
from headscope.core.provenance import read_provenance
from headscope.core.study import Results
from headscope.experiments.rendering import layers, report
from headscope.experiments.rendering.report import Captioner, paragraphs, sample_inputs
from headscope.experiments.rendering.sentences import verdict_numbers
from headscope.experiments.seeds import combine_seeds, describe_seeds
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import fill_template
from headscope.plotting import fonts, heatmap, scales
from headscope.plotting.facets import interval_facets
from headscope.plotting.panels import new_grid
from headscope.reporting.frames import TableColumn, to_frame
from headscope_studies.attention_flow import AttentionFlow, claims, paper
from headscope_studies.attention_flow.masked_words import count_agreement, draw_masked, masked_table
from headscope_studies.attention_flow.measure import GRAPHS, LENSES
from headscope_studies.attention_flow.replaced_word import choose_shown, draw_replaced, read_replaced

SHOWN, RESIDUAL = list(paper.SHOWN), 0.5
TEXTS, CAPTIONS = report.read_prose(__package__)
TOKEN_ROW = 0.13  # inches, for names of tokens of 7 points
JUDGED = fill_template(TEXTS["judged"], claims=claims)
SECOND, THIRD = paper.BLANK_OUT["flow"][0][1:3]
CODE = fill_template(
    TEXTS["code"], paper=paper, third=3 * THIRD - 2 * SECOND
)  # layer 3, if means of layers included all below


def document(results: Results) -> Document:
    """Return the report on the results of the study."""
    measured = results["numbers"]
    data, judged = combine_seeds(measured), claims.judge_claims(measured)
    inputs = sample_inputs(CAPTIONS, data)
    introduction = (
        describe_seeds(measured),
        report.describe_learned(data),
        report.describe_unlearned(data),
        fill_saturated(data),
    )
    sections = [
        report.report_verdicts(inputs, judged, introduction, JUDGED),
        report.report_thresholds(inputs, judged),
        _report_data(data, inputs),
        _report_correlations(data, inputs),
        _report_variants(data, inputs),
        *([Section("The authors' script, step by step", report_steps(data))] if "step_correlation" in data else []),
        *([Section("Examples", _report_examples(results["maps"], results["shown"]))] if "maps" in results else []),
        Section("A masked pronoun", report_pronouns(results.get("pronouns"))),
        _report_focus(data, inputs),
        _report_saturation(data, inputs),
        Section(
            "How it was measured, and what differs from the paper",
            [
                inputs.table("verdict_numbers", verdict_numbers(judged)),
                *paragraphs(*TEXTS["method"].split("\n\n"), *CODE.split("\n\n")),
            ],
        ),
    ]
    lead = fill_template(TEXTS["lead"], **report.study_values(data, judged))
    title = "Attention rollout and attention flow: what the published comparison shows"
    return Document(title, lead, sections, AttentionFlow.cites, [{"name": "the study", **read_provenance(data)}])


def _report_data(data: xr.Dataset, inputs: Captioner) -> Section:
    section, raw = report.report_tasks(data, None), data.sel(lens="raw")
    columns = [TableColumn("accuracy", "score"), TableColumn("most common label", "majority")]
    theirs = ["" if task in paper.OTHERS else f"{paper.ACCURACY:.2f}" for task in list_tasks(data)]
    frame = to_frame(raw, {"task": "task"}, columns).assign(paper=theirs)
    content = [*section.parts, inputs.table("accuracy", frame)]
    if "group_accuracy" in data:
        columns = [TableColumn("accuracy", "group_accuracy"), TableColumn("sentences", "group_count", whole=True)]
        columns += [TableColumn("most common label", "group_majority")] if "group_majority" in data else []
        frame = to_frame(data, {"task": "task", "attractors": "attractors"}, columns)
        content.append(inputs.table("accuracy_by_attractors", frame))
    return Section(section.title, content)


def correlation_tables(data: xr.Dataset, inputs: Captioner, subset: str = "all") -> list[Part]:
    """Return Tables 1 to 3 over all inputs, beside the paper's, or over those that are predicted correctly."""
    tasks = {sst: [task for task in list_tasks(data) if paper.is_sentiment(task) == sst] for sst in (True, False)}
    tables = {
        1: ("blank-out", False, paper.BLANK_OUT, paper.LAYERS),
        2: ("gradient", False, paper.GRADIENT, paper.LAYERS),
        3: ("gradient", True, paper.SST_GRADIENT, paper.SST_LAYERS),
    }
    content: list[Part] = []
    for number, (score, sst, theirs, numbered) in tables.items():
        if tasks[sst]:
            rows = data.sel(subset=subset, importance=score, task=tasks[sst], lens=SHOWN)
            known = (rows["count"] - rows["missing"].isel(lens=0, layer=0)).round().astype(int)
            counts = [f"{task} {int(known.sel(task=task)):,}" for task in tasks[sst]]
            sample = replace(inputs, n=f"{', '.join(counts)} inputs")
            name = f"table_{number}" if subset == "all" else f"table_{number}_{subset}"
            beside = paper.print_table(theirs, numbered) if subset == "all" else None
            content.append(sample.table(name, layers.deviation_table(rows, "correlation"), beside))
    return content


def _report_correlations(data: xr.Dataset, inputs: Captioner) -> Section:
    every = data.sel(subset="all", lens=SHOWN)
    shown = {claims.OF[score]: every.sel(importance=score) for score in claims.SCORES}
    figure = layers.draw_by_layer(shown, dict.fromkeys(shown, "correlation"))
    missing = round(float(every["missing"].sel(importance="blank-out", lens="raw").isel(layer=0).sum()))
    content: list[Part] = [
        Paragraph(fill_template(TEXTS["correlation"], missing=missing)),
        *correlation_tables(data, inputs),
        inputs.picture("correlation_by_layer", figure),
        *correlation_tables(data, inputs, "correct"),
    ]
    return Section("Correlation with importances", content)


def _report_variants(data: xr.Dataset, inputs: Captioner) -> Section:
    every, kinds = data.sel(subset="all"), ("itself", "rollout", "flow")
    tables = {score: layers.interval_table(every.sel(importance=score), "correlation") for score in claims.SCORES}
    last = every.isel(layer=-1)
    columns = [TableColumn(str(score), "correlation", {"importance": score}) for score in data["importance"].values]
    graphs = {
        name: every.sel(importance="blank-out", lens=list(labels)).assign_coords(lens=list(kinds))
        for name, labels in GRAPHS.items()
    }
    content: list[Part] = [
        Paragraph(TEXTS["variants"]),
        inputs.picture("inner", layers.draw_by_layer(graphs, dict.fromkeys(graphs, "correlation"))),
        *(inputs.table(f"correlation_{score.replace('-', '_')}", frame) for score, frame in tables.items()),
        inputs.table("scores", to_frame(last, layers.ROWS, columns)),
    ]
    return Section("Graphs of other weights", content)


def report_steps(data: xr.Dataset) -> list[Part]:
    """Return how the correlations change from the text of the paper to the authors' script, step by step."""
    steps = data.sel(task=paper.SCRIPT, subset="all", lens=SHOWN)
    columns = [TableColumn(f"L{layer}", "step_correlation", {"layer": layer}) for layer in data["layer"].values]
    frame = to_frame(steps, {"step": "step", "lens": "attention"}, columns)
    sample = Captioner(CAPTIONS, f"{int(steps['n']):,} inputs")
    return [
        Paragraph(fill_template(TEXTS["steps"], logged=list(paper.LOGGED.values())[-1])),
        sample.table("steps", frame),
    ]


def _report_examples(maps: xr.Dataset, shown: xr.Dataset) -> list[Part]:
    sample, example = Captioner(CAPTIONS, "1 input"), read_provenance(maps).get("example", "")
    content: list[Part] = [sample.picture("figure_1", draw_three(maps), example=example)]
    for number, kind in enumerate(("right", "wrong"), start=2):
        tasks = choose_shown(shown.sel(shown=kind))
        content += paragraphs(*(fill_template(TEXTS["shown"], **read_replaced(data)) for data in tasks.values()))
        sample = Captioner(CAPTIONS, "1 sentence in two versions")
        for task in list(tasks)[:1]:
            content.append(sample.picture(f"figure_{number}", draw_replaced(tasks[task]), task=task))
        content += [] if tasks else paragraphs(TEXTS[f"none {kind}"])
    return content


def report_pronouns(masked: xr.Dataset | None) -> list[Part]:
    """Return Figure 4 with the probabilities of the pronouns, or why there is none."""
    if masked is None:
        return [Paragraph(TEXTS["no masked model"])]
    sample, model = Captioner(CAPTIONS, f"{len(masked['example'])} sentences"), read_provenance(masked)["masked_model"]
    text = fill_template(TEXTS["agreement"], counts=count_agreement(masked), sentences=masked.sizes["example"])
    figure = sample.picture("figure_4", draw_masked(masked), model=model)
    return [Paragraph(text), figure, sample.table("pronouns", masked_table(masked))]


def _report_focus(data: xr.Dataset, inputs: Captioner) -> Section:
    every = data.sel(subset="all")
    names = {"uniformity of the row of [CLS]": "spread", "weight on the diagonal": "diagonal"}
    shown = dict.fromkeys(names, every.sel(lens=SHOWN))
    content: list[Part] = [inputs.picture("focus", layers.draw_by_layer(shown, names))]
    content += [inputs.table(name, layers.interval_table(every, name)) for name in names.values()]
    known = [task for task in list_tasks(data) if "lift" in data and np.isfinite(data["lift"].sel(task=task)).any()]
    if not known:
        return Section("Where the weight is", [*content, Paragraph(TEXTS["no positions"])])
    last = data.isel(layer=-1).sel(lens=SHOWN, task=known)
    table = {
        f"{word} (share)": {task: report.select_interval(last.sel(task=task, word=word), "lift") for task in known}
        for word in ("subject", "attractor")
    }
    columns = [TableColumn(word, "lift", {"word": word}) for word in ("subject", "attractor")]
    frame = to_frame(last, {"task": "task", "attractors": "attractors", "lens": "attention"}, columns)
    figure = interval_facets(table, x="attractors", label="attractors")
    return Section("Where the weight is", [*content, inputs.picture("words", figure), inputs.table("lift", frame)])


def _report_saturation(data: xr.Dataset, inputs: Captioner) -> Section:
    flows = data.sel(subset="all", lens=[name for name in LENSES if name.endswith("flow")])
    names = {"pairs at the bound": "at_bound", "same from every source": "same_for_sources"}
    content: list[Part] = [
        Paragraph(TEXTS["saturation"]),
        inputs.picture("saturation", layers.draw_by_layer(dict.fromkeys(names, flows), names)),
        *(inputs.table(name, layers.interval_table(flows, name)) for name in names.values()),
    ]
    return Section("Saturation of flow", content)


def draw_three(maps: xr.Dataset, layers: Sequence[int] | None = None) -> Figure:
    """Draw raw attention, rollout and flow, queries down and keys across, from the graph of a flow.

    All layers stand beside one another; of some, each has a row of its own.
    """
    edges = maps["capacities"].isel(lens=0).values.astype(float)
    rows = {
        "raw": edges - RESIDUAL * np.eye(edges.shape[-1]),
        "rollout": np.stack(list(accumulate(edges, lambda below, layer: layer @ below))),
        "flow": maps["weights"].isel(lens=0, head=0).values.astype(float),
    }
    tokens = [fonts.to_label(str(token)) for token in maps["query_token"].values]
    cells = np.stack([row / row.sum(-1, keepdims=True) for row in rows.values()])
    scale = scales.weight_scale(cells, signed=False)
    panels = {(name, layer): cells[at, layer] for at, name in enumerate(rows) for layer in range(len(edges))}
    if layers is not None:
        panels = {(name, layer): panels[name, layer] for layer in layers for name in rows}
    across = len(edges) if layers is None else len(rows)
    high = 0.2 + len(tokens) * TOKEN_ROW
    grid = new_grid((6.9, 0.8 + len(panels) // across * high), len(panels), across)
    for at, (panel, table) in enumerate(zip(grid.panels, panels.values(), strict=True)):
        heatmap.draw_image(panel, table, scale, aspect="auto")
        panel.set_yticks(range(len(tokens)), labels=tokens if at % across == 0 else [], fontsize=7)
        panel.set_xticks([])
        panel.tick_params(length=0, pad=2)
    grid.name_panels([f"{name} L{layer + 1}" for name, layer in panels], role="note")
    grid.add_color_bar(scale, "share of the row")
    return grid.figure.figure


def measure_saturation(data: xr.Dataset) -> xr.Dataset:
    """Return how much of flow's last layer is saturated, in percent, task by task."""
    return 100 * data[["at_bound", "same_for_sources"]].sel(subset="all", lens="flow").isel(layer=-1)


def fill_saturated(data: xr.Dataset) -> str:
    """Return the text on how much of flow's last layer is saturated."""
    return fill_template(TEXTS["saturated"], share=measure_saturation(data))
