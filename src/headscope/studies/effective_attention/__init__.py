"""Effective attention on GLUE (Sun & Marasović, 2021): every table and figure, and what of it stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.errors import InputError
from headscope.core.study import Study

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.document import Document
    from headscope.engine.model import Model
    from headscope.studies.effective_attention.one_task import Plan
    from headscope.studies.effective_attention.tasks import TaskData

SHORT = {"limit": 120, "train_limit": 480, "epochs": 1}
"""What the bundled task is studied with where nobody says more: minutes instead of hours."""

COLUMNS = ("text", "pair", "label")


@dataclass(frozen=True)
class EffectiveAttention(Study):
    """Does effective attention show something else than attention (Sun & Marasović, 2021)? Every table and figure.

    `data` is a folder of GLUE, of which `tasks` names some; `dev` and `train` are any data of one's own, whose columns
    `text`, `pair` and `label` name. Without either it is a short run on GAP, which comes with the package. `limit` is
    how many inputs are studied, `train_limit` how many are learned from. `tuned` is the folder of a model that is tuned
    already, or of such folders by task. `example` is the id of the input that is shown.
    """

    data: str | None = None
    tasks: tuple[str, ...] = ()
    dev: str | None = None
    train: str | None = None
    text: str | None = None
    pair: str | None = None
    label: str | None = None
    tuned: str | None = None
    limit: int | None = None
    train_limit: int | None = None
    epochs: int | None = None
    batch_size: int = 8
    learning_rate: float | None = None
    warmup: float = 0.0
    max_length: int = 128
    seed: int = 0
    example: str | int | None = None
    classifier: str = "cnn"

    cites = ("sun2021", "brunner2020", "kovaleva2019", "kobayashi2020")

    def __post_init__(self) -> None:
        if self.data is not None and self.dev is not None:
            raise InputError("Both data (a folder of GLUE) and dev (data of one's own) are given. Give one of them.")
        if self.dev is None and self.train is not None:
            raise InputError("train is given, but not dev, which is what is studied. Give both.")
        columns = [name for name in COLUMNS if getattr(self, name) is not None]
        if self.dev is None and columns:
            raise InputError(
                f"{columns[0]} names a column of data of one's own, but there is no dev. Give the file as dev, or "
                f"leave {columns[0]} out."
            )
        if self.dev is not None and self.tasks:
            raise InputError(
                f"The task {self.tasks[0]} is asked for, but dev gives data of one's own, which is no task of the "
                "paper. Leave one of them out."
            )
        for name in ("limit", "train_limit", "epochs"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} leaves nothing to do. Give at least 1.")
        if self.data is None and self.tasks and self.dev is None:
            raise InputError(
                f"The task {self.tasks[0]} is asked for, but not where it lies. Give data, the folder of GLUE, in the "
                "shell --data."
            )

    def run(
        self, model: Any, out: Path, *, device: str | None = None, progress: bool = True
    ) -> "Mapping[str, xr.Dataset]":
        """Every task, step by step; the main result is `numbers`, beside it `times`, and `maps` of one example."""
        import xarray as xr

        from headscope.results.stamp import read_provenance, stamp
        from headscope.studies.effective_attention.check import check
        from headscope.studies.effective_attention.one_task import study_task, whole_of

        tasks, missing = self._tasks()
        base = _loaded(model, device)
        plans = [self._plan(task, len(tasks), progress) for task in tasks]
        check(plans, base, out)
        parts = [study_task(plan, base, out, device=device) for plan in plans]
        numbers = whole_of([each["numbers"] for each in parts], **self._facts(base, missing))
        times = [each["times"].expand_dims(task=[task.name]) for each, task in zip(parts, tasks, strict=True)]
        beside = {
            "times": xr.concat(times, "task", join="outer", combine_attrs="override"),
            "maps": _shown(plans, [each["maps"] for each in parts]),
        }
        facts = read_provenance(numbers)
        return {"numbers": numbers, **{name: stamp(each, **facts) for name, each in beside.items()}}

    def document(self, found: "Mapping[str, xr.Dataset]") -> "Document":
        """The report: what was run, the verdicts, every table and figure beside the paper's."""
        from headscope.studies.effective_attention.document import document

        return document(found)

    def _tasks(self) -> "tuple[list[TaskData], list[str]]":
        from headscope.studies.effective_attention import tasks

        if self.data is not None:
            return tasks.of_glue(self.data, self.tasks, self.seed, learning=self.tuned is None)
        if self.dev is not None:
            name = Path(self.dev.rpartition("@")[2] or self.dev).stem
            columns = {each: getattr(self, each) for each in COLUMNS}
            return [tasks.of_files(self.train, self.dev, name, self.seed, columns, learning=self.tuned is None)], []
        return [tasks.bundled()], []

    def _plan(self, task: "TaskData", many: int, progress: bool) -> "Plan":
        from headscope.studies.effective_attention.looking import Look
        from headscope.studies.effective_attention.one_task import Plan
        from headscope.training.settings import TrainingOptions

        short: dict[str, Any] = SHORT if self.data is None and self.dev is None else {}
        tuning = TrainingOptions(
            epochs=self.epochs or short.get("epochs", 3),
            batch_size=self.batch_size,
            max_length=self.max_length,
            learning_rate=self.learning_rate or (5e-5 if short else 2e-5),
            warmup=self.warmup,
            seed=self.seed,
            limit=self.train_limit or short.get("train_limit"),
        )
        look = Look(self.max_length, self.classifier, self.seed, progress)
        limit = self.limit or short.get("limit")
        shown = None if self.example is None else str(self.example)  # a row number is the id where there are none
        return Plan(task, look, tuning, limit, shown, _tuned_folder(self.tuned, task.name, many))

    def _facts(self, base: "Model", missing: list[str]) -> dict[str, Any]:
        from headscope.core.spec import file_name

        return {
            "command": "headscope study effective-attention",
            "options": self._options(),
            "study": file_name(type(self)),
            "model": base.spec,
            "weights_hash": base.weights_hash,
            "missing": missing,
            "max_length": self.max_length,
            "classifier": self.classifier,
            "seed": self.seed,
            "device": base.device.type,
            "dtype": str(base.network.dtype).removeprefix("torch."),
        }

    def _options(self) -> dict[str, Any]:
        """What was asked for; of a place only its name, so that a report says nothing of the machine."""
        places = ("data", "dev", "train", "tuned")
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        asked = {name: given[name] for name in given if given[name] != getattr(type(self), name)}
        return {name: Path(each).name if name in places else each for name, each in asked.items()}


