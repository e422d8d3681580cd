"""What effective attention leaves over."""

from tests.oracles import effective


def oracle(trace, layer, lens):
    return trace.attention[layer].double() - effective.oracle(trace, layer, lens)
