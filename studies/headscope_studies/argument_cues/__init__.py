"""Is the model, or the dataset, cheating? Statistical cues in arguments (Niven & Kao, 2019)."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from headscope.core.errors import InputError
from headscope.core.study import ProgressCallback, Results, Study, option

if TYPE_CHECKING:
    from headscope.core.document import Document
    from headscope_studies.argument_cues.data import AuditData


@dataclass(frozen=True)
class ArgumentCues(Study):
    """Audit a dataset and a model for cues: words that tell the answer whatever the rest says (Niven & Kao, 2019)."""

    data: str | Any | None = option(  # noqa: RUF009  (a field)
        None, "Your own table to learn from, or a folder of ARCT with its adversarial sets; without it, bundled ARCT."
    )
    dev: str | Any | None = option(None, "Your own data to answer; without it, --data is divided.")  # noqa: RUF009
    text: tuple[str, ...] = option((), "Column of your data that holds a text; may be repeated.")
    choice: tuple[str, ...] = option((), "Column of your data that holds a choice; may be repeated.")
    label: str | None = option(None, "Column of your data that holds the class, or the index of the right choice.")
    negations: str | Any | None = option(  # noqa: RUF009
        None, "Table of claims and their negations (original, negated), for the adversarial set of ARCT."
    )
    cue: str | None = option(None, "The cue to follow, a word or two; by default the strongest of the training data.")
    balanced: bool = option(False, "Also learn from data in which no single cue tells the label.")
    limit: int | None = option(None, "Number of points to answer of each set, sampled at random; all by default.")
    train_limit: int | None = option(None, "Number of training examples, sampled at random; all by default.")
    epochs: int | None = option(None, "Number of training epochs of the model; 3 by default.")
    baseline_epochs: int | None = option(None, "Number of training epochs of the baselines; 10 by default.")
    batch_size: int = option(16, "Training batch size of the model.")
    learning_rate: float = option(1e-4, "Peak learning rate of the model.")
    warmup: float = option(0.1, "Share of training steps in which the learning rate rises.")
    max_length: int = option(128, "Truncate inputs to this number of tokens.")
    seed: int = option(0, "First seed of training; also that of sampling.")
    seeds: int = option(1, "Train every network this many times, each with another seed.")
    malformed: str = option("error", "Malformed rows of your data are an error, or are skipped and counted: skip.")

    cites = ("niven2019", "habernal2018")

    short: ClassVar[dict[str, int]] = {"limit": 80, "train_limit": 240, "epochs": 1, "baseline_epochs": 5}
    """Defaults for the bundled data, which take about three minutes with them."""

    def __post_init__(self) -> None:
        own = {"dev": self.dev, "text": self.text, "choice": self.choice, "label": self.label}
        named = [name for name, value in own.items() if value]
        if named and self.data is None:
            raise InputError(
                f"{named[0]}={own[named[0]]!r} is about your own data, but there is no data=FILE. Give it."
            )
        if self.negations is not None and named:
            raise InputError("negations are of claims of ARCT, but the data are your own. Leave one of them out.")
        for name in ("limit", "train_limit", "epochs", "baseline_epochs", "seeds"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} is too small. Give at least 1.")

    def setting(self, name: str) -> Any:
        """Return a parameter; where it is not given, that of the short run on bundled data, or None."""
        value = getattr(self, name)
        return self.short.get(name) if value is None and self.data is None else value

    def read_data(self) -> "AuditData":
        """Return the data of the audit, all of them."""
        from headscope_studies.argument_cues.data import add_balanced, read_arct, read_audit_data

        if self.data is None or (isinstance(self.data, str | Path) and Path(self.data).is_dir()):
            return read_arct(None if self.data is None else str(self.data), self.negations)
        columns: dict[str, Any] = {"text": self.text, "choice": self.choice, "label": self.label}
        data = read_audit_data(self.data, self.dev, **columns, malformed=self.malformed, seed=self.seed)
        return add_balanced(data, train=self.balanced, seed=self.seed)

    def run(
        self,
        model: Any,
        out: Path,
        *,
        device: str | None = None,
        progress: ProgressCallback | None = None,
        overwrite: bool = False,
    ) -> Results:
        """Count cues, train every network on every part of the input, and compare attention to the cue."""
        from headscope_studies.argument_cues.measure import measure_audit

        return measure_audit(self, model, out, device=device, progress=progress, overwrite=overwrite)

    def document(self, results: Results) -> "Document":
        """Return the report: verdicts, the cues of the data, and what networks do with them."""
        from headscope_studies.argument_cues.report import document

        return document(results)
