"""Which part of a transformer's attention really reaches the output.

>>> import headscope as hs
>>> model = hs.load()
>>> trace = hs.capture(model, "The cat sat down because it was tired.")
>>> hs.view(trace, "effective")
Maps(effective lens, self attention of 1 example, 6 layers × 12 heads, up to 11 tokens)
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

# The public names are listed once, in __init__.pyi, and each is imported when it is first used: `import headscope`
# stays quick, and drawing a saved result needs no torch.
_HOMES = {
    alias.name: node.module
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom) and node.module
    for alias in node.names
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headscope' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
