"""Results of a study, task by task."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, SectionContext, Table
from headscope.core.estimate import Estimate
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun, join_words
from headscope.core.provenance import read_provenance
from headscope.results.document_parts import draw_part, spaced
from headscope.results.select import main_variables
from headscope.results.task_quantities import count_places, list_axes, list_quantities, quantity_names, stack_places

MAX_ROWS = 96
"""Rows of a table of quantities with the same axes; those that do not fit are in the file only."""

MAX_LETTERS = 24
"""Of a text about a task in the table of inputs."""


class Study(Kind):
    """Results of a study: what was found on every task, and on which inputs."""

    variables: ClassVar[Mapping[str, str]] = {"task": "the tasks that were studied"}
    default_figure = "tasks"
    subject = "A study"
    model_subject = "A study of {}"
    grouped = False

    def fits(self, data: xr.Dataset) -> bool:
        """Whether the provenance names a study, and there are quantities of tasks."""
        return "study" in read_provenance(data) and bool(quantity_names(data))

    def lead(self, data: xr.Dataset) -> str:
        """Return the study, the model, the tasks, and the number of inputs."""
        facts = read_provenance(data)
        of = f" of {facts['model']}" if isinstance(facts.get("model"), str) else ""
        tasks = [str(task) for task in data["task"].values]
        on = f"on {count_noun(len(tasks), 'task')} ({join_words(tasks, limit=8)})"
        over = f" over {count_noun(facts['n'], 'input')}" if isinstance(facts.get("n"), int) else ""
        return f"Results of the study `{facts.get('study')}`{of} {on}{over}."

    def entries(self, data: xr.Dataset) -> list[tuple[str, str]]:
        """Return the study."""
        return [("studies", str(read_provenance(data)["study"]))]

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return a section with the quantities of every task, and one with the inputs."""
        quantities, n = list_quantities(data), _count_inputs(data)
        tables, shown = _quantity_tables(quantities, n, context)
        picture = draw_part(context, data, "tasks", context.name("tasks"), "A quantity of every task", n)
        parts: list[Part] = [*(picture if quantities else []), *tables]
        if data.sizes.get("seed", 1) > 1:
            seeds = f"Numbers are means of {data.sizes['seed']} seeds of training; intervals hold those of every seed."
            parts.insert(0, Paragraph(seeds))
        inputs, described = _input_table(data, context)
        sections = [Section(context.title("tasks"), parts)] if parts else []
        return [*sections, *([Section(context.title("inputs"), inputs)] if inputs else [])], {*shown, *described}


def _count_inputs(data: xr.Dataset) -> int | str:
    n = read_provenance(data).get("n")
    return n if isinstance(n, int) else ""


def _quantity_tables(
    quantities: Mapping[str, Estimate], n: int | str, context: SectionContext
) -> tuple[list[Table], list[str]]:
    """Return a table for all quantities with the same axes, tasks across, and the quantities that are in one."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, quantity in quantities.items():
        groups.setdefault(tuple(list_axes(quantity)), []).append(name)
    tables, shown = [], []
    for axes, names in sorted(groups.items(), key=lambda group: len(group[0])):
        frames, rows = [], 0
        for name in names:
            if rows + count_places(quantities[name]) <= MAX_ROWS:
                frames.append(_quantity_frame(name, quantities[name], axes))
                rows += len(frames[-1])
                shown.append(name)
        if rows:
            by = f", by {join_words(map(spaced, axes))}" if axes else ""
            caption = f"Quantities of every task{by}, with 95 % intervals"
            tables.append(Table(context.name("tasks", *axes), caption, pd.concat(frames), n))
    return tables, shown


def _quantity_frame(name: str, quantity: Estimate, axes: Sequence[str]) -> pd.DataFrame:
    """Return a row for each place with a value, and columns with the interval of each task."""
    places = stack_places(quantity)
    labels = {"quantity": [spaced(name)] * places.value.sizes["place"]}
    labels |= {spaced(axis): places.value[axis].values.tolist() for axis in axes}
    index = pd.MultiIndex.from_arrays(list(labels.values()), names=list(labels))
    columns: dict[str, Any] = {}
    for at, task in enumerate(places.value["task"].values):
        columns |= places.isel(task=at).columns(str(task))
    return pd.DataFrame(columns, index=index if axes else index.get_level_values(0)).dropna(how="all")


def _input_table(data: xr.Dataset, context: SectionContext) -> tuple[list[Table], list[str]]:
    """Return a table of what else is known of each task, such as its number of inputs, and the variables in it."""
    others = set(main_variables(data)) - set(quantity_names(data))
    tables = {name: _drop_seeds(data[name]) for name in main_variables(data) if name in others}
    columns = {name: table.values for name, table in tables.items() if table.dims == ("task",) and _is_short(table)}
    if not columns:
        return [], []
    index = pd.Index([str(task) for task in data["task"].values], name="task")
    frame = pd.DataFrame({spaced(name): values for name, values in columns.items()}, index=index)
    caption = "What is known of the inputs of each task, and of training"
    return [Table(context.name("inputs"), caption, frame, _count_inputs(data))], list(columns)


def _drop_seeds(table: xr.DataArray) -> xr.DataArray:
    """Return what is the same for all seeds without the axis."""
    if "seed" not in table.dims or not bool((table == table.isel(seed=0)).all()):
        return table
    return table.isel(seed=0, drop=True)


def _is_short(table: xr.DataArray) -> bool:
    """Whether these are numbers or short texts."""
    return table.dtype.kind in "fiub" or max(len(str(text)) for text in table.values) <= MAX_LETTERS
