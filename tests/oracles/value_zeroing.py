"""Value zeroing key by key: every context written out as a sum over the other keys, one run of the layer for each.

That the layers run as the model runs them is checked without them, with hooks, in tests/lenses/test_value_zeroing.py.
"""

import torch


def oracle(trace, layer, lens):
    attention, values = trace.attention[layer].double(), trace.values[layer].double()
    block, visible = trace.blocks[layer], trace.visible[layer]
    changes = torch.zeros(visible.shape, dtype=torch.float64)
    for key in range(visible.shape[-1]):
        others = [other for other in range(visible.shape[-1]) if other != key]
        context = attention[..., others] @ values[:, :, others]
        changed, own = block(context.float()).double(), block.output.double()
        for row, query in visible[:, :, key].nonzero().tolist():
            new, old = changed[row, query], own[row, query]
            changes[row, query, key] = 1 - new @ old / (new.norm() * old.norm())
    sums = changes.sum(-1, keepdim=True)
    return torch.where(sums > 0, changes / sums, 0.0)[:, None]
