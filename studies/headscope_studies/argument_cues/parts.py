"""Parts of the input: the choices alone, with one text, with all texts; or each text of a classification alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headscope.core.example import Example

ALL = "all"
BALANCED = "all, balanced"
"""The whole input, learned from training data in which no single cue tells the label."""


@dataclass(frozen=True)
class Part:
    """A part of the input: its name, its texts, and whether it is learned from balanced data."""

    name: str
    texts: tuple[str, ...]
    balanced: bool = False


def list_parts(texts: Sequence[str], choice: str = "", *, balanced: bool = False) -> list[Part]:
    """Return the parts of an input with these texts; `choice` is what is chosen, empty for a classification.

    The first part is the one that should not be enough: the choices alone, or the last text of a classification, such
    as a hypothesis without its premise. Others are compared with it.

    >>> [part.name for part in list_parts(["reason", "claim"], "warrant")]
    ['warrant', 'reason + warrant', 'claim + warrant', 'all']
    >>> [part.name for part in list_parts(["premise", "hypothesis"])]
    ['hypothesis', 'premise', 'all']
    """
    ordered = (texts if choice else texts[::-1]) if len(texts) > 1 else ()
    single = [Part(f"{text} + {choice}" if choice else text, (text,)) for text in ordered]
    parts = [Part(choice, ())] if choice else []
    whole = Part(ALL, tuple(texts))
    parts += [*single, whole] if texts else []
    return parts + ([replace(whole, name=BALANCED, balanced=True)] if balanced else [])


def select_part(examples: Sequence[Example], part: Part) -> list[Example]:
    """Return the examples with only the texts of a part, which are columns of each example.

    With choices all texts are the first segment, and a choice is the second, as in Niven & Kao (2019). Without, the
    first text is the first segment, and all others are the second.
    """
    return [_select(example, part.texts) for example in examples]


def _select(example: Example, names: Sequence[str]) -> Example:
    texts = [str(example.columns[name]) for name in names]
    if "choices" in example.columns:
        return replace(example, text=" ".join(texts), pair=None, words=None)
    return replace(example, text=texts[0], pair=" ".join(texts[1:]) or None, words=None)
