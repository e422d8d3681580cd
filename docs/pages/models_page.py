"""What works on which kind of model in docs/models.md, from docs/results/zoo.json."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parents[1] / "results" / "zoo.json"
CATEGORIES = ("text", "text to text", "pictures", "pictures with text", "sound", "sound with text", "other")
MARKS = {"y": "yes", "p": "in part", "r": "refused", "w": "**wrong**", "e": "**error**", "-": ""}
_FORTY = """
bert roberta xlm-roberta distilbert albert electra deberta-v2 mpnet modernbert gpt2 gpt_neo gptj gpt_neox opt bloom
llama mistral mixtral qwen2 qwen3 gemma2 gemma3_text phi3 gpt_oss deepseek_v3 falcon t5 bart marian m2m_100 vit dinov2
swin detr clip siglip llava qwen2_5_vl whisper wav2vec2
"""
FORTY = tuple(_FORTY.split())
"""By downloads from the hub, about: one kind for each architecture."""


def parts(path: Path = RESULT) -> dict[str, str]:
    """Return the generated parts of the page; empty ones before anything was measured."""
    if not path.is_file():
        return {"counts": "", "summary": "", "forty": ""}
    run = json.loads(path.read_text(encoding="utf-8"))
    return {"counts": _count(run), "summary": _summarize(run), "forty": _list_forty(run)}


def _count(run: dict[str, Any]) -> str:
    counts, kinds = run["counts"], run["kinds"].values()
    total = counts["built"] + counts.get("not built", 0)
    with_attention = sum(bool(word) for _, word in kinds)
    return (
        f"Measured by `{run['command']}` with transformers {run['transformers']} and torch {run['torch']}. It has "
        f"{total} types, without those that are only parts of others; {counts['built']} could be built and given "
        f"inputs, of which {with_attention} have attention and {counts['built'] - with_attention} have none. Silently "
        f"wrong: {run['silently_wrong']}.\n"
    )


def _summarize(run: dict[str, Any]) -> str:
    lines = _begin_table(["reads", "kinds with attention", *run["verbs"]])
    for category in (*CATEGORIES, "all"):
        words = [word for name, word in run["kinds"].values() if word and category in (name, "all")]
        if words:
            shares = [_share(word[index] for word in words) for index in range(len(run["verbs"]))]
            lines.append(f"| {category} | {len(words)} | {' | '.join(shares)} |")
    return "\n".join(lines) + "\n"


def _share(marks: Iterable[str]) -> str:
    counts = Counter(marks)
    tried = sum(counts.values()) - counts["-"]
    part = f", {counts['p'] / tried:.0%} in part" if counts["p"] else ""
    return f"{counts['y'] / tried:.0%} of {tried}{part}" if tried else ""


def _list_forty(run: dict[str, Any]) -> str:
    lines = _begin_table(["kind", *run["verbs"]])
    for name in FORTY:
        _, word = run["kinds"].get(name, ("", ""))
        cells = [MARKS[mark] for mark in word] or ["not built"] * len(run["verbs"])
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _begin_table(names: list[str]) -> list[str]:
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
