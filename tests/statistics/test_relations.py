"""Attention between related words: answers worked out by hand, and errors."""

import pytest
import torch

from headscope.core.batch import Batch
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.measuring.measure import measure
from headscope.statistics.relations import Relations
from tests.batches import build_maps, one_lens
from tests.models import tiny

WEIGHTS = torch.tensor(
    [[0.1, 0.6, 0.2, 0.1], [0.5, 0.1, 0.3, 0.1], [0.0, 0.8, 0.1, 0.1], [0.2, 0.2, 0.2, 0.4]], dtype=torch.float64
)


def compute(pairs, names=("all",), rows=(("a", "b", "c", "d"),), **options):
    """Return the values of one head on one text, by direction."""
    maps = build_maps([WEIGHTS[None, None]], [list(row) for row in rows], **options)
    examples = (Example("0", "a b c d", words=("a", "b", "c", "d"), columns={"word_pairs": pairs}),)
    values = Relations(names=names).values(Batch(examples, one_lens(maps).maps, "raw"))
    return {name.removeprefix("relations_"): table[0, 0, 0].tolist() for name, table in values.items()}


def test_the_weight_of_a_pair_is_compared_with_all_pairs_at_its_distance():
    values = compute([(0, 1, "det")])
    assert values["relations"][0] == pytest.approx([0.6, 0.5, 0.6])
    # from each word to the next: 0.6, 0.3, 0.1; to the previous: 0.5, 0.8, 0.2; the larger: 0.6, 0.8, 0.2
    assert values["baseline"][0] == pytest.approx([1.0 / 3, 0.5, 1.6 / 3])
    assert values["gain"][0] == pytest.approx([0.6 - 1.0 / 3, 0.0, 0.6 - 1.6 / 3])


def test_several_pairs_are_averaged_and_relations_are_apart():
    values = compute([(0, 1, "det"), (2, 1, "det"), (3, 0, "obj:x")], ("det", "obj", "all"))
    assert [row[0] for row in values["relations"]] == pytest.approx([0.7, 0.2, 1.6 / 3])


def test_special_tokens_are_no_words_and_keep_no_distance_apart():
    values = compute([(0, 1, "det")], rows=(("[CLS]", "a", "[SEP]", "b"),))
    assert values["relations"][0] == pytest.approx([0.1, 0.2, 0.2])
    assert values["baseline"] == values["relations"]  # no other pair is at this distance


def test_a_decoder_sees_no_later_word():
    values = compute([(0, 1, "det")], causal=True)
    assert values["relations"][0] == pytest.approx([float("nan"), 0.5, 0.5], nan_ok=True)


def test_an_example_without_the_relation_has_no_value():
    assert all(table[0] == pytest.approx([float("nan")] * 3, nan_ok=True) for table in compute([], ("det",)).values())


def test_pairs_come_from_heads_and_relations_too():
    data = [{"text": "a b c", "words": ["a", "b", "c"], "heads": [1, -1, 1], "relations": ["det", "root", "obj"]}]
    data = measure(tiny("bert"), data, statistics="relations:names=det+obj+root", progress=False)
    assert data["relations_n"].sel(relation="det").min() == 1
    assert data["relations_n"].sel(relation="root").max() == 0  # the root has no head


def test_examples_that_relate_no_words_are_refused():
    with pytest.raises(InputError, match="neither the column word_pairs nor heads and relations. Read a treebank"):
        measure(tiny("bert"), ["A b c."], statistics="relations", progress=False)


@pytest.mark.parametrize(
    ("names", "problem"), [((), "one or more different"), (("a", "a"), "different"), (("a+b",), "has one of")]
)
def test_relations_that_no_spec_can_name_are_refused(names, problem):
    with pytest.raises(InputError, match=problem):
        Relations(names=names)
