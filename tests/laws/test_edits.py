"""Laws that hold for every edit and every variant of it."""

import itertools
from dataclasses import fields, replace
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import torch

from headscope.core.catalog import edits
from headscope.core.edit import Edit, HeadEdit, LayerHeads, SiteTensors
from headscope.core.spec import to_spec
from headscope.edits.mean_heads import MeanHeads
from headscope.engine.capture import capture
from headscope.engine.edited import edited
from headscope.engine.load import load
from tests.laws.test_families import inputs_of
from tests.models import KINDS, batch, network, tiny
from tests.tiers import spread

VARIED = ("bert", "albert", "gpt2", "llama", "gemma2", "gpt_oss", "vit", "t5", "bart", "mpnet")  # tests/edits has all
SAME_KEYS = ("bert", "albert", "distilbert", "vit")  # padding as keys is only defined where all queries see the same


def some_means():
    """Means for tiny models, which have up to three layers of four heads of eight dimensions."""
    generator = torch.Generator().manual_seed(0)
    return SiteTensors({s: torch.randn(3, 4, 8, generator=generator) for s in ("self", "encoder", "decoder", "cross")})


def variants():
    """Every edit with every combination of its choices."""
    yield MeanHeads(means=some_means())
    for kind in edits:
        if kind is MeanHeads:  # which has no default for its means
            continue
        hints = get_type_hints(kind)
        names = [each.name for each in fields(kind) if get_origin(hints[each.name]) is Literal]
        for chosen in itertools.product(*(get_args(hints[name]) for name in names)):
            yield kind(**dict(zip(names, chosen, strict=True)))


EDITS = list(variants())


def fits(edit, kind):
    if getattr(edit, "keys", "visible") != "visible" and kind not in SAME_KEYS:
        return False
    return not isinstance(edit, HeadEdit) or kind in VARIED


def lawful(law, *, breaks=False):
    """Test each edit that keeps a law, or breaks it, on every kind in turn; the other pairs are for `make soak`."""
    chosen = [edit for edit in EDITS if (law in edit.breaks) == breaks]
    return pytest.mark.parametrize(("edit", "kind"), spread(chosen, list(KINDS), where=fits), ids=name_value)


def name_value(value):
    return value if isinstance(value, str) else to_spec(value)


def plain_and_edited(kind, edit, tensors):
    """The last hidden states of real tokens, without the edit and with it."""
    model = tiny(kind)
    mask = tensors.get("decoder_attention_mask", tensors.get("attention_mask"))
    with torch.no_grad():
        plain = model.network(**tensors).last_hidden_state
        with edited(model, edit) as changed:
            made = changed.network(**tensors).last_hidden_state
    real = torch.ones(plain.shape[:2], dtype=torch.bool) if mask is None else mask.bool()
    return plain[real], made[real]


def heads_of(trace, layer):
    return LayerHeads(
        trace.site,
        layer,
        trace.attention[layer],
        trace.values[layer],
        trace.context[layer],
        trace.visible[layer],
    )


@pytest.mark.parametrize("edit", [edit for edit in EDITS if not isinstance(edit, MeanHeads)], ids=to_spec)
def test_an_edit_rebuilds_from_its_spec(edit):
    assert isinstance(edit, Edit)
    assert edits.make(to_spec(edit)) == edit
    if "layers" in {each.name for each in fields(edit)}:
        some = replace(edit, layers=(0, 3))
        assert "layers=0+3" in to_spec(some)
        assert edits.make(to_spec(some)) == some


@lawful("output")
def test_an_exact_edit_leaves_what_the_model_computes(edit, kind):
    plain, made = plain_and_edited(kind, edit, inputs_of(kind).tensors)
    assert (made - plain).norm() <= 1e-4 * plain.norm()


@lawful("output", breaks=True)
def test_an_edit_that_says_so_changes_what_the_model_computes(edit, kind):
    if kind == "vit":  # an image has no padding
        return
    plain, made = plain_and_edited(kind, edit, inputs_of(kind).tensors)
    assert (made - plain).norm() > 1e-3 * plain.norm()


@lawful("padding")
def test_wider_padding_changes_nothing(edit, kind):
    if kind == "vit":
        return
    with edited(tiny(kind), edit) as changed:
        narrow = capture(changed, batch(kind))
        wide = capture(changed, batch(kind), pad_to=narrow.keys.real.shape[1] + 7)
    many = narrow.keys.real.shape[1]
    for left, right in zip(narrow.attention, wide.attention, strict=True):
        torch.testing.assert_close(right[..., :many, :many], left, atol=1e-5, rtol=1e-4)


@lawful("batch")
def test_one_by_one_equals_together(edit, kind):
    if kind == "vit":
        return
    with edited(tiny(kind), edit) as changed:
        together = capture(changed, batch(kind))
        for place, each in enumerate(batch(kind)):
            alone = capture(changed, [each])
            many = int(alone.keys.counts[0])
            for left, right in zip(together.attention, alone.attention, strict=True):
                torch.testing.assert_close(left[place, :, :many, :many], right[0], atol=1e-5, rtol=1e-4)


@lawful("")
def test_an_edit_leaves_its_arguments_unchanged_and_keeps_their_shape(edit, kind):
    trace = capture(tiny(kind), batch(kind), keep=("values", "pads"))
    heads = heads_of(trace, 1)
    tensors = (heads.attention, heads.values, heads.context, heads.visible)
    before = [each.clone() for each in tensors]
    once, twice = edit(heads), edit(heads)
    assert once.shape == heads.context.shape
    assert torch.equal(once, twice)
    assert all(torch.equal(each, copy) for each, copy in zip(tensors, before, strict=True))


@lawful("")
def test_the_model_is_left_as_it_was(edit, kind):
    mine = network(kind).train()
    configs = [module.config for module in mine.modules() if hasattr(module, "config")]
    before = [(config._attn_implementation, config.to_dict()) for config in configs]
    modes = [module.training for module in mine.modules()]
    tensors = inputs_of(kind).tensors
    with torch.no_grad(), edited(load(mine, tokenizer=tiny(kind).tokenizer), edit) as changed:
        assert changed.network is mine
        mine(**tensors)
    assert [(config._attn_implementation, config.to_dict()) for config in configs] == before
    assert [module.training for module in mine.modules()] == modes
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in mine.modules())
