"""The probe of single heads: against a literal version, on planted heads, and on its control task."""

from dataclasses import replace

import numpy as np
import pytest

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.maps.dependencies import OFFSETS, ControlHeads, list_relations, read_heads
from headscope.probes.attention import Attention
from headscope.probes.dependency import Dependency
from tests.oracles import probes as oracle
from tests.probes.data import HEADS, LAYERS, RELATIONS, make_streams, make_tree, plant_head


def hide_future(weights, visible):
    return np.where(np.tril(np.ones(weights.shape)) > 0, weights, np.nan) if visible == "causal" else weights


def count_literally(stream, heads_of, relation):
    """Accuracies of every head and direction, and of every offset."""
    shape = LAYERS, HEADS, 2
    by_head, by_offset, asked = np.zeros(shape), np.zeros(len(OFFSETS)), 0
    for example in stream.examples:
        heads = heads_of(example)
        asked += oracle.count_right(example, heads, relation, heads)[1]
        for layer, head, direction in np.ndindex(shape):
            weights = hide_future(stream.attention[example.id][layer, head].numpy(), stream.visible)[1:-1, 1:-1]
            answers = oracle.answer_by_head(weights, reverse=bool(direction))
            by_head[layer, head, direction] += oracle.count_right(example, answers, relation, heads)[0]
        for index, offset in enumerate(OFFSETS):
            answers = oracle.answer_by_offset(len(example.words), offset)
            by_offset[index] += oracle.count_right(example, answers, relation, heads)[0]
    return by_head / asked, by_offset / asked, asked


@pytest.mark.parametrize("visible", ["all", "causal"])
def test_the_probe_equals_its_literal_version(visible):
    train, test = make_streams(visible=visible)
    result = Dependency(min_count=1).fit(train, test)
    control = ControlHeads.draw([*train.examples, *test.examples], 0)
    assert list(result["relation"].values) == list(list_relations(train.examples, test.examples, 1))
    for task, heads_of in (("dependency", read_heads), ("control", control)):
        for relation in ("all", *RELATIONS):
            cell = result.sel(task=task, relation=relation)
            seen_heads, seen_offsets, _ = count_literally(train, heads_of, relation)
            new_heads, new_offsets, asked = count_literally(test, heads_of, relation)
            np.testing.assert_allclose(cell["head_accuracy"].sel(half="train"), seen_heads)
            np.testing.assert_allclose(cell["head_accuracy"].sel(half="test"), new_heads)
            best, offset = np.unravel_index(seen_heads.argmax(), seen_heads.shape), seen_offsets.argmax()
            assert (int(cell["best_layer"]), int(cell["best_head"])) == best[:2]
            assert cell["best_direction"].item() == result["direction"].values[best[2]]
            assert int(cell["best_offset"]) == OFFSETS[offset]
            expected = [new_heads[best], new_offsets[offset], new_offsets[OFFSETS.index(1)]]
            np.testing.assert_allclose(cell["accuracy"], expected)
            assert (cell["accuracy_n"] == asked).all()
            assert float(cell["gain"]) == pytest.approx(expected[0] - expected[1])


def test_a_planted_head_is_chosen_for_its_relation_in_its_direction():
    streams = [plant_head(plant_head(stream, 1, 2, "nsubj"), 0, 1, "obj", reverse=True) for stream in make_streams(40)]
    result = Dependency(min_count=1).fit(*streams).sel(task="dependency")
    chosen = {
        relation: tuple(result[f"best_{name}"].sel(relation=relation).item() for name in ("layer", "head", "direction"))
        for relation in ("nsubj", "obj")
    }
    assert chosen == {"nsubj": (1, 2, "dependent to head"), "obj": (0, 1, "head to dependent")}
    planted = result.sel(predictor="head", relation="nsubj")
    assert float(planted["accuracy"]) == 1
    assert float(planted["gain_p"]) < 0.01
    assert float(result["accuracy"].sel(predictor="head", relation="det")) < 0.5


def test_a_planted_head_does_not_help_in_the_control_task():
    streams = [plant_head(stream, 1, 2) for stream in make_streams(60, words=8)]
    result = Dependency(min_count=1).fit(*streams).sel(relation="all")
    assert float(result["accuracy"].sel(task="dependency", predictor="head")) == 1
    control = result.sel(task="control")
    assert float(control["accuracy"].sel(predictor="head")) < 0.3  # 1/7 at random
    assert float(control["gain_high"]) < 0.15


