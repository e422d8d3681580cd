"""The page docs/performance.md, from docs/results/performance_*.json."""

import ast
import inspect
import json
from pathlib import Path
from typing import Any

from headscope.core.maps import factored
from headscope.effective import causal, cholesky, layers, output, projection, visibility

DOCS = Path(__file__).parents[1]
IN_PLACE_BAR = 2.0
TEXT = """# What effective attention costs

*Made by `docs/make.py` from `docs/results/performance_*.json`; no number here is typed by hand.*

Ratios over the forward pass of the same model with attentions, measured side by side in one run, with random weights
and a tokenizer attached: *captured* is the pass with `hs.capture`, *factored* adds `hs.view(trace, "effective")`,
*materialised* adds every whole map. *In place* is the pass under the edit `effective_attention`, which
computes one layer after another while the model runs.

## On a GPU

{gpu_facts}

{gpu}

Small inputs are bound by the launches of the host: there the ratio differs from host to host.

## On a CPU

{cpu_facts}

{cpu}

From text to maps, with the tokenizer on the clock on both sides. *Default* is the forward as users have it, with
scaled-dot-product attention, which returns no attention.

{text_facts}

{texts}

## Code paths

Effective attention is computed on two code paths: where full rank is proved, and everything else (a float64
decomposition, after equal rows of V are merged). Their error is at most 1e-6; `effective/projection.py` and
`effective/causal.py` state the bound of each. On a GPU, the edit takes the first path in kernels of its own, written in
Triton; `effective/kernels.py` states their bound. They are compiled when they are first used on a machine. The table
names every mechanism with its source lines, and the time without it over the time with it.

{paths}

{path_facts}
"""
MECHANISMS = {
    "full rank proved by a Cholesky factor": (
        projection.column_bases,
        projection._tall_bases,
        projection._short_bases,
        projection._proves_independent,
        cholesky.cholesky_inverse,
        cholesky.orthonormalize,
    ),
    "A·Q from the model's A·V, in float32": (projection.project_left,),
    "nested rows in chunks": (
        causal._project_nested,
        causal._prove_short,
        causal._Chunks,
        causal._factor,
        causal._solve,
        causal._Rows,
        visibility._analyze,
    ),
    "value heads factored once for the heads that share them": (layers._repeat,),
    "layers stacked": (layers._stack_layers, layers._stack_values),
    "triangular inverses by halves": (cholesky._lower_inverse,),
    "the edit in kernels of its own": (
        output._project_rows,
        output._run_kernels,
        output._find_kernels,
        DOCS.parent / "src/headscope/effective/kernels.py",
    ),
    "large maps in huge pages": (factored.allocate_huge_pages,),
    "equal rows of V merged": (projection._merged_basis, projection._first_equal_row),
    "everything else: float64 decomposition": (projection._svd_basis, projection._replace_lost, causal._project_lost),
}


def page() -> bytes:
    """Return the page."""
    gpu, cpu, texts, gpu_paths, cpu_paths = (
        json.loads((DOCS / "results" / f"performance_{name}.json").read_text(encoding="utf-8"))
        for name in ("gpu", "cpu", "texts", "gpu_paths", "cpu_paths")
    )
    text = TEXT.format(
        gpu_facts=_facts(gpu),
        gpu=_ratios(gpu["rows"]),
        cpu_facts=_facts(cpu),
        cpu=_ratios(cpu["rows"]),
        text_facts=_facts(texts),
        texts=_ratios(texts["rows"]),
        paths=_paths(gpu_paths, cpu_paths),
        path_facts=f"{_facts(gpu_paths)} {_facts(cpu_paths)}",
    )
    return text.encode()


def _facts(data: dict[str, Any]) -> str:
    run = f"`{data['command']}` on {data['device']}, torch {data['torch']}, medians of {data['turns']} turns or more."
    return f"{run} {data['note']}" if "note" in data else run


def _ratios(rows: list[dict[str, Any]]) -> str:
    columns = ["captured", "factored", "materialised", *(["in place"] if "in place" in rows[0] else [])]
    columns = [*(["default"] if "default" in rows[0] else []), *columns]
    lines = [f"| model | inputs | forward | {' | '.join(columns)} | bar for maps |", "|---" * (4 + len(columns)) + "|"]
    for row in rows:
        cells = [f"{row[name]:.2f}" for name in columns]
        if "in place" in row:
            cells[-1] += f" ({IN_PLACE_BAR:.2f} {'met' if row['in place'] <= IN_PLACE_BAR else 'missed'})"
        bar = (
            "" if row["bar"] is None else f"{row['bar']:.2f} {'met' if row['materialised'] <= row['bar'] else 'missed'}"
        )
        inputs = f"{row['batch']} × {row['tokens']:,}"
        lines.append(f"| {row['model']} | {inputs} | {row['forward_ms']:.1f} ms | {' | '.join(cells)} | {bar} |")
    return "\n".join(lines)


def _paths(gpu: dict[str, Any], cpu: dict[str, Any]) -> str:
    lines = ["| mechanism | file | lines | gain on a GPU | gain on a CPU |", "|---|---|---|---|---|"]
    for mechanism, parts in MECHANISMS.items():
        files = sorted({_find_file(part).name for part in parts})
        count = sum(_count_lines(part) for part in parts)
        gains = [_gain(mechanism, data) for data in (gpu, cpu)]
        lines.append(f"| {mechanism} | {', '.join(files)} | {count} | {' | '.join(gains)} |")
    return "\n".join(lines)


def _find_file(part: Any) -> Path:
    return part if isinstance(part, Path) else Path(inspect.getsourcefile(inspect.unwrap(part)) or "")


def _count_lines(part: Any) -> int:
    if isinstance(part, Path):  # a file that cannot be imported without a GPU
        return len(part.read_text(encoding="utf-8").splitlines())
    node = ast.parse(inspect.getsource(part)).body[0]
    return (node.end_lineno or 0) - node.lineno + 1


def _gain(mechanism: str, data: dict[str, Any]) -> str:
    rows = [row for row in data["rows"] if row["mechanism"] == mechanism]
    return f"{rows[0]['gain']:.2f}× ({rows[0]['input']})" if rows else "–"
