"""How much of a layer's output comes from each token, by distances."""

from dataclasses import dataclass

from headscope.contribution.vectors import l1_weights, read_contributions, require_own_tokens
from headscope.core.lens import Lens
from headscope.core.maps import Maps, make_maps
from headscope.core.spec import to_spec
from headscope.core.trace import Trace


@dataclass(frozen=True)
class Alti(Lens):
    """ALTI (Ferrando et al., 2022): how near the vector of a token comes to a layer's output, in rows of sum 1.

    The weight of token j in row i is max(0, ‖ỹ_i‖₁ − ‖ỹ_i − T_ij‖₁), divided by the sum of the row. T_ij is what j adds
    through all heads, the residual connection and the normalization after them (`norm:residual=true` is its length),
    and ỹ_i what goes on, biases included. One map per layer. `rollout:inner=alti,residual=0` follows it to the input.
    """

    cites = ("ferrando2022",)
    quantity = "share of the layer's output"

    @property
    def needs(self) -> frozenset[str]:
        """Require all that makes the output of a layer."""
        return frozenset({"attention", "values", "output", "residual"})

    @property
    def has_residual(self) -> bool:
        """What the residual connection carries is part of a token's weight on itself."""
        return True

    @property
    def breaks(self) -> frozenset[str]:
        """In cross-attention no key is the token that the residual connection carries."""
        return frozenset({"cross"})

    def __call__(self, trace: Trace) -> Maps:
        """Return one map per layer."""
        require_own_tokens(trace, to_spec(self))
        layers = []
        for index, visible in enumerate(trace.visible):
            weights = l1_weights(read_contributions(trace, index)).masked_fill_(~visible[:, None], 0)
            sums = weights.sum(-1, keepdim=True)
            layers.append(weights / sums.where(sums > 0, 1))
        return make_maps(trace, layers, self, merged=True)
