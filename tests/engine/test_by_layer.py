"""One layer at a time."""

import gc
import weakref

import pytest
import torch

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.engine.capture import by_layer, capture
from tests.models import batch, sites, text, tiny

KINDS = ("bert", "albert", "llama", "modernbert", "gptj", "t5", "vit")


@pytest.mark.parametrize(("kind", "site"), [(kind, site) for kind in KINDS for site in sites(kind)])
def test_each_layer_equals_that_of_a_capture(kind, site):
    whole = capture(tiny(kind), batch(kind), site=site)
    maps = view(whole, "effective")
    seen = by_layer(tiny(kind), batch(kind), see=lambda trace: (trace.layers, view(trace, "effective")), site=site)
    assert [layers for layers, _ in seen] == [(label,) for label in whole.layers]
    for label, (_, result) in enumerate(seen):
        assert torch.equal(result.layer(label), maps.layer(label))


def test_the_maps_of_a_layer_are_freed_before_the_next_layer():
    alive, most = [], []

    def look(trace):
        gc.collect()
        alive.append(weakref.ref(trace.attention[0]))
        most.append(sum(reference() is not None for reference in alive))

    by_layer(tiny("albert"), text(9), see=look)
    assert most == [1, 1, 1]


def test_the_model_is_restored_if_the_callback_fails():
    def fail(trace):
        raise RuntimeError("seen enough")

    with pytest.raises(RuntimeError, match="seen enough"):
        by_layer(tiny("bert"), text(5), see=fail)
    assert tiny("bert").network.config._attn_implementation == "sdpa"


def test_a_tokenised_batch_takes_no_options():
    with pytest.raises(InputError, match="leave out pair, max_length and pad_to"):
        by_layer(tiny("bert"), {"input_ids": [[2, 7, 3]]}, see=lambda trace: None, pad_to=9)
    assert by_layer(tiny("bert"), {"input_ids": [[2, 7, 3]]}, see=lambda trace: trace.site) == ["self", "self"]


def test_what_a_callback_runs_itself_is_no_layer():
    model = tiny("bert")
    states = torch.randn(1, 5, 32, generator=torch.Generator().manual_seed(0))

    def see(trace):
        with torch.no_grad():
            model.network.encoder.layer[1](states)
            model.network(torch.tensor([[2, 7, 3]]))
        return trace.layers, trace.attention[0]

    seen = by_layer(model, text(6), see=see)
    assert [layers for layers, _ in seen] == [(0,), (1,)]
    for (_, attention), expected in zip(seen, capture(model, text(6)).attention, strict=True):
        assert torch.equal(attention, expected)
