"""Run a study by name; and what all studies of tasks and fine-tuned models share."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import xarray as xr

from headscope.core.catalog import studies
from headscope.core.errors import InputError, OutputError
from headscope.core.provenance import read_provenance, stamp
from headscope.core.spec import entry_name
from headscope.core.study import ProgressCallback, Results, Study, StudyResult, option
from headscope.experiments.describe import describe_options, describe_study
from headscope.experiments.seeds import combine_seeds, join_seeds
from headscope.experiments.steps import FACTS, Steps, check_facts, print_progress, write_facts
from headscope.experiments.summary import count_inputs, list_tasks
from headscope.results.atomic import check_name
from headscope.results.hashes import hash_file
from headscope.results.lock import lock_output
from headscope.results.store import refuse_existing, save
from headscope.training.finetuning.folder import TrainingWriteError
from headscope.training.finetuning.settings import make_training_settings

if TYPE_CHECKING:
    from headscope.engine.model import Model
    from headscope.experiments.tasks import TaskData
    from headscope.experiments.tuned import TaskRun

COLUMNS = ("text", "pair", "label")
TASKS = "tasks"
"""The folder, in that of a study, with one folder for each task, whatever its name."""


def study(
    name: Any,
    model: Any = None,
    *,
    out: str | Path,
    device: str | None = None,
    progress: bool | ProgressCallback = True,
    overwrite: bool = False,
    **options: Any,
) -> StudyResult:
    """Repeat a published experiment on any model and data.

    Every step is stored in the folder `out` when it is done: a study that was stopped resumes when it is run again, and
    a finished one returns the same numbers at once. The result has the main Dataset as `data`, saved in `out` too, and
    a `document` that `hs.report` writes as a page.

    Parameters
    ----------
    name
        One of `headscope list studies`, or a study.
    model
        A model, or anything that `hs.load` loads. Default: a small BERT.
    out
        Folder for all steps.
    device
        cpu or cuda. Default: cuda if available.
    progress
        Called with every step that starts; True prints it to stderr.
    overwrite
        Replace the results of a study with other settings; steps that are the same are reused.
    options
        Parameters of the study.

    >>> from headscope.core.document import Document
    >>> class CountTokens(hs.Study):
    ...     def run(self, model, out, **options):
    ...         tokens = hs.capture(hs.load(model), "The cat sat down.").keys
    ...         return {"numbers": xr.Dataset({"tokens": tokens.counts.item()})}
    ...     def document(self, results):
    ...         return Document("Tokens", f"There are {results['numbers']['tokens'].item()}.", [])
    >>> hs.study(CountTokens, out="out", progress=False).document.lead
    'There are 7.'
    """
    if device not in (None, "cpu", "cuda"):
        raise InputError(f"device={device!r} is neither 'cpu' nor 'cuda'. Leave it out for the GPU if there is one.")
    from headscope.engine.device import check_device

    check_device(device)
    check_name(Path(out))
    chosen: Study = studies.make(name, **options)
    _check_training(chosen)
    folder, title = Path(out), entry_name(type(chosen))
    facts = {"study": title, "model": _describe_model(model), **describe_options(chosen, chosen.display_options)}
    if not overwrite:
        check_facts(folder, facts)
    refuse_existing(folder / f"{title}.nc", overwrite=overwrite or (folder / FACTS).is_file())
    callback = progress if callable(progress) else print_progress if progress else None
    with lock_output(folder):
        try:
            results = dict(chosen.run(model, folder, device=device, progress=callback, overwrite=overwrite))
            results["numbers"] = stamp(results["numbers"], kind="study", study=title)
            write_facts(folder, facts)  # first: results without facts are not resumed, nor replaced
            for part, data in results.items():
                save(data, folder / (f"{title}.nc" if part == "numbers" else f"{title}_{part}.nc"), overwrite=True)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"Stopped. Finished steps are stored in {folder}: run the same study again to resume it."
            ) from None
        except OutputError as error:
            if isinstance(error.__cause__, OSError):
                raise OutputError(_explain_resuming(error, folder)) from error
            raise
    return StudyResult(results, chosen.document(results))


def _check_training(study: Any) -> None:
    """Raise InputError for settings of training that `hs.finetune` would refuse, before anything is read or trained."""
    names = ("epochs", "batch_size", "max_length", "learning_rate", "warmup", "weight_decay", "seed")
    given: Any = {name: getattr(study, name) for name in names if getattr(study, name, None) is not None}
    make_training_settings(given)


@dataclass(frozen=True)
class TaskStudy(Study):
    """A study that fine-tunes a model on tasks, and measures each of them.

    A subclass declares its tasks and implements `measure_task` and `document`.
    """

    data: str | None = option(None, "Folder of GLUE; without it and --dev, a bundled task (GAP or the study's own).")
    tasks: tuple[str, ...] = option((), "A task of --data, such as rte; may be repeated. All by default.", flag="task")
    dev: str | Any | None = option(None, "Your own data to study, as for 'measure'.")  # noqa: RUF009  (a field)
    train: str | Any | None = option(None, "Your own data to fine-tune on; without it, --dev is split.")  # noqa: RUF009
    text: str | None = option(None, "Column of your data that holds the text.")
    pair: str | None = option(None, "Column of your data that holds the second text.")
    label: str | None = option(None, "Column of your data that holds the label.")
    labels: str | None = option(None, "The class of each label of your data: worst=0,best=1, or the names in order.")
    tuned: str | None = option(None, "Folder of a model that is fine-tuned already, or of such folders by task.")
    limit: int | None = option(None, "Number of inputs to study, sampled at random; all by default.")
    train_limit: int | None = option(None, "Number of training examples, sampled at random; all by default.")
    epochs: int | None = option(None, "Number of training epochs; 3 by default.")
    batch_size: int = option(8, "Training batch size.")
    learning_rate: float | None = option(None, "Peak learning rate; 2e-5 by default.")
    warmup: float = option(0.0, "Share of training steps in which the learning rate rises.")
    max_length: int = option(128, "Truncate inputs to this number of tokens.")
    seed: int = option(0, "Seed of fine-tuning and sampling.")
    seeds: int = option(1, "Fine-tune this many times, each with another seed; verdicts need all to agree.")
    malformed: str = option("error", "Malformed rows of your data are an error, or are skipped and counted: skip.")
    example: str | int | None = option(None, "Id of the input whose map is shown; its row number if it has no id.")

    kinds: ClassVar[Mapping[str, str]] = {}
    """The GLUE tasks of the study, with what kind of task each is."""

    display_options = ("example",)

    steps: ClassVar[int] = 1
    """Number of steps of one task, for progress."""

    own_facts: ClassVar[tuple[str, ...]] = ()
    """Parameters of the subclass that decide the numbers."""

    seeded: ClassVar[tuple[str, ...]] = ("numbers", "shown")
    """Results that get a dimension `seed` where there are several; of the others those of the first seed are kept."""

    short: ClassVar[Mapping[str, Any]] = {"limit": 80, "train_limit": 320, "epochs": 1, "learning_rate": 1e-4}
    """Defaults for the bundled task, which takes about two minutes with them."""

    def __post_init__(self) -> None:
        columns = [f"{name}={getattr(self, name)!r}" for name in COLUMNS if getattr(self, name) is not None]
        task, own = self.tasks[0] if self.tasks else None, self.dev is not None
        problems = {
            "Both data=FOLDER (of GLUE) and dev=FILE (your own data) are given. Give one of them.": self.data and own,
            "train=FILE is given, but not dev=FILE, which is what is studied. Give both.": self.train is not None
            and not own,
            f"{columns[0] if columns else ''} names a column of your own data, but there is no dev=FILE. Give the "
            "file, or leave the column out.": columns and not own,
            f"The task {task} is asked for, but dev=FILE gives your own data, which is no task of the paper. Leave one "
            "of them out.": task and own,
            f"The task {task} is asked for, but not where it is. Give data=FOLDER, the folder of GLUE.": task
            and not self.data
            and not own,
        }
        for text, wrong in problems.items():
            if wrong:
                raise InputError(text)
        for name in ("limit", "train_limit", "epochs", "seeds"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} is too small. Give at least 1.")

    @abstractmethod
    def measure_task(self, run: "TaskRun") -> dict[str, xr.Dataset]:
        """Return the results of one task by name; `numbers` must be there, with the dimension `task`."""

    def run(
        self,
        model: Any,
        out: Path,
        *,
        device: str | None = None,
        progress: ProgressCallback | None = None,
        overwrite: bool = False,
    ) -> Results:
        """Measure every task, and join the results."""
        from headscope.engine.load import load
        from headscope.engine.model import Model
        from headscope.experiments.one_head import choose_maps
        from headscope.experiments.tuned import check_example, check_runs, find_example
        from headscope.patterns.classify.classify import classifier_files

        tasks, missing = self.read_tasks()
        # in float32, like the fine-tuned model that it is compared with
        base = model if isinstance(model, Model) else load(model, device=device, dtype="float32")
        task_seeds = [(task, seed) for task in tasks for seed in range(self.seed, self.seed + self.seeds)]
        options: dict[str, Any] = {"device": device, "progress": progress}
        runs = [self.plan_task(task, base, out, len(task_seeds), seed=seed, **options) for task, seed in task_seeds]
        own = {name: getattr(self, name) for name in self.own_facts}
        files = classifier_files(str(own["classifier"])) if "classifier" in own else {}
        own |= {name: hash_file(path) for name, path in files.items() if path.is_file()}
        check_runs(runs, own, overwrite=overwrite)
        check_example(runs, self.example_id)
        parts: dict[str, list[xr.Dataset]] = {}
        for run, (_, seed) in zip(runs, task_seeds, strict=True):
            run.steps.begin(run.facts(own), overwrite=overwrite)
            for name, data in self.measure_task(run).items():
                if name in self.seeded and self.seeds > 1:
                    data = data.expand_dims(seed=[seed], axis=1)
                if name in self.seeded or seed == self.seed:
                    parts.setdefault(name, []).append(stamp(data, task_shown=run.task.name) if name == "maps" else data)
        maps = parts.pop("maps", None)
        joined = {name: join_seeds(tables) for name, tables in parts.items()}
        if maps:
            first = [run for run, (_, seed) in zip(runs, task_seeds, strict=True) if seed == self.seed]
            joined["maps"] = choose_maps(maps, [find_example(run, self.example_id) is not None for run in first])
        numbers = stamp_tasks(joined.pop("numbers"), **self.describe_run(base, missing))
        facts = read_provenance(numbers)
        return {"numbers": numbers, **{name: stamp(data, **facts) for name, data in joined.items()}}

    @property
    def example_id(self) -> str | None:
        """The id of the input to show; a row number is the id where there are none."""
        return None if self.example is None else str(self.example)

    def read_tasks(self) -> "tuple[list[TaskData], list[str]]":
        """Return the tasks to study, and the names of those that the folder lacks."""
        from headscope.experiments import tasks

        options: dict[str, Any] = {"seed": self.seed, "tuned": self.tuned is not None}
        if self.data is not None:
            return tasks.read_glue(self.data, self.tasks, self.kinds, **options)
        if self.dev is not None:
            columns = {name: getattr(self, name) for name in (*COLUMNS, "labels", "malformed")}
            return [tasks.read_files(self.dev, self.train, **columns, **options)], []
        return [self.read_bundled()], []

    def read_bundled(self) -> "TaskData":
        """Return the task that is studied where no data is given: GAP, unless the study has one of its own."""
        from headscope.experiments.tasks import read_bundled

        return read_bundled()

    def plan_task(
        self, task: "TaskData", base: "Model", out: Path, count: int, *, seed: int | None = None, **options: Any
    ) -> "TaskRun":
        """Return one task with everything that decides its numbers; of several seeds each has a folder of its own.

        `seed` is that of fine-tuning; all of them study the same sample.
        """
        from headscope.experiments.tasks import folder_name
        from headscope.experiments.tuned import TaskRun, find_tuned_folder, number_by_model
        from headscope.training.finetuning.settings import TrainingOptions

        title = task.name if self.seeds == 1 else f"{task.name} seed {seed}"
        short: Mapping[str, Any] = self.short if self.data is None and self.dev is None else {}
        tuning = TrainingOptions(
            epochs=self.epochs or short.get("epochs", 3),
            batch_size=self.batch_size,
            max_length=self.max_length,
            learning_rate=self.learning_rate or short.get("learning_rate", 2e-5),
            warmup=self.warmup,
            seed=self.seed if seed is None else seed,
            limit=self.train_limit or short.get("train_limit"),
        )
        steps = Steps(out / TASKS / folder_name(title), title, self.steps, options.get("progress"))
        tuned = find_tuned_folder(self.tuned, title, count)
        if tuned is not None:
            task = replace(task, dev=number_by_model(task.dev, tuned, task.name))
        limit = self.limit or short.get("limit")
        return TaskRun(task, base, steps, tuning, self.max_length, self.seed, limit, tuned, options.get("device"))

    def describe_run(self, base: "Model", missing: list[str]) -> dict[str, Any]:
        """Return the provenance; of a path only its name, so that a report says nothing of the machine."""
        values = describe_options(self)
        own = {name: values[name] for name in self.own_facts}
        return {**describe_study(self, base), "missing": missing, "max_length": self.max_length, **own}


def _describe_model(model: Any) -> str | None:
    if model is None or isinstance(model, str | Path):
        return None if model is None else str(model)
    return str(getattr(model, "spec", type(model).__name__))


def _explain_resuming(error: OutputError, folder: Path) -> str:
    """Return the message of a failed write with what is left, and how to resume the study."""
    if isinstance(error, TrainingWriteError):  # of a fine-tuning, which alone would be resumed in another way
        return f"{error.problem}, then run the same study again to resume it: finished steps are stored in {folder}."
    return f"{error} Finished steps are stored in {folder}: run the same study again to resume it."


def stamp_tasks(numbers: xr.Dataset, **facts: Any) -> xr.Dataset:
    """Stamp joined numbers with the data and weights of every task, the number of inputs, and several seeds."""
    combined = combine_seeds(numbers)
    hashes = {
        part: dict(zip(list_tasks(numbers), map(str, combined[f"{part}_hash"].values), strict=True))
        for part in ("data", "tuned")
    }
    seeds = {"seed": numbers["seed"].values.tolist()} if "seed" in numbers.dims else {}
    return stamp(numbers, **{**facts, **hashes, **seeds, "n": sum(count_inputs(combined).values())})
