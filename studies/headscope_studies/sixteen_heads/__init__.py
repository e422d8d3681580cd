"""Are sixteen heads better than one (Michel et al., 2019)? Heads removed one at a time, all but one, and in order."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.errors import InputError
from headscope.core.study import Results, option
from headscope.experiments.study import TaskStudy
from headscope_studies.sixteen_heads.paper import KINDS

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.document import Document
    from headscope.experiments.tasks import TaskData
    from headscope.experiments.tuned import TaskRun


@dataclass(frozen=True)
class SixteenHeads(TaskStudy):
    """Remove heads and score what is left; importance, pruning, other data, training (Michel et al., 2019)."""

    group: str = option("genre", "Column that divides the inputs into datasets of the same task.")
    checkpoints: int = option(5, "Number of models during training whose heads' importance is followed.")
    random_orders: int = option(3, "Number of random orders that pruning by importance is compared with.")
    translation: str | None = option(None, "Folder of an encoder-decoder model that translates, to study its sites.")
    parallel: str | Any | None = option(None, "Parallel text for it: columns text and pair, as for 'measure'.")  # noqa: RUF009
    parallel_train: str | Any | None = option(  # noqa: RUF009
        None, "Parallel text that it was trained on, to estimate importance; without it, the text that it translates."
    )

    cites = ("michel2019",)
    kinds = KINDS
    steps = 5
    own_facts = ("group", "checkpoints", "random_orders")
    short = {"limit": 40, "train_limit": 320, "epochs": 1, "learning_rate": 1e-4}  # noqa: RUF012  (as in TaskStudy)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.translation is None) != (self.parallel is None):
            raise InputError(
                "translation=FOLDER and parallel=FILE belong together: a model, and the text that it translates. Give "
                "both, or neither."
            )
        if self.parallel_train is not None and self.parallel is None:
            raise InputError("parallel_train=FILE is given, but not parallel=FILE, the text to translate. Give both.")
        for name in ("checkpoints", "random_orders"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} is too small. Give at least 1.")

    def plan_task(self, task: "TaskData", base: Any, out: Path, count: int, **options: Any) -> "TaskRun":
        """Return one task, whose fine-tuning keeps models on the way."""
        return replace(super().plan_task(task, base, out, count, **options), checkpoints=self.checkpoints)

    def run(self, model: Any, out: Path, **options: Any) -> Results:
        """Measure every task, and the sites of the model that translates, if there is one."""
        from headscope_studies.sixteen_heads.translation import measure_sites

        results = super().run(model, out, **options)
        if self.translation is None:
            return results
        sizes: dict[str, Any] = {"limit": self.limit, "seed": self.seed, "orders": self.random_orders}
        sites = measure_sites(self.translation, self.parallel, out, learned=self.parallel_train, **sizes, **options)
        return {**results, "translation": sites}

    def measure_task(self, run: "TaskRun") -> "dict[str, xr.Dataset]":
        """Return the numbers of a task."""
        from headscope_studies.sixteen_heads.measure import measure_task

        return measure_task(run, group=self.group, orders=self.random_orders)

    def document(self, results: Results) -> "Document":
        """Return the report: verdicts, and every table and figure beside the paper's findings."""
        from headscope_studies.sixteen_heads.report import document

        return document(results)
