"""A model and a batch of texts as methods for importances see them: scores of changed tokens or embeddings."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.core.errors import CaptureError, InputError
from headscope.core.prose import join_words
from headscope.core.target import PredictionTarget
from headscope.core.tokens import Tokens
from headscope.engine.batch import Inputs
from headscope.engine.gradient import allow_gradients
from headscope.engine.model import Model, find_word_embeddings
from headscope.engine.readout import Readout, find_readout
from headscope.engine.recording.sites import find_layer, find_sites

TOKENS_PER_PASS = {"cpu": 4_096, "cuda": 65_536}
"""Tokens of one forward pass."""


@dataclass
class Embedded:
    """What replaces the output of the word embeddings in one forward pass, and what they gave."""

    replacement: Tensor | None = None
    output: Tensor | None = None
    layer: Any = None  # the layer that gave it


@dataclass(frozen=True)
class BatchScorer:
    """One batch of texts, and where the score of the target is read; the model must be in evaluation mode."""

    model: Model
    inputs: Inputs
    readout: Readout
    scores: Float[Tensor, " batch"]
    embedded: Embedded = field(repr=False, default_factory=Embedded)

    @property
    def tokens(self) -> Tokens:
        """The tokens of the texts."""
        assert self.inputs.source is not None
        return self.inputs.source

    @property
    def ids(self) -> Int[Tensor, "batch token"]:
        """The ids of the tokens."""
        ids: Tensor = self.inputs.tensors["input_ids"]
        return ids

    @torch.no_grad()
    def embed(self, ids: Int[Tensor, "row token"] | None = None) -> Float[Tensor, "row token hidden"]:
        """Return what the layer of word embeddings gives for the texts, or for other ids."""
        if self.embedded.output is None:
            raise CaptureError(
                f"The word embeddings of {type(self.model.network).__name__} were not found, so there is no gradient "
                "with respect to them. Use 'blank_out'."
            )
        vectors: Tensor = self.embedded.output.detach() if ids is None else self.embedded.layer(ids)
        return vectors

    def find_id(self, name: str, parameter: str = "replace") -> int:
        """Return the id of a special token; raise InputError if the tokenizer has none, or pads with it."""
        tokenizer = self.model.tokenizer
        token_ids = {other: getattr(tokenizer, f"{other}_token_id", None) for other in ("mask", "unk", "pad")}
        token = token_ids[name]
        if token is None:
            usable = [f"'{other}'" for other in ("mask", "unk") if token_ids[other] is not None]
            other = f"Give {parameter}={join_words(usable, 'or')}" if usable else "Use 'input_gradient'"
            raise InputError(f"The tokenizer has no '{name}' token to replace words by. {other}.")
        if name != "pad" and token == self.model.network.config.get_text_config().pad_token_id:
            raise InputError(
                f"The '{name}' token of this model is also its padding token, so a replaced word would count as "
                "padding. Replace by another token, or use 'input_gradient'."
            )
        return int(token)

    def score(self, rows: Sequence[int], ids: Int[Tensor, "row token"]) -> Float[Tensor, " row"]:
        """Return the scores of examples with other ids."""
        budget = TOKENS_PER_PASS.get(ids.device.type, TOKENS_PER_PASS["cpu"])
        size, scores = max(1, budget // ids.shape[1]), []
        with torch.no_grad():
            for start in range(0, len(rows), size):
                chunk = list(rows[start : start + size])
                output = self.model.network(**self._select(chunk, ids[start : start + size]))
                scores.append(self.readout.select(chunk).score(output))
        return torch.cat(scores)

    def score_embeddings(self, row: int, embeddings: Float[Tensor, "copy token hidden"]) -> Float[Tensor, " copy"]:
        """Return the scores of copies of one example with other embeddings."""
        rows = [row] * len(embeddings)
        readout, output = self._run(rows, embeddings)
        scores = readout.score(output)
        if torch.is_grad_enabled() and embeddings.requires_grad:
            readout.check_gradient(scores)
        return scores

    def differentiate(
        self, at: Literal["words", "embeddings"] = "words"
    ) -> tuple[Float[Tensor, "batch token hidden"], Float[Tensor, "batch token hidden"]]:
        """Return the word embeddings, or what the first layer reads, and each example's gradient with respect to it."""
        rows = list(range(len(self.ids)))
        with allow_gradients({}):
            if at == "words":
                embeddings = self.embed().clone().requires_grad_()
                readout, output = self._run(rows, embeddings)
            else:
                with start_graph_at_first_layer(self.model) as inputs:
                    readout, output = self.readout, self.model.network(**self._clone(rows))
                embeddings = inputs[0]
            scores, factor = readout.factor_gradient(output)
            (gradient,) = torch.autograd.grad(scores.sum(), embeddings)
        return embeddings.detach(), gradient.double() * factor[:, None, None]

    def _run(self, rows: Sequence[int], embeddings: Tensor) -> tuple[Readout, Any]:
        return self.readout.select(rows), run_with_embeddings(self.model, self._clone(rows), Embedded(embeddings))

    def _clone(self, rows: Sequence[int]) -> dict[str, Any]:
        """Return the inputs of some examples as tensors that a graph may hold."""
        tensors = self._select(rows, self.ids[list(rows)])
        return {name: value.clone() if isinstance(value, Tensor) else value for name, value in tensors.items()}

    def _select(self, rows: Sequence[int], ids: Tensor) -> dict[str, Any]:
        """Return the inputs of some examples, with other ids."""
        count = len(self.inputs.examples)
        index = torch.tensor(rows, device=ids.device)
        tensors = {
            name: value[index] if isinstance(value, Tensor) and value.ndim and len(value) == count else value
            for name, value in self.inputs.tensors.items()
        }
        return {**tensors, "input_ids": ids}


