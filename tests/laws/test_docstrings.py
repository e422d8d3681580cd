"""Laws for every public function: its docstring lists its parameters, one line each, and shows an example that runs."""

import doctest
import inspect
import re

import pytest

import headscope as hs

FUNCTIONS = {name: getattr(hs, name) for name in hs.__all__ if inspect.isfunction(getattr(hs, name))}
CLASSES = [kind for kind in (getattr(hs, name) for name in hs.__all__) if inspect.isclass(kind)]
METHODS = {
    f"{kind.__name__}.{name}": getattr(kind, name)
    for kind in CLASSES
    for name, member in vars(kind).items()
    if not name.startswith("_") and inspect.isroutine(getattr(member, "__func__", member))
}


def list_parameters(function):
    """The parameters of the signature, in its order."""
    return [name for name in inspect.signature(function).parameters if name != "self"]


def list_documented(function):
    """The parameters of the section, in its order; those that share a description share a line."""
    section = re.search(r"^Parameters\n-{10}\n((?:.+\n?)*)", inspect.getdoc(function) or "", re.MULTILINE)
    lines = section[1].splitlines() if section else []
    return [name for line in lines if not line.startswith(" ") for name in line.split(", ")]


@pytest.mark.parametrize("name", [*FUNCTIONS, *METHODS])
def test_the_docstring_lists_the_parameters_of_the_signature_in_order(name):
    function = {**FUNCTIONS, **METHODS}[name]
    assert list_documented(function) == list_parameters(function)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_docstring_shows_an_example(name):
    assert doctest.DocTestParser().get_examples(inspect.getdoc(FUNCTIONS[name]))


def test_a_parameter_that_is_missing_or_too_many_is_found():
    def draw(data, *, figure=None):
        """Draw.

        Parameters
        ----------
        data, size
            What is drawn.
        """

    assert list_documented(draw) == ["data", "size"]
    assert list_parameters(draw) == ["data", "figure"]
