"""Which part of a transformer's attention really reaches the output.

>>> import headscope as hs
>>> model = hs.load()
>>> trace = hs.capture(model, hs.read("sample")[1])  # a paragraph; in texts of up to 32 tokens all attention does
>>> hs.view(trace, "effective")
Maps(effective lens, self attention of 1 example, 6 layers × 12 heads, up to 70 tokens)

Load, read, capture: load, read, scan, repeat_tokens, capture, stream, by_layer, generate, edited, average_heads
View: view, to_words, identifiability, importances
Measure, probe and compare: measure, merge, compare, cluster, probe
Audit data: cues, add_negated, balance
Look, draw, save, report: show, atlas, draw, save, open_result, report
Train, score, prune, repeat a study: finetune, score, ablate, head_importance, faithfulness, prune, pruning_curve, study
Objects: Model, Example, Tokens, Trace, Maps, Importances
Write your own: Lens, make_maps, Statistic, PerExample, Batch, Probe, Figure, Edit, Importance, Study
List what there is: list
Errors and warnings: HeadscopeError, InputError, UnknownName, LoadError, NotCaptured, MissingExtra, CaptureError,
    OutputError, DataWarning

help(hs.measure) and the like show parameters and an example, and hs.list("lenses") what there is of a kind. An error
names the page that explains it.
"""

import ast
import warnings
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
    if name.startswith("list_"):
        return _list_by_old_name(name)
    if name not in _HOMES:
        raise AttributeError(f"module 'headscope' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__


def _list_by_old_name(name: str) -> Any:
    """Return what `list_lenses` and the like were before `list("lenses")`; they leave with 1.1."""
    from headscope.core.catalog import catalogs

    folder = name.removeprefix("list_")
    if folder not in catalogs:
        raise AttributeError(f"module 'headscope' has no attribute '{name}'")
    warnings.warn(f"hs.{name}() is now hs.list('{folder}').", DeprecationWarning, stacklevel=3)
    return lambda: __getattr__("list")(folder)
