"""What a model predicts for one text, with all alternatives: classes, words, a number, or a vector."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.target import parse_target
from headscope.engine.batch import Inputs
from headscope.engine.capture import prepare_inputs, record
from headscope.engine.model import Model
from headscope.engine.readout import find_readout, spell_token
from headscope.engine.recording.sites import find_sites

PredictionKind = Literal["classes", "mask", "next", "number", "vector"]


@dataclass(frozen=True)
class Prediction:
    """The score of every class or word of one text; of a model without a head, the mean of its last hidden states."""

    kind: PredictionKind
    scores: Float[Tensor, " choice"]
    model: Model

    def name(self, index: int) -> str:
        """Return the class or word of an index."""
        if self.kind in ("mask", "next"):
            return spell_token(self.model.tokenizer, index)
        if self.kind == "classes":
            return str(self.model.network.config.id2label.get(index, index))
        return "value" if self.kind == "number" else str(index)

    def top(self, count: int) -> list[int]:
        """Return the indices of the largest scores, largest first."""
        return [int(index) for index in self.scores.topk(min(count, len(self.scores))).indices]

    def list_top(self, count: int) -> list[tuple[str, float]]:
        """Return the names and scores of the largest; none of a vector."""
        if self.kind == "vector":
            return []
        return [(self.name(index), float(self.scores[index])) for index in self.top(count)]


def predict(model: Model, example: Example) -> Prediction:
    """Return what a model predicts for a text or a pair.

    Parameters
    ----------
    model
        A model, also one that `hs.edited` changes at the moment.
    example
        The text. A model of masked words needs one mask token in it.
    """
    inputs = prepare_inputs(model, [example], None, max_length=None, pad_to=None)
    recorder = record(model, inputs.tensors, find_sites(model).main, lambda recorder: recorder.calls.clear())
    return read_prediction(model, inputs, recorder.model_output)


def read_prediction(model: Model, inputs: Inputs, output: Any) -> Prediction:
    """Return the prediction of the first text from the output of a model."""
    if not isinstance(getattr(output, "logits", None), Tensor):
        return Prediction("vector", _average(inputs, output), model)
    readout = find_readout(model, inputs, output, parse_target("predicted"))
    if readout.position is not None:
        kind: PredictionKind = "next" if model.network.can_generate() else "mask"
    else:
        kind = "number" if readout.link == "identity" else "classes"
    return Prediction(kind, readout.score_all(output)[0].cpu(), model)


def _average(inputs: Inputs, output: Any) -> Float[Tensor, " hidden"]:
    """Return the mean of the last hidden states over the real tokens of the first text."""
    states = getattr(output, "last_hidden_state", None)
    if not isinstance(states, Tensor):
        raise InputError(f"A {type(output).__name__} holds neither logits nor hidden states, so nothing is predicted.")
    tokens = inputs.source if inputs.target is None else inputs.target
    real = (
        tokens.real[0].to(states.device) if tokens is not None else torch.ones_like(states[0, :, 0], dtype=torch.bool)
    )
    mean: Tensor = states[0][real].double().mean(0).cpu()
    return mean


def compare_predictions(before: Prediction, after: Prediction, count: int) -> list[tuple[str, float, float]]:
    """Return the scores before and after a change, of what is most probable in either."""
    if before.kind == "vector":
        return []
    chosen: Sequence[int] = list(dict.fromkeys([*before.top(count), *after.top(count)]))
    return [(before.name(index), float(before.scores[index]), float(after.scores[index])) for index in chosen]


def cosine(before: Prediction, after: Prediction) -> float:
    """Return the cosine of the angle between two vectors."""
    return float(torch.nn.functional.cosine_similarity(before.scores, after.scores, dim=0))
