"""A classifier of patterns that can be read: how much mass columns, a band and blocks have, and a few thresholds."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.patterns.classify.profiles import Profiles, profiles_of
from headscope.patterns.classify.row_weights import Sizes

NARROW = 16  # a band reaches a sixteenth of the tokens to either side of its middle, and one token at least
SMALLEST = 0.15  # the share of tokens that a block must have
WITHIN, ACROSS = slice(0, 4, 3), slice(1, 3)  # of four quarters; no lists, for a GPU would make the host wait for them

STRUCTURE = 0.37  # columns and band together hold this share of the mass, or the map is block or heterogeneous
PART = 0.28  # columns or band hold this share of that, or only the other one counts
UNIFORM = 0.7  # evenness from which a map is one block
BLOCKS = 0.4  # contrast times evenness from which a map has two
SOFTNESS = 0.05  # how far from a threshold the odds are e to one


@dataclass(frozen=True)
class Scores:
    """Four numbers from 0 to about 1 for each map; all thresholds are on these."""

    column: Float[Tensor, " map"]  # mass in columns that most rows share, above an even share
    band: Float[Tensor, " map"]  # mass in a narrow band, beyond what columns and an even share explain
    uniform: Float[Tensor, " map"]  # evenness of the rows without the columns' excess; 1 is the uniform map
    blocks: Float[Tensor, " map"]  # how far two even blocks hold all mass: the texts of a pair, or any two halves


@dataclass(frozen=True)
class Sums:
    """The sums of maps' rows and columns, and of the parts of these up to the diagonal."""

    rows: Float[Tensor, "map token"]
    columns: Float[Tensor, "map token"]
    before: Float[Tensor, "map token"]  # of each row, up to the diagonal
    below: Float[Tensor, "map token"]  # of each column, from the diagonal

    @classmethod
    def of(cls, cells: Float[Tensor, "map token token"]) -> "Sums":
        """The sums of maps."""
        lower = cells * torch.ones_like(cells[0]).tril()  # many times as quick as the maps' own tril
        return cls(cells.sum(-1), cells.sum(-2), lower.sum(-1), lower.sum(-2))

    def quarters(self) -> Float[Tensor, "map cut quarter"]:
        """For each cut into two the sums within the first part, from first to second, back, and within the second."""
        corner = (self.before + self.columns - self.below).cumsum(-1)[:, :-1]
        top, left = (each.cumsum(-1)[:, :-1] for each in (self.rows, self.columns))
        whole = self.rows.sum(-1, keepdim=True)
        return torch.stack([corner, top - corner, left - corner, whole - top - left + corner], dim=-1).clamp_min(0)


def scores_of(sizes: Sizes, profiles: Profiles | None = None) -> Scores:
    """The scores of maps."""
    held = profiles if profiles is not None else profiles_of(sizes)
    mass, root = (Sums.of(each) for each in (held.rest, held.roots))
    return Scores(held.excess.sum(-1), _band(held, sizes), _evenness(mass, root, sizes), _blocks(mass, root, sizes))


def rules(sizes: Sizes) -> Float[Tensor, "map pattern"]:
    """How likely each class is, by the thresholds; NaN for maps that can have no pattern.

    At a threshold the odds are even: structure against none, then columns against band, or blocks against neither.
    """
    found = scores_of(sizes)
    structure = found.column + found.band
    part = found.column / structure.clamp_min(1e-6)
    structured = _odds(structure - STRUCTURE)
    vertical, diagonal = _odds(part - (1 - PART)), _odds(PART - part)
    block = _odds(torch.maximum(found.uniform - UNIFORM, found.blocks - BLOCKS))
    given = [vertical, diagonal, (1 - vertical - diagonal).clamp_min(0)]
    parts = [*(structured * each for each in given), (1 - structured) * block, (1 - structured) * (1 - block)]
    return torch.stack(parts, dim=-1).masked_fill(~sizes.known[:, None], torch.nan)


def _odds(above: Float[Tensor, " map"]) -> Float[Tensor, " map"]:
    return torch.sigmoid(above / SOFTNESS)


def _band(held: Profiles, sizes: Sizes) -> Float[Tensor, " map"]:
    """The most that neighbouring offsets hold above an even share."""
    counts = sizes.counts[:, None].clamp_min(1)
    above = torch.nn.functional.pad((held.offsets - 1 / counts).clamp_min(0).cumsum(-1), (1, 0))
    place, reach = torch.arange(held.offsets.shape[1], device=counts.device), (counts // NARROW).clamp_min(1)
    first, last = (place - reach).clamp_min(0), (place + reach + 1).clamp_max(len(place))
    return (above.gather(1, last) - above.gather(1, first)).amax(-1)


def _evenness(mass: "Sums", root: "Sums", sizes: Sizes) -> Float[Tensor, " map"]:
    """(Σ√p)² / nΣp of each row, in the mean over rows."""
    row = root.rows.square() / (sizes.counts[:, None] * mass.rows).clamp_min(1e-9)
    return (row * sizes.rows).sum(-1) / sizes.rows.sum(-1).clamp_min(1)


def _blocks(mass: "Sums", root: "Sums", sizes: Sizes) -> Float[Tensor, " map"]:
    """The best cut into two parts: between the texts of a pair, or where there is none, anywhere but near the ends."""
    counts = sizes.counts[:, None]
    cut = torch.arange(1, sizes.rows.shape[1], device=counts.device)
    second = ((sizes.segments == 1) & sizes.there).sum(-1, keepdim=True)
    anywhere = torch.minimum(cut, counts - cut) >= SMALLEST * counts
    allowed = torch.where((second > 0) & (second < counts), cut == counts - second, anywhere)
    sides = torch.stack([cut.expand_as(allowed), counts - cut], dim=-1).clamp_min(0)
    cells = (sides[..., :, None] * sides[..., None, :]).flatten(-2)  # map cut quarter
    held = mass.quarters()
    evenness = root.quarters().square() / (cells * held).clamp_min(1e-9)
    whole = held.sum(-1, keepdim=True).clamp_min(1e-9)
    expected = cells / cells.sum(-1, keepdim=True).clamp_min(1)
    found = [_contrast(held / whole, expected, evenness, pair) for pair in (WITHIN, ACROSS)]
    return (torch.maximum(*found) * allowed).amax(-1)


def _contrast(share: Tensor, expected: Tensor, evenness: Tensor, pair: slice) -> Float[Tensor, "map cut"]:
    """How far two quarters hold more than their share, 1 where they hold all, times how even they are."""
    held, wanted = share[..., pair].sum(-1), expected[..., pair].sum(-1)
    above = ((held - wanted) / (1 - wanted).clamp_min(1e-6)).clamp_min(0)
    return above * (share * evenness)[..., pair].sum(-1) / held.clamp_min(1e-9)
