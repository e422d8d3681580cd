"""Minimum and maximum of every coordinate over {x ≥ 0, Eᵀx = Eᵀa}, by the simplex method.

All 2n linear programmes have the same feasible set, so the vertex that ends one of them starts the next: one dense
tableau goes from vertex to vertex through them all, along the edge that is steepest for the coordinate it is at. A
visited vertex with x_j = 0 proves that the least x_j is 0, which settles most of the minima on the way.

The walk is compiled: that takes about 7 s at the first call after an install, and 0.5 s to read it from disk later.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from headscope.core.compiled import compiled
from headscope.core.errors import HeadscopeError

Array = np.ndarray[Any, np.dtype[np.float64]]
Indices = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

FEASIBILITY_TOLERANCE = 1e-12  # how far below zero a coordinate may be: prefers large pivots in near ties
OPTIMALITY_TOLERANCE = 1e-10  # largest reduced cost at which a coordinate counts as optimal
MAX_STALLED = 60  # pivots without progress before Bland's rule, which cannot cycle, takes over
REFACTOR_AFTER = 5000  # pivots after which the tableau is recomputed, to limit rounding errors
MAX_PIVOTS = 1_000_000  # pivots in all


@dataclass(frozen=True)
class Extremes:
    """Where each coordinate is least and greatest, and why it can be no further; first the greatest, then the least.

    `proofs` are vectors w of E's column space, so that w·x is the same for all x. Where w is at least 0 except for
    ±1 at the coordinate itself, ±x_j = w·x − (a sum that is at least 0) ≤ w·a. A least value of 0 needs none.
    """

    rows: Float[np.ndarray, "2 key other"]
    proofs: Float[np.ndarray, "2 key other"]


def find_extremes(weights: Float[np.ndarray, " key"], equations: Float[np.ndarray, "key equation"]) -> Extremes:
    """The vertices at which each coordinate is greatest and least; `weights` is a point of the set.

    The columns of `equations` are orthonormal, and weights sum to 1.
    """
    keys, equal = equations.shape
    if keys == equal:  # no other row has this output
        return Extremes(np.tile(weights, (2, keys, 1)), np.stack([np.eye(keys), -np.eye(keys)]))
    order = _independent_first(equations)
    vertex = _tableau(weights, equations, order[:equal], order[equal:])
    vertex.level[:] = weights[vertex.inside]
    _descend(vertex, weights[vertex.outside])
    record = _Record(np.zeros((2, keys, keys)), np.zeros((2, keys, keys)), np.zeros((2, keys), np.bool_))
    left = MAX_PIVOTS
    while left > 0:
        left -= _walk(vertex, record, _Rules(OPTIMALITY_TOLERANCE, MAX_STALLED, REFACTOR_AFTER, left))
        if record.settled.all():
            return Extremes(record.rows, record.proofs)
        vertex = _tableau(weights, equations, vertex.inside, vertex.outside)
    raise HeadscopeError(f"The intervals of this row's weights are not found after {MAX_PIVOTS} pivots.")


class _Vertex(NamedTuple):
    """Where the walk stands: x_inside = level − table·x_outside, and x_outside = 0."""

    table: Array  # inside outside
    level: Array
    inside: Indices  # the keys of the basis
    outside: Indices  # the keys that are zero
    line: Indices  # of each key: its line in the table, or -1 - its column
    length: Array  # of the edge along each column, squared


class _Record(NamedTuple):
    """What is found so far; first the greatest, then the least."""

    rows: Array  # side key other
    proofs: Array  # side key other
    settled: Flags  # side key


class _Rules(NamedTuple):
    """When to stop; given at each call, for names outside a compiled function are constants."""

    flat: float
    patience: int
    fresh: int
    most: int


def _independent_first(equations: Array) -> Indices:
    """All keys, first those of a basis; torch's linear algebra, for it keeps to torch's number of threads."""
    order = np.arange(len(equations))
    for index, other in enumerate(torch.linalg.lu_factor(torch.from_numpy(equations))[1].tolist()):
        order[[index, other - 1]] = order[[other - 1, index]]
    return order


def _tableau(weights: Array, equations: Array, inside: Indices, outside: Indices) -> _Vertex:
    """The tableau of a basis, from the equations themselves."""
    matrix, point = torch.from_numpy(equations), torch.from_numpy(weights)
    table = torch.linalg.solve(matrix[inside].T, matrix[outside].T).contiguous()
    level = (point[inside] + table @ point[outside]).clamp(min=0)
    length = 1 + table.square().sum(0)
    line = np.empty(len(weights), np.int64)
    line[inside], line[outside] = np.arange(len(inside)), -1 - np.arange(len(outside))
    return _Vertex(table.numpy(), level.numpy(), inside, outside, line, length.numpy())


@compiled
def _descend(vertex: _Vertex, heights: Array) -> None:
    """Go from a point to a vertex: keys outside the basis go down to zero one by one."""
    level = vertex.level
    for column, height in enumerate(heights):
        fall = vertex.table[:, column].copy()  # what the basis gains while this key goes down
        row, most = -1, 1 / height if height > 0 else np.inf
        for index in range(len(fall)):
            speed = -fall[index] / (level[index] + FEASIBILITY_TOLERANCE)
            if speed > most:
                row, most = index, speed
        step = height if row < 0 else -level[row] / fall[row]
        level += step * fall
        if row >= 0:
            level[row] = 0
            _pivot(vertex, row, column, fall)
            level[row] = height - step
        np.maximum(level, 0, level)


@compiled
def _walk(vertex: _Vertex, record: _Record, rules: _Rules) -> int:
    """Settle one end after the other, until all are or the tableau is no longer fresh; give the exchanges made."""
    for key in vertex.outside:
        _note_zero(vertex, record, key)
    pivots = 0
    for side in range(2):
        goal = _nearest(vertex, record, side)
        while goal >= 0 and pivots < min(rules.fresh, rules.most):
            pivots += _climb(vertex, record, side, goal, rules)
            goal = _nearest(vertex, record, side)
    return pivots


@compiled
def _nearest(vertex: _Vertex, record: _Record, side: int) -> int:
    """The key to settle next: the one of which this vertex already has most, or least."""
    goal, best = -1, -np.inf
    for key, line in enumerate(vertex.line):
        here = (1 - 2 * side) * (vertex.level[line] if line >= 0 else 0.0)
        if here > best and not record.settled[side, key]:
            goal, best = key, here
    return goal


@compiled
def _climb(vertex: _Vertex, record: _Record, side: int, goal: int, rules: _Rules) -> int:
    """Go up, or down, as far as it goes, and write down what is reached; give the exchanges made."""
    table, level, inside, outside, line, length = vertex  # once, for it costs more than a step's search
    sign, stalled, pivots = 1 - 2 * side, 0, 0
    while pivots < rules.most:
        bland = stalled > rules.patience
        column = -1 - line[goal]  # where the goal is outside, it alone comes in
        if column < 0 and bland:
            column = _first_rising(table[line[goal]], sign, outside, rules.flat)
        elif column < 0:
            column = _steepest(table[line[goal]], sign, length, rules.flat)
        edge = table[:, column].copy()
        row = _first_tied(edge, level, inside, rules.flat) if bland else -1
        row = _first_blocking(edge, level) if row < 0 else row
        if column < 0 or row < 0:
            _settle(vertex, record, side, goal)
            break
        key = inside[row]
        step = _pivot(vertex, row, column, edge)
        pivots += 1
        stalled = stalled + 1 if step <= FEASIBILITY_TOLERANCE else 0
        if not record.settled[1, key]:
            _note_zero(vertex, record, key)
            if side == 1 and key == goal:
                break
    return pivots


@compiled
def _steepest(cost: Array, sign: int, length: Array, flat: float) -> int:
    """The column along whose edge the goal rises most for the way that is gone; -1 if it rises along none."""
    column, best = -1, 0.0
    for index in range(len(cost)):
        rise = -sign * cost[index]
        if rise > flat and rise * rise > best * length[index]:
            column, best = index, rise * rise / length[index]
    return column


@compiled
def _first_rising(cost: Array, sign: int, outside: Indices, flat: float) -> int:
    """Bland: the column of the first key that is any good; -1 if none is."""
    column = -1
    for index in range(len(cost)):
        if -sign * cost[index] > flat and (column < 0 or outside[index] < outside[column]):
            column = index
    return column


@compiled
def _first_blocking(edge: Array, level: Array) -> int:
    """The line of the key that reaches zero first; -1 if there is none."""
    row, best = -1, 0.5  # coordinates sum to 1, so that every real edge ends before 2
    for index in range(len(edge)):
        speed = edge[index] / (max(level[index], 0.0) + FEASIBILITY_TOLERANCE)
        if speed > best:
            row, best = index, speed
    return row


@compiled
def _first_tied(edge: Array, level: Array, inside: Indices, flat: float) -> int:
    """Bland: the line of the first key that is zero already and would fall; -1 if there is none."""
    row = -1
    for index in range(len(edge)):
        if level[index] <= FEASIBILITY_TOLERANCE and edge[index] > flat and (row < 0 or inside[index] < inside[row]):
            row = index
    return row


@compiled
def _pivot(vertex: _Vertex, row: int, column: int, edge: Array) -> float:
    """One key of the basis for one outside it, whose column is `edge`; that array is used up. Gives how far it went."""
    table, level, length = vertex.table, vertex.level, vertex.length
    pivot = edge[row]
    step = max(level[row], 0.0) / pivot
    for index in range(len(level)):
        level[index] -= step * edge[index]
    level[row] = step
    line = table[row] / pivot
    line[column] += 1 / pivot  # with this and the next line, one product exchanges the row and column too
    edge[row] -= 1
    _subtract_product(table, edge, line, length)
    inner, outer = vertex.inside[row], vertex.outside[column]
    vertex.inside[row], vertex.outside[column] = outer, inner
    vertex.line[outer], vertex.line[inner] = row, -1 - column
    return float(step)


@compiled
def _subtract_product(table: Array, edge: Array, line: Array, length: Array) -> None:
    """table −= edge ⊗ line, and the squared lengths of the edges after it; most of the time is spent here."""
    length[:] = 1
    for index in range(table.shape[0]):
        share = edge[index]
        for other in range(table.shape[1]):
            entry = table[index, other] - share * line[other]
            table[index, other] = entry
            length[other] += entry * entry


@compiled
def _settle(vertex: _Vertex, record: _Record, side: int, goal: int) -> None:
    """Write down the end that is reached, and the line of the table that proves it."""
    sign, line = 1 - 2 * side, vertex.line[goal]
    record.settled[side, goal] = True
    _write(vertex, record.rows[side, goal])
    if line >= 0:
        for column, key in enumerate(vertex.outside):
            record.proofs[side, goal, key] = sign * vertex.table[line, column]
        record.proofs[side, goal, goal] = sign


@compiled
def _note_zero(vertex: _Vertex, record: _Record, key: int) -> None:
    """Write down a vertex at which a key is zero, if it is the first: no weight is less."""
    if not record.settled[1, key]:
        record.settled[1, key] = True
        _write(vertex, record.rows[1, key])


@compiled
def _write(vertex: _Vertex, point: Array) -> None:
    """Where the walk stands, as a whole row."""
    point[:] = 0
    for index, key in enumerate(vertex.inside):
        point[key] = max(vertex.level[index], 0.0)
