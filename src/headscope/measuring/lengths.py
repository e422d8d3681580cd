"""How many tokens each example has, so that like can be measured with like."""

from collections.abc import Sequence

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.tokenizing.encode import warn_truncated
from headscope.engine.batch import max_input_length
from headscope.engine.model import Model

CHUNK = 512  # examples that are tokenised at once; only their lengths are kept


def count_tokens(model: Model, examples: Sequence[Example], max_length: int | None) -> list[int]:
    """The tokens of every example as the model will read it; a warning says how many will be cut."""
    if model.tokenizer is None:
        raise InputError("This model has no tokenizer, so no text can be measured. Give one: hs.load(…, tokenizer=…).")
    longest = max_length or max_input_length(model)
    found = [
        length for start in range(0, len(examples), CHUNK) for length in _chunk(model, examples[start : start + CHUNK])
    ]
    warn_truncated(examples, found, longest, "will be cut", stacklevel=4)
    return [min(length, longest) if longest else length for length in found]


def _chunk(model: Model, examples: Sequence[Example]) -> list[int]:
    """Tokenised together where all are of one kind, which is many times as fast as one by one."""
    paired = not model.network.config.is_encoder_decoder
    kinds = {(each.words is not None, paired and each.pair is not None) for each in examples}
    if len(kinds) > 1:
        return [length for each in examples for length in _chunk(model, [each])]
    ((split, pairs),) = kinds
    found = model.tokenizer(
        [list(each.words) if each.words is not None else each.text for each in examples],
        [each.pair for each in examples] if pairs else None,
        is_split_into_words=split,
        padding=False,
        truncation=False,
        verbose=False,
    )
    return [len(ids) for ids in found["input_ids"]]
