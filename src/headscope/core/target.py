"""The prediction that gradients and importances explain."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from headscope.core.errors import InputError, unknown_name
from headscope.core.prose import join_words
from headscope.core.spec import parse_spec

Score = Literal["probability", "logit"]
KINDS = ("predicted", "label", "class", "mask", "next", "loss")
PARAMETERS = {"mask": {"word", "column", "score"}, "next": {"word", "column", "score"}, "loss": {"seed"}}
"""What the kinds of targets take; others take `score`."""


@dataclass(frozen=True)
class PredictionTarget:
    """Which class or word a model's score is read for, and on which scale.

    "predicted" is the class that the model predicts, its word at the mask token, or its next token, depending on its
    head. "label" is the label of each example, "class=NAME" one class for all. "mask:word=his" is a word at the mask
    token, "next:word=mat" the word after the text; `column` takes the word from a column of each example. "loss" is no
    prediction but the loss of the model's task: of the label, of tokens that are masked for it, drawn with `seed`, or
    of all next tokens.

    >>> parse_target("mask:word=his")
    PredictionTarget(kind='mask', name='his', column=None, score='probability', seed=0, function=None)
    >>> parse_target("class=entailment:score=logit").spec
    'class=entailment:score=logit'
    """

    kind: str
    name: str | None = None  # a class or a word; None for the predicted one
    column: str | None = None
    score: Score = "probability"
    seed: int = 0  # of the masks of a masked language model, for its loss
    function: Callable[[Any], Any] | None = None  # from the model's output to one number for each example

    @property
    def spec(self) -> str:
        """The target as text; of a function its name."""
        if self.function is not None:
            return f"function {getattr(self.function, '__qualname__', type(self.function).__name__)}"
        head = f"class={self.name}" if self.kind == "class" else self.kind
        parameters = {"word": self.name if self.kind != "class" else None, "column": self.column}
        if self.score != "probability":
            parameters["score"] = self.score
        if self.seed:
            parameters["seed"] = str(self.seed)
        rest = ",".join(f"{name}={value}" for name, value in parameters.items() if value is not None)
        return f"{head}:{rest}" if rest else head


def parse_target(target: Any) -> PredictionTarget:
    """Return a target from its text, from a function of the model's output, or from a target itself."""
    if isinstance(target, PredictionTarget):
        return target
    if callable(target):
        return PredictionTarget("function", function=target)
    if not isinstance(target, str):
        raise InputError(
            f"target must be {join_words(_examples(), 'or')}, or a function of the model's output, but got {target!r}."
        )
    if match := re.fullmatch(r"\s*class=(.+?)(?:[:,]\s*score=(\w+))?\s*", target):
        return PredictionTarget("class", match[1].strip(), score=_check_score(match[2] or "probability"))
    kind, parameters = parse_spec(target)
    if kind not in KINDS:
        raise unknown_name("target", kind, KINDS)
    if kind == "class":
        raise InputError(f"The target {target!r} names no class. Write class=NAME or class=INDEX.")
    allowed = PARAMETERS.get(kind, {"score"})
    for name in parameters:
        if name not in allowed:
            raise unknown_name(f"parameter of the target '{kind}'", name, allowed)
    if "word" in parameters and "column" in parameters:
        raise InputError(f"The target {target!r} has a word and a column of words. Give one of them.")
    score = _check_score(parameters.get("score", "probability"))
    seed = _check_seed(parameters.get("seed", "0"))
    return PredictionTarget(kind, parameters.get("word"), parameters.get("column"), score, seed)


def _check_score(score: str) -> Score:
    if score in get_args(Score):
        return cast(Score, score)
    raise InputError(f"The score of a target must be {join_words(get_args(Score), 'or')}, but got {score!r}.")


def _check_seed(seed: str) -> int:
    if seed.isdecimal():
        return int(seed)
    raise InputError(f"The seed of a target must be a whole number, but got {seed!r}.")


def _examples() -> list[str]:
    return ["'predicted'", "'label'", "'class=NAME'", "'mask:word=his'", "'next:word=mat'", "'loss'"]
