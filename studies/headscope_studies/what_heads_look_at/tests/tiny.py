"""A run on a tiny model that takes seconds, for the laws of studies."""

from tests.study_data import WIDTH


def options(folder):
    """The parameters; `folder` has labelled pairs, and gets what else is needed."""
    (folder / "trees.conllu").write_text("\n".join(map(_tree, range(70))), encoding="utf-8")
    return {
        "text": str(folder / "dev.jsonl"),
        "mlm_text": str(folder / "train.jsonl"),
        "dev": str(folder / "dev.jsonl"),
        "train": str(folder / "train.jsonl"),
        "treebank": str(folder / "trees.conllu"),
        "coreference": "winogender",
        "probe_limit": 24,
        "max_length": WIDTH,
    }


def _tree(at: int) -> str:
    """A sentence of five words in CoNLL-U: the cat sat on it."""
    nouns, verbs = ("cat", "dog", "man"), ("sat", "ran", "slept", "sang")
    words = [
        ("the", 2, "det"),
        (nouns[at % 3], 3, "nsubj"),
        (verbs[at % 4], 0, "root"),
        ("the", 5, "det"),
        (nouns[at % 2], 3, "obj"),
    ]
    lines = [
        f"{number}\t{word}\t{word}\tX\t_\t_\t{head}\t{relation}\t_\t_"
        for number, (word, head, relation) in enumerate(words, 1)
    ]
    return "\n".join([f"# sent_id = tree-{at}", *lines, ""])
