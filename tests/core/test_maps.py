"""Maps, and their xarray Dataset."""

import gc
import json
import mmap
from dataclasses import replace

import pytest
import torch

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.maps import factored
from headscope.core.maps.factored import HUGE_PAGE_BYTES, Factored, allocate_huge_pages
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.version import __version__
from tests.models import batch, text, tiny


def maps(lens="effective"):
    return view(capture(tiny("bert"), batch("bert")), lens)


def test_effective_maps_are_stored_as_low_rank_factors():
    assert all(isinstance(part, Factored) for part in maps().parts)
    assert torch.equal(maps().layer(1), maps().weights[:, 1])


def test_effective_attention_is_bitwise_equal_to_attention_if_values_have_full_rank():
    trace = capture(tiny("bert"), "the cat sat")
    result = view(trace, "effective")
    assert torch.equal(result.weights, view(trace, "raw").weights)
    assert result.diagnostics["null"].unique().tolist() == [0]
    assert result.diagnostics["share"].unique().tolist() == [1]


def test_raw_is_effective_plus_null():
    torch.testing.assert_close(maps("effective").weights + maps("null").weights, maps("raw").weights)


def test_the_null_part_gives_no_output():
    trace = capture(tiny("bert"), batch("bert"))
    lost = view(trace, "null").layer(1) @ trace.values[1]
    assert lost.norm() <= 1e-5 * trace.context[1].norm()
    assert view(trace, "null").layer(1).norm() > 0.1 * trace.attention[1].norm()


def test_diagnostics_are_token_count_rank_and_share():
    trace = capture(tiny("bert"), batch("bert"))
    result = view(trace, "effective")
    assert result.diagnostics["n"][:, 0, 0].tolist() == [7, 16, 11]
    assert result.diagnostics["rank"].amax((1, 2)).tolist() == [7, 8, 8]
    share = result.weights.norm(dim=(-2, -1)) / view(trace, "raw").weights.norm(dim=(-2, -1))
    torch.testing.assert_close(result.diagnostics["share"], share)


def test_the_papers_variant_reports_that_it_changes_the_output():
    trace = capture(tiny("bert"), batch("bert"), keep=("values", "pads"), pad_to=30)
    paper, padded = view(trace, "effective:keys=paper"), view(trace, "effective:keys=padded")
    assert padded.diagnostics["residual"].max() <= 1e-5
    assert padded.diagnostics["n"].unique().tolist() == [30]
    result = paper.layer(1) @ trace.values[1]
    residual = (result - trace.context[1]).norm(dim=(-2, -1)) / trace.context[1].norm(dim=(-2, -1))
    assert residual.min() > 0.01
    torch.testing.assert_close(paper.diagnostics["residual"][:, 1], residual)


def test_padding_as_keys_is_an_error_if_queries_see_different_keys():
    trace = capture(tiny("llama"), batch("llama"), keep=("values", "pads"))
    with pytest.raises(InputError, match="keys='paper' treats padding as keys that every query sees.*layer 0.*causal"):
        view(trace, "effective:keys=paper")


def test_a_dataset_says_what_its_weights_are():
    assert maps("norm:merge=true").dataset()["quantity"].item() == "norm of the weighted value"
    unknown = replace(maps(), lens="mine:power=2").dataset()
    assert unknown["quantity"].item() == "weight (mine:power=2)"


def test_a_dataset_holds_one_example_without_its_padding():
    data = maps().dataset(2)
    assert dict(data.sizes) == {"lens": 1, "layer": 2, "head": 4, "query": 11, "key": 11}
    assert data.key_token.values.tolist()[0] == "[CLS]"
    assert data.visible.values.all()
    facts = {"site": "self", "example": "2", "lenses": ["effective"], "model": "BertModel", "version": __version__}
    assert json.loads(data.attrs["headscope"]) == facts
    assert data.weights.sel(lens="effective", layer=1, head=3).values == pytest.approx(
        maps().layer(1)[2, 3, :11, :11].numpy()
    )


def test_an_example_out_of_range_is_an_error():
    with pytest.raises(InputError, match="There is no example 3: these maps hold 3"):
        maps().dataset(3)


def test_merged_maps_have_one_head():
    assert maps("norm:merge=true").weights.shape[2] == 1
    assert maps("norm:merge=true").dataset().sizes["head"] == 1
    assert "heads merged" in repr(maps("norm:merge=true"))


def test_a_left_padded_batch_keeps_its_tokens_in_place():
    model = tiny("bert")
    ids = model.tokenizer([text(3), text(9)], padding=True, padding_side="left", return_tensors="pt")
    data = view(capture(model, ids), "raw").dataset(0)
    assert data.key_token.values.tolist() == ["[CLS]", *text(3).split(), "[SEP]"]
    assert data.weights.values.sum(-1) == pytest.approx(1)


def test_the_rank_threshold_of_the_paper_removes_tiny_values():
    tiny_values = 1e-7 * torch.randn(1, 2, 12, 4, generator=torch.Generator().manual_seed(0))
    attention = torch.softmax(torch.randn(1, 2, 12, 12, generator=torch.Generator().manual_seed(1)), -1)
    trace = replace(
        Trace.of([attention], [f"t{key}" for key in range(12)], values=[tiny_values], visible="all"),
        held=frozenset({"attention", "values", "pads"}),
    )
    assert view(trace, "effective:keys=padded").diagnostics["rank"].tolist() == [[[4, 4]]]
    assert view(trace, "effective:keys=paper").diagnostics["rank"].tolist() == [[[0, 0]]]
    assert not view(trace, "effective:keys=paper").weights.any()


@pytest.mark.parametrize("rows", [3, HUGE_PAGE_BYTES // 4000 + 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_tensor_in_huge_pages_is_an_ordinary_tensor(rows, dtype):
    tensor = allocate_huge_pages((rows, 1000), dtype)
    assert (tensor.shape, tensor.dtype) == ((rows, 1000), dtype)
    tensor.fill_(2)
    copied = tensor.clone()
    part = tensor[-1]
    del tensor
    gc.collect()
    assert part.sum() == 2000  # a view keeps the memory
    assert copied.sum() == 2000 * rows
    assert part.numpy()[0] == 2


def test_without_huge_pages_a_large_tensor_is_allocated_all_the_same(monkeypatch):
    class Refusing(mmap.mmap):
        def madvise(self, *_):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(factored.mmap, "mmap", Refusing)
    assert allocate_huge_pages((HUGE_PAGE_BYTES // 4 + 1,), torch.float32).fill_(1).sum() == HUGE_PAGE_BYTES // 4 + 1
    monkeypatch.delattr(factored.mmap, "MADV_HUGEPAGE", raising=False)
    assert allocate_huge_pages((HUGE_PAGE_BYTES // 4 + 1,), torch.float32).shape == (HUGE_PAGE_BYTES // 4 + 1,)


@pytest.mark.parametrize("tokens", [7, 1700])
def test_a_factored_map_is_the_product_of_its_factors(tokens):
    left, right = torch.randn(1, 3, tokens, 4), torch.randn(3, 1, tokens, 4).transpose(0, 1)
    assert torch.equal(Factored(left, right).weights, left @ right.mT)


def test_a_factored_map_of_factors_with_gradients_has_one_too():
    left, right = torch.randn(1, 2, 5, 4, requires_grad=True), torch.randn(1, 2, 5, 4)
    Factored(left, right).weights.sum().backward()
    assert torch.allclose(left.grad, right.sum(-2, keepdim=True).expand_as(left))
