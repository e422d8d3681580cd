"""The part of attention that reaches the head's output."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from headscope.core.lens import Lens
from headscope.core.maps import Maps, make_maps
from headscope.core.trace import Trace
from headscope.effective.diagnostics import stack_diagnostics
from headscope.effective.layers import NEEDS, Keys, LayerBlocks, compute_layers
from headscope.effective.null_values import Values, replace_values


@dataclass(frozen=True)
class Effective(Lens):
    """Effective attention (Brunner et al., 2020): A minus its projection on the left null space of V.

    It gives the same output as A and is the smallest map that does. Weights may be negative, and rows need not sum
    to 1. `keys` says which rows of V take part: "visible" (exact), or, as in Sun & Marasović (2021), padding too:
    "padded" (exact for the padded input) and "paper" (their code, which no longer gives the same output).

    `values` other than "model" is a null model, to see what any projection would do: "random" projects on independent
    normal values of the same n and d, "permuted" on the model's in random order of the keys. The same input always
    gets the same values. The map then gives another output; diagnostics are those of these values.
    """

    keys: Keys = "visible"
    values: Values = "model"

    scope = "layer"
    row_wise = True
    cites = ("brunner2020", "sun2021")
    quantity = "effective attention"

    @property
    def needs(self) -> frozenset[str]:
        """The values too, and those of padding where padding takes part."""
        return NEEDS[self.keys]

    @property
    def breaks(self) -> frozenset[str]:
        """Weight on padding depends on padding, the published code shares one rank, other values give other outputs."""
        padded = frozenset({"padding", "visibility", "batch"})
        broken = {"visible": frozenset[str](), "padded": padded, "paper": padded | {"output"}}[self.keys]
        return broken if self.values == "model" else broken | {"output"}

    def __call__(self, trace: Trace) -> Maps:
        """The effective attention of every layer, in factored form where rows see the same keys."""
        layers = list(compute_layers(replace_values(trace, self.values), self.keys))
        maps = [layer.maps for layer in layers]
        return make_maps(trace, maps, self, signed=True, diagnostics=stack_diagnostics(layers))

    def start_rows(self, layer: Trace) -> Callable[[Trace], Maps]:
        """Return the lens for some queries at a time; all share the bases of the values."""
        project = LayerBlocks(replace_values(layer, self.values), self.keys)

        def compute(block: Trace) -> Maps:
            effective = project(block if self.values == "model" else replace(block, context=None))
            return make_maps(block, [effective.maps], self, signed=True, diagnostics=stack_diagnostics([effective]))

        return compute
