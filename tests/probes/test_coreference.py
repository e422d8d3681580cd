"""The coreference probe: against a literal version, on planted heads, and on a model."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.provenance import read_provenance
from headscope.data.coreference.passages import join_sentences
from headscope.measuring.probe import make_stream as make_model_stream
from headscope.measuring.probe import make_stream_settings
from headscope.probes.coreference import Coreference, count_answers, list_questions, make_questions
from tests.data.coreference.documents import make_document
from tests.oracles import coreference as oracle

LAYERS, HEADS = 2, 3


@dataclass
class RandomStream:
    """Random attention between the words of examples, between [CLS] and [SEP]; one example is one batch."""

    examples: list
    attention: list  # layer 1 head word word of each example

    def __iter__(self):
        for example, layers in zip(self.examples, self.attention, strict=True):
            maps = hs.view(hs.Trace.of(list(layers), [["[CLS]", *example.words, "[SEP]"]]), "raw")
            numbers = torch.tensor([[-1, *range(len(example.words)), -1]])
            tokens = replace(maps.keys, word=numbers)
            yield replace(maps, queries=tokens, keys=tokens, examples=(example,))

    def batches(self, start):
        raise AssertionError("the probe reads all batches, once")

    def embed(self, words):
        raise AssertionError("the probe reads no embeddings")


def make_stream(seeds, **options):
    examples = [make_document(seed, **options) for seed in seeds]
    return RandomStream(examples, [draw_attention(example, seed) for seed, example in enumerate(examples)])


def draw_attention(example, seed):
    width = len(example.words) + 2
    random = torch.Generator().manual_seed(seed)
    return torch.rand(LAYERS, 1, HEADS, width, width, generator=random).softmax(-1)


def plant_head(stream, layer, head, questions=oracle.list_questions):
    """Let one head attend from every mention to a right antecedent, and nowhere else."""
    for example, attention in zip(stream.examples, stream.attention, strict=True):
        for mention, _, right in questions(example):
            attention[layer, 0, head, mention[2] + 1] = 0.0
            attention[layer, 0, head, mention[2] + 1, max(right) + 1] = 1.0
    return stream


def test_right_answers_of_heads_and_baselines_equal_the_oracle():
    stream = make_stream(range(12))
    answers = count_answers(stream, "test")
    kinds = ("all", "pronoun", "proper", "nominal")
    for document, (example, attention) in enumerate(zip(stream.examples, stream.attention, strict=True)):
        questions = oracle.list_questions(example)
        for number, kind in enumerate(kinds):
            asked = [question for question in questions if kind in ("all", question[0][4])]
            assert answers.counts[document, number] == len(asked)
            for index, name in enumerate(("rules", "head_match", "nearest")):
                right = sum(oracle.answer(example, question, name) in question[2] for question in asked)
                assert answers.by_baseline[index, document, number] == right
            for layer, head in np.ndindex(LAYERS, HEADS):
                weights = attention[layer, 0, head, 1:-1, 1:-1]
                right = sum(oracle.answer_by_head(question, weights) in question[2] for question in asked)
                assert answers.by_head[document, number, layer, head] == right
    assert answers.counts.sum(0)[:4].min() > 0


def test_right_answers_of_a_model_equal_those_from_the_attention_that_transformers_returns(minilm):
    examples = [make_document(seed, words=12) for seed in range(3)]
    stream = make_model_stream(minilm, examples, make_stream_settings("raw"))
    network = type(minilm.network).from_pretrained(minilm.network.name_or_path, attn_implementation="eager").eval()
    expected = np.zeros((len(examples), 6, 12), dtype=int)
    for row, example in enumerate(examples):
        weights = oracle.read_attention(network, minilm.tokenizer, example)
        for question in oracle.list_questions(example):
            right = [oracle.answer_by_head(question, table) in question[2] for table in weights.flatten(0, 1)]
            expected[row] += np.reshape(right, (6, 12))
    np.testing.assert_array_equal(count_answers(stream, "test").by_head[:, 0], expected)


def test_mentions_of_a_different_word_have_no_antecedent_with_the_same_head_word():
    stream = make_stream(range(12))
    expected = 0
    for example in stream.examples:
        words = [word.lower() for word in example.words]
        questions = oracle.list_questions(example)
        expected += sum(all(words[head] != words[mention[2]] for head in right) for mention, _, right in questions)
    counts = count_answers(stream, "test").counts.sum(0)
    assert 0 < counts[-1] == expected < counts[0]


def test_the_planted_head_is_chosen_and_right_on_other_documents():
    train, test = (plant_head(make_stream(seeds, apart=True), 1, 2) for seeds in (range(20), range(20, 40)))
    result = Coreference().fit(train, test).isel(task=0)
    assert (result["best_layer"] == 1).all()
    assert (result["best_head"] == 2).all()
    assert (result["accuracy"].sel(predictor=["head", "one_head"]) == 1.0).all()
    assert result["gain_low"].sel(kind="all") > 0.1
    assert (result["gain_over_p"].sel(kind="all") < 0.01).all()
    assert (result["heads_above"] == 1).all()


def test_a_head_that_is_good_on_the_training_documents_alone_is_reported_as_it_is_on_the_others():
    train, test = plant_head(make_stream(range(20)), 1, 2), make_stream(range(20, 40))
    result = Coreference().fit(train, test).isel(task=0)
    assert (result["best_layer"].sel(kind="all"), result["best_head"].sel(kind="all")) == (1, 2)
    accuracy = result["accuracy"].sel(kind="all")
    assert accuracy.sel(predictor="head") == pytest.approx(accuracy.sel(predictor="chance").item(), abs=0.12)
    assert result["head_accuracy"].sel(half="train", kind="all", layer=1, head=2) > 0.9
    assert (result["heads_above"].sel(baseline=["rules", "head_match"]) == 0).all()


def test_each_kind_has_a_head_of_its_own_and_one_head_is_the_same_for_all():
    train, test = (make_stream(seeds, apart=True) for seeds in (range(20), range(20, 40)))
    for stream in (train, test):
        plant_head(stream, 0, 1, lambda example: [q for q in oracle.list_questions(example) if q[0][4] == "proper"])
        plant_head(stream, 1, 2, lambda example: [q for q in oracle.list_questions(example) if q[0][4] != "proper"])
    result = Coreference().fit(train, test).isel(task=0)
    heads = {
        str(kind): (int(result["best_layer"].sel(kind=kind)), int(result["best_head"].sel(kind=kind)))
        for kind in result["kind"].values
    }
    assert (heads["proper"], heads["pronoun"], heads["nominal"], heads["all"]) == ((0, 1), (1, 2), (1, 2), (1, 2))
    kinds = ["pronoun", "proper", "nominal"]
    assert (result["accuracy"].sel(predictor="head", kind=kinds) == 1.0).all()
    one = result["accuracy"].sel(predictor="one_head")
    assert (one.sel(kind="pronoun"), one.sel(kind="nominal")) == (1.0, 1.0)
    np.testing.assert_array_equal(one, result["head_accuracy"].sel(half="test", layer=1, head=2))
    assert one.sel(kind="proper") < 0.9


def test_equal_weights_are_the_nearest_mention():
    stream = make_stream(range(8))
    uniform = RandomStream(stream.examples, [torch.full_like(each, 1 / each.shape[-1]) for each in stream.attention])
    answers = count_answers(uniform, "test")
    assert (answers.by_head == answers.by_baseline[2][:, :, None, None]).all()


def test_a_pruned_head_is_never_chosen():
    class Pruned(RandomStream):
        def __iter__(self):
            return (replace(maps, pruned=frozenset({(1, 2)})) for maps in super().__iter__())

    streams = [plant_head(make_stream(seeds), 1, 2) for seeds in (range(8), range(8, 16))]
    result = Coreference().fit(*(Pruned(each.examples, each.attention) for each in streams)).isel(task=0)
    assert not ((result["best_layer"] == 1) & (result["best_head"] == 2)).any()
    assert np.isnan(result["head_accuracy"].sel(layer=1, head=2)).all()


def test_mentions_with_truncated_words_are_left_out_and_counted(minilm):
    data = hs.read("winogender:male")[:12]
    with pytest.warns(hs.DataWarning, match="are longer than 10 tokens and will be truncated"):
        result = hs.probe(minilm, data, "coreference", progress=False, max_length=10)
    assert result["left_out"] > 0
    assert result["left_out"] + result["count"].sel(kind="all") == 12


def test_a_result_of_a_model_is_stamped_and_has_all_predictors(minilm):
    first = hs.probe(minilm, "winogender", "coreference", limit=12, random_weights=True, progress=False)
    assert list(first["predictor"].values) == [
        "head",
        "rules",
        "head_match",
        "nearest",
        "chance",
        "one_head",
        "random_weights",
    ]
    assert list(first["kind"].values) == ["all", "pronoun", "different_word"]
    assert (first["accuracy"].sel(predictor="chance") == 0.5).all()
    assert read_provenance(first)["probe"] == "coreference"
    assert (first["accuracy_low"] <= first["accuracy"]).all()
    assert (first["accuracy"] <= first["accuracy_high"]).all()


def test_positions_of_a_question_are_those_of_the_words_that_gap_names(minilm):
    examples = Coreference().prepare(hs.read("gap:validation")[:12])
    maps = hs.to_words(hs.view(hs.capture(minilm, examples), "raw"))
    asked, left_out = list_questions(maps)
    questions = make_questions(maps, asked)
    assert (len(asked), left_out) == (sum(example.columns["mentions"][0][2] != "neither" for example in examples), 0)
    for index, (row, anaphor) in enumerate(asked):
        columns, words = examples[row].columns, maps.keys.text[row]
        assert words[questions.query[index]] == columns["Pronoun"].lower()
        spelled = [words[position] for position in questions.candidates[index]]
        right = columns["A"] if columns["A-coref"] else columns["B"]
        assert right.lower().startswith(spelled[anaphor.right.index(True)])


def test_gap_is_probed_with_both_names_as_candidates(minilm):
    result = hs.probe(minilm, "gap:validation", "coreference", limit=8, progress=False)
    assert (result["accuracy"].sel(predictor="chance", kind="all") == 0.5).all()


def test_sentences_of_a_document_are_joined_before_documents_are_halved():
    sentences = [
        replace(make_document(seed), columns={**make_document(seed).columns, "document": "d"}) for seed in range(4)
    ]
    prepared = Coreference(passage=50).prepare(sentences)
    assert [each.words for each in prepared] == [each.words for each in join_sentences(sentences, 50)]
    assert [len(each.words) for each in prepared] == [48, 48]


def test_singletons_can_be_left_out():
    examples = [make_document(0, entities=8)]
    entities = [mention[2] for mention in examples[0].columns["mentions"]]
    (few,) = Coreference(singletons=False).prepare(examples)
    repeated = [entity for entity in entities if entities.count(entity) > 1]
    assert [mention[2] for mention in few.columns["mentions"]] == repeated
    assert 0 < len(repeated) < len(entities)


def test_the_error_for_data_without_antecedents_says_what_to_do():
    mentions = {"mentions": ((0, 0, "e", ""),)}
    stream = RandomStream(
        [hs.Example("0", "He", words=("He",), columns=mentions)], [torch.full((1, 1, 1, 3, 3), 1 / 3)]
    )
    with pytest.raises(InputError, match=r"No mention of the training documents has an antecedent.*passage=200"):
        Coreference().fit(stream, stream)


def test_the_error_for_a_passage_of_no_words_has_its_value():
    with pytest.raises(InputError, match="passage=0 of 'coreference' must be at least 1 word"):
        Coreference(passage=0)
