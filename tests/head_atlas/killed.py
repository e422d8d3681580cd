"""A slow atlas for a test that kills it: python -m tests.head_atlas.killed MODEL OUT"""

import sys
import time

import headscope as hs
from headscope.head_atlas import drawing
from tests.head_atlas.data import make_atlas

draw_batch = drawing._draw_batch


def draw_slowly(*arguments):
    draw_batch(*arguments)
    time.sleep(0.2)


drawing._draw_batch = draw_slowly
make_atlas(hs.load(sys.argv[1]), sys.argv[2])
