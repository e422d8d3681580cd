"""What do heads look at (Clark et al., 2019)? Surface patterns, no-ops, syntax, coreference, clusters of heads."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.errors import InputError
from headscope.core.study import ProgressCallback, Results, Study, option

if TYPE_CHECKING:
    from headscope.core.document import Document


@dataclass(frozen=True)
class WhatHeadsLookAt(Study):
    """Measure what heads attend to, whether it is a no-op, and what they know of syntax (Clark et al., 2019)."""

    text: str | Any | None = option(None, "Inputs, best pairs of paragraphs: paragraph_pairs@FILE.")  # noqa: RUF009
    limit: int | None = option(None, "Number of inputs, sampled at random; 1,000, or 48 bundled ones, by default.")
    mlm: str | None = option(None, "Folder of a masked language model made from the studied one; tuned by default.")
    mlm_text: str | Any | None = option(None, "Text to tune it on; the bundled GAP by default.")  # noqa: RUF009
    tuned: str | None = option(None, "Folder of a classifier made from the studied model; tuned by default.")
    dev: str | Any | None = option(None, "Labelled data for the loss of the classifier.")  # noqa: RUF009
    train: str | Any | None = option(None, "Labelled data to tune it on; without it, --dev is split.")  # noqa: RUF009
    train_limit: int | None = option(None, "Number of texts that each of the two is tuned on; 160 by default.")
    epochs: int = option(1, "Number of training epochs of each.")
    treebank: str | Any | None = option(None, "Treebank (.conllu); the bundled sample of EWT by default.")  # noqa: RUF009
    coreference: str | Any | None = option(None, "Data with coreference; the bundled GAP by default.")  # noqa: RUF009
    probe_limit: int | None = option(None, "Number of texts for coreference; 100 bundled ones by default.")
    trained_probes: bool = option(True, "Train probes on the attention of all heads.")
    max_length: int = option(128, "Truncate inputs to this number of tokens.")
    seed: int = option(0, "Seed of sampling, masks and tuning.")
    seeds: int = option(1, "Tune this many times, each with another seed; verdicts need all to agree.")

    cites = ("clark2019", "kobayashi2020", "brunner2020", "webster2018", "silveira2014")

    def __post_init__(self) -> None:
        if self.train is not None and self.dev is None:
            raise InputError("train=FILE is given, but not dev=FILE, whose loss is measured. Give both.")
        if self.tuned is not None and self.dev is None:
            raise InputError("tuned=FOLDER is a classifier, but dev=FILE, its labelled data, is not given. Give both.")
        for name in ("limit", "train_limit", "epochs", "probe_limit", "seeds"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} is too small. Give at least 1.")

    def run(
        self,
        model: Any,
        out: Path,
        *,
        device: str | None = None,
        progress: ProgressCallback | None = None,
        overwrite: bool = False,
    ) -> Results:
        """Measure the surface, tune two models and measure their gradients, then fit the probes."""
        from headscope_studies.what_heads_look_at.measure import measure_all

        return measure_all(self, model, out, device=device, progress=progress, overwrite=overwrite)

    def document(self, results: Results) -> "Document":
        """Return the report: verdicts, and every table and figure beside what the paper gives."""
        from headscope_studies.what_heads_look_at.report import document

        return document(results)
