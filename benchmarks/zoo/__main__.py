"""What headscope does with every model type of the installed transformers.

python -m benchmarks.zoo [--types TYPE …] [--out FILE.json] [--docs FILE.json]

Each type is built tiny, with random weights, and each verb is tried on it: capture (A as the model's own eager
attention returns it, A·V as the context), effective and norm (against literal versions), edit, generate and prune. A
run that is interrupted goes on from --out.
"""

import argparse
from pathlib import Path

import torch

from benchmarks.timing import show
from benchmarks.zoo.build import list_types
from benchmarks.zoo.examine import SECONDS, VERBS, examine
from benchmarks.zoo.summary import LETTERS, count, read_outcomes, summarize, write_compact, write_outcomes


def main() -> None:
    """Examine types, print a line for each, and the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--types", nargs="*", help="model types; all by default")
    parser.add_argument("--verbs", nargs="*", default=VERBS, help=f"all by default: {', '.join(VERBS)}")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="the limit of one verb of one type")
    parser.add_argument("--out", type=Path, help="where to write the outcomes, and to go on from")
    parser.add_argument("--docs", type=Path, help="where to write the small file that docs/make.py reads")
    options = parser.parse_args()
    torch.set_num_threads(1)
    outcomes = read_outcomes(options.out) if options.out else {}
    for model_type in options.types or list_types():
        if model_type in outcomes:
            continue
        outcome = outcomes[model_type] = examine(model_type, tuple(options.verbs), options.seconds)
        word = "".join(LETTERS[cell.status] for cell in outcome.cells.values())
        print(f"{model_type[:38]:38} {outcome.seconds:5.1f} s  {word or outcome.status[:26]}", flush=True)
        if options.out:
            write_outcomes(options.out, outcomes.values(), "python -m benchmarks.zoo")
    rows = list(outcomes.values())
    if options.docs:
        write_compact(options.docs, rows, "python -m benchmarks.zoo")
    header = ["category", "built", "attn", *(verb[:8] for verb in options.verbs)]
    show(
        "Kinds with attention on which a verb works / kinds on which it was tried",
        header,
        summarize(rows, options.verbs),
    )
    for name, number in count(rows).items():
        print(f"{name:28} {number:5}")


if __name__ == "__main__":
    main()
