"""What the interval of every weight of a row costs, against a general solver of linear programmes.

python -m benchmarks.identifiability [--quick]

CPU time on one thread, rivals in turns in one process. Every pair of figures is the least and the median. The solver
is HiGHS: from scratch for each bound (through scipy), and warm-started from the last optimum (through highspy).
"""

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import highspy
import numpy as np
import torch
from scipy.optimize import linprog

from benchmarks.timing import ratio, show
from headscope.effective.identifiability import interval
from headscope.experiments.timing import time_interleaved

BAR = 10  # times the speed of HiGHS, warm-started
SHAPES = ((128, 64), (128, 32))
Array = np.ndarray[Any, np.dtype[np.float64]]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tiny shape, to see that it runs")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    effort = {"turns": 2} if quick else {"turns": 9, "seconds": 25}
    shapes, sample = (((12, 4),), 4) if quick else (SHAPES, 8)
    rows = [compare(keys, value, sample, effort) for keys, value in shapes]
    header = ["keys", "d", "headscope", "HiGHS, cold*", "HiGHS, warm", f"≥{BAR}", "apart"]
    show("All intervals of a row, peers over ours: least / median", header, rows)
    print(f"* the bounds of {sample} keys (scaled)")


def compare(keys: int, value: int, sample: int, effort: Any) -> list[str]:
    """One row of the table; "apart" is the largest difference from the warm-started solver over all keys."""
    row, values = _problem(keys, value)
    every, some = np.arange(keys), np.arange(0, keys, keys // sample)
    rivals: dict[str, Callable[[], Any]] = {
        "headscope": partial(interval, torch.from_numpy(row), torch.from_numpy(values)),
        "cold": partial(by_cold_solver, row, values, some),
        "warm": partial(by_warm_solver, row, values, every),
    }
    runs = time_interleaved(rivals, **effort)
    runs["cold"] = [spent * keys / len(some) for spent in runs["cold"]]
    ratios = {name: ratio(runs[name], runs["headscope"]) for name in ("cold", "warm")}
    found, wanted = rivals["headscope"](), rivals["warm"]()
    apart = np.abs(np.stack([found.least, found.greatest], -1) - wanted).max()
    verdict = "met" if ratios["warm"].median >= BAR else "missed"
    cells = [f"{each:.1f}" for each in ratios.values()]
    return [f"{keys}", f"{value}", f"{median(runs['headscope']) * 1e3:.1f} ms", *cells, verdict, f"{apart:.0e}"]


def by_cold_solver(row: Array, values: Array, keys: Array) -> Array:
    """Two linear programmes for each key, each from nothing."""
    equal = np.vstack([values.T, np.ones(len(row))])
    costs = [sign * np.eye(len(row))[key] for key in keys for sign in (1, -1)]
    found = [linprog(cost, A_eq=equal, b_eq=equal @ row, method="highs").fun for cost in costs]
    return np.reshape(found, (-1, 2)) * [1, -1]


def by_warm_solver(row: Array, values: Array, keys: Array) -> Array:
    """One model; only the objective changes, and the primal simplex goes on from the last optimum."""
    many = len(row)
    equal = np.vstack([values.T, np.ones(many)])
    solver = highspy.Highs()
    for name, value in {"output_flag": False, "presolve": "off", "simplex_strategy": 4, "threads": 1}.items():
        solver.setOptionValue(name, value)
    solver.addVars(many, np.zeros(many), np.full(many, highspy.kHighsInf))
    for line, level in zip(equal, equal @ row, strict=True):
        solver.addRow(level, level, many, np.arange(many, dtype=np.int32), line)
    found = np.empty((len(keys), 2))
    for place, key in enumerate(keys.tolist()):
        for side, sign in enumerate((1.0, -1.0)):
            solver.changeColCost(key, sign)
            solver.run()
            found[place, side] = sign * solver.getInfo().objective_function_value
        solver.changeColCost(key, 0.0)
    return found


def _problem(keys: int, value: int) -> tuple[Array, Array]:
    """A row of attention and values, both random."""
    random = np.random.default_rng(0)
    scores = np.exp(2 * random.standard_normal(keys))
    return scores / scores.sum(), random.standard_normal((keys, value))


if __name__ == "__main__":
    main()
