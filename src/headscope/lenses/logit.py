"""What each weight adds to a prediction directly."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.lens import Lens
from headscope.core.maps import Maps, make_maps
from headscope.core.spec import to_spec
from headscope.core.trace import Trace


@dataclass(frozen=True)
class Logit(Lens):
    """What each weight adds to the logit of a prediction, A·(V·W_O)·u: the direct contribution to the logit.

    The prediction is the target of `hs.capture(…, target=…)`. u is the direction in which its logit reads what the
    heads of a layer write, through residual connections and normalizations alone, at the scale that these had. Later
    heads and feed-forwards that read it too are left out (`gradient:times_attention=true` has them). Weights are
    signed. With the parts in the diagnostics (`input`, `others`, `biases`, `head`) they sum to the logit: `score`.

    Where the model's head is not linear, as in BERT's classifiers, there is no such sum: `head=linearized` takes the
    gradient of the head in place of the direction.

    `of=keys` needs no prediction: u is that of the word at the key, above the mean of all words. The weight of a query
    on a key is what it adds to the logit of the word that it attends to, by which heads copy (`copying`).
    """

    head: Literal["exact", "linearized"] = "exact"
    of: Literal["target", "keys"] = "target"

    cites = ("elhage2021",)
    quantity = "contribution to the logit"

    @property
    def needs(self) -> frozenset[str]:
        """Require what heads write, and how a prediction, or the words of the text, read it."""
        return frozenset({"attention", "values", "output", "readout" if self.of == "target" else "unembedding"})

    @property
    def breaks(self) -> frozenset[str]:
        """No prediction is linear in what an encoder writes for a decoder; only language models have an unembedding."""
        if self.of == "keys":
            return frozenset({"self", "encoder", "decoder", "cross"})
        return frozenset({"encoder"}) if self.head == "exact" else frozenset()

    def __call__(self, trace: Trace) -> Maps:
        """Return the contributions of every layer and head."""
        assert trace.values is not None
        assert trace.output is not None
        if self.of == "keys":
            return self._copy(trace)
        assert trace.readout is not None
        if self.head == "exact" and not trace.readout.linear:
            raise InputError(
                f"The lens '{to_spec(self)}' divides a logit into a sum, but from the residual stream of the site "
                f"'{trace.site}' to this prediction the model is not linear. Give 'logit:head=linearized', which takes "
                "the gradient of the model's head."
            )
        inputs = zip(trace.attention, trace.values, trace.output, trace.readout.directions, strict=True)
        layers = [self._contribute(*layer) for layer in inputs]
        parts = {**trace.readout.parts, "score": trace.readout.score}
        shape = len(trace.examples), len(trace.layers), len(trace.heads)
        diagnostics = {name: part[:, None, None].expand(shape) for name, part in parts.items()}
        return make_maps(trace, layers, self, signed=True, diagnostics=diagnostics)

    @staticmethod
    def _contribute(attention: Tensor, values: Tensor, output: Tensor, directions: Tensor) -> Tensor:
        dtype = torch.float64 if attention.dtype == torch.float64 else torch.float32
        reads = torch.einsum("bqx,hvx->bhqv", directions.to(dtype), output.to(dtype))
        return attention.to(dtype) * (reads @ values.to(dtype).mT)

    def _copy(self, trace: Trace) -> Maps:
        """Return what every weight adds to the logit of the word at its key, and the mean over queries by head."""
        if self.head != "exact":
            raise InputError("'logit:of=keys' reads the unembedding, which is linear. Leave out head=linearized.")
        assert trace.values is not None
        assert trace.output is not None
        assert trace.unembedding is not None
        ordinary = trace.keys.real & ~trace.keys.special
        around = zip(trace.unembedding.directions, trace.unembedding.factors, strict=True)
        layers, copied, shuffled = [], [], []
        for attention, values, output, (directions, factors) in zip(
            trace.attention, trace.values, trace.output, around, strict=True
        ):
            weights = attention.to(directions.dtype) * factors[:, None, :, None]
            written = torch.einsum("bhkv,hvx->bhkx", values.to(weights), output.to(weights))
            real = ordinary.to(directions.device)[..., None]
            mean = (directions * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
            own, other = (
                torch.einsum("bhkx,bkx->bhk", written, part) for part in (directions, mean.expand_as(directions))
            )
            layers.append(weights * own[:, :, None])
            copied.append(_mean_rows(weights, own, ordinary))
            shuffled.append(_mean_rows(weights, other, ordinary))
        diagnostics = {"copying": torch.stack(copied, 1), "copying_shuffled": torch.stack(shuffled, 1)}
        return make_maps(trace, layers, self, signed=True, diagnostics=diagnostics)


def _mean_rows(
    weights: Float[Tensor, "batch head query key"],
    added: Float[Tensor, "batch head key"],
    ordinary: Bool[Tensor, "batch token"],
) -> Float[Tensor, "batch head"]:
    """Return what the ordinary keys of a row add together, the mean over ordinary queries; NaN without any."""
    real = ordinary.to(weights)
    rows = (weights @ (added * real[:, None])[..., None])[..., 0]
    return (rows * real[:, None]).sum(-1) / real.sum(-1)[:, None]
