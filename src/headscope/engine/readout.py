"""Where the score of a target is read in a model's output: at which token, for which class or word."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.prose import count_noun, join_words
from headscope.core.target import PredictionTarget
from headscope.core.tokens import ROLES
from headscope.data.labels import check_not_alphabetical, match_labels
from headscope.engine.batch import Inputs
from headscope.engine.loss import class_losses, next_token_labels, number_losses, predicts_masked, token_losses
from headscope.engine.model import Model

Link = Literal["softmax", "sigmoid", "identity"]
"""From logits to scores: of exclusive classes, of classes that may hold together, or the logit itself."""


@dataclass(frozen=True)
class Readout:
    """The position, and the class or word, of each example's score."""

    choice: Int[Tensor, " batch"]
    names: tuple[str, ...]  # of the classes or words
    link: Link
    position: Int[Tensor, " batch"] | None = None  # None: the head gives one row of logits for each example
    function: Callable[[Any], Any] | None = None

    def select(self, rows: Sequence[int]) -> "Readout":
        """Return the readout of some examples, which may be repeated."""
        index = torch.tensor(rows, device=self.choice.device)
        position = None if self.position is None else self.position[index]
        return replace(self, choice=self.choice[index], names=tuple(self.names[row] for row in rows), position=position)

    def score(self, output: Any) -> Float[Tensor, " batch"]:
        """Return the scores in float64, so that probabilities near 1 keep their digits."""
        if self.function is not None:
            return _check_function_score(self.function(output), len(self.names))
        logits = self._read_logits(output)
        if self.link == "softmax":
            logits = logits.softmax(-1)
        scores: Tensor = logits.gather(-1, self.choice[:, None])[:, 0]
        return scores.sigmoid() if self.link == "sigmoid" else scores

    def logits(self, output: Any) -> Float[Tensor, " batch"]:
        """Return the logit of each example's class or word; what a function returns is taken as it is."""
        if self.function is not None:
            scores = self.score(output)
            self.check_gradient(scores)
            return scores
        logits: Tensor = self._read_logits(output).gather(-1, self.choice[:, None])[:, 0]
        return logits

    def score_all(self, output: Any) -> Float[Tensor, "batch choice"]:
        """Return the scores of all classes or words in float64."""
        logits = self._read_logits(output)
        if self.link == "softmax":
            return logits.softmax(-1)
        return logits.sigmoid() if self.link == "sigmoid" else logits

    def factor_gradient(self, output: Any) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """Return what to back-propagate for each example, and the factor that makes its gradient that of the score.

        Of a probability p these are its log-odds and p (1 - p), from the log-odds: near 1 its own digits are lost, and
        in half precision its gradient would underflow.
        """
        if self.function is not None or self.link == "identity":
            scores = self.score(output)
            self.check_gradient(scores)
            return scores, torch.ones_like(scores)
        logits, choice = self._read_logits(output), self.choice[:, None]
        log_odds: Tensor = logits.gather(-1, choice)[:, 0]
        if self.link == "softmax":
            log_odds = log_odds - logits.scatter(-1, choice, -torch.inf).logsumexp(-1)
        return log_odds, (log_odds.sigmoid() * (-log_odds).sigmoid()).detach()

    def check_gradient(self, scores: Tensor) -> None:
        """Raise InputError if a target function lost the gradient of its scores."""
        if self.function is not None and not scores.requires_grad:
            raise InputError(
                "The target function returns numbers without a gradient, but this needs the gradient of the target. "
                "Compute them from the model's output in PyTorch without detach, argmax or no_grad, or use "
                "'blank_out'."
            )

    def _read_logits(self, output: Any) -> Float[Tensor, "batch choice"]:
        logits: Tensor = output.logits
        if self.position is not None:
            logits = logits[torch.arange(len(logits), device=logits.device), self.position]
        return logits.double()


def find_readout(model: Model, inputs: Inputs, output: Any, target: PredictionTarget) -> Readout:
    """Return where the target's score is, from the model's head and its output for these inputs."""
    count = len(inputs.examples)
    if target.function is not None:
        zeros = torch.zeros(count, dtype=torch.long, device=model.device)
        return Readout(zeros, (target.spec,) * count, "identity", function=target.function)
    logits = getattr(output, "logits", None)
    class_name = type(model.network).__name__
    if not isinstance(logits, Tensor):
        raise InputError(
            f"target={target.spec!r} asks for a prediction, but {class_name} has no head that predicts one. Load a "
            "model with a head, fine-tune this one (hs.finetune), or give a function of its output as target."
        )
    if target.kind == "loss":
        zeros = torch.zeros(count, dtype=torch.long, device=model.device)
        return Readout(zeros, ("loss",) * count, "identity", function=_find_loss(model, inputs, logits))
    if _predicts_classes(model, logits, count):
        return _read_class(model, inputs, logits, target)
    if logits.ndim == 3 and model.network.get_output_embeddings() is not None:
        return _read_word(model, inputs, logits, target)
    raise InputError(
        f"target={target.spec!r} needs one prediction for each text or word, but the logits of {class_name} have shape "
        f"{list(logits.shape)}. Give a function of its output as target."
    )


