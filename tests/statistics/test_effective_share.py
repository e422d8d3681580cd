from dataclasses import replace

import torch

from headscope.core.batch import Batch
from headscope.core.catalog import lenses
from headscope.statistics.effective_share import EffectiveShare
from tests.batches import build_maps


def test_the_share_is_a_diagnostic_of_the_effective_lens():
    raw, effective = (
        build_maps([torch.eye(2)[None, None]], [["noun"] * 2], lens=lens) for lens in ("raw", "effective")
    )
    effective = replace(effective, diagnostics={"share": torch.full((1, 1, 1), 0.25)})
    maps = {("model", "raw"): raw, ("model", "effective"): effective}
    for lens in ("raw", "effective"):
        assert EffectiveShare().values(Batch(raw.examples, maps, lens))["effective_share"].item() == 0.25


def test_the_required_effective_lens_has_the_same_keys():
    def required(lens):
        return EffectiveShare().lenses(lenses.make(lens))

    assert required("effective:keys=paper") == ()
    assert required("null:keys=padded") == (lenses.make("effective:keys=padded"),)
    assert required("raw") == required("norm:merge=true") == (lenses.make("effective"),)
