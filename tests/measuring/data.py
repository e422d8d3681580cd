"""Texts of different lengths, and a tiny model in a folder that other processes can load."""

from pathlib import Path

from headscope.core.example import Example
from tests.models import WORDS, network, tokenizer

STATISTICS = ["entropy", "offsets", "special_tokens", "effective_share"]
LENSES = ["raw", "effective"]


def examples(count: int) -> list[Example]:
    """Texts of 2 to 30 words, no two alike."""
    return [
        Example(
            f"text {index}",
            " ".join(WORDS[(index * 7 + step * (1 + index % 5)) % len(WORDS)] for step in range(2 + index * 11 % 29)),
        )
        for index in range(count)
    ]


def saved_model(folder: Path) -> Path:
    """A tiny BERT with its tokenizer, as files."""
    network("bert").save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder
