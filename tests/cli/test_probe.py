"""`headscope probe`."""

import pytest

from headscope.results.store import open_result
from tests.cli.test_importances import folder, run  # noqa: F401  (a fixture)
from tests.probes.data import make_tree


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    """Write trees of eight documents as CoNLL-U."""
    lines = []
    for seed in range(24):
        tree = make_tree(seed)
        lines += [f"# newdoc id = {tree.columns['document']}"] if seed % 3 == 0 else []
        columns = zip(tree.words, tree.columns["heads"], tree.columns["relations"], strict=True)
        rows = enumerate(columns, 1)
        lines += ["\t".join([str(n), word, *"____", str(head + 1), name, "_", "_"]) for n, (word, head, name) in rows]
        lines.append("")
    path = tmp_path_factory.mktemp("trees") / "trees.conllu"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_relations_are_printed_and_the_result_is_saved_and_drawn(folder, treebank, tmp_path):  # noqa: F811
    wanted = [str(tmp_path / "relations.nc"), str(tmp_path / "relations.svg")]
    options = ["--probe", "dependency:min_count=5", "--random-weights", "--lens", "raw"]
    out = run("probe", treebank, "--model", folder, *options, "-o", wanted[0], "-o", wanted[1])
    header, first = (next(line for line in out.splitlines() if line.startswith(word)) for word in ("relation", "all"))
    assert {"best", "n", "head"} <= set(header.split())
    assert first.split()[2].startswith("L")
    text = " ".join(out.split())
    assert "on 4 documents" in text
    assert "right branching 0." in text
    assert "random weights 0." in text
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("Wrote"))
    assert "random_weights" in open_result(wanted[0])["predictor"].values
    assert "exists already" in run("probe", treebank, "--model", folder, "-o", wanted[0], code=2)


def test_trained_probes_print_no_single_heads(folder, treebank):  # noqa: F811
    out = run("probe", treebank, "--model", folder, "--probe", "attention:min_count=5,iterations=2")
    assert any(line.split()[:3] == ["relation", "n", "probe"] for line in out.splitlines())


def test_mistakes_are_named_in_the_words_of_the_shell(folder, treebank):  # noqa: F811
    assert "No relation occurs at least 100 times" in run("probe", treebank, "--model", folder, code=2)
    assert "--query last is not known. Give 'mean' or 'first'" in run(
        "probe", treebank, "--model", folder, "--query", "last", code=2
    )
