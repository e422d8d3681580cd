"""A whole study on the kit: does effective attention have more entropy than raw attention?"""

from dataclasses import dataclass

import pandas as pd
import xarray as xr

from headscope.core.document import Document, Section
from headscope.experiments.claims import Claim, Threshold, judge
from headscope.experiments.rendering.report import report_verdicts, sample_inputs, score_table, select_interval
from headscope.experiments.study import TaskStudy, option
from headscope.experiments.summary import average, list_tasks, summarise
from headscope.plotting.facets import heat_facets, interval_facets
from headscope.reporting.frames import TableColumn, to_frame
from headscope_studies.effective_attention.scores import score_edits

EDITS = {"raw": None, "effective": "effective_attention"}
CAPTIONS = {
    "verdicts": "The claim.",
    "table_1": "Entropy (the paper's Table 1).",
    "scores": "Scores.",
    "figure_1": "Entropy (the paper's Figure 1).",
    "heads": "Entropy of every head.",
}
HUNDREDTH = Threshold("change of entropy", 0.01, "bits", "a hundredth of a bit counts", "2026-11-16")
CLAIM = Claim(
    "Entropy rises.", "entropy", {}, "rises", threshold=HUNDREDTH, theirs={"dev": "1.00 → 1.50"}, exact=("effective",)
)
THEIRS = pd.DataFrame({"task": ["dev"], "attention": ["effective"], "entropy": [1.5]}).set_index(["task", "attention"])


@dataclass(frozen=True)
class TinyStudy(TaskStudy):
    """Compare the entropy of raw and effective attention."""

    smoothing: float = option(0.0, "Added to every weight.")
    steps, own_facts = 2, ("smoothing",)

    def measure_task(self, run):
        return {"numbers": run.steps.keep("numbers", lambda: self._measure(run), discard="*.state")}

    def _measure(self, run):
        tuned = run.tuned
        run.steps.say(2, "measuring entropy")
        rows = run.measure(tuned, "tuned", {lens: lens for lens in EDITS}, [f"entropy:smoothing={self.smoothing}"])
        scored = score_edits(tuned, run.examples, EDITS, progress=False)
        heads = xr.Dataset({"heads": rows["entropy_rows"].mean("example"), "n": len(run.examples)})
        entropy = summarise("entropy", average(rows["entropy_rows"], "layer", "head"), baseline="raw")
        parts = [entropy, heads, scored.drop_attrs(), run.describe(metric=scored.attrs["metric"])]
        return xr.merge(parts).expand_dims(task=[run.task.name])

    def document(self, results):
        numbers = results["numbers"]
        inputs, judged = sample_inputs(CAPTIONS, numbers), [judge(CLAIM, numbers)]
        frame = to_frame(numbers, {"task": "task", "lens": "attention"}, [TableColumn("entropy", "entropy")])
        points = {task: select_interval(numbers.sel(task=[task]), "entropy") for task in list_tasks(numbers)}
        parts = [
            inputs.table("table_1", frame, THEIRS),
            inputs.table("scores", score_table(numbers)),
            inputs.picture("figure_1", interval_facets({"entropy": points}, x="task")),
            inputs.picture(
                "heads", heat_facets(numbers["heads"], rows="lens", columns="task", y="layer", label="bits")
            ),
        ]
        sections = [report_verdicts(inputs, judged, (), "By intervals."), Section("Entropy", parts)]
        return Document("Entropy", "A tiny study.", sections, ("sun2021",))
