"""What a viewer shows of its source: view, sheet, lens, layer, head and token, checked against the header."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from headscope.core.errors import InputError, unknown_name
from headscope.core.trace import select_labels
from headscope.display.options import ViewerOptions

Header = Mapping[str, Any]

VIEWS = ("grid", "head", "compare", "matrix", "layers", "models", "result")


def make_state(header: Header, options: ViewerOptions) -> dict[str, Any]:
    """Return the first state of a viewer; raise InputError for what the header does not have."""
    sheet = check_sheet(header, options.sheet)
    chosen = any(value is not None for value in (options.layer, options.head, options.token))
    first = "head" if chosen else "grid" if header["sheets"] else "result"
    return {
        "sheet": sheet,
        "view": check_view(options.view or first),
        "lens": check_lens(header, sheet, options.lens),
        "layer": check_label(header, sheet, "layer", options.layer),
        "head": check_label(header, sheet, "head", options.head),
        "token": check_token(header, sheet, options.token),
    }


def check_view(view: str) -> str:
    """Return the name of a view."""
    if view not in VIEWS:
        raise unknown_name("view", view, VIEWS)
    return view


def check_sheet(header: Header, sheet: int) -> int:
    """Return the position of a sheet; negative ones count from the end."""
    count = len(header["sheets"])
    return int(select_labels(range(count), sheet, "sheet")[0]) if count else 0


def check_lens(header: Header, sheet: int, lens: str | None) -> str:
    """Return the name of a lens of a sheet; the first for None."""
    names = [str(facts["name"]) for facts in _read(header, sheet, "lenses")]
    if lens and lens not in names:
        raise unknown_name("lens of this viewer", lens, names)
    return lens or (names[0] if names else "")


def check_label(header: Header, sheet: int, axis: str, label: int | None) -> int:
    """Return the label of a layer or head of a sheet; the first for None, and negative ones count from the end."""
    labels = _read(header, sheet, f"{axis}s")
    if not labels:
        if label:
            raise InputError(f"There is no {axis} {label} here: this viewer shows a result without maps.")
        return 0
    return int(labels[0] if label is None else select_labels(labels, label, axis)[0])


def check_token(header: Header, sheet: int, token: int | None) -> int | None:
    """Return the position of a token; None for -1, which is none."""
    if token is None or token == -1:
        return None
    count = count_tokens(header, sheet)
    if not 0 <= token < count:
        raise InputError(f"There is no token {token}: this text has {count} tokens, 0 to {count - 1}.")
    return token


def count_tokens(header: Header, sheet: int) -> int:
    """Return the number of tokens on the longer side of the maps of a sheet."""
    sides = (_read(header, sheet, side) for side in ("queries", "keys"))
    return max((len(side["text"]) for side in sides if side), default=0)


def to_fragment(state: Mapping[str, Any]) -> str:
    """Return a state as the fragment of a page's address.

    >>> to_fragment({"view": "head", "layer": 3, "head": 7, "lens": "raw", "sheet": 0, "token": None})
    'view=head&layer=3&head=7&lens=raw&sheet=0'
    """
    names = {"token": "tokens"}
    return urlencode({names.get(name, name): value for name, value in state.items() if value not in (None, "")})


def _read(header: Header, sheet: int, name: str) -> Any:
    sheets = header["sheets"]
    return sheets[sheet][name] if sheets else []
