"""What doctests and tests share: garbage is collected among new objects only.

Doctests run in a folder of their own, with the variables of the example of the package: hs, model and trace.
"""

import gc
import re
from functools import cache
from importlib.util import find_spec

import pytest

collect_ignore = [] if find_spec("triton") else ["src/headscope/effective/kernels.py"]  # imports it, for GPUs


@cache
def make_variables() -> dict[str, object]:
    """Return what the docstring of the package defines."""
    import doctest

    import headscope

    examples = doctest.DocTestParser().get_examples(headscope.__doc__ or "")
    variables: dict[str, object] = {}
    for example in examples[:-1]:  # the last one shows its result
        exec(example.source, variables)
    return {name: variables[name] for name in ("hs", "model", "trace")}


@pytest.fixture(scope="module", autouse=True)
def _freeze_objects() -> None:
    """Exempt what is loaded by now from garbage collection.

    The libraries and thousands of tests are millions of objects, and some code collects garbage by itself: every
    training with transformers looked at all of them, for a second.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _prepare_doctest(request: pytest.FixtureRequest) -> None:
    """Give a doctest that uses these variables its namespace, and any doctest a folder."""
    if not isinstance(request.node, pytest.DoctestItem):
        return
    monkeypatch = request.getfixturevalue("monkeypatch")
    monkeypatch.chdir(request.getfixturevalue("tmp_path"))
    monkeypatch.setattr("webbrowser.open", lambda _: True)
    test = request.node.dtest
    if test is not None and re.search(r"\b(hs|model|trace)\b", "".join(example.source for example in test.examples)):
        test.globs.update({**make_variables(), **test.globs})
