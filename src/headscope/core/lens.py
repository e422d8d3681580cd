"""The interface of lenses, and `view`, which applies one."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

from headscope.core.catalog import lenses
from headscope.core.errors import InputError, NotCaptured
from headscope.core.prose import format_bytes, join_words
from headscope.core.spec import check_choices, to_spec

if TYPE_CHECKING:
    from headscope.core.maps import Maps
    from headscope.core.trace import Trace


class Lens(ABC):
    """Frozen parameters and a call that turns a Trace into Maps.

    A subclass is a frozen dataclass, in a notebook, in a script or in a file of its own. Its name is that of the class
    in small letters: `Sharpened` is the lens "sharpened".

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Sharpened(hs.Lens):
    ...     power: float = 2.0
    ...
    ...     def __call__(self, trace):
    ...         return hs.make_maps(trace, [layer**self.power for layer in trace.attention], self)
    >>> hs.view(trace, Sharpened(power=3)).lens
    'sharpened:power=3.0'
    """

    scope: ClassVar[Literal["layer", "stack"]] = "stack"
    """Whether the lens reads all layers together. "layer": each alone, so that `measure` frees one before the next."""

    row_wise: ClassVar[bool] = False
    """Whether each row of its maps follows from that row of attention, with the values and the output projection."""

    cites: ClassVar[tuple[str, ...]] = ()
    """The papers that define this lens, as keys of `headscope cite` or BibTeX entries."""

    quantity: ClassVar[str] = ""
    """What its weights are, for a colour bar; by default `weight (spec)`."""

    note: ClassVar[str] = ""
    """What pictures of its maps say below, with names of diagnostics in braces, as in "{share:.0%} is left"."""

    def __post_init__(self) -> None:
        """Check the values of fields that are choices."""
        check_choices(self)

    @property
    def needs(self) -> frozenset[str]:
        """What the trace must hold: attention, values, output, gradient, pads, residual, readout, unembedding."""
        return frozenset({"attention"})

    @property
    def needs_target(self) -> bool:
        """Whether it is of one prediction, so that a capture must say which."""
        return bool(self.needs & {"gradient", "readout"})

    @property
    def has_residual(self) -> bool:
        """Whether the weight of a token on itself is also that of the residual connection."""
        return False

    @property
    def breaks(self) -> frozenset[str]:
        """The laws that this variant breaks by design."""
        return frozenset()

    @abstractmethod
    def __call__(self, trace: "Trace") -> "Maps":
        """Return the maps of every layer and head of the trace."""

    def start_rows(self, layer: "Trace") -> "Callable[[Trace], Maps]":  # noqa: ARG002
        """Return a function from traces of some queries of a layer to their maps; by default the lens itself.

        A row-wise lens computes here what all rows share.

        Parameters
        ----------
        layer
            A trace of one layer without queries: its values, and its keys.
        """
        return self

    @classmethod
    def from_spec(cls, spec: str) -> "Lens":
        """Build a lens from its spec; a field of a lens can hold another lens.

        Parameters
        ----------
        spec
            A name, or a name with parameters: name:parameter=value.
        """
        lens: Lens = lenses.make(spec)
        return lens


DEFAULT_LENSES = ("raw", "effective")
"""The lenses of a verb that takes several, where none is named."""

DEFAULT_LENS = "raw"
"""The lens of a statistic or a probe that takes one, where none is named: what others mean by attention."""

VIEW_LENS = "effective"
"""The lens of a view where none is named; its maps, pictures and files say so."""


def view(trace: "Trace", lens: "str | Lens | type[Lens]" = VIEW_LENS) -> "Maps":
    """Apply a lens to a trace.

    Without `lens` the maps are of effective attention, which is what a trace does not hold yet; their pictures and
    files name the lens. In a text with no more tokens than a head's values have dimensions, it is the same as raw
    attention, to the last bit.

    Parameters
    ----------
    trace
        What `hs.capture` returns.
    lens
        A name, a spec such as "effective:keys=paper", or an object or a class of a lens.

    >>> maps = hs.view(trace, "effective")
    >>> maps.weights.shape  # batch layer head query key
    torch.Size([1, 6, 12, 70, 70])
    """
    lens_object: Lens = lenses.make(lens)
    if missing := lens_object.needs - trace.held:
        if "gradient" in missing:
            raise NotCaptured(
                f"The lens '{to_spec(lens_object)}' needs 'gradient', but this trace holds {_quote(trace.held)}. Say "
                "of which prediction: hs.capture(model, text, target='predicted'), or give it to Trace.of."
            )
        if absent := [trace.absent[name] for name in sorted(missing & trace.absent.keys())]:
            raise NotCaptured(
                f"The lens '{to_spec(lens_object)}' needs {_quote(missing)}, which this model does not have. "
                f"{absent[0]} Use a lens that needs none, such as raw or effective."
            )
        keep = ", ".join(f"'{name}'" for name in sorted(trace.held | lens_object.needs))
        if "readout" in missing:
            raise NotCaptured(
                f"The lens '{to_spec(lens_object)}' needs 'readout', how a prediction reads what the heads write, but "
                f"this trace holds {_quote(trace.held)}. Say of which prediction: hs.capture(model, text, "
                f"target='predicted', keep=({keep}))."
            )
        raise NotCaptured(
            f"The lens '{to_spec(lens_object)}' needs {_quote(missing)}, but this trace holds {_quote(trace.held)}. "
            f"Capture again with keep=({keep}), or give it to Trace.of."
        )
    if trace.queries.position is not None and not lens_object.row_wise:
        raise InputError(
            f"The lens '{to_spec(lens_object)}' needs whole maps, but this trace holds {trace.queries.real.shape[1]:,} "
            f"of its queries. Capture without rows: maps of {trace.keys.real.shape[1]:,} tokens take "
            f"{format_bytes(_count_bytes(trace))}. Row-wise lenses are raw, effective, null and norm."
        )
    maps = lens_object(trace)
    if trace.pruned and (maps.merged or hasattr(lens_object, "inner")):
        raise InputError(
            f"The lens '{to_spec(lens_object)}' merges the heads of each layer, but some heads of this model were "
            f"pruned ({_name_heads(trace.pruned)}). Use a lens with a map for each head, such as effective or norm."
        )
    if not hasattr(maps, "parts"):
        raise InputError(
            f"The lens '{to_spec(lens_object)}' must return Maps, but returned a {type(maps).__name__}. Return "
            "hs.make_maps(trace, layers, self), with one tensor [batch, head, query, key] for each layer."
        )
    return maps


def _count_bytes(trace: "Trace") -> int:
    """Return the size of the whole maps of a trace that holds some of its queries, in float32."""
    return sum(4 * layer.shape[0] * layer.shape[1] * layer.shape[-1] ** 2 for layer in trace.attention)


def _name_heads(heads: frozenset[tuple[int, int]]) -> str:
    return join_words((f"L{layer}H{head}" for layer, head in sorted(heads)), limit=4)


def _quote(names: frozenset[str]) -> str:
    return join_words(f"'{name}'" for name in sorted(names))
