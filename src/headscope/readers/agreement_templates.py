"""Sentences for subject-verb agreement that come with the package: is the verb that follows singular or plural?"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from headscope.core.errors import InputError
from headscope.core.reader import Reader, Record, RecordTable
from headscope.core.spec import check_choices
from headscope.data.bundled.agreement import AgreementSentence, make_sentences
from headscope.data.reading.agreement import COLUMNS


@dataclass(frozen=True)
class AgreementTemplates(Reader):
    """Sentences from templates, up to their verb; the label is the number of the verb (as in Linzen et al., 2016).

    `attractors` counts the nouns of the other number between the subject and the verb, 0 to 4. `subject_position` and
    `attractor_positions` are indices of words, `swapped_subject` is the subject in the other number. No subject occurs
    with the same other noun in train and in test. `count` sentences are made, always the same for the same `seed`.
    """

    split: Literal["train", "test"] = "train"
    count: int = 2000
    seed: int = 0

    needs_path: ClassVar[bool] = False
    cites: ClassVar[tuple[str, ...]] = ("linzen2016",)

    def __post_init__(self) -> None:
        check_choices(self)
        if not 1 <= self.count <= 100_000:
            raise InputError(f"count={self.count} sentences are asked for. Give 1 to 100,000.")

    def __call__(self, path: str) -> RecordTable:  # noqa: ARG002  (the sentences are made here)
        """Return one row for each sentence."""
        sentences = make_sentences(self.split, self.count, self.seed)
        rows = [_make_record(f"{self.split}-{row}", row, sentence) for row, sentence in enumerate(sentences)]
        return RecordTable(f"agreement_templates:{self.split}", rows, replace(COLUMNS, id="id"), unit="row")


def _make_record(name: str, row: int, sentence: AgreementSentence) -> Record:
    values = {
        "id": name,
        "words": sentence.words,
        "number": sentence.number,
        "attractors": len(sentence.attractors),
        "verb": sentence.verb,
        "wrong_verb": sentence.wrong_verb,
        "subject_position": sentence.subject,
        "attractor_positions": sentence.attractors,
        "swapped_subject": sentence.swapped_subject,
    }
    return Record(row, values)