def test_the_control_task_gives_every_form_one_offset_inside_the_sentence():
    examples = [make_tree(seed) for seed in range(30)]
    control = ControlHeads.draw(examples, 0)
    offsets = {}
    for example in examples:
        count = len(example.words)
        for word, (form, head, real) in enumerate(
            zip(example.words, control(example), read_heads(example), strict=True)
        ):
            assert (head < 0) == (real < 0)
            if head >= 0:
                assert 0 <= head < count
                assert head != word
                offsets.setdefault(form, set()).add(abs(head - word))
    assert control(examples[0]) == ControlHeads.draw(examples, 0)(examples[0])
    assert any(ControlHeads.draw(examples, 1)(example) != control(example) for example in examples)
    wide = Example(
        "wide", "", words=(examples[0].words[0],) * 60, columns={"heads": (-1, *[0] * 59), "relations": "x" * 60}
    )
    assert len({head - word for word, head in enumerate(control(wide)) if 15 < word < 45}) == 1


def test_batches_of_another_size_give_the_same():
    train, test = make_streams()
    expected = Dependency(min_count=1).fit(train, test)
    for size in (1, 5):
        assert (
            Dependency(min_count=1).fit(*(replace(stream, size=size) for stream in (train, test))).identical(expected)
        )


def test_pruned_heads_are_not_chosen():
    streams = [plant_head(stream, 1, 2) for stream in make_streams()]
    maps = [replace(part, pruned=frozenset({(1, 2)})) for part in streams[0]]
    streams[0] = replace(streams[0])
    streams[0].batches = lambda start: iter(maps[start:])
    result = Dependency(min_count=1).fit(*streams).sel(task="dependency", relation="all")
    assert (int(result["best_layer"]), int(result["best_head"])) != (1, 2)
    assert np.isnan(result["head_accuracy"].sel(half="train", layer=1, head=2)).all()


def test_words_that_were_truncated_or_have_no_head_left_are_not_counted():
    train, test = make_streams(6)

    def cut(start):
        for maps in type(test).batches(test, start):
            tokens = replace(maps.keys, word=maps.keys.word.masked_fill(maps.keys.word == 1, -1))
            yield replace(maps, queries=tokens, keys=tokens)

    shortened = replace(test)
    shortened.batches = cut
    result = Dependency(min_count=1).fit(train, shortened)
    control = ControlHeads.draw([*train.examples, *test.examples], 0)
    left = [
        word
        for example in test.examples
        for word, (head, drawn) in enumerate(zip(read_heads(example), control(example), strict=True))
        if head >= 0 and 1 not in (word, head, drawn)
    ]
    assert (result["accuracy_n"].sel(relation="all") == len(left)).all()


@pytest.mark.parametrize("kind", [Dependency(min_count=1), Attention(min_count=1, iterations=2)])
def test_texts_of_which_too_little_is_left_are_refused(kind):
    train, test = make_streams(6)

    def cut(start):
        for maps in type(test).batches(test, start):
            tokens = replace(maps.keys, word=maps.keys.word.masked_fill(maps.keys.word > 0, -1))
            yield replace(maps, queries=tokens, keys=tokens)

    shortened = replace(test)
    shortened.batches = cut
    for halves, part in (((train, shortened), "test"), ((shortened, train), "training")):
        with pytest.raises(InputError, match=f"No word of the {part} documents was left with its head"):
            kind.fit(*halves)


def test_rare_relations_and_missing_trees_are_explained():
    train, test = make_streams(4)
    with pytest.raises(InputError, match=r"No relation occurs at least 1000 times; the most frequent: \w+ \(\d+\)"):
        Dependency(min_count=1000).fit(train, test)
    with pytest.raises(InputError, match="has no syntactic tree: it needs words, heads and relations"):
        read_heads(hs.Example("0", "No tree."))
    with pytest.raises(InputError, match="min_count=0 of 'dependency' must be at least 1"):
        Dependency(min_count=0)


def test_a_relation_of_one_half_is_left_out():
    train, test = make_streams(6)
    columns = {**test.examples[0].columns, "relations": ("rare",) * len(test.examples[0].words)}
    test.examples[0] = replace(test.examples[0], columns=columns)
    result = Dependency(min_count=1).fit(train, test)
    assert "rare" not in result["relation"].values
    heads = [head for example in (*train.examples, *test.examples) for head in read_heads(example)]
    assert int(result["count"].sel(relation="all")) == sum(head >= 0 for head in heads)
