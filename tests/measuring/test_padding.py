"""Padding inputs to a given width, for lenses that use padding."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.provenance import read_provenance
from tests.measuring.data import examples
from tests.models import tiny


def measured(lens, **options):
    return hs.measure(
        tiny("bert"), examples(9), lens=lens, statistics=["special_tokens"], rows=True, progress=False, **options
    )


def test_padding_does_not_change_effective_attention():
    plain, wide = measured("effective"), measured("effective", pad_to=40)
    np.testing.assert_allclose(wide["special_tokens_rows"], plain["special_tokens_rows"], atol=1e-5)  # float32
    assert read_provenance(wide)["pad_to"] == 40


def test_lenses_that_use_padding_see_the_given_width():
    wide = measured("effective:keys=paper", pad_to=40)
    example = examples(9)[3]
    trace = hs.capture(tiny("bert"), example, keep=("values", "pads"), pad_to=40)
    maps = hs.view(trace, "effective:keys=paper")
    sep = [index for index, token in enumerate(maps.keys.text[0]) if token == "[SEP]"]
    others = [index for index in range(len(maps.keys.text[0])) if index not in sep]
    weights = torch.stack([maps.layer(label)[0] for label in maps.layers])[..., others, :][..., sep].sum(-1).mean(-1)
    row = wide["special_tokens_rows"].sel(example=example.id, role="sep", source="others").isel(lens=0, site=0)
    np.testing.assert_allclose(row.transpose("layer", "head"), weights, atol=1e-5)


def test_a_width_below_the_longest_text_is_refused():
    with pytest.raises(InputError, match="pad_to=8 is less than the longest text, which has 30 tokens"):
        measured("raw", pad_to=8)
