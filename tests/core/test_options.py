"""Options of functions: the fields of a frozen dataclass."""

import inspect
from dataclasses import KW_ONLY, dataclass, field

import pytest

import headscope as hs
from headscope.core.options import describe, list_options, option, takes_options


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    size: int = option(3, "Number of letters.")


@dataclass(frozen=True)
class RepeatOptions(SizeOptions):
    letter: str = field(metadata=describe("The letter."))
    _: KW_ONLY
    upper: bool = option(False, "Write capital letters.")


@takes_options(RepeatOptions)
def repeat(options: RepeatOptions) -> str:
    """Repeat a letter.

    >>> repeat("a")
    'aaa'
    """
    return (options.letter.upper() if options.upper else options.letter) * options.size


def test_fields_are_parameters_positional_ones_first_then_the_own_ones():
    assert [item.name for item in list_options(RepeatOptions)] == ["letter", "upper", "size"]
    assert str(inspect.signature(repeat)) == "(letter: str, *, upper: bool = False, size: int = 3) -> str"
    assert repeat("a") == repeat(letter="a") == "aaa"
    assert repeat("a", upper=True, size=1) == "A"


def test_help_texts_are_the_parameters_of_the_docstring_before_its_examples():
    assert inspect.getdoc(repeat).splitlines() == [
        *("Repeat a letter.", "", "Parameters", "----------", "letter", "    The letter.", "upper"),
        *("    Write capital letters.", "size", "    Number of letters.", "", '>>> repeat("a")', "'aaa'"),
    ]


def test_an_unknown_option_is_named_with_the_closest_one():
    with pytest.raises(hs.UnknownName, match="No option of hs.repeat is called 'uper'. Did you mean 'upper'?"):
        repeat("a", uper=True)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'letter'"):
        repeat()
