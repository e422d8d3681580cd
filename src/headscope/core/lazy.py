"""Fields of a frozen dataclass that are computed on first access."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")


class LazyFields:
    """Mixin for a frozen dataclass: a field can be given as a function of the object, which is called once.

    Pickling, copying and comparing compute every field. A field that shall be lazy has no plain default: Python would
    find that on the class.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Square(LazyFields):
    ...     side: int
    ...     area: int
    >>> Square.lazy(side=3, area=lambda square: square.side**2)
    Square(side=3, area=9)
    """

    @classmethod
    def lazy(cls: type[T], **values: Any) -> T:
        """Build an instance from values, and from functions for the values to compute later."""
        instance = object.__new__(cls)
        pending = {name: value for name, value in values.items() if callable(value)}
        vars(instance).update({name: value for name, value in values.items() if name not in pending}, _pending=pending)
        return instance

    if not TYPE_CHECKING:  # a type checker must still see misspelt attributes

        def __getattr__(self, name):
            """Compute a field that is still pending; Python calls this only for what is not set."""
            pending = vars(self).get("_pending", {})
            if (compute := pending.get(name)) is None:
                if name in vars(self):  # another thread has just computed it
                    return vars(self)[name]
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            vars(self)[name] = value = compute(self)
            pending.pop(name, None)
            return value

    def __getstate__(self) -> dict[str, Any]:
        """Return all fields, so that a copy in another process needs no function of this one."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # of dataclasses