@contextmanager
def open_scorer(model: Model, inputs: Inputs, target: PredictionTarget) -> Iterator[BatchScorer]:
    """Run the model once to find the score of the target; it is in evaluation mode in this block."""
    with evaluating(model.network):
        embedded = Embedded()
        with torch.no_grad():
            output = run_with_embeddings(model, inputs.tensors, embedded)
        readout = find_readout(model, inputs, output, target)
        yield BatchScorer(model, inputs, readout, readout.score(output).detach(), embedded)


def run_with_embeddings(model: Model, tensors: Any, embedded: Embedded) -> Any:
    """Run the model; the first call of its word embeddings with the ids is recorded, and replaced if asked for.

    Ids are given as well, because some models also read positions and padding from them.
    """
    layer = (find_word_embeddings(model.network) or ("", None))[1]
    ids = tensors["input_ids"]

    def hook(module: Any, args: tuple[Any, ...], output: Tensor) -> Tensor | None:
        read = args[0] if args else None
        if embedded.output is not None or read is None or read.shape != ids.shape or not torch.equal(read, ids):
            return None
        embedded.output, embedded.layer = output, module
        return embedded.replacement

    with ExitStack() as stack:
        for module in model.network.modules():  # encoder and decoder may have layers of their own, with shared weights
            if layer is not None and getattr(module, "num_embeddings", None) == layer.num_embeddings:
                stack.enter_context(module.register_forward_hook(hook))
        output = model.network(**tensors)
    if embedded.replacement is not None and embedded.output is None:
        raise CaptureError(
            f"The word embeddings of {type(model.network).__name__} were not called with its input ids, so they cannot "
            "be replaced. Use 'blank_out'."
        )
    return output


@contextmanager
def start_graph_at_first_layer(model: Model) -> Iterator[list[Tensor]]:
    """Make the input of the first layer a leaf of the graph in the next pass; yield the list that will hold it.

    It is the output of the embeddings: words, positions and segments, normalized where the model does that.
    """
    sites = find_sites(model)
    layers = {find_layer(name) for name in sites.modules if sites.find(name) == sites.main} - {""}
    inputs: list[Tensor] = []

    def hook(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        states = args[0] if args else kwargs.get("hidden_states")
        if inputs or states is None:
            return None
        inputs.append(states.detach().clone().requires_grad_())
        return ((inputs[0], *args[1:]), kwargs) if args else ((), {**kwargs, "hidden_states": inputs[0]})

    with ExitStack() as stack:
        for name in layers:
            stack.enter_context(model.network.get_submodule(name).register_forward_pre_hook(hook, with_kwargs=True))
        yield inputs
    if not inputs:
        raise CaptureError(
            f"The first layer of {type(model.network).__name__} was not found, so there is no gradient with respect to "
            "what it reads. Use at=words."
        )


@contextmanager
def evaluating(network: Any) -> Iterator[None]:
    """Switch dropout off in this block, and restore the mode of every module."""
    modes = {module: module.training for module in network.modules() if module.training}
    for module in modes:
        module.training = False
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode
