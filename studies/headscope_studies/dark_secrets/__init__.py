"""What heads do and which matter (Kovaleva et al., 2019): patterns, fine-tuning, disabled heads, relations."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.errors import InputError
from headscope.core.study import Results, option
from headscope.experiments.study import TaskStudy
from headscope_studies.dark_secrets.paper import KINDS

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.document import Document
    from headscope.experiments.tuned import TaskRun


@dataclass(frozen=True)
class DarkSecrets(TaskStudy):
    """Classify, compare and disable heads, and relate them to pairs of words (Kovaleva et al., 2019)."""

    classifier: str = option("cnn", "Classifier of patterns: cnn, rules, both, or the .safetensors file of your own.")
    relations: str | Any | None = option(  # noqa: RUF009  (a field)
        None, "Related words: a treebank (.conllu), or a table (.tsv) of text, word_i, word_j and relation."
    )

    cites = ("kovaleva2019", "clark2019", "silveira2014")
    kinds = KINDS
    steps = 4
    own_facts = ("classifier",)

    def __post_init__(self) -> None:
        from headscope.patterns.classify.classify import require_classifier

        super().__post_init__()
        require_classifier(self.classifier)
        if self.example is not None:
            raise InputError(f"example={self.example!r} asks for the map of an input, but this study shows none.")

    def run(self, model: Any, out: Path, **options: Any) -> Results:
        """Measure every task, and the heads of the model before tuning on related words."""
        from headscope.engine.load import load
        from headscope.engine.model import Model
        from headscope.experiments.relation_heads import choose_relations, read_relations
        from headscope_studies.dark_secrets.measure import measure_related

        examples = read_relations(self.relations)
        choose_relations(examples)  # an error comes before anything is trained
        base = model if isinstance(model, Model) else load(model, device=options.get("device"), dtype="float32")
        results = super().run(base, out, **options)
        return {**results, **measure_related(base, examples, out / "relations", self.max_length, **options)}

    def measure_task(self, run: "TaskRun") -> "dict[str, xr.Dataset]":
        """Return `numbers`: patterns, similarity, scores from every start, and scores with heads disabled."""
        from headscope_studies.dark_secrets.measure import measure_numbers

        return {"numbers": run.steps.keep("numbers", lambda: measure_numbers(run, self.classifier), discard="*.state")}

    def document(self, results: Results) -> "Document":
        """Return the report: verdicts, and every table and figure beside what the paper gives."""
        from headscope_studies.dark_secrets.report import document

        return document(results)
