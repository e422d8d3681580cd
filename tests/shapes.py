"""Shapes and types of tensors are checked while tests run."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from jaxtyping import install_import_hook


def check_shapes(*packages: str) -> None:
    """Check the arguments and results of every function in a module with shapes; mypy checks all other modules.

    Checks take as long as the tests themselves, so they are kept to where mypy sees nothing.
    """
    if find_spec("beartype"):  # a development dependency
        install_import_hook([module for package in packages for module in find_annotated(package)], "beartype.beartype")


def find_annotated(package: str) -> Iterator[str]:
    """Yield the names of the modules of a package whose annotations have shapes."""
    root = Path(find_spec(package).origin).parent
    for path in root.rglob("*.py"):
        if "jaxtyping" in path.read_text(encoding="utf-8"):
            yield ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
