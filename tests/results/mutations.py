"""Damage to the bytes of a file: what disks, copies and editors do."""

import random


def mutate(content: bytes, seed: int) -> bytes:
    """Flip a bit, cut the end, zero or swap blocks, or insert bytes; half of it near the ends, where structure is."""
    chance, damaged = random.Random(seed), bytearray(content)
    size = len(damaged)

    def position(width: int = 1) -> int:
        last = max(0, size - width)
        edge = min(last, 2048)
        return chance.choice([chance.randint(0, last), chance.randint(0, edge), last - chance.randint(0, edge)])

    kind = chance.choice(["flip", "cut", "zero", "swap", "insert"])
    width = min(size, chance.choice([1, 8, 64, 512]))
    if kind == "flip":
        damaged[position()] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del damaged[position() :]
    elif kind == "zero":
        start = position(width)
        damaged[start : start + width] = bytes(width)
    elif kind == "swap":
        first, second = position(width), position(width)
        a, b = damaged[first : first + width], damaged[second : second + width]
        damaged[first : first + width], damaged[second : second + width] = b, a
    else:
        start = position()
        damaged[start:start] = chance.randbytes(width)
    return bytes(damaged)
