"""What a layer writes with effective attention equals A_eff·V from a float64 decomposition of every row."""

import pytest
import torch

from headscope.core.edit import LayerHeads
from headscope.effective import output

BATCH, HEADS, TOKENS, VALUE = 2, 4, 40, 8


def make_heads(*, causal=False, group=1, tokens=TOKENS, hidden=0, dtype=torch.float32, repeated=False):
    torch.manual_seed(tokens)
    values = torch.randn(BATCH, HEADS // group, tokens, VALUE)
    if repeated:
        values[:, :, 1] = values[:, :, 0]
        values[..., 1] = values[..., 0]
    visible = torch.ones(BATCH, tokens, tokens, dtype=torch.bool)
    if hidden:
        visible[0, :, tokens - hidden :] = visible[0, tokens - hidden :] = False
    visible = visible.tril() if causal else visible
    weights = torch.rand(BATCH, HEADS, tokens, tokens) * visible[:, None]
    weights = (weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)).to(dtype)
    values = values.to(dtype).repeat_interleave(group, 1)
    return LayerHeads("encoder", 0, weights, values, weights @ values, visible, None, group)


def literal_output(heads):
    """Project each row within the keys it sees, and multiply the result with the values."""
    weights, values = heads.attention.double(), heads.values.double()
    written = torch.zeros(*weights.shape[:3], VALUE, dtype=torch.float64)
    for example in range(BATCH):
        for query, seen in enumerate(heads.visible[example]):
            if seen.any():
                rows = values[example][:, seen]
                left, sizes, _ = torch.linalg.svd(rows, full_matrices=False)
                left = left * (sizes > sizes[:, :1] * 1e-5)[:, None]
                effective = (weights[example][:, query, seen][:, None] @ left) @ left.mT
                written[example, :, query] = (effective @ rows)[:, 0]
    return written


CASES = {
    "every query sees all keys": {},
    "padding": {"hidden": 3},
    "shared values": {"group": 2},
    "dependent columns": {"repeated": True},
    "few tokens": {"tokens": 5},
    "some examples have few tokens": {"hidden": TOKENS - 4},
    "causal": {"causal": True},
    "causal, padding": {"causal": True, "hidden": 3},
    "causal, shared values": {"causal": True, "group": 4},
    "causal, dependent columns": {"causal": True, "repeated": True},
    "causal, few tokens": {"causal": True, "tokens": 5},
}


@pytest.mark.parametrize("a_row", [False, True], ids=["as on a CPU", "a Gram matrix a row, as on a GPU"])
@pytest.mark.parametrize("name", CASES)
def test_output_equals_a_literal_version(name, a_row, monkeypatch):
    monkeypatch.setattr(output, "_fits_gpu", lambda values: a_row and values.shape[-2] > values.shape[-1])
    heads = make_heads(**CASES[name])
    seen = heads.visible.any(-1)[:, None, :, None]
    written = output.compute_output(heads, "visible") * seen
    torch.testing.assert_close(written.double(), literal_output(heads), atol=1e-6, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_half_precision_is_exact_to_its_rounding(dtype, causal, monkeypatch):
    monkeypatch.setattr(output, "_fits_gpu", lambda values: values.shape[-2] > values.shape[-1])
    heads = make_heads(dtype=dtype, causal=causal)
    written = output.compute_output(heads, "visible").double()
    loose = 4 * torch.finfo(dtype).eps  # a few roundings of values below 4
    torch.testing.assert_close(written, literal_output(heads), atol=loose, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
def test_a_result_that_is_not_exact_is_computed_as_for_a_view(causal, monkeypatch):
    monkeypatch.setattr(output, "_fits_gpu", lambda _: True)
    monkeypatch.setattr(output, "_solve", lambda gram, right: right + gram[..., :1])
    heads = make_heads(causal=causal)
    written = output.compute_output(heads, "visible").double()
    torch.testing.assert_close(written, literal_output(heads), atol=1e-6, rtol=0)
