"""What is ugly is never in the median: the largest file, function and class are kept small."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "src").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT / "src" / "headscope")))
def test_files_functions_and_classes_stay_small(path):
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= 300
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 50, node.name
        if isinstance(node, ast.ClassDef):
            public = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name[0] != "_"]
            assert len(public) <= 8, node.name
