"""The least and greatest value of every coordinate over {x ≥ 0, Eᵀx = Eᵀa}, by a simplex walk.

All 2n linear programmes have the same feasible set, so a vertex that ends one of them starts the next: several walkers
go from vertex to vertex, each with a dense tableau, and every exchange is made for all of them at once. A visited
vertex with x_j = 0 proves that the least x_j is 0, which settles most of the minima on the way.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from headscope.core.errors import HeadscopeError

Array = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.int64]]

TINY = 1e-12  # what a coordinate may be below zero, so that the larger of nearly tied pivots is taken
FLAT = 1e-10  # an objective that falls no faster than this along every edge is at its end
CACHE = 2**22  # bytes of tableaux that stay near the processor
SERIAL = 2**15 - 1  # numbers that torch changes without starting threads, which cost more than they give here
MOST_WALKERS, FEWEST_WALKERS = 128, 4
PATIENCE = 60  # exchanges without progress before Bland's rule takes over, under which no basis comes twice
LONGEST = 1_000_000  # steps of all walkers together


@dataclass(frozen=True)
class Ends:
    """Where each coordinate is least and greatest, and why it can be no further; first the greatest, then the least.

    `proofs` are vectors w of E's column space, so that w·x is the same for all x. Where w is at least 0 except for
    ±1 at the coordinate itself, ±x_j = w·x − (a sum that is at least 0) ≤ w·a. A least value of 0 needs none.
    """

    rows: Float[np.ndarray, "2 key other"]
    proofs: Float[np.ndarray, "2 key other"]


def ends(weights: Float[np.ndarray, " key"], equations: Float[np.ndarray, "key equation"]) -> Ends:
    """The vertices at which each coordinate is greatest and least; `weights` is a point of the set.

    The columns of `equations` are orthonormal, and weights sum to 1.
    """
    many, equal = equations.shape
    if many == equal:  # no other row has this output
        return Ends(np.tile(weights, (2, many, 1)), np.stack([np.eye(many), -np.eye(many)]))
    start = _vertex(weights, equations)
    record = _Record(many)
    record.visit(start, start.outside[0], np.zeros(many - equal, int))
    room = CACHE // (8 * (equal + 1) * (many - equal))
    walkers = start.repeated(min(max(room, FEWEST_WALKERS), MOST_WALKERS, many))
    for place in range(len(walkers.goal)):
        record.send(walkers, place)
    for _ in range(LONGEST):
        column, done = _entering(walkers)
        edge = walkers.table[np.arange(len(column)), :, column]
        row, blocked = _leaving(walkers, edge)
        done |= ~blocked | ((walkers.sign < 0) & record.zero[walkers.goal])
        if done.any():
            for place in np.flatnonzero(done)[::-1].tolist():
                if not record.settle(walkers, place):
                    walkers = walkers.without(place)
            if not len(walkers.goal):
                return Ends(record.rows, record.proofs)
            continue
        left = walkers.inside[np.arange(len(row)), row]
        _exchange(walkers, row, column, edge)
        new = np.flatnonzero(~record.zero[left])
        record.visit(walkers, left[new], new)
    raise HeadscopeError(f"The intervals of this row's weights are not found after {LONGEST} steps between vertices.")


@dataclass(frozen=True)
class _Walkers:
    """Dense tableaux: x_inside = level − table·x_outside, and in the last row the objective, which rises."""

    table: Float[np.ndarray, "walker line outside"]
    level: Float[np.ndarray, "walker line"]
    inside: Int[np.ndarray, "walker inside"]  # the keys of the basis
    outside: Int[np.ndarray, "walker outside"]  # the keys that are zero
    goal: Int[np.ndarray, " walker"]
    sign: Int[np.ndarray, " walker"]  # 1 for the greatest, -1 for the least
    stalled: Int[np.ndarray, " walker"]

    def repeated(self, times: int) -> "_Walkers":
        """So many walkers at the place of the first."""
        return _Walkers(*(np.repeat(getattr(self, each.name)[:1], times, axis=0) for each in fields(self)))

    def without(self, place: int) -> "_Walkers":
        """All but one; the last takes its place, so that only it is copied."""
        arrays = [getattr(self, each.name) for each in fields(self)]
        for each in arrays:
            each[place] = each[-1]
        return _Walkers(*(each[:-1] for each in arrays))

    def point(self, place: int) -> Array:
        """Where a walker stands."""
        x = np.zeros(self.inside.shape[1] + self.outside.shape[1])
        x[self.inside[place]] = self.level[place, :-1].clip(min=0)
        return x


class _Record:
    """What is settled, and which objectives are still to come."""

    def __init__(self, many: int) -> None:
        self.rows, self.proofs = np.zeros((2, 2, many, many))
        self.zero = np.zeros(many, bool)  # a visited vertex proves that the least is 0
        self.waiting = np.ones((2, many), bool)

    def visit(self, walkers: _Walkers, keys: Places, places: Places) -> None:
        """Note vertices at which keys are zero for the first time."""
        for key, place in zip(keys.tolist(), places.tolist(), strict=True):
            if not self.zero[key]:
                self.zero[key] = True
                self.rows[1, key] = walkers.point(place)

    def settle(self, walkers: _Walkers, place: int) -> bool:
        """Write down what a walker has reached, and send it on; False where nothing is left to do."""
        goal, sign = walkers.goal[place], walkers.sign[place]
        if sign > 0 or not self.zero[goal]:
            side = 0 if sign > 0 else 1
            self.rows[side, goal] = walkers.point(place)
            self.proofs[side, goal, walkers.outside[place]] = walkers.table[place, -1]
            self.proofs[side, goal, goal] += sign
        return self.send(walkers, place)

    def send(self, walkers: _Walkers, place: int) -> bool:
        """Give a walker the next objective: the one of which its vertex already has most, or least."""
        here = walkers.point(place)
        self.waiting[1] &= ~self.zero
        side = 0 if self.waiting[0].any() else 1
        if not self.waiting[side].any():
            return False
        sign = 1 - 2 * side
        goal = int(np.where(self.waiting[side], sign * here, -np.inf).argmax())
        self.waiting[side, goal] = False
        walkers.goal[place], walkers.sign[place] = goal, sign
        walkers.stalled[place] = 0
        (line,) = np.nonzero(walkers.inside[place] == goal)
        walkers.table[place, -1] = sign * walkers.table[place, line[0]] if len(line) else 0
        walkers.table[place, -1, walkers.outside[place] == goal] = -sign
        walkers.level[place, -1] = sign * here[goal]
        return True


def _vertex(weights: Array, equations: Array) -> _Walkers:
    """A vertex reached from the given point: keys outside the basis go down to zero one by one."""
    many, equal = equations.shape
    order = np.arange(many)
    matrix = torch.from_numpy(equations)  # torch's linear algebra, for it keeps to torch's number of threads
    for place, other in enumerate(torch.linalg.lu_factor(matrix)[1].tolist()):
        order[[place, other - 1]] = order[[other - 1, place]]
    inside, outside = order[:equal], order[equal:]
    table = np.zeros((1, equal + 1, many - equal))
    table[0, :-1] = torch.linalg.solve(matrix[inside].T, matrix[outside].T).numpy()
    level = np.append(weights[inside], 0.0)[None]
    none = np.zeros(1, int)
    one = _Walkers(table, level, inside[None], outside[None], none, none + 1, none.copy())
    for place, height in enumerate(weights[outside]):
        fall = table[0, :-1, place]  # what the basis gains while this key goes down
        blocking = -fall / (level[0, :-1] + TINY)
        line = int(blocking.argmax()) if equal else 0
        if equal and blocking[line] * height > 1:
            step = -level[0, line] / fall[line]
            level[0, :-1] += step * fall
            level[0, line] = 0
            _exchange(one, np.array([line]), np.array([place]), table[:, :, place].copy())
            level[0, line] = height - step
        else:
            level[0, :-1] += height * fall
        np.maximum(level, 0, out=level)
    return one


def _entering(walkers: _Walkers) -> tuple[Places, Any]:
    """The key along which each objective rises most steeply, and whether it rises along none."""
    cost = walkers.table[:, -1]
    column = cost.argmin(1)
    done = cost[np.arange(len(cost)), column] >= -FLAT
    for place in np.flatnonzero((walkers.stalled > PATIENCE) & ~done):  # Bland: the first key that is any good
        rising = np.flatnonzero(cost[place] < -FLAT)
        column[place] = rising[walkers.outside[place, rising].argmin()]
    return column, done


def _leaving(walkers: _Walkers, edge: Array) -> tuple[Places, Any]:
    """The line of the key that reaches zero first, and whether there is one."""
    speed = edge[:, :-1] / (np.maximum(walkers.level[:, :-1], 0) + TINY)
    row = speed.argmax(1)
    for place in np.flatnonzero(walkers.stalled > PATIENCE):  # Bland: of tied keys, the first
        tied = np.flatnonzero((walkers.level[place, :-1] <= TINY) & (edge[place, :-1] > FLAT))
        if len(tied):
            row[place] = tied[walkers.inside[place, tied].argmin()]
    return row, speed[np.arange(len(row)), row] > 0.5  # coordinates sum to 1, so that every real edge ends before 2


def _exchange(walkers: _Walkers, row: Places, column: Places, edge: Array) -> None:
    """One key of each basis for one outside it, whose column is `edge`; that array is used up."""
    every = np.arange(len(row))
    line, pivot = walkers.table[every, row], edge[every, row]
    step = np.maximum(walkers.level[every, row], 0) / pivot
    np.subtract(walkers.level, step[:, None] * edge, out=walkers.level)
    walkers.level[every, row] = step
    line /= pivot[:, None]
    line[every, column] += 1 / pivot  # with this and the next line, one product exchanges the row and column too
    edge[every, row] -= 1
    _subtract_products(walkers.table, edge, line)
    swapped = walkers.outside[every, column], walkers.inside[every, row]
    walkers.inside[every, row], walkers.outside[every, column] = swapped
    walkers.stalled[...] = np.where(step <= TINY, walkers.stalled + 1, 0)


def _subtract_products(table: Array, edge: Array, line: Array) -> None:
    """table −= edge ⊗ line, in one pass where numpy takes two, and in parts too small for torch to start threads."""
    step = max(1, SERIAL // (table.shape[1] * table.shape[2]))
    for start in range(0, len(table), step):
        part = slice(start, start + step)
        factors = torch.from_numpy(edge[part, :, None]), torch.from_numpy(line[part, None])
        torch.from_numpy(table[part]).addcmul_(*factors, value=-1)
