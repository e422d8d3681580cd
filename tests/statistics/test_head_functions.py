"""What heads do: induction, duplicate tokens, the previous token and the first one, by hand and beside their nulls."""

import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.trace import Trace
from headscope.statistics.duplicate_token import DuplicateToken
from headscope.statistics.induction import Induction
from headscope.statistics.offsets import Offsets
from headscope.statistics.previous_token import PreviousToken
from headscope.statistics.sink_rate import SinkRate
from tests.batches import build_maps, capture_tiny, one_lens


def measure(statistic, row, attended, **options):
    """The values of a statistic for one head, whose rows attend to one key each."""
    weights = torch.nn.functional.one_hot(torch.tensor(attended), len(row)).double()
    batch = one_lens(build_maps([weights[None, None]], [row], **options))
    return {name: value.item() for name, value in statistic.values(batch).items()}


def test_an_induction_head_looks_at_what_came_after_the_same_token():
    row = ["a", "b", "c", "a", "b"]
    assert measure(Induction(), row, [0, 0, 0, 1, 2], causal=True)["induction"] == 1
    assert measure(Induction(), row, [0, 0, 0, 1, 1], causal=True)["induction"] == 0.5
    assert measure(Induction(), row, [0, 0, 0, 0, 1], causal=True)["induction"] == 0  # a duplicate-token head
    assert measure(DuplicateToken(), row, [0, 0, 0, 0, 1], causal=True)["duplicate_token"] == 1


def test_the_null_is_an_even_row():
    row = ["a", "b", "c", "a", "b"]
    causal = measure(Induction(), row, [0, 0, 0, 1, 2], causal=True)
    assert causal["induction_uniform"] == pytest.approx((1 / 4 + 1 / 5) / 2)
    assert measure(Induction(), row, [0] * 5)["induction_uniform"] == pytest.approx(1 / 5)  # an encoder sees all keys
    three = measure(DuplicateToken(), ["a", "a", "a"], [0, 0, 0], causal=True)
    assert three["duplicate_token_uniform"] == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_a_head_of_uniform_attention_scores_its_null():
    row = ["a", "b", "b", "c", "a", "b", "c"]
    uniform = torch.ones(7, 7).tril()
    uniform /= uniform.sum(-1, keepdim=True)
    batch = one_lens(build_maps([uniform.double()[None, None]], [row], causal=True))
    for statistic in (Induction(), DuplicateToken(), PreviousToken(), SinkRate(), SinkRate(rows="mean")):
        value, null = statistic.values(batch).values()
        torch.testing.assert_close(value, null)
        assert value.item() > 0


def test_keys_after_the_query_are_no_induction_in_encoders_either():
    row = ["a", "b", "a", "c"]
    assert measure(Induction(), row, [3, 3, 1, 3])["induction"] == 1  # from the first a to c does not count
    assert measure(DuplicateToken(), row, [2, 2, 2, 2])["duplicate_token"] == 0


def test_a_token_is_not_its_own_successor():
    assert (
        measure(Induction(), ["a", "a"], [0, 1], causal=True)["induction"]
        != measure(Induction(), ["a", "a", "a"], [0, 0, 1], causal=True)["induction"]
    )
    assert torch.tensor(measure(Induction(), ["a", "a"], [0, 1], causal=True)["induction"]).isnan()


def test_special_tokens_are_copies_of_nothing():
    row = ["[CLS]", "a", "[SEP]", "a", "[SEP]"]
    result = measure(Induction(), row, [2] * 5)
    assert torch.tensor(result["induction"]).isnan()  # only a special token follows the first a
    result = measure(DuplicateToken(), row, [2, 2, 2, 1, 2])
    assert result["duplicate_token"] == 1  # of a alone, not of [SEP]


def test_an_example_without_a_repeated_token_is_not_counted():
    rows, weights = [["a", "b", "c"], ["a", "b", "a"]], torch.full((1, 1, 3, 3), 1 / 3)
    batch = one_lens(build_maps([weights, weights], rows))
    result = Induction().finish(Induction().observe(batch))
    assert result.induction_n.item() == 1
    assert result.induction.item() == pytest.approx(1 / 3)


def test_the_previous_token_is_that_of_offsets():
    for kind in ("bert", "llama", "modernbert"):
        batch = capture_tiny(kind, "self", ["raw"], "raw")
        offsets = Offsets(reach=1).values(batch)["offsets"][..., 0]
        torch.testing.assert_close(PreviousToken().values(batch)["previous_token"], offsets)


def test_queries_rest_on_the_first_token_above_a_threshold():
    row = ["[CLS]", "a", "b", "c", "d"]
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.9], dtype=torch.float64)
    rest = ((1 - weights) / 4)[:, None].expand(-1, 4)
    batch = one_lens(build_maps([torch.cat([weights[:, None], rest], -1)[None, None]], [row]))
    assert SinkRate().values(batch)["sink_rate"].item() == pytest.approx(2 / 5)  # .3 is not more than .3
    assert SinkRate().values(batch)["sink_rate_uniform"].item() == 0  # 1/5 is less
    assert SinkRate(threshold=0.15).values(batch)["sink_rate_uniform"].item() == 1
    assert SinkRate(rows="mean").values(batch)["sink_rate"].item() == 1  # the mean is .38
    assert SinkRate(rows="mean", threshold=0.4).values(batch)["sink_rate"].item() == 0
    with pytest.raises(InputError, match=r"'threshold' of 'sink_rate' is a weight from 0 to 1, but got 3"):
        SinkRate(threshold=3.0)


def test_the_first_token_of_a_padded_text_is_a_real_one():
    weights = torch.tensor([[1.0, 0.0], [0.9, 0.1]])[None, None]
    batch = one_lens(build_maps([weights], [["a", "b"]], width=5, left=True))
    assert SinkRate().values(batch)["sink_rate"].item() == 1


def test_no_text_is_followed_across_cross_attention():
    batch = capture_tiny("t5", "cross", ["raw"], "raw")
    for statistic in (Induction(), DuplicateToken(), PreviousToken()):
        assert all(value.isnan().all() for value in statistic.values(batch).values())


def test_heads_of_known_functions_are_found_among_others():
    tokens = ["a", "b", "c", "d"] * 2
    queries = torch.arange(8)
    heads = {"previous": queries - 1, "duplicate": queries - 4, "induction": queries - 3, "first": 0 * queries}
    maps = [torch.nn.functional.one_hot(keys.clamp(min=0), 8).double() for keys in heads.values()]
    trace = Trace.of([torch.stack(maps)[None]], tokens, visible="causal")
    batch = one_lens(hs.view(trace, "raw"))
    statistics = (PreviousToken(), DuplicateToken(), Induction(), SinkRate())
    for index, statistic in enumerate(statistics):
        value, null = statistic.values(batch).values()
        assert value[0, 0].argmax() == index
        assert value[0, 0, index] == 1
        assert (null < 0.5).all()
