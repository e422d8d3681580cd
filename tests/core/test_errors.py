"""Errors for missing packages and unknown names."""

import math
import sys

import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError, MissingExtra, first_line, require_package, unknown_name


def test_an_installed_package_is_imported():
    assert require_package("math", "extra", "This test") is math


def test_the_error_for_a_missing_package_names_the_pip_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "missing.part", None)
    with pytest.raises(MissingExtra) as error:
        require_package("missing.part", "extra", "This test", "   (or do without)")
    assert str(error.value) == (
        "This test needs the package missing, which is not installed. "
        "Install it with: pip install 'headscope[extra]'   (or do without)"
    )


def test_an_unknown_name_that_is_close_to_none_gets_no_suggestion():
    assert str(unknown_name("lens", "xyz", ["raw"])) == "No lens is called 'xyz'. Known: raw."
    assert str(unknown_name("lens", "xyz", [])) == "No lens is called 'xyz'. Known: none."


def test_the_first_line_of_an_error_is_its_message_or_its_type():
    assert first_line(ValueError("Too long.\nMore.")) == "Too long"
    assert first_line(ValueError()) == "ValueError"


def test_an_error_names_the_page_on_what_was_being_done():
    def notes(call):
        with pytest.raises(hs.HeadscopeError) as caught:
            call()
        return caught.value.__notes__

    trace = hs.Trace.of([torch.full((1, 1, 3, 3), 1 / 3)], ["a", "b", "c"])
    assert notes(lambda: hs.view(trace, "efective")) == ["More: docs/lenses.md#which-lens-when"]
    assert notes(lambda: hs.view(trace, "norm")) == ["More: docs/lenses.md#which-lens-when"]
    assert notes(lambda: hs.read("none.csv")) == ["More: docs/reading.md"]
    assert notes(lambda: hs.save(trace, "x.docx")) == ["More: docs/measuring.md#files-that-exist"]
    assert notes(lambda: require_package("no_such_package", "extra", "This")) == ["More: docs/start.md#install"]


def test_an_error_outside_of_the_package_names_no_page():
    assert not hasattr(InputError("A message."), "__notes__")
    assert str(InputError("A message.")) == "A message."
