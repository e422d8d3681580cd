"""What stands at a table or picture: its caption, over how many examples it is, and whether it was reduced."""

from headscope.core.document import Picture, Table


def caption(part: Table | Picture) -> str:
    """The whole caption, with the little markup that texts may have."""
    n = f"{part.n:,}" if isinstance(part.n, int) else part.n
    said = [_sentence(part.caption), _sentence(f"n = {n}") if n else ""]
    if part.reduced:
        said.append(f"**Reduced:** {_sentence(part.reduced)}")
    return " ".join(each for each in said if each)


def _sentence(text: str) -> str:
    """With a full stop at its end.

    >>> _sentence("Entropy by layer"), _sentence("Which one?")
    ('Entropy by layer.', 'Which one?')
    """
    text = text.strip()
    return text if not text or text[-1] in ".?!" else f"{text}."