def _find_loss(model: Model, inputs: Inputs, logits: Tensor) -> Callable[[Any], Tensor]:
    """Return the function from an output of these inputs to the loss of each example."""
    config, class_name = model.network.config, type(model.network).__name__
    if _predicts_classes(model, logits, len(inputs.examples)):
        problem, classes = getattr(config, "problem_type", None), logits.shape[-1]
        if classes == 1:
            gold = find_numbers(inputs)
            return lambda output: number_losses(output.logits, gold)
        if problem in (None, "single_label_classification"):
            labels = find_labels(inputs, [str(config.id2label.get(index, index)) for index in range(classes)])
            return lambda output: class_losses(output.logits, labels)
    elif logits.ndim == 3 and model.network.get_output_embeddings() is not None and not config.is_encoder_decoder:
        masked = inputs.tensors.get("labels") if inputs.token_labels is None else inputs.token_labels
        targets = masked if masked is not None and predicts_masked(model) else next_token_labels(inputs)
        return lambda output: token_losses(output.logits, targets.to(output.logits.device))
    raise InputError(
        f"target='loss' is known for classes, numbers, masked words and next words, but not for {class_name}. Give a "
        "function of its output as target."
    )


def _predicts_classes(model: Model, logits: Tensor, count: int) -> bool:
    """Whether logits are one row of classes for each text, not a number for each token as of Electra's detector."""
    network = model.network
    if type(network).__name__.endswith("ForPreTraining") and network.get_output_embeddings() is None:
        return False
    return tuple(logits.shape) == (count, network.config.num_labels)


def _read_class(model: Model, inputs: Inputs, logits: Tensor, target: PredictionTarget) -> Readout:
    """Return the readout of a classification or regression head."""
    if target.kind in ("mask", "next"):
        raise InputError(
            f"target={target.spec!r} asks for a word, but {type(model.network).__name__} predicts a class. Give "
            "'predicted', 'label' or 'class=NAME'."
        )
    config, classes = model.network.config, logits.shape[-1]
    problem = getattr(config, "problem_type", None)
    if classes == 1 or problem == "regression":
        return _read_number(inputs, logits, target)
    names = [str(config.id2label.get(index, index)) for index in range(classes)]
    if target.kind == "predicted":
        choice = logits.argmax(-1)
    elif target.kind == "class":
        choice = torch.full_like(logits[:, 0], _find_class(str(target.name), names), dtype=torch.long)
    else:
        choice = torch.tensor(find_labels(inputs, names), device=logits.device)
    link: Link = "identity" if target.score == "logit" else "softmax"
    if link == "softmax" and problem == "multi_label_classification":
        link = "sigmoid"
    return Readout(choice, tuple(names[index] for index in choice.tolist()), link)


def _read_number(inputs: Inputs, logits: Tensor, target: PredictionTarget) -> Readout:
    if logits.shape[-1] != 1:
        raise InputError(
            f"target={target.spec!r} asks for one prediction, but this model predicts {logits.shape[-1]} numbers for "
            "each text. Give a function of its output as target, such as lambda output: output.logits[:, 0]."
        )
    if target.kind != "predicted":
        raise InputError(
            f"target={target.spec!r} asks for a class, but this model predicts a number. Give target='predicted'."
        )
    return Readout(torch.zeros_like(logits[:, 0], dtype=torch.long), ("value",) * len(inputs.examples), "identity")


def _find_class(name: str, names: Sequence[str]) -> int:
    if name in names:
        return names.index(name)
    lowered = [class_name.lower() for class_name in names]
    if lowered.count(name.lower()) == 1:
        return lowered.index(name.lower())
    if name.isdigit() and int(name) < len(names):
        return int(name)
    raise InputError(f"This model has no class '{name}'. Its classes: {join_words(names, limit=12)}.")


def _read_word(model: Model, inputs: Inputs, logits: Tensor, target: PredictionTarget) -> Readout:
    """Return the readout of a language model: at its mask token, or after the last token."""
    network = model.network
    generates = bool(getattr(network, "can_generate", lambda: False)())
    position_kind = ("next" if generates else "mask") if target.kind == "predicted" else target.kind
    if position_kind not in ("mask", "next"):
        raise InputError(
            f"target={target.spec!r} asks for a class, but {type(network).__name__} predicts words. Give "
            f"'{'next' if generates else 'mask'}:word=WORD' or 'predicted'."
        )
    if (position_kind == "next") != generates:
        reads = "continues texts" if generates else "predicts words at a mask token"
        other = "next" if generates else "mask"
        raise InputError(
            f"target={target.spec!r} does not fit {type(network).__name__}, which {reads}. Give '{other}' or "
            f"'{other}:word=WORD'."
        )
    position = _find_masks(model, inputs) if position_kind == "mask" else _find_last(inputs)
    position = position.to(logits.device)
    rows = logits[torch.arange(len(logits), device=logits.device), position]
    words = [_target_word(example, target) for example in inputs.examples]
    ids = {word: find_word_id(model.tokenizer, word) for word in words if word is not None}
    predicted = rows.argmax(-1).tolist()
    choice = [predicted[row] if word is None else ids[word] for row, word in enumerate(words)]
    names = [
        spell_token(model.tokenizer, token) if word is None else word for token, word in zip(choice, words, strict=True)
    ]
    link: Link = "identity" if target.score == "logit" else "softmax"
    return Readout(torch.tensor(choice, device=logits.device), tuple(names), link, position)


