"""What the compiled search for maximum flows reads and writes.

These are types alone: numba compiles anew what it has cached when the file of that function changes, and no other.
"""

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Indices = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Network(NamedTuple):
    """A layered graph."""

    capacity: Array  # layer query key
    flat_capacity: Array  # the same array by place
    order: Indices  # layer query rank: keys by decreasing capacity
    counts: Indices  # layer query: how many of them have a capacity
    into_order: Indices  # sink rank: queries of the lowest layer by decreasing capacity of their edge into the sink
    from_source: Flags  # level source node: whether the source reaches the node
    to_sink: Flags  # level sink node: whether the node reaches the sink


class Flow(NamedTuple):
    """What flows through a graph to one sink."""

    left: Array  # layer query key: capacity that is left
    flat_left: Array  # the same array by place
    into_sink: Array  # query: capacity that is left of the edges into the sink
    carries: Flags  # layer query key: whether the edge has carried flow
    flat_carries: Flags  # the same array by place
    carrier_count: Indices  # how many have, and how many of them are linked
    carrier_edge: Indices  # number: the places of edges that have carried flow
    next_carrier: Indices  # number: the next one of the same query, -1 after the last
    first_carrier: Indices  # layer query: the number of its first one, -1 without one


class Search(NamedTuple):
    """A search for paths to the sink, from nodes that the source reaches."""

    distance: Indices  # level node: length of the shortest path to the sink, -1 where none is known
    waiting: Indices  # level rank: nodes that were not found yet
    waiting_count: Indices  # level: how many; 0 above the top
    node: Indices  # rank: nodes that were found, in this order
    level: Indices  # rank: their levels
    labelled: Indices  # level rank: nodes that have a distance, in any order
    place: Indices  # level node: its rank among them
    labelled_count: Indices  # level: how many


class Path(NamedTuple):
    """The path along which flow is sent, from the source on, and what other paths have left of edges and nodes."""

    level: Indices
    node: Indices
    room: Array  # how much can still be sent from this node of the path
    sent: Array  # how much has been sent from it
    next_edge: Indices  # level node: the first edge that is not used up
    open_keys: Indices  # rank: nodes above the sink that can still send something to it


class Work(NamedTuple):
    """All of that."""

    network: Network
    flow: Flow
    search: Search
    path: Path
