"""A measurement that somebody is going to kill: python -m tests.measuring.killed FOLDER OUT"""

import sys
import time

import headscope as hs
from headscope.measuring import run
from headscope.measuring.job import MeasureJob
from tests.measuring.data import LENSES, STATISTICS, examples

run.PAUSE = run.TIMES = 0
states = MeasureJob.states


def slowly(self, first=0):
    for each in states(self, first):
        time.sleep(0.05)
        yield each


MeasureJob.states = slowly
hs.measure(
    hs.load(sys.argv[1]), examples(60), lens=LENSES, statistics=STATISTICS, batch_size=1, out=sys.argv[2],
    progress=False, rows=True,
)  # fmt: skip
