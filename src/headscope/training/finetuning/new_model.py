"""A new model from a config, with a tokenizer made from the training texts: of words, or of parts of words."""

import inspect
import json
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from headscope.core.errors import InputError, unknown_name
from headscope.core.example import Example
from headscope.core.prose import join_words
from headscope.data.reading.files import find_file

WORDS, SUBWORDS = "words", "subwords"
"""The values of `tokenizer` that ask for a new tokenizer."""

PADDING, UNKNOWN, CLASS, SEPARATOR, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
TEXT_TASKS = ("translation", "causal")
"""Tasks whose models write text, which ends."""

MIN_COUNT = 2
"""Words that occur less often are unknown ones, so that the model learns what to make of those."""


def read_config(path: str | Path) -> Any:
    """Return the config of a JSON file, which has the keys of a `config.json` of transformers.

    `{"model_type": "gpt2", "is_causal": false}` is GPT-2 without its causal mask.
    """
    import transformers

    file = find_file(path)
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file} is no JSON: {error}. Write the config of a model, as config.json has it.") from None
    configs = transformers.CONFIG_MAPPING
    model_type = values.get("model_type") if isinstance(values, dict) else None
    if model_type is None:
        raise InputError(f'{file} has no "model_type". Write the config of a model, such as {{"model_type": "gpt2"}}.')
    if model_type not in configs:
        raise unknown_name("model type of transformers", str(model_type), list(configs))
    return configs[model_type].from_dict(values)


def build_config_and_tokenizer(
    model: Any, tokenizer: str, examples: Sequence[Example], *, task: str
) -> tuple[Any, Any]:
    """Build a tokenizer of this name from the texts, and a copy of the config with its vocabulary size.

    The config's `vocab_size` is the maximum number of subwords. Only where the task masks tokens is there a mask
    token: one that was never seen would mean nothing.
    """
    import transformers

    if not isinstance(model, transformers.PreTrainedConfig):
        raise InputError(
            f"tokenizer={tokenizer!r} is for a new model, which is given as a config. This one has a tokenizer already."
        )
    if tokenizer not in (WORDS, SUBWORDS):
        raise unknown_name("tokenizer of a new model", tokenizer, [WORDS, SUBWORDS])
    if tokenizer == SUBWORDS and task not in TEXT_TASKS:
        raise InputError(
            f"tokenizer='{SUBWORDS}' is for the tasks {join_words(TEXT_TASKS)}, but this is '{task}', whose head may "
            f"read a token that it does not add. Write tokenizer='{WORDS}'."
        )
    if task in TEXT_TASKS:
        new_tokenizer = make_text_tokenizer(examples, None if tokenizer == WORDS else model.vocab_size)
    else:
        new_tokenizer = make_word_tokenizer(examples, cls_last=reads_last_token(model), masks=task == "mlm")
    return _set_vocabulary(deepcopy(model), new_tokenizer), new_tokenizer


def _set_vocabulary(config: Any, tokenizer: Any) -> Any:
    """Set the size of the vocabulary and the ids of special tokens, which are those of another vocabulary."""
    config.vocab_size, config.pad_token_id = len(tokenizer), tokenizer.pad_token_id
    config.bos_token_id, config.eos_token_id = tokenizer.bos_token_id, tokenizer.eos_token_id
    if getattr(config, "decoder_vocab_size", None) is not None:  # Marian
        config.decoder_vocab_size = len(tokenizer)
    if config.is_encoder_decoder:
        config.decoder_start_token_id = tokenizer.bos_token_id
        config.forced_eos_token_id = None  # a translation that is cut off has no end
    return config


def make_text_tokenizer(examples: Sequence[Example], size: int | None) -> Any:
    """Return a tokenizer of at most `size` byte-level subwords (Sennrich et al., 2016), or of words where it is None.

    One vocabulary serves both texts of the examples; the 256 bytes are always in it, so that any text can be written.
    Texts end with </s>; <s> is what a decoder starts with.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokens, quiet = list(special.values()), dict[str, Any](show_progress=False)
    trainer: Any
    if size is None:
        core = Tokenizer(models.WordLevel({}, unk_token="<unk>"))
        core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        trainer = trainers.WordLevelTrainer(min_frequency=MIN_COUNT, special_tokens=tokens, **quiet)
    else:
        core = Tokenizer(models.BPE())
        core.pre_tokenizer, core.decoder = pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=tokens, initial_alphabet=alphabet, **quiet)
    core.train_from_iterator((text for example in examples for text in (example.text, example.pair or "")), trainer)
    core.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B:1 </s>:1", special_tokens=[("</s>", core.token_to_id("</s>"))]
    )
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=core, model_input_names=inputs, **special)


def make_word_tokenizer(examples: Sequence[Example], *, cls_last: bool, masks: bool = False) -> Any:
    """Return a tokenizer whose tokens are the words of the examples; words are what stands between spaces.

    [CLS] comes first, as in BERT, or last, where the model's classifier reads the last token.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = {"pad_token": PADDING, "unk_token": UNKNOWN, "cls_token": CLASS, "sep_token": SEPARATOR}
    special |= {"mask_token": MASK} if masks else {}
    counts = Counter(word for example in examples for word in _list_words(example))
    frequent = sorted((word for word, count in counts.items() if count >= MIN_COUNT), key=lambda word: -counts[word])
    names = dict.fromkeys([*special.values(), *frequent])
    core = Tokenizer(models.WordLevel({word: index for index, word in enumerate(names)}, unk_token=UNKNOWN))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    first, last = ("", CLASS) if cls_last else (CLASS, SEPARATOR)
    core.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}".strip(),
        pair=f"{first} $A {SEPARATOR} $B:1 {last}:1".strip(),
        special_tokens=[(name, core.token_to_id(name)) for name in (CLASS, SEPARATOR)],
    )
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=core, model_input_names=inputs, **special)


def reads_last_token(config: Any) -> bool:
    """Return True if the classifier of such models reads the last token, as GPT-2's does, and not the first."""
    import transformers

    head = transformers.AutoModelForSequenceClassification._model_mapping.get(type(config), None)
    forward = inspect.unwrap(head.forward) if head is not None else None
    return forward is not None and "last_non_pad_token" in forward.__code__.co_varnames


def _list_words(example: Example) -> list[str]:
    pair = example.pair.split() if example.pair else []
    return [*(example.text.split() if example.words is None else example.words), *pair]
