"""The dot product of what each weight writes with the direction that the prediction reads, one by one."""

import torch


def oracle(trace, layer, lens):
    attention, values, output, directions = (
        part[layer].double() for part in (trace.attention, trace.values, trace.output, trace.readout.directions)
    )
    result = torch.zeros_like(attention)
    for head in range(attention.shape[1]):
        written = values[:, head] @ output[head]  # batch key hidden
        result[:, head] = attention[:, head] * torch.einsum("bkx,bqx->bqk", written, directions)
    return result