def _target_word(example: Example, target: PredictionTarget) -> str | None:
    if target.column is None:
        return target.name
    if example.columns.get(target.column) in (None, ""):
        listed = f"It has: {join_words(example.columns)}." if example.columns else "It has no columns."
        raise InputError(f"Example '{example.id}' has no word in a column '{target.column}'. {listed}")
    return str(example.columns[target.column])


def find_word_id(tokenizer: Any, word: str) -> int:
    """Return the token of a word inside a text, which begins with a space for byte-level tokenizers."""
    if tokenizer is None:
        raise InputError("A target word needs a tokenizer. Give one: hs.load(…, tokenizer=…).")
    attempts = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in (f" {word.strip()}", word.strip())]
    ids, bare = attempts
    if len(ids) != 1 and len(bare) == 1 and tokenizer.convert_ids_to_tokens(bare)[0].startswith("▁"):
        ids = bare  # SentencePiece adds a space of its own
    if len(ids) == 1 and ids[0] != tokenizer.unk_token_id:
        return int(ids[0])
    pieces = join_words(f"'{piece}'" for piece in tokenizer.convert_ids_to_tokens(ids))
    problem = f"is {count_noun(len(ids), 'token')} ({pieces})" if len(ids) != 1 else "is unknown to it"
    raise InputError(
        f"The target word '{word}' must be one token of the tokenizer, but {problem}. Choose another word."
    )


def spell_token(tokenizer: Any, token: int) -> str:
    """Return a token as a reader sees it; without a tokenizer its number."""
    return (
        str(token) if tokenizer is None else str(tokenizer.decode([token])).strip() or repr(tokenizer.decode([token]))
    )


def _find_masks(model: Model, inputs: Inputs) -> Int[Tensor, " batch"]:
    """Return the position of the only mask token of each example."""
    mask = getattr(model.tokenizer, "mask_token_id", None)
    if mask is None:
        raise InputError("A target at the mask token needs a tokenizer with a mask token, and this one has none.")
    is_mask = inputs.tensors["input_ids"] == mask
    for example, mask_count in zip(inputs.examples, is_mask.sum(-1).tolist(), strict=True):
        if mask_count != 1:
            raise InputError(
                f"The target is read at the mask token, but example '{example.id}' has {mask_count or 'none'} of them. "
                f"Write {model.tokenizer.mask_token} once into each text."
            )
    position: Tensor = is_mask.long().argmax(-1)
    return position


def _find_last(inputs: Inputs) -> Int[Tensor, " batch"]:
    """Return the position of the last real token that the decoder reads, before those that close a text."""
    tokens = inputs.source if inputs.target is None else inputs.target
    assert tokens is not None
    places = torch.arange(tokens.real.shape[1], device=tokens.real.device)
    open_text = tokens.real & (tokens.roles != ROLES.index("sep"))
    open_text |= tokens.real & ~open_text.any(-1, keepdim=True)  # a decoder may start with the token that closes texts
    last: Tensor = (open_text * places).argmax(-1)
    return last


def _check_function_score(scores: Any, count: int) -> Tensor:
    if not isinstance(scores, Tensor) or tuple(scores.shape) != (count,):
        shape = list(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise InputError(
            f"The target function must return a tensor with one number per example, [{count}], not {shape}."
        )
    doubles: Tensor = scores.double()
    return doubles


def find_labels(inputs: Inputs, names: Sequence[str]) -> list[int]:
    """Return the label of each example, from the examples or from a tokenized batch."""
    label_tensor = inputs.tensors.get("labels")
    if label_tensor is None:
        labels: list[Any] = [example.label for example in match_labels(inputs.examples, names, "the data")]
    else:
        labels = label_tensor.tolist()
    for example, label in zip(inputs.examples, labels, strict=True):
        if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < len(names):
            raise InputError(
                f"target='label' needs the label of each example as a number from 0 to {len(names) - 1}, but that of "
                f"example '{example.id}' is {label!r}. Give labels, or target='predicted'."
            )
    return list(labels)


def find_numbers(inputs: Inputs) -> list[float]:
    """Return the number that is right for each example."""
    check_not_alphabetical(inputs.examples, "the data", "a number")
    for example in inputs.examples:
        if not isinstance(example.label, int | float):
            raise InputError(
                f"target='loss' needs the number that is right for each example, but the label of example "
                f"'{example.id}' is {example.label!r}. Give labels, or target='predicted'."
            )
    return [float(example.label or 0) for example in inputs.examples]
