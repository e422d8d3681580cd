"""What tables, figures and sentences call things."""

from collections.abc import Sequence

ATTENTIONS = {
    "standard": "standard",
    "visible": "effective",
    "padded": "padded",
    "paper": "published",
    "norm": "norm-based",
}
"""The attentions that are compared; `published` is effective attention as the published code has it."""

TYPES = {"cls": "[CLS]", "sep": "[SEP]"}
"""Types of tokens whose names are not words."""


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence, one after another.

    >>> listed(["RTE"]), listed(["RTE", "MRPC", "QNLI"])
    ('RTE', 'RTE, MRPC and QNLI')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
