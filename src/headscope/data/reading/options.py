"""Options of `hs.read`, and of a sample of the examples."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from headscope.core.options import LIMIT, describe, option


@dataclass(frozen=True)
class ReadOptions:
    """What `hs.read` takes. Columns that are not named are found by common names."""

    source: Any = field(
        metadata=describe(
            "A path (.csv .tsv .jsonl .json .txt .parquet), `format:parameters@PATH`, 'sample' for a hundred "
            "paragraphs that come with the package, a DataFrame, a dataset, or a list of texts, of pairs, of dicts or "
            "of examples. A tuple of two texts is one pair; a list of two texts is two texts."
        )
    )
    _: KW_ONLY
    text: str | None = option(None, "Column with the text.")
    pair: str | None = option(None, "Column with the second text.")
    label: str | None = option(None, "Column with the label.")
    words: str | None = option(None, "Column with the words, where texts are split already.")
    id: str | None = option(None, "Column with the id; 'row' numbers the rows.")
    choices: Sequence[str] | str | None = option(
        None, "Columns with one choice each, or one column with lists of choices."
    )
    labels: str | Mapping[Any, int] | Sequence[str] | None = option(
        None, "The class of each label: worst=0,best=1, or the names in order: worst,best."
    )
    encoding: str | None = option(None, "Encoding of a text file: latin-1, cp1252, utf-16. Default: UTF-8.")
    malformed: str = option("error", "Rows that cannot be read: error, or skip and count.")


@dataclass(frozen=True, kw_only=True)
class SampleOptions:
    """Which of the examples are used."""

    limit: int | None = option(None, LIMIT)
    seed: int = option(0, "Random seed of `limit`.")
