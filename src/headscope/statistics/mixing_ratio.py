"""Share of a layer's output that comes from other tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.catalog import lenses
from headscope.core.lens import Lens
from headscope.core.spec import to_spec
from headscope.maps.per_example import PerExample

LENS = "norm:residual=true"


@dataclass(frozen=True)
class MixingRatio(PerExample):
    """‖what other tokens add‖ over that plus ‖what a token adds itself‖, to the output of a layer; mean over queries.

    r_i = ‖g_i(Σ_{j≠i} F_ij)‖ / (‖g_i(Σ_{j≠i} F_ij)‖ + ‖g_i(F_ii + x_i)‖) (Kobayashi et al., 2021), whichever lens is
    measured: 0 where tokens stay as they are. `rollout` assumes 0.5 for all.
    """

    scope = "layer"
    cites = ("kobayashi2021",)

    def lenses(self, lens: Lens) -> Sequence[Lens]:
        """Return the lens whose diagnostic it is, unless that is measured."""
        wanted: Lens = lenses.make(LENS)
        return () if wanted == lens else (wanted,)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:
        """Return one head: the ratio is of all heads of a layer together."""
        return {"head": batch.maps["model", to_spec(lenses.make(LENS))].heads}

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the ratio of each layer, a diagnostic of the lens."""
        return {"mixing_ratio": batch.maps["model", to_spec(lenses.make(LENS))].diagnostics["mixing_ratio"]}
