"""Specs: short strings for catalog entries."""

from dataclasses import dataclass
from typing import Literal

import pytest

from headscope.core.catalog import lenses
from headscope.core.errors import InputError, UnknownName
from headscope.core.lens import Lens
from headscope.core.spec import build_entry, check_choices, parse_spec, to_spec
from headscope.lenses.effective import Effective
from headscope.lenses.raw import Raw


@dataclass(frozen=True)
class Sample(Lens):
    residual: float = 0.5
    inner: Lens = Raw()
    count: int = 1
    normal: bool = True
    kind: Literal["mean", "max"] = "mean"
    top: int | None = None
    numbers: tuple[int, ...] = ()

    def __call__(self, trace):
        raise AssertionError("never called")


def build(text):
    name, parameters = parse_spec(text)
    return build_entry(Sample, name, parameters)


def test_parameters_of_every_type_are_parsed():
    result = build("sample:residual=0.3,inner=(effective:keys=paper),count=7,normal=false,kind=max,top=3,numbers=1+2")
    assert result == Sample(0.3, Effective("paper"), 7, False, "max", 3, (1, 2))


def test_a_spec_says_only_what_differs_from_the_defaults():
    assert to_spec(Effective()) == "effective"
    assert to_spec(Effective("paper")) == "effective:keys=paper"
    assert to_spec(Sample(inner=Effective("paper"))).endswith(":inner=(effective:keys=paper)")


def test_a_spec_rebuilds_its_entry():
    for entry in (Sample(), Sample(0.25, Effective("padded"), 2, False, "max", None, (3,)), Sample(top=4)):
        assert build_entry(Sample, "sample", parse_spec(to_spec(entry))[1]) == entry


def test_dashes_and_underscores_are_the_same():
    assert parse_spec("head-grid:some-thing=1") == ("head_grid", {"some_thing": "1"})


def test_parentheses_nest():
    assert parse_spec("a:inner=(b:inner=(c:x=1,y=2),z=3),w=4")[1] == {"inner": "b:inner=(c:x=1,y=2),z=3", "w": "4"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sample:residual", r"Cannot read 'residual' in the spec 'sample:residual'\. Write name:parameter=value"),
        ("sample:=3", r"Cannot read '=3'"),
        ("sample:inner=(raw", r"parentheses in the spec 'sample:inner=\(raw' do not match"),
        ("sample:inner=raw)", r"do not match"),
        ("sample:residual=much", r"parameter 'residual' of 'sample' must be a number, but got 'much'"),
        ("sample:count=1.5", r"must be a whole number, but got '1\.5'"),
        ("sample:kind=min", r"parameter 'kind' of 'sample' must be mean or max, but got 'min'"),
        ("sample:normal=maybe", r"must be true or false, but got 'maybe'"),
        ("sample:resdual=1", r"No parameter of 'sample' is called 'resdual'\. Did you mean 'residual'\?"),
        ("sample:inner=(rew)", r"No lens is called 'rew'\. Did you mean 'raw'\? Known: .*effective.*norm.*null.*raw"),
    ],
)
def test_an_invalid_spec_is_an_error(text, sentence):
    with pytest.raises(InputError, match=sentence):
        build(text)


def test_an_unknown_lens_is_an_error_with_the_nearest_name():
    with pytest.raises(UnknownName, match=r"No lens is called 'efective'\. Did you mean 'effective'\? Known: "):
        lenses.make("efective")


def test_an_invalid_choice_is_an_error_in_python_too():
    with pytest.raises(InputError, match="'kind' of 'sample' must be mean or max, but got 'min'"):
        check_choices(Sample(kind="min"))
