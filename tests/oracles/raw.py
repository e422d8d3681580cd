"""Standard attention, read off the trace."""


def oracle(trace, layer, lens):
    return trace.attention[layer].double()
