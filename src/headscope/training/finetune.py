"""Fine-tuning a model on labelled examples, with the trainer that the field uses."""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Unpack

import torch

from headscope.core.errors import HeadscopeError, InputError, require_package
from headscope.engine.load import find_family, load
from headscope.engine.model import Model
from headscope.engine.progress import show_progress
from headscope.training.folder import Folder
from headscope.training.head import seeded
from headscope.training.job import TrainingJob, job_of
from headscope.training.options import TrainingOptions, settings_of
from headscope.training.trainer import Watch, steps_of, trainer_of
from headscope.version import __version__

LACKING = "out of memory|not enough memory|can't allocate memory"  # how torch says that memory is short


def finetune(
    model: Any,
    train: Any,
    *,
    out: str | Path,
    dev: Any = None,
    task: str = "auto",
    tokenizer: Any = None,
    resume: bool = False,
    keep_checkpoints: bool = False,
    device: str | None = None,
    progress: bool = True,
    **options: Unpack[TrainingOptions],
) -> Model:
    """Tune a model for a task, and give it as `hs.load(out)` would.

    `model` is anything `hs.load` takes (None is the small default), a Model, or a config of transformers with a
    `tokenizer`, which starts from scratch. `train` and `dev` are whatever `hs.read` gives or reads. `task` is
    "classification", "regression", "choice" or "mlm"; "auto" sees it from the labels. `out` becomes a complete model
    folder with `finetune.json`, which says where it comes from, how dev was scored and how the loss fell.

    A run that is stopped goes on with `resume=True`. `keep_checkpoints` keeps the model of every epoch as
    `out/epoch-1` and so on.

    Options: `epochs`, `batch_size`, `max_length`, `learning_rate`, `warmup`, `weight_decay`, `seed`, `from_scratch`,
    `limit`. Training is in float32, and on a CPU the same settings give the same weights.
    """
    require_package("accelerate", "train", "Fine-tuning")
    if device not in (None, "cpu", "cuda"):
        raise InputError(f"device={device!r} is neither 'cpu' nor 'cuda'. Leave it out for the GPU if there is one.")
    folder, settings = Folder(Path(out)), settings_of(options)
    folder.check(resume=resume)
    with _silent_library():
        job = job_of(model, train, dev, task=task, tokenizer=tokenizer, settings=settings)
        if not folder.begin({**job.facts, "keep_checkpoints": keep_checkpoints}, resume=resume):
            if progress:
                print(job.said, file=sys.stderr)  # noqa: T201  (it goes with the progress)
            _run(job, folder, device=device, keep=keep_checkpoints, quiet=not progress)
        return load(folder.path, device=device)


def _run(job: TrainingJob, folder: Folder, *, device: str | None, keep: bool, quiet: bool) -> None:
    """Train from the last checkpoint or from the start, and put the model down."""
    start, last = time.monotonic(), folder.last()
    done = 0 if last is None else int(last.name.partition("-")[2])
    epochs, many, steps = job.settings.epochs, len(job.train), steps_of(job)
    seen = done // steps * many + done % steps * job.settings.batch_size
    try:
        with seeded(job.settings.seed), show_progress(epochs * many, done=seen, quiet=quiet) as advance:
            watch = Watch(job, advance, saves=not keep)
            trainer = trainer_of(job, folder, watch, device=device, keep=keep)
            trainer.train(resume_from_checkpoint=None if last is None else str(last))
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or re.search(LACKING, str(error)):
            raise HeadscopeError(
                f"There is not enough memory for batches of {job.settings.batch_size} examples of up to "
                f"{job.settings.max_length} tokens. Give a smaller batch_size or max_length."
            ) from error
        raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_stopped(folder, steps * epochs)) from None
    if keep:
        folder.keep_epochs(steps)
    folder.finish(job.network, job.tokenizer, _stamp(job, folder, trainer.state.log_history, time.monotonic() - start))


def _stamp(job: TrainingJob, folder: Folder, history: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """What the folder says about itself; what may differ between two equal runs stands apart."""
    packages = ("torch", "transformers", "accelerate")
    tuned = Model(job.network, job.tokenizer, find_family(job.network.config.model_type), "")
    return {
        "command": "hs.finetune",
        "version": __version__,
        "finished": True,
        "facts": (folder.stamp or {})["facts"],
        "tuned_hash": tuned.weights_hash,
        "dev": [{"epoch": each["epoch"], **each["dev"]} for each in history if "dev" in each],
        "loss": [[each["step"], each["loss"]] for each in history if "loss" in each],
        "circumstances": {
            "seconds": round(seconds, 1),
            "device": job.network.device.type,
            "threads": torch.get_num_threads(),
            **{name: version(name) for name in packages},
        },
    }


def _stopped(folder: Folder, steps: int) -> str:
    last = folder.last()
    if last is None:
        return f"Stopped before the first checkpoint. {folder.path} holds no model: start again with resume=True."
    done = int(last.name.partition("-")[2])
    return (
        f"Stopped. The first {done:,} of {steps:,} steps are saved in {folder.checkpoints}: go on with resume=True, in "
        "the shell --resume."
    )


@contextmanager
def _silent_library() -> Iterator[None]:
    """The library draws a bar for each file and reports each new weight; our bar and our stamp say it already."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
