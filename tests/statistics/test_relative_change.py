import pytest
import torch

from headscope.core.batch import Batch
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.statistics.relative_change import RelativeChange
from tests.batches import build_maps
from tests.models import tiny


def measure(raw, other):
    """The relative change of one map of two tokens."""
    maps = {
        ("model", lens): build_maps([torch.tensor(weights)[None, None]], [["noun"] * 2], lens=lens, signed=True)
        for lens, weights in (("raw", raw), ("effective", other))
    }
    return RelativeChange().values(Batch(maps["model", "raw"].examples, maps, "effective"))["relative_change"].item()


def test_it_is_the_norm_of_the_difference_over_that_of_raw_attention():
    assert measure([[1.0, 2.0], [0.0, 2.0]], [[1.0, -1.0], [4.0, 2.0]]) == pytest.approx(5 / 3)
    assert measure([[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]) == 0
    assert measure([[0.5, 0.5], [0.5, 0.5]], [[0.0, 0.0], [0.0, 0.0]]) == 1


def test_without_any_attention_there_is_no_change():
    assert torch.tensor(measure([[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]])).isnan()


def test_of_effective_attention_it_follows_from_the_effective_share():
    text = "the cat sat on the mat and slept while the old man sang loud songs of sea under blue sky"
    trace = capture(tiny("bert"), [text, "the cat sat"])
    maps = {("model", lens): view(trace, lens) for lens in ("raw", "effective")}
    change = RelativeChange().values(Batch(trace.examples, maps, "effective"))["relative_change"]
    share = maps["model", "effective"].diagnostics["share"].double()
    assert (change[1] == 0).all()  # no more tokens than value dimensions
    assert (change[0] > 0.1).all()
    torch.testing.assert_close(change[0], (1 - share[0] ** 2).sqrt(), atol=1e-5, rtol=0)  # float32
