"""Errors for missing packages and unknown names."""

import math
import sys

import pytest

from headscope.core.errors import MissingExtra, first_line, require_package, unknown_name


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
