"""What kind of word or token stands where: noun, verb, punctuation, [SEP]."""

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
"""Types of special tokens, with their role."""

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
"""Types of words, with their universal parts of speech; each of these is a type in small letters too."""

TAGS = tuple(tag for tags in WORDS.values() for tag in tags)
NUMBERS = {tag: place for place, tag in enumerate(TAGS)} | {"": -1, "_": -1}
"""A treebank may leave a word's tag blank."""

TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType({tag.lower(): (tag,) for tag in TAGS} | dict(WORDS))

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
    """Which tokens are of each type; special tokens by their role, others by the tag of their word.

    `proper_nouns` counts names as nouns, `auxiliaries` counts be, have and modal verbs as verbs. Of a word that is
    split, the first token counts, or all of them.

    >>> tokens = Tokens.of(["[CLS]", "hello", "[SEP]"])
    >>> type_masks(tokens, [Example("0", "hello")], ["cls", "sep"])[0].int().tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    check_types(types)
    if subtokens not in ("first", "all"):
        raise InputError(f"subtokens must be 'first' or 'all', but got {subtokens!r}. Leave it out for the first.")
    more = {"noun": ("PROPN",) if proper_nouns else (), "verb": ("AUX",) if auxiliaries else ()}
    real, roles = tokens.real.cpu(), tokens.roles.cpu()
    counted = first_of_word(tokens) if subtokens == "first" else real
    numbers = _numbers(tokens, examples) if any(name in TYPES for name in types) else None
    masks = []
    for name in types:
        if name in SPECIAL:
            masks.append((roles == ROLES.index(SPECIAL[name])) & real)
        else:
            assert numbers is not None
            wanted = [TAGS.index(tag) for tag in (*TYPES[name], *more.get(name, ()))]
            masks.append(torch.isin(numbers, torch.tensor(wanted)) & counted)
    return torch.stack(masks, dim=1).to(tokens.real.device)


def check_types(types: Sequence[str]) -> None:
    """Refuse names that are no types, and an empty list of them."""
    for name in types:
        if name not in TYPES and name not in SPECIAL:
            raise unknown_name("type of token", name, [*TYPES, *SPECIAL])
    if not types:
        raise InputError("There are no types: the list is empty. Name at least one, such as 'noun'.")


def first_of_word(tokens: Tokens) -> Bool[Tensor, "batch token"]:
    """The first token of every word."""
    word = tokens.word.cpu()
    before = torch.cummax(torch.nn.functional.pad(word, (1, 0), value=-1)[:, :-1], dim=-1).values  # words go upwards
    return (word > before) & tokens.real.cpu()


def _numbers(tokens: Tokens, examples: Sequence[Example]) -> Int[Tensor, "batch token"]:
    """The place in TAGS of each token's tag, -1 for none."""
    rows = []
    for example, words in zip(examples, tokens.word.tolist(), strict=True):
        tags = list(map(NUMBERS.get, _tags(example)))
        if None in tags:
            raise _unknown_tag(example)
        if max(words) >= len(tags):
            raise InputError(
                f"Example '{example.id}' has {len(tags)} tags, but {max(words) + 1} words. Give one tag for each word "
                "of the text and of the pair, before the capture."
            )
        tags.append(-1)  # where -1, which is no word, finds it
        rows.append([tags[word] for word in words])
    return torch.from_numpy(np.array(rows, dtype=np.int64))  # many times as quick as torch.tensor


def _tags(example: Example) -> tuple[str, ...]:
    """The tags of the text's words and of the pair's, in one column or in two."""
    if "tags" not in example.columns:
        raise InputError(
            f"Example '{example.id}' has no tags, which types of words need. Give it a column 'tags', or measure with "
            "a tagger: hs.measure(…, tagger='auto'), or call headscope.data.tagging.tag.tag_examples(examples) before "
            "the capture."
        )
    return (*example.columns["tags"], *example.columns.get("pair_tags", ()))


def _unknown_tag(example: Example) -> InputError:
    wrong = next(tag for tag in _tags(example) if tag not in NUMBERS)
    return InputError(
        f"Example '{example.id}' has the tag {wrong!r}, which is no universal part of speech. Use these: "
        f"{', '.join(sorted(TAGS))}; '_' for none."
    )
