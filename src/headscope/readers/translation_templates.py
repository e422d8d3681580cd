"""Pairs of sentences that come with the package: English with its French translation."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from headscope.core.errors import InputError
from headscope.core.reader import Columns, Reader, Record, RecordTable
from headscope.core.spec import check_choices
from headscope.data.bundled.translation import make_pairs


@dataclass(frozen=True)
class TranslationTemplates(Reader):
    """English sentences from templates, with their French translations as pairs.

    Articles and adjectives agree with their nouns in French, and most adjectives follow them. No noun is the subject of
    the same object in train and in test. `count` pairs are made, always the same for the same `seed`.
    """

    split: Literal["train", "test"] = "train"
    count: int = 2000
    seed: int = 0

    needs_path: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choices(self)
        if not 1 <= self.count <= 100_000:
            raise InputError(f"count={self.count} pairs are asked for. Give 1 to 100,000.")

    def __call__(self, path: str) -> RecordTable:  # noqa: ARG002  (the sentences are made here)
        """Return one row for each pair."""
        pairs = make_pairs(self.split, self.count, self.seed)
        rows = [
            Record(row, {"id": f"{self.split}-{row}", "text": text, "pair": pair})
            for row, (text, pair) in enumerate(pairs)
        ]
        return RecordTable(
            f"translation_templates:{self.split}", rows, Columns(text="text", pair="pair", id="id"), unit="row"
        )
