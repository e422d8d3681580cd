"""The Trainer of transformers, set up for a job, with callbacks."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from headscope.core.errors import HeadscopeError
from headscope.core.progress import Advance
from headscope.data.tokenizing.encode import EncodedExample
from headscope.training.finetuning.folder import TrainingFolder
from headscope.training.finetuning.job import TrainingJob
from headscope.training.predict import predict

MIN_INTERVAL, WRITE_FACTOR = 120.0, 20
"""Seconds between two checkpoints within an epoch: the minimum, and in multiples of the time that writing one takes."""

LOSS_POINTS = 200  # approximate number of points of the loss curve


def count_steps(job: TrainingJob) -> int:
    """Return the number of steps of one epoch."""
    return math.ceil(len(job.train) / job.settings.batch_size)


def make_trainer(
    job: TrainingJob, folder: TrainingFolder, callbacks: "Callbacks", *, device: str | None, keep: bool
) -> Any:
    """Return the Trainer of transformers: float32, AdamW, a linearly decaying learning rate, no output."""
    import torch
    import transformers

    settings, steps = job.settings, count_steps(job) * job.settings.epochs
    arguments = transformers.TrainingArguments(
        output_dir=str(folder.checkpoints),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        warmup_steps=round(settings.warmup * steps),
        weight_decay=settings.weight_decay,
        seed=settings.seed,
        optim="adamw_torch_fused",
        use_cpu=device == "cpu",
        save_strategy="epoch",
        logging_steps=max(1, steps // LOSS_POINTS),
        logging_nan_inf_filter=False,
        report_to="none",
        disable_tqdm=True,
        log_level="error",
        remove_unused_columns=False,
        dataloader_pin_memory=device != "cpu" and torch.cuda.is_available(),
    )
    arguments._n_gpu = min(1, arguments.n_gpu)  # a second GPU would double the batch size
    hooks = transformers.TrainerCallback()
    hooks.on_epoch_begin, hooks.on_epoch_end = callbacks.begin_epoch, callbacks.end_epoch
    hooks.on_step_end, hooks.on_save, hooks.on_log = callbacks.end_step, callbacks.after_save, callbacks.check_loss
    trainer = transformers.Trainer(
        model=job.network,
        args=arguments,
        train_dataset=job.train,
        data_collator=callbacks.collate,
        processing_class=job.tokenizer,
        callbacks=[hooks],
    )
    trainer.remove_callback(transformers.PrinterCallback)
    write = trainer._save_checkpoint  # no callback is called when it fails, nor before older ones are deleted
    trainer._save_checkpoint = lambda *inputs: folder.write_checkpoint(
        trainer.state.global_step, lambda: write(*inputs), keep=keep
    )
    return trainer


@dataclass
class Callbacks:
    """What runs between training steps: collating, progress, dev scores, checkpoints, the check of the loss."""

    job: TrainingJob
    advance: Advance = lambda _: None
    folder: TrainingFolder | None = None
    kept_steps: frozenset[int] = frozenset()  # steps after which the model is kept
    saves: bool = True  # also within an epoch
    epoch: int = 1
    saved: float = field(default_factory=time.monotonic)
    interval: float = field(default_factory=lambda: MIN_INTERVAL)
    save_started: float | None = None

    def collate(self, rows: Sequence[EncodedExample]) -> dict[str, Tensor]:
        """Return one padded batch."""
        return self.job.task.make_batch(self.job.tokenizer, rows, (self.job.settings.seed, self.epoch))

    def begin_epoch(self, _: Any, state: Any, __: Any, **___: Any) -> None:
        """Set the epoch, also of a resumed run."""
        self.epoch = 1 + state.global_step // count_steps(self.job)

    def end_step(self, _: Any, state: Any, control: Any, **__: Any) -> None:
        """Advance the progress bar, keep the model if asked for, and request a checkpoint when one is due."""
        step, size = (state.global_step - 1) % count_steps(self.job), self.job.settings.batch_size
        self.advance(min(size, len(self.job.train) - step * size))
        if self.folder is not None and state.global_step in self.kept_steps:
            self.folder.keep_step(self.job.network, self.job.tokenizer, state.global_step)
        if self.saves and time.monotonic() - self.saved >= self.interval:
            self.save_started, control.should_save = time.monotonic(), True

    def after_save(self, *_: Any, **__: Any) -> None:
        """Set the interval to the next checkpoint from the time that this one took."""
        seconds = 0.0 if self.save_started is None else time.monotonic() - self.save_started
        self.saved, self.save_started = time.monotonic(), None
        self.interval = max(MIN_INTERVAL, WRITE_FACTOR * seconds)

    def end_epoch(self, _: Any, state: Any, __: Any, **___: Any) -> None:
        """Score dev, and store the metrics in the trainer's history, which checkpoints keep."""
        job = self.job
        if job.dev:
            batch_size = 4 * job.settings.batch_size
            answers = predict(job.network, job.tokenizer, job.task, job.dev, batch_size=batch_size)
            values = {name: metric.value for name, metric in job.task.compute_metrics(answers).items()}
            state.log_history.append({"epoch": self.epoch, "step": state.global_step, "dev": values})

    def check_loss(self, _: Any, state: Any, __: Any, logs: Any = None, **___: Any) -> None:
        """Stop when the loss is infinite or NaN."""
        if logs and not math.isfinite(logs.get("loss", 0.0)):
            raise HeadscopeError(
                f"The loss is infinite or NaN after step {state.global_step} of {state.max_steps}, and the weights are "
                f"lost. Tune again with a smaller learning_rate than {self.job.settings.learning_rate:g}, or a warmup."
            )
