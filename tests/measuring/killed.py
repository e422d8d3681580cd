"""A slow measurement for tests that kill it: python -m tests.measuring.killed FOLDER OUT"""

import sys
import time

import headscope as hs
from headscope.measuring import measure
from headscope.measuring.job import MeasureJob
from tests.measuring.data import LENSES, STATISTICS, examples

measure.MIN_INTERVAL = measure.WRITE_FACTOR = 0
observe = MeasureJob.observe


def observe_slowly(self, batches):
    for states in observe(self, batches):
        time.sleep(0.05)
        yield states


MeasureJob.observe = observe_slowly
hs.measure(
    hs.load(sys.argv[1]),
    examples(60),
    lens=LENSES,
    statistics=STATISTICS,
    batch_size=1,
    out=sys.argv[2],
    progress=False,
    rows=True,
)
