"""Networks that read word vectors without attention: a bag of vectors, and a bidirectional LSTM."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headscope.training.task import Task

HIDDEN, DROPOUT = 128, 0.1


@dataclass(frozen=True)
class Output:
    """What a network returns, as those of transformers do."""

    logits: Float[Tensor, "batch class"]


class Baseline(nn.Module, ABC):
    """A network on the frozen input embeddings of a model; it takes the same batches as the model.

    It gives every text one logit per class, and for multiple choice every choice one logit.
    """

    def __init__(self, vectors: Float[Tensor, "token size"], outputs: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(vectors.shape[0], vectors.shape[1], _weight=vectors.clone(), _freeze=True)
        self.outputs = outputs
        self.dropout = nn.Dropout(DROPOUT)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        device: torch.device = self.vectors.weight.device
        return device

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Output:
        """Return the logits of a batch of texts, or of texts with an axis for their choices."""
        shape, width = input_ids.shape[:-1], input_ids.shape[-1]
        segment = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        ids, mask, segment = (table.reshape(-1, width) for table in (input_ids, attention_mask.bool(), segment))
        logits = self.read(self.vectors(ids), mask, segment)
        return Output(logits.view(shape if len(shape) > 1 else (*shape, self.outputs)))

    @abstractmethod
    def read(
        self,
        vectors: Float[Tensor, "text token size"],
        mask: Bool[Tensor, "text token"],
        segment: Int[Tensor, "text token"],
    ) -> Float[Tensor, "text output"]:
        """Return the logits of each text from the vectors of its tokens."""


class BagOfVectors(Baseline):
    """The mean vectors of the first and the second text, their product, and one hidden layer on all three."""

    def __init__(self, vectors: Float[Tensor, "token size"], outputs: int) -> None:
        super().__init__(vectors, outputs)
        self.hidden = nn.Linear(3 * vectors.shape[1], HIDDEN)
        self.out = nn.Linear(HIDDEN, outputs)

    def read(self, vectors: Tensor, mask: Tensor, segment: Tensor) -> Tensor:
        """Return the logits; special tokens count like words, as they are in every text."""
        first, second = (_average(vectors, mask & (segment == number)) for number in (0, 1))
        features = torch.cat([first, second, first * second], dim=-1)
        logits: Tensor = self.out(self.dropout(torch.relu(self.hidden(features))))
        return logits


class BiLstm(Baseline):
    """A bidirectional LSTM over all tokens, the largest value of each of its outputs, and a linear layer."""

    def __init__(self, vectors: Float[Tensor, "token size"], outputs: int) -> None:
        super().__init__(vectors, outputs)
        self.lstm = nn.LSTM(vectors.shape[1], HIDDEN, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * HIDDEN, outputs)

    def read(self, vectors: Tensor, mask: Tensor, segment: Tensor) -> Tensor:  # noqa: ARG002  (as others)
        """Return the logits; padding is not read in either direction."""
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(vectors), mask.sum(-1).cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, padding_value=-torch.inf, total_length=mask.shape[1]
        )
        logits: Tensor = self.out(self.dropout(states.amax(1)))
        return logits


BASELINES: dict[str, type[Baseline]] = {"bag of vectors": BagOfVectors, "BiLSTM": BiLstm}


def build_baseline(name: str, network: Any, task: Task) -> Baseline:
    """Return a new network with the input embeddings of a model, for a task; seed it before."""
    vectors = network.get_input_embeddings().weight.detach().float().cpu()
    return BASELINES[name](vectors, len(getattr(task, "classes", ("choice",))))


def _average(vectors: Tensor, mask: Tensor) -> Tensor:
    """Return the mean vector where the mask is true, 0 where it never is."""
    weights = mask.to(vectors)
    average: Tensor = torch.einsum("ntd,nt->nd", vectors, weights) / weights.sum(-1, keepdim=True).clamp_min(1)
    return average
