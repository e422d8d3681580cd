"""What a layer writes with effective attention equals A_eff·V from a float64 decomposition of every row."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from headscope.core.edit import LayerHeads
from headscope.core.errors import InputError
from headscope.effective import output
from tests.gpu import gpu

BATCH, HEADS, TOKENS, VALUE = 2, 4, 40, 8


def make_heads(*, causal=False, group=1, tokens=TOKENS, value=VALUE, hidden=0, dtype=torch.float32, repeated=False):
    torch.manual_seed(tokens)
    values = torch.randn(BATCH, HEADS // group, tokens, value)
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
    written = torch.zeros(*weights.shape[:3], values.shape[-1], dtype=torch.float64)
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


def error_of(heads, device="cpu"):
    """Return the worst error of what a layer writes on a device; rows of padding do not count."""
    there = {name: getattr(heads, name).to(device) for name in ("attention", "values", "context", "visible")}
    written = output.compute_output(replace(heads, **there), "visible").cpu().double()
    return float(((written - literal_output(heads)) * heads.visible.any(-1)[:, None, :, None]).abs().max())


def rounding_of(dtype):
    return 1e-6 if dtype == torch.float32 else 4 * torch.finfo(dtype).eps  # a few roundings of values below 4


@pytest.mark.parametrize("name", CASES)
def test_output_equals_a_literal_version(name):
    assert error_of(make_heads(**CASES[name])) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_half_precision_is_exact_to_its_rounding(dtype, causal):
    assert error_of(make_heads(dtype=dtype, causal=causal)) < rounding_of(dtype)


def test_a_result_that_is_not_exact_is_computed_as_for_a_view(monkeypatch):
    monkeypatch.setattr(torch.linalg, "cholesky_ex", lambda gram: (gram.tril(), None))
    heads = make_heads()
    assert output._project_values(heads.attention, heads.values, None, TOKENS) is None
    monkeypatch.undo()
    assert error_of(heads) < 1e-6


@pytest.mark.parametrize("failed", [0, 1])
@pytest.mark.parametrize("causal", [False, True])
def test_what_kernels_return_counts_unless_they_failed(failed, causal, monkeypatch):
    flag = torch.tensor([failed])
    kernels = SimpleNamespace(
        project_values=lambda values, unit: (2 * values, flag),
        project_rows=lambda context, values, unit: (2 * context, flag),
    )
    monkeypatch.setattr(output, "_find_kernels", lambda *_: kernels)
    heads = make_heads(causal=causal)
    expected = literal_output(heads) if failed else 2 * (heads.attention @ heads.values).double()
    torch.testing.assert_close(output.compute_output(heads, "visible").double(), expected, atol=1e-6, rtol=0)


def test_full_rank_is_proved_unless_it_could_not_change_a_rounding():
    values, eps = torch.zeros(1, 1, 100, 8), torch.finfo(torch.float32).eps
    assert output._proof_unit(values) == eps
    assert output._proof_unit(values.half()) == output._proof_unit(values.bfloat16()) == 0
    assert output._proof_unit(torch.zeros(1, 1, 5000, 8, dtype=torch.float16)) == eps


def test_kernels_that_do_not_compile_are_not_tried_again(monkeypatch):
    calls = []

    def fail(values, unit):
        calls.append(values)
        raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(output, "_BROKEN", set())
    monkeypatch.setattr(output, "_find_kernels", lambda *_: SimpleNamespace(project_values=fail))
    heads = make_heads()
    with pytest.warns(UserWarning, match=r"takes more time; its results are the same. RuntimeError: Failed to find C"):
        assert error_of(heads) < 1e-6
    assert error_of(heads) < 1e-6  # and no warning
    assert len(calls) == 1


def test_memory_that_runs_out_is_not_the_fault_of_a_compiler(monkeypatch):
    def fail(values, unit):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(output, "_find_kernels", lambda *_: SimpleNamespace(project_values=fail))
    with pytest.raises(torch.OutOfMemoryError):
        error_of(make_heads())


def test_there_are_no_kernels_on_a_cpu_nor_without_triton(monkeypatch):
    def missing(_):
        raise ImportError("No module named 'triton'")

    assert output._find_kernels(make_heads().values, "project_values") is None
    output._load_kernels.cache_clear()
    monkeypatch.setattr(output.importlib, "import_module", missing)
    assert output._load_kernels() is None
    output._load_kernels.cache_clear()


LARGE = {
    "64 dimensions": {"tokens": 100, "value": 64},
    "64 dimensions, padding": {"tokens": 100, "value": 64, "hidden": 9},
    "20 dimensions, shared values": {"tokens": 70, "value": 20, "group": 4},
    "80 dimensions": {"tokens": 90, "value": 80},
    "causal, 64 dimensions": {"tokens": 100, "value": 64, "causal": True},
    "causal, 64 dimensions, shared values": {"tokens": 150, "value": 64, "causal": True, "group": 4},
    "causal, 20 dimensions, padding": {"tokens": 84, "value": 20, "causal": True, "hidden": 9},
    "causal, 80 dimensions": {"tokens": 90, "value": 80, "causal": True},
}


@gpu
@pytest.mark.parametrize("name", CASES | LARGE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_gpu_is_as_exact(name, dtype):
    heads = make_heads(**(CASES | LARGE)[name], dtype=dtype)
    assert error_of(heads, "cuda") < max(2e-6, rounding_of(dtype))


@gpu
@pytest.mark.parametrize("name", LARGE)
def test_full_rank_is_proved_by_kernels(name, monkeypatch):
    pytest.importorskip("triton", reason="no Triton here, which comes with torch for GPUs on Linux")
    monkeypatch.setattr(output, "compute_layer", None)  # what would be called without a proof
    assert error_of(make_heads(**LARGE[name]), "cuda") < 2e-6


@gpu
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("condition", [1e2, 1e4, 1e5, 1e6, 1e9])
def test_a_gpu_is_as_exact_for_any_condition(condition, causal):
    heads = make_heads(tokens=60, value=32, causal=causal)
    heads.values.mul_(torch.logspace(0, -1, 32) ** torch.tensor(condition).log10())
    assert error_of(heads, "cuda") < 2e-5  # a direction that the rank rule leaves out writes as much as that


@gpu
@pytest.mark.parametrize("causal", [False, True])
def test_kernels_prove_nothing_of_values_that_are_not_finite(causal):
    heads = make_heads(tokens=60, value=32, causal=causal)
    heads.values[1, 2, 50, 3] = torch.nan
    with pytest.raises(InputError, match="NaN or infinite"):
        error_of(heads, "cuda")


@gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_does_not_wait_for_a_proof(dtype, monkeypatch):
    pytest.importorskip("triton", reason="no Triton here, which comes with torch for GPUs on Linux")
    monkeypatch.setattr(output, "compute_layer", None)  # a head without an inverse keeps its values
    for case in (LARGE["64 dimensions, padding"], CASES["dependent columns"]):
        assert error_of(make_heads(**case, dtype=dtype), "cuda") < rounding_of(dtype)


@gpu
def test_a_large_batch_has_room_for_kernels():
    kernels = pytest.importorskip("headscope.effective.kernels", reason="no Triton here", exc_type=ImportError)
    values = torch.zeros(64, 12, 128, 64, device="cuda")
    assert output._find_kernels(values, "project_values") is kernels
    assert kernels.count_bytes(values, causal=False) == 3 * 8 * 64 * 12 * 64**2
    assert kernels.count_bytes(values, causal=True) == 4 * kernels.count_bytes(values, causal=False)
