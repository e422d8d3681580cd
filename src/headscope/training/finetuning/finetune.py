"""Fine-tune a model on labeled examples."""

import time
from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from headscope.core.errors import HeadscopeError, InputError, is_out_of_memory, require_package
from headscope.core.options import takes_options
from headscope.core.progress import print_status, show_progress
from headscope.engine.device import check_device
from headscope.engine.load import find_family, load, silence_transformers
from headscope.engine.model import Model
from headscope.results.lock import lock_output
from headscope.training.finetuning.folder import TrainingFolder, read_stamp
from headscope.training.finetuning.head import seed_all
from headscope.training.finetuning.job import TrainingJob, prepare_training
from headscope.training.finetuning.settings import FinetuneOptions, TrainingSettings, make_training_settings
from headscope.training.finetuning.trainer import Callbacks, count_steps, make_trainer
from headscope.version import __version__


@takes_options(FinetuneOptions)
def finetune(options: FinetuneOptions) -> Model:
    """Fine-tune a model for a task, and return it as `hs.load(out)` would.

    A config of transformers with a `tokenizer` starts from scratch; `tokenizer="words"` makes one whose tokens are the
    words of `train`, and "subwords" one of parts of words. `out` becomes a complete model folder with `finetune.json`:
    settings, fingerprints of the data, dev scores, loss curve. Training is in float32, and on a CPU the same settings
    give the same weights.

    An interrupted run is resumed with `resume=True`; `overwrite=True` deletes the fine-tuning that `out` holds, and
    starts over. `checkpoints=10` keeps ten models at equal distances.

    >>> from transformers import BertConfig
    >>> rows = [{"text": text, "label": text} for text in ("good", "bad")]
    >>> small = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    >>> tuned = hs.finetune(small, rows, tokenizer=model.tokenizer, out="tuned", epochs=1, progress=False)
    >>> tuned.network.config.num_labels
    2
    """
    require_package("accelerate", "train", "Fine-tuning")
    device, mode = options.device, {"resume": options.resume, "overwrite": options.overwrite}
    if device not in (None, "cpu", "cuda"):
        raise InputError(f"device={device!r} is neither 'cpu' nor 'cuda'. Leave it out for the GPU if there is one.")
    check_device(device)
    tuning = {item.name: getattr(options, item.name) for item in fields(TrainingSettings)}
    folder, settings = TrainingFolder(Path(options.out)), make_training_settings(tuning)
    folder.check(**mode)
    with lock_output(folder.path), silence_transformers():
        job = prepare_training(
            options.model, options.train, options.dev, task=options.task, tokenizer=options.tokenizer, settings=settings
        )
        kept_steps = choose_steps(options.checkpoints, count_steps(job) * settings.epochs)
        facts = {**job.facts, "keep_checkpoints": options.keep_checkpoints}
        facts |= {"checkpoints": options.checkpoints} if kept_steps else {}
        folder.begin(facts, **mode)
        if not folder.is_finished():
            _train(job, folder, facts, device=device, kept_steps=kept_steps, quiet=not options.progress)
        tuned = load(folder.path, device=device)
        _check_weights(folder, tuned)
        return tuned


def _check_weights(folder: TrainingFolder, tuned: Model) -> None:
    """Raise InputError if a finished fine-tuning does not have the weights that it ended with."""
    stamp = read_stamp(folder.path)
    if stamp is not None and stamp.get("tuned_hash", tuned.weights_hash) != tuned.weights_hash:
        raise InputError(
            f"The weights in {folder.path} changed since headscope wrote them: they are damaged, or of another model. "
            "Copy the folder again, or start over (overwrite=True, in the shell --force)."
        )


def choose_steps(count: int, total: int) -> frozenset[int]:
    """Return `count` equally spaced steps, the last of which is the final step.

    >>> sorted(choose_steps(3, 10))
    [3, 7, 10]
    """
    if not 0 <= count <= total:
        raise InputError(
            f"checkpoints={count} models cannot be kept: there are {total:,} training steps. Give 0 to {total}."
        )
    return frozenset(round(total * index / count) for index in range(1, count + 1))


def _train(
    job: TrainingJob,
    folder: TrainingFolder,
    facts: Mapping[str, Any],
    *,
    device: str | None,
    kept_steps: frozenset[int],
    quiet: bool,
) -> None:
    """Train from the last checkpoint or from the start, and write the model."""
    if not quiet:
        print_status(job.summary)
    start = time.monotonic()
    checkpoint, done = folder.find_checkpoint()
    settings, steps, keep = job.settings, count_steps(job), bool(facts["keep_checkpoints"])
    seen = done // steps * len(job.train) + done % steps * settings.batch_size
    try:
        with (
            seed_all(settings.seed),
            show_progress(settings.epochs * len(job.train), done=seen, quiet=quiet) as advance,
        ):
            callbacks = Callbacks(job, advance, folder, kept_steps, saves=not keep)
            trainer = make_trainer(job, folder, callbacks, device=device, keep=keep)
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise HeadscopeError(
            f"There is not enough memory for batches of {settings.batch_size} examples of up to {settings.max_length} "
            "tokens. Give a smaller batch_size or max_length."
        ) from error
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_describe_stop(folder, steps * settings.epochs)) from None
    if keep:
        folder.keep_epochs(steps)
    stamp = _make_stamp(job, facts, trainer.state.log_history, time.monotonic() - start)
    folder.finish(job.network, job.tokenizer, stamp)


def _make_stamp(
    job: TrainingJob, facts: Mapping[str, Any], history: list[dict[str, Any]], seconds: float
) -> dict[str, Any]:
    """Return the content of `finetune.json`; what may differ between two equal runs is under "circumstances"."""
    tuned = Model(job.network, job.tokenizer, find_family(job.network.config.model_type), "")
    return {
        "command": "hs.finetune",
        "version": __version__,
        "finished": True,
        "facts": dict(facts),
        "tuned_hash": tuned.weights_hash,
        "dev": [{"epoch": entry["epoch"], **entry["dev"]} for entry in history if "dev" in entry],
        "loss": [[entry["step"], entry["loss"]] for entry in history if "loss" in entry],
        "circumstances": {
            "seconds": round(seconds, 1),
            "device": job.network.device.type,
            "threads": torch.get_num_threads(),
            **{name: version(name) for name in ("torch", "transformers", "accelerate")},
        },
    }


def _describe_stop(folder: TrainingFolder, steps: int) -> str:
    done = folder.find_last_step()
    if not done:
        return f"Stopped before the first checkpoint. {folder.path} holds no model: start again with resume=True."
    return (
        f"Stopped. The first {done:,} of {steps:,} steps are saved in {folder.checkpoints}: resume with resume=True, "
        "in the shell --resume."
    )
