"""What tables, figures and sentences call things."""

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
