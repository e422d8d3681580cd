"""An interpretable pattern classifier: thresholds on the mass of columns, of a band and of blocks."""

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.patterns.classify.normalize import NormalizedMaps
from headscope.patterns.classify.profiles import Profiles, compute_profiles

Rows = Float[Tensor, "map token"]
Quadrants = Float[Tensor, "map cut quadrant"]

BAND_FRACTION = 16  # a band extends 1/16 of the tokens to either side of its centre, and at least one token
MIN_BLOCK = 0.15  # smallest block, as a share of the tokens
WITHIN, ACROSS = slice(0, 4, 3), slice(1, 3)  # of four quadrants; a list index would make the host wait for a GPU

STRUCTURE = 0.37  # columns and band together hold this share of the mass, or the map is block or heterogeneous
PART = 0.28  # columns or band hold this share of that, or only the other one counts
UNIFORM = 0.7  # evenness from which a map is one block
BLOCKS = 0.4  # contrast times evenness from which a map has two blocks
SOFTNESS = 0.05  # distance from a threshold at which the odds are e to one


def compute_scores(maps: NormalizedMaps, profiles: Profiles | None = None) -> Float[Tensor, "map score"]:
    """Return four scores from 0 to about 1 for each map; all thresholds apply to these.

    - column: mass in columns that most rows share, above the uniform weight
    - band: mass in a narrow band, beyond columns and the uniform weight
    - uniform: evenness of the rows without the columns' excess; 1 for the uniform map
    - blocks: how far two even blocks hold all mass: the texts of a pair, or any two halves
    """
    profiles = profiles if profiles is not None else compute_profiles(maps)
    mass, root = profiles.rest.sum(-1), profiles.roots.sum(-1)
    blocks = _blocks(_sum_quadrants(profiles.rest, mass), _sum_quadrants(profiles.roots, root), maps)
    return torch.stack([profiles.excess.sum(-1), _band(profiles, maps), _evenness(mass, root, maps), blocks], dim=-1)


def classify_by_rules(maps: NormalizedMaps) -> Float[Tensor, "map pattern"]:
    """Return class probabilities from the thresholds; NaN for maps that cannot have a pattern.

    At a threshold the odds are even: structure against none, then columns against band, or blocks against neither.
    """
    column, band, uniform, blocks = compute_scores(maps).unbind(-1)
    structure = column + band
    column_part = column / structure.clamp_min(1e-6)
    structured = _soft_step(structure - STRUCTURE)
    vertical, diagonal = _soft_step(column_part - (1 - PART)), _soft_step(PART - column_part)
    block = _soft_step(torch.maximum(uniform - UNIFORM, blocks - BLOCKS))
    probabilities = [
        structured * vertical,
        structured * diagonal,
        structured * (1 - vertical - diagonal).clamp_min(0),
        (1 - structured) * block,
        (1 - structured) * (1 - block),
    ]
    return torch.stack(probabilities, dim=-1).masked_fill(~maps.valid[:, None], torch.nan)


def _soft_step(above: Float[Tensor, " map"]) -> Float[Tensor, " map"]:
    return torch.sigmoid(above / SOFTNESS)


def _band(profiles: Profiles, maps: NormalizedMaps) -> Float[Tensor, " map"]:
    """Return the largest mass of neighbouring offsets above the uniform weight."""
    counts = maps.counts[:, None].clamp_min(1)
    above = torch.nn.functional.pad((profiles.offsets - 1 / counts).clamp_min(0).cumsum(-1), (1, 0))
    centre = torch.arange(profiles.offsets.shape[1], device=counts.device)
    radius = (counts // BAND_FRACTION).clamp_min(1)
    first, last = (centre - radius).clamp_min(0), (centre + radius + 1).clamp_max(len(centre))
    return (above.gather(1, last) - above.gather(1, first)).amax(-1)


def _evenness(mass: Rows, root: Rows, maps: NormalizedMaps) -> Float[Tensor, " map"]:
    """Return the mean over rows of (Σ√p)² / nΣp."""
    row = root.square() / (maps.counts[:, None] * mass).clamp_min(1e-9)
    return (row * maps.nonzero_rows).sum(-1) / maps.nonzero_rows.sum(-1).clamp_min(1)


def _sum_quadrants(cells: Float[Tensor, "map token token"], rows: Rows) -> Quadrants:
    """Sum the four quadrants of every cut: first to first, first to second, second to first, second to second."""
    lower = cells * torch.ones_like(cells[0]).tril()  # several times faster than a batched tril
    columns = cells.sum(-2)
    corner = (lower.sum(-1) + columns - lower.sum(-2)).cumsum(-1)[:, :-1]
    top, left = (sums.cumsum(-1)[:, :-1] for sums in (rows, columns))
    total = rows.sum(-1, keepdim=True)
    return torch.stack([corner, top - corner, left - corner, total - top - left + corner], dim=-1).clamp_min(0)


def _blocks(mass: Quadrants, root: Quadrants, maps: NormalizedMaps) -> Float[Tensor, " map"]:
    """Score the best cut into two parts: between the texts of a pair; without a pair, anywhere but near the ends."""
    counts = maps.counts[:, None]
    cut = torch.arange(1, maps.nonzero_rows.shape[1], device=counts.device)
    second = ((maps.segments == 1) & maps.real).sum(-1, keepdim=True)
    anywhere = torch.minimum(cut, counts - cut) >= MIN_BLOCK * counts
    allowed = torch.where((second > 0) & (second < counts), cut == counts - second, anywhere)
    sides = torch.stack([cut.expand_as(allowed), counts - cut], dim=-1).clamp_min(0)
    cells = (sides[..., :, None] * sides[..., None, :]).flatten(-2)  # map cut quadrant
    evenness = root.square() / (cells * mass).clamp_min(1e-9)
    share = mass / mass.sum(-1, keepdim=True).clamp_min(1e-9)
    expected = cells / cells.sum(-1, keepdim=True).clamp_min(1)
    contrasts = [_contrast(share, expected, evenness, pair) for pair in (WITHIN, ACROSS)]
    return (torch.maximum(*contrasts) * allowed).amax(-1)


def _contrast(share: Quadrants, expected: Quadrants, evenness: Quadrants, pair: slice) -> Float[Tensor, "map cut"]:
    """Return how far two quadrants exceed their expected share (1 where they hold all), times their evenness."""
    observed, uniform = share[..., pair].sum(-1), expected[..., pair].sum(-1)
    above = ((observed - uniform) / (1 - uniform).clamp_min(1e-6)).clamp_min(0)
    return above * (share * evenness)[..., pair].sum(-1) / observed.clamp_min(1e-9)
