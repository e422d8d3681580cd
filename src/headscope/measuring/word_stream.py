"""The word maps of a model over many examples, batch by batch, as often as a probe asks for them."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.edit import Edit
from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.core.lens import Lens, view
from headscope.core.maps import Maps
from headscope.core.spec import to_spec
from headscope.core.trace.nan_attention import warn_about_nan
from headscope.engine.batch import make_batches
from headscope.engine.capture import capture_batch, make_request
from headscope.engine.edited import describe_edits, edit_if_any
from headscope.engine.model import Model, find_word_embeddings
from headscope.engine.progress import Advance
from headscope.maps.words import to_words
from headscope.measuring.options import ProbedInputs
from headscope.measuring.plan import BatchPlan, count_tokens, make_plan, max_cells


@dataclass(frozen=True)
class StreamSettings(ProbedInputs):
    """Which maps a probe reads: the complete options of `hs.probe`."""

    lens: Lens
    edit: tuple[Edit, ...] = ()

    def to_facts(self) -> dict[str, Any]:
        """Return what decides the numbers, as plain data."""
        facts = {name: getattr(self, name) for name in ("query", "limit", "seed", "max_length")}
        return {"lens": to_spec(self.lens), **facts, **describe_edits(self.edit)}


@dataclass
class ModelStream:
    """The maps of a model between the words of examples; the model runs again at every pass."""

    model: Model
    plan: BatchPlan
    settings: StreamSettings
    advance: Advance | None = None  # is told the number of examples of every batch that is new
    _seen: set[int] = field(default_factory=set)

    @property
    def examples(self) -> Sequence[Example]:
        """All examples, in the order of the data."""
        return self.plan.examples

    def __iter__(self) -> Iterator[Maps]:
        """Yield the maps of one batch after another, in the order of the plan."""
        return self.batches(0)

    def batches(self, start: int) -> Iterator[Maps]:
        """Yield the maps of the batches from number `start` on."""
        for index in range(start, len(self.plan.batches)):
            yield self._compute(self.plan.batch(index))
            if self.advance is not None and index not in self._seen:
                self.advance(len(self.plan.batches[index]))
            self._seen.add(index)

    def embed(self, words: Sequence[str]) -> Float[Tensor, "word hidden"]:
        """Return the mean input embedding of the tokens of each word; zeros for a word without tokens."""
        layer = find_word_embeddings(self.model.network)
        if layer is None:
            raise InputError(f"The model {self.model.spec} has no input embeddings of words. Give vectors of your own.")
        table = layer[1].weight.detach().float()
        rows = self.model.tokenizer([[word] for word in words], is_split_into_words=True, add_special_tokens=False)
        means = [table[ids].mean(0) if ids else torch.zeros_like(table[0]) for ids in rows["input_ids"]]
        return torch.stack(means)

    def _compute(self, examples: tuple[Example, ...]) -> Maps:
        settings = self.settings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # truncated texts were reported with the plan
            inputs = next(make_batches(self.model, examples, len(examples), max_length=settings.max_length))
        with edit_if_any(self.model, settings.edit) as model:
            request = make_request(model, settings.site, keep=tuple(settings.lens.needs))
            trace = capture_batch(model, inputs, request)
        warn_about_nan(trace)
        return to_words(view(trace, settings.lens), settings.query)


def make_stream(
    model: Model, examples: Sequence[Example], settings: StreamSettings, advance: Advance | None = None
) -> ModelStream:
    """Plan the batches of similar length, longest first."""
    lengths = count_tokens(model, examples, settings.max_length)
    cells, device = max_cells(model, copies=4), model.device.type
    plan = make_plan(examples, lengths, batch_size=settings.batch_size, cells=cells, device=device)
    return ModelStream(model, plan, settings, advance)
