"""Names of heads and selections of them."""

import pytest

from headscope.core.errors import InputError
from headscope.core.heads import HeadSelection, check_heads_argument


def select(heads, *, site="self", layers=2, count=3):
    """All selected heads of a small model, as pairs of layer and head."""
    selection = HeadSelection.parse(heads)
    return [(layer, head) for layer in range(layers) for head in selection.select(site, layer, count)]


@pytest.mark.parametrize(
    ("heads", "wanted"),
    [
        ("L1H2", [(1, 2)]),
        ("L1H2+L0H0", [(0, 0), (1, 2)]),
        (["L1H2", "L0H0"], [(0, 0), (1, 2)]),
        ("L0", [(0, 0), (0, 1), (0, 2)]),
        ("all", [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]),
        ("all-L1H2", [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]),
        ("all-L0-L1H2", [(1, 0), (1, 1)]),
        ("L1-L1H2", [(1, 0), (1, 1)]),
        ("L1-L1H2+L0H1", [(0, 1), (1, 0), (1, 1)]),
        ("self.L1H2", [(1, 2)]),
        ("cross.L1H2+self.L0H0", [(0, 0)]),
    ],
)
def test_a_selection_names_heads(heads, wanted):
    assert select(heads) == wanted


def test_a_selection_knows_its_layers():
    assert HeadSelection.parse("L3H7+L0H1").layers == (0, 3)
    assert HeadSelection.parse("L3H7+all-L3H7").layers is None


@pytest.mark.parametrize("text", ["", "L3H", "3H7", "H7", "l3h7", "L3 H7", "L3H7,L0H1", "L3-H7", "all-", "+", "L-1H0"])
def test_what_is_no_head_is_refused_with_the_grammar(text):
    with pytest.raises(
        InputError, match=r"(Cannot read .* as heads|asks for no head at all)\. .*Write L3H7 for a head"
    ):
        check_heads_argument(text)


@pytest.mark.parametrize("text", ["L3-L5", "L3-L3", "L3H7-L3H7", "L3H7-L3"])
def test_only_what_a_part_has_can_be_excluded_and_not_all_of_it(text):
    with pytest.raises(InputError, match=r"Cannot exclude L\dH?\d? from L3(H7)? in"):
        HeadSelection.parse(text)


def test_a_head_is_named_once():
    with pytest.raises(InputError, match=r"L0H1 is both in 'all-L1H2' and in 'L0H1'\. Name each head once\."):
        select("all-L1H2+L0H1")


def test_a_missing_layer_head_or_site_is_named():
    with pytest.raises(InputError, match=r"There is no head 3 here, only heads 0 to 2\."):
        select("L1H3")
    with pytest.raises(InputError, match=r"There is no layer 2 here, only layers 0 and 1\."):
        HeadSelection.parse("all-L2H0").check({"self": {0: 3, 1: 3}})
    with pytest.raises(InputError, match=r"computed no attention at 'cross', so 'cross\.L0' changed nothing"):
        HeadSelection.parse("cross.L0").check({"self": {0: 3, 1: 3}})
    with pytest.raises(InputError, match=r"'cros\.L0' names no attention site of this model\. Its sites: encoder"):
        HeadSelection.parse("cros.L0").find_sites(["encoder", "cross"])


def test_with_several_sites_only_all_heads_need_no_site():
    sites = ["encoder", "decoder", "cross"]
    with pytest.raises(
        InputError, match=r"encoder, decoder and cross, and 'L0' does not say which\. Write encoder\.L0"
    ):
        HeadSelection.parse("L0").find_sites(sites)
    assert HeadSelection.parse("all").find_sites(sites) == sites
    assert HeadSelection.parse("cross.L0").find_sites(sites) == ["cross"]


def test_what_is_no_text_is_refused():
    with pytest.raises(InputError, match=r"heads must be a string such as 'L3H7\+L0H1' or a list .* but got \[3\]"):
        check_heads_argument([3])
