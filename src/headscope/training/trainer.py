"""transformers' own trainer, told what a job needs, and watched."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from headscope.core.errors import HeadscopeError
from headscope.engine.progress import Advance
from headscope.training.folder import Folder
from headscope.training.job import TrainingJob
from headscope.training.predict import predicted
from headscope.training.rows import EncodedExample

PAUSE, TIMES = 120.0, 20
"""Seconds between two checkpoints within an epoch, at least; where writing one takes long, so many times that."""

POINTS = 200  # of the loss curve, about


def steps_of(job: TrainingJob) -> int:
    """How many steps one epoch has."""
    return math.ceil(len(job.train) / job.settings.batch_size)


def trainer_of(job: TrainingJob, folder: Folder, watch: "Watch", *, device: str | None, keep: bool) -> Any:
    """The trainer of transformers for this job: float32, AdamW, a rate that falls in a line, no noise."""
    import torch
    import transformers

    asked, steps = job.settings, steps_of(job) * job.settings.epochs
    arguments = transformers.TrainingArguments(
        output_dir=str(folder.checkpoints),
        num_train_epochs=asked.epochs,
        per_device_train_batch_size=asked.batch_size,
        learning_rate=asked.learning_rate,
        warmup_steps=round(asked.warmup * steps),
        weight_decay=asked.weight_decay,
        seed=asked.seed,
        optim="adamw_torch_fused",
        use_cpu=device == "cpu",
        save_strategy="epoch",
        save_total_limit=None if keep else 1,
        logging_steps=max(1, steps // POINTS),
        logging_nan_inf_filter=False,
        report_to="none",
        disable_tqdm=True,
        log_level="error",
        remove_unused_columns=False,
        dataloader_pin_memory=device != "cpu" and torch.cuda.is_available(),
    )
    arguments._n_gpu = min(1, arguments.n_gpu)  # a second GPU would make batches twice as large as asked
    made = transformers.Trainer(
        model=job.network,
        args=arguments,
        train_dataset=job.train,
        data_collator=watch.collate,
        processing_class=job.tokenizer,
        callbacks=[_callback(watch)],
    )
    made.remove_callback(transformers.PrinterCallback)
    return made


@dataclass
class Watch:
    """What is done between the steps of training: batches made, progress told, dev scored, checkpoints asked for."""

    job: TrainingJob
    advance: Advance = lambda _: None
    saves: bool = True  # also within an epoch
    epoch: int = 1
    saved: float = field(default_factory=time.monotonic)
    pause: float = field(default_factory=lambda: PAUSE)
    asked: float | None = None  # when a checkpoint was asked for that is being written

    def collate(self, rows: Sequence[EncodedExample]) -> dict[str, Tensor]:
        """One batch as the model takes it."""
        return self.job.task.batch(self.job.tokenizer, rows, (self.job.settings.seed, self.epoch))

    def begin_epoch(self, _: Any, state: Any, control: Any, **__: Any) -> Any:
        """Know which epoch it is, also of a run that is resumed."""
        self.epoch = 1 + state.global_step // steps_of(self.job)
        return control

    def step(self, _: Any, state: Any, control: Any, **__: Any) -> Any:
        """Tell the progress, and ask for a checkpoint now and then."""
        place, size = (state.global_step - 1) % steps_of(self.job), self.job.settings.batch_size
        self.advance(min(size, len(self.job.train) - place * size))
        if self.saves and time.monotonic() - self.saved >= self.pause:
            self.asked, control.should_save = time.monotonic(), True
        return control

    def after_save(self, _: Any, __: Any, control: Any, **___: Any) -> Any:
        """The longer a checkpoint takes, the rarer they are."""
        took = 0.0 if self.asked is None else time.monotonic() - self.asked
        self.saved, self.pause, self.asked = time.monotonic(), max(PAUSE, TIMES * took), None
        return control

    def end_epoch(self, _: Any, state: Any, control: Any, **__: Any) -> Any:
        """Score dev; the trainer's own history keeps it, through checkpoints too."""
        job = self.job
        if job.dev:
            size = 4 * job.settings.batch_size
            found = predicted(job.network, job.tokenizer, job.task, job.dev, batch_size=size, seed=0)
            state.log_history.append({"epoch": self.epoch, "step": state.global_step, "dev": job.task.values(found)})
        return control

    def log(self, _: Any, state: Any, control: Any, logs: Any = None, **__: Any) -> Any:
        """Stop as soon as the loss is no number any more."""
        if logs and not math.isfinite(logs.get("loss", 0.0)):
            raise HeadscopeError(
                f"The loss is no longer a number after step {state.global_step} of {state.max_steps}: the weights are "
                f"lost. Tune again with a smaller learning_rate than {self.job.settings.learning_rate:g}, or a warmup."
            )
        return control


def _callback(watch: Watch) -> Any:
    import transformers

    made = transformers.TrainerCallback()
    made.on_epoch_begin, made.on_epoch_end = watch.begin_epoch, watch.end_epoch
    made.on_step_end, made.on_save, made.on_log = watch.step, watch.after_save, watch.log
    return made
