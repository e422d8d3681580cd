"""Vectors of word forms: a model's input embeddings, or a file of vectors such as GloVe's."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from headscope.core.errors import InputError
from headscope.data.reading.files import find_file

Vectors = Float[np.ndarray, "form dim"]


def scale_vectors(vectors: Vectors) -> Float[np.ndarray, "form extended"]:
    """Return the vectors with a mean squared length of 1, and a last dimension that is 1 for every word."""
    length = np.sqrt((vectors.astype(np.float64) ** 2).sum(-1).mean())
    return np.concatenate([vectors / (length or 1.0), np.ones((len(vectors), 1))], 1).astype(np.float32)


def read_vectors(path: str | Path, forms: Sequence[str]) -> tuple[Vectors, float]:
    """Return the vectors of word forms from a text file, and the share of forms that it has.

    Every line is a word and its numbers, separated by spaces, as GloVe's files are; a first line with two numbers, as
    word2vec writes it, is skipped. A form that is not there is looked up in lower case, and else is a vector of zeros.
    """
    file = find_file(path)
    wanted = {*forms, *(form.lower() for form in forms)}
    table: dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]] = {}
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            word, *cells = line.rstrip().split(" ")
            if word not in wanted or (number == 1 and len(cells) == 1):
                continue
            try:
                table[word] = np.array(cells, dtype=np.float32)
            except ValueError:
                raise InputError(f"Line {number} of {file} is not a word and its numbers: {line[:40]!r}.") from None
    sizes = {len(vector) for vector in table.values()}
    if len(sizes) != 1:
        problem = f"has vectors of different lengths ({sorted(sizes)})" if sizes else "has none of the words"
        raise InputError(f"{file} {problem}. Give a text file with a word and its vector on every line, as GloVe's.")
    missing = np.zeros(sizes.pop(), np.float32)
    has_vector = [form in table or form.lower() in table for form in forms]
    vectors = [table.get(form, table.get(form.lower(), missing)) for form in forms]
    return np.stack(vectors), float(np.mean(has_vector))
