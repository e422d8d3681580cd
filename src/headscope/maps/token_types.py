"""Types of tokens: parts of speech of words, and roles of special tokens."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.core.errors import InputError, unknown_name
from headscope.core.example import Example
from headscope.core.tokens import ROLES, Tokens

SPECIAL: Mapping[str, str] = MappingProxyType({"cls": "cls", "sep": "sep", "mask": "mask", "other_special": "other"})
"""Types of special tokens, and their roles."""

WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "noun": ("NOUN",),
        "proper_noun": ("PROPN",),
        "pronoun": ("PRON",),
        "verb": ("VERB",),
        "auxiliary": ("AUX",),
        "adjective": ("ADJ",),
        "adverb": ("ADV",),
        "determiner": ("DET",),
        "adposition": ("ADP",),
        "number": ("NUM",),
        "particle": ("PART",),
        "conjunction": ("CCONJ", "SCONJ"),
        "interjection": ("INTJ",),
        "symbol": ("SYM",),
        "other_word": ("X",),
        "punctuation": ("PUNCT",),
    }
)
"""Types of words, and their universal parts of speech; each part of speech in lower case is a type too."""

TAGS = tuple(tag for tags in WORDS.values() for tag in tags)
TAG_INDEX = {tag: index for index, tag in enumerate(TAGS)} | {"": -1, "_": -1}  # treebanks leave some tags blank

TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {tag.lower(): (tag,) for tag in TAGS} | dict(WORDS) | {"word": tuple(tag for tag in TAGS if tag != "PUNCT")}
)
"""Types by part of speech; "word" is any but punctuation."""

PERIOD_COMMA = (".", ",")
SPELLED = ("period_comma", "other_text")
"""Types by the spelling of a token, as Clark et al. (2019) count: . and , and all others that are not special."""

DEFAULT_TYPES = ("noun", "pronoun", "verb", "punctuation", "cls", "sep")
"""The types of Sun & Marasović (2021)."""


def type_masks(
    tokens: Tokens,
    examples: Sequence[Example],
    types: Sequence[str] = DEFAULT_TYPES,
    *,
    proper_nouns: bool = False,
    auxiliaries: bool = False,
    subtokens: str = "first",
) -> Bool[Tensor, "batch type token"]:
    """Return which tokens are of each type: special tokens by their role, others by the tag of their word.

    `proper_nouns` counts proper nouns as nouns, `auxiliaries` counts be, have and modal verbs as verbs. Of a word of
    several tokens, the first is marked, or all of them. Types by spelling mark every such token.

    >>> tokens = Tokens.of(["[CLS]", "hello", "[SEP]"])
    >>> type_masks(tokens, [Example("0", "hello")], ["cls", "sep"])[0].int().tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    check_types(types)
    if subtokens not in ("first", "all"):
        raise InputError(f"subtokens must be 'first' or 'all', but got {subtokens!r}. Leave it out for the first.")
    merged = {"noun": ("PROPN",) if proper_nouns else (), "verb": ("AUX",) if auxiliaries else ()}
    real, roles = tokens.real.cpu(), tokens.roles.cpu()
    marked = first_tokens(tokens) if subtokens == "first" else real
    tags = _tag_indices(tokens, examples) if any(name in TYPES for name in types) else torch.full_like(roles, -1)
    spelled = _spelled_masks(tokens) if any(name in SPELLED for name in types) else {}
    masks = []
    for name in types:
        if name in spelled:
            masks.append(spelled[name])
        elif name in SPECIAL:
            masks.append((roles == ROLES.index(SPECIAL[name])) & real)
        else:
            indices = [TAGS.index(tag) for tag in (*TYPES[name], *merged.get(name, ()))]
            masks.append(torch.isin(tags, torch.tensor(indices)) & marked)
    return torch.stack(masks, dim=1).to(tokens.real.device)


def check_types(types: Sequence[str]) -> None:
    """Raise an error for unknown types, and for an empty list."""
    for name in types:
        if name not in TYPES and name not in SPECIAL and name not in SPELLED:
            raise unknown_name("type of token", name, [*TYPES, *SPELLED, *SPECIAL])
    if not types:
        raise InputError("There are no types: the list is empty. Name at least one, such as 'noun'.")


def first_tokens(tokens: Tokens) -> Bool[Tensor, "batch token"]:
    """Return which tokens are the first of their word."""
    word = tokens.word.cpu()
    previous = torch.cummax(torch.nn.functional.pad(word, (1, 0), value=-1)[:, :-1], dim=-1).values  # indices increase
    return (word > previous) & tokens.real.cpu()


def _spelled_masks(tokens: Tokens) -> dict[str, Bool[Tensor, "batch token"]]:
    """Return which tokens are a period or a comma, and which others are not special."""
    real = tokens.real.cpu()
    marks = torch.zeros_like(real)
    marks[real] = torch.tensor([token.strip() in PERIOD_COMMA for row in tokens.text for token in row])
    text = real & (tokens.roles.cpu() == 0)
    return {"period_comma": marks & text, "other_text": text & ~marks}


def _tag_indices(tokens: Tokens, examples: Sequence[Example]) -> Int[Tensor, "batch token"]:
    """Return the index in TAGS of each token's tag, -1 for none."""
    rows = []
    for example, words in zip(examples, tokens.word.tolist(), strict=True):
        tags = list(map(TAG_INDEX.get, _read_tags(example)))
        if None in tags:
            raise InputError(
                f"Example '{example.id}' has the tag {_read_tags(example)[tags.index(None)]!r}, which is no universal "
                f"part of speech. Use these: {', '.join(sorted(TAGS))}; '_' for none."
            )
        if max(words) >= len(tags):
            raise InputError(
                f"Example '{example.id}' has {len(tags)} tags, but {max(words) + 1} words. Give one tag for each word "
                "of the text and of the pair, before the capture."
            )
        tags.append(-1)  # the tag of word -1, which is no word
        rows.append([tags[word] for word in words])
    return torch.from_numpy(np.array(rows, dtype=np.int64))  # much faster than torch.tensor


def _read_tags(example: Example) -> tuple[str, ...]:
    """Return the tags of the words of the text and of the pair, from one column or two."""
    if "tags" not in example.columns:
        raise InputError(
            f"Example '{example.id}' has no tags, which types of words need. Give it a column 'tags', or measure with "
            "a tagger: hs.measure(…, tagger='auto'), or call headscope.data.tagging.tag.tag_examples(examples) before "
            "the capture."
        )
    return (*example.columns["tags"], *example.columns.get("pair_tags", ()))
