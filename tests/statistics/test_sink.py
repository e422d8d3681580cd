import pytest
import torch

from headscope.core.batch import Batch
from headscope.core.catalog import lenses
from headscope.core.maps.factored import Factored
from headscope.maps.rows import select_key
from headscope.statistics.sink import Sink
from tests.batches import build_maps, one_lens

ROW = ["[CLS]", "noun", "punct", "[MASK]", "[SEP]"]


def attend(columns):
    """A map of five rows that attend to one key each."""
    return torch.nn.functional.one_hot(torch.tensor(columns), 5).float()


def measure(heads, row=ROW, **options):
    """The weight on the sink by head and kind, of one layer with these heads."""
    maps = build_maps([torch.stack(heads)[None]], [row], **options)
    return Sink().finish(Sink().observe(one_lens(maps))).isel(layer=0)


@pytest.mark.parametrize(("key", "kind"), [(0, "cls"), (1, "word"), (2, "punctuation"), (3, "special"), (4, "sep")])
def test_the_sink_is_found_whatever_it_is(key, kind):
    result = measure([attend([key] * 5)])
    assert result.sink.sel(kind=kind).item() == 1
    assert result.sink_n.isel(head=0).values.tolist() == [int(kind == each) for each in result.kind.values]


def test_what_a_token_gives_itself_does_not_count():
    weights = attend([4, 1, 1, 1, 4])  # two others attend to the noun, one to [SEP], which attends to itself
    weights[4, 4] = 100.0
    result = measure([weights])
    assert result.sink.sel(kind="word").item() == pytest.approx(2 / 4)
    assert result.sink.sel(kind="sep").isnull()


def test_a_layer_has_one_sink_for_all_its_heads():
    result = measure([attend([2] * 5), attend([1, 1, 2, 2, 2])]).sink
    assert result.sel(kind="punctuation").values.tolist() == [1, 0.5]  # rows but its own: 4, and 2 of these


def test_the_sink_is_that_of_raw_attention_whichever_lens_is_measured():
    raw, seen = (
        build_maps([attend(columns)[None, None]], [ROW], lens=lens)
        for lens, columns in (("raw", [4] * 5), ("effective", [4, 1, 1, 1, 1]))
    )
    batch = Batch(raw.examples, {("model", "raw"): raw, ("model", "effective"): seen}, "effective")
    assert Sink().values(batch)["sink"][0, 0, 0].tolist()[1] == 0.25
    assert Sink().lenses(lenses.make("effective")) == (lenses.make("raw"),)
    assert Sink().lenses(lenses.make("raw")) == ()


def test_layers_have_sinks_of_their_own():
    maps = build_maps([torch.stack([attend([0] * 5), attend([4] * 5)])[:, None]], [ROW])
    result = Sink().finish(Sink().observe(one_lens(maps)))
    assert result.sink.isel(layer=0, head=0).sel(kind="cls").item() == 1
    assert result.sink.isel(layer=1, head=0).sel(kind="sep").item() == 1


def test_a_text_of_one_token_has_no_sink():
    assert measure([torch.ones(1, 1)], row=["noun"]).sink.isnull().all()


def test_one_column_of_a_factored_map_is_that_of_the_whole():
    random = torch.Generator().manual_seed(0)
    left, right = torch.randn(2, 3, 5, 4, generator=random), torch.randn(2, 3, 5, 4, generator=random)
    part, key = Factored(left, right), torch.tensor([1, 4])
    expected = torch.stack([part.weights[0, :, :, 1], part.weights[1, :, :, 4]])
    torch.testing.assert_close(select_key(part, key), expected)
    torch.testing.assert_close(select_key(part.weights, key), expected)