def _loaded(model: Any, device: str | None) -> "Model":
    """In single precision whatever its file has: it is compared with a tuned model, which is in single precision."""
    from headscope.engine.load import load
    from headscope.engine.model import Model

    return model if isinstance(model, Model) else load(model, device=device, dtype="float32")


def _tuned_folder(tuned: str | None, task: str, many: int) -> Path | None:
    """The folder of this task's tuned model."""
    if tuned is None:
        return None
    folder = Path(tuned)
    if (folder / "config.json").is_file():
        if many > 1:
            raise InputError(
                f"{folder} is one tuned model, but {many} tasks are studied. Name one task, or give a folder "
                "that holds a folder for each."
            )
        return folder
    plain = task.lower().replace("-", "")
    held = [each for each in sorted(folder.glob("*")) if each.name.lower().replace("-", "") == plain]
    if not held:
        raise InputError(
            f"{folder} is no model, for it holds no config.json, and no folder of the task {task} either. Give the "
            "folder that hs.finetune made."
        )
    return held[0]


def _shown(plans: "Sequence[Plan]", maps: "Sequence[xr.Dataset]") -> "xr.Dataset":
    """The maps that were wanted, or the first in which there is something to see, with the name of their task."""
    from headscope.results.stamp import stamp

    named = [stamp(each, task_shown=plan.task.name) for plan, each in zip(plans, maps, strict=True)]
    wanted = [each for plan, each in zip(plans, named, strict=True) if plan.shows_wanted]
    differing = (each for each in named if not _same(each))
    return wanted[0] if wanted else next(differing, named[0])


def _same(maps: "xr.Dataset") -> bool:
    """Whether the example shown has nothing to show, because both attentions are the same."""
    one = maps["weights"].values
    return bool(abs(one[0] - one[1]).max() < 1e-6)
