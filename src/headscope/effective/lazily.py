"""Values that are computed when somebody first asks for them."""

from collections.abc import Callable, Iterator, Mapping

from torch import Tensor


class Lazily(Mapping[str, Tensor]):
    """A mapping of names to tensors, each made once, at its first use.

    >>> import torch
    >>> table = Lazily({"n": lambda: torch.arange(2)})
    >>> list(table), table["n"].tolist()
    (['n'], [0, 1])
    """

    def __init__(self, makers: Mapping[str, Callable[[], Tensor]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._made:
            self._made[name] = self._makers[name]()
            self._makers[name] = _done  # what it was made of may go
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def _done() -> Tensor:
    raise AssertionError("a value is made once")
