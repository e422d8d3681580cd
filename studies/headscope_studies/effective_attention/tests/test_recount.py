"""Pattern shares of results without counts, mended by length."""

import numpy as np
import pytest
import xarray as xr

from headscope.core.estimate import name_ends
from headscope_studies.effective_attention.runs.recount import recount


def make_numbers(same_short):
    """Shares of two lenses and lengths; the errors of effective attention shift the shares of unchanged maps by 5."""
    dims, coords = ("length", "lens"), {"length": ["all", "at most d", "more than d"], "lens": ["raw", "effective"]}
    share = np.array([[0.4, 0.37], [0.4, 0.45], [0.4, 0.25]])
    tables = {}
    for name, table in (("share", share), ("share_change", share - 0.4), ("counted_change", share - 0.4)):
        table[:, 0] = 0.4 if name == "share" else 0
        tables |= {end: (dims, values) for end, values in name_ends(name, (table, table - 0.1, table + 0.1)).items()}
    same = ("length", [0.3, same_short, 0.0])
    return xr.Dataset({**tables, "same_heads": same, "n": ("length", [100, 40, 60])}, coords)


def test_unchanged_maps_have_raws_shares_and_the_change_is_that_of_longer_inputs():
    mended = recount(make_numbers(1.0)).sel(lens="effective")
    short, longer, whole = (mended.sel(length=name) for name in ("at most d", "more than d", "all"))
    assert [float(short[f"share_change{end}"]) for end in ("", "_low", "_high")] == [0, 0, 0]
    assert [float(short[f"counted_change{end}"]) for end in ("", "_low", "_high")] == [0, 0, 0]
    assert float(short["share"]) == pytest.approx(0.4)
    assert float(longer["share_change"]) == pytest.approx(-0.15)
    assert float(whole["share_change"]) == pytest.approx(0.6 * -0.15)
    assert float(whole["share_change_low"]) == pytest.approx(0.6 * -0.25)
    assert float(whole["share"]) == pytest.approx(0.4 + 0.6 * -0.15)


def test_the_few_maps_that_change_widen_the_interval():
    mended = recount(make_numbers(0.995)).sel(lens="effective", length="at most d")
    assert float(mended["share_change_high"]) == pytest.approx(0.005)
    assert float(mended["counted_change"]) == pytest.approx(0.05)  # as stored


def test_where_short_inputs_change_nothing_is_mended():
    numbers = make_numbers(0.5)
    xr.testing.assert_equal(recount(numbers), numbers)
