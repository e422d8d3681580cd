"""Every verb that takes data takes what `hs.read` takes."""

import datasets
import pandas
import pytest
import torch
import transformers

import headscope as hs
from headscope.data.reading.read import read_texts
from headscope.measuring.job import prepare_job
from headscope.measuring.settings import make_measure_settings
from headscope.training.finetuning.job import read_examples
from tests.models import network, tiny, tokenizer

ROWS = [{"id": "b", "text": "the cat sat", "label": 1}, {"id": "a", "text": "a dog ran fast", "label": 0}]
FRAME = pandas.DataFrame(ROWS)


class Frame(pandas.DataFrame):
    """A DataFrame of another package."""


class ColumnTable:
    """A table of another package that can be converted; going through it gives names of columns."""

    columns = tuple(FRAME.columns)

    def __iter__(self):
        return iter(self.columns)

    def to_pandas(self):
        return FRAME


def write_file(folder, name):
    FRAME.to_csv(folder / name, index=False)
    return folder / name


SOURCES = {
    "dicts": lambda _: ROWS,
    "iterator": lambda _: iter(ROWS),
    "examples": lambda _: hs.read(ROWS),
    "DataFrame": lambda _: FRAME,
    "subclass of DataFrame": lambda _: Frame(FRAME),
    "other DataFrame": lambda _: ColumnTable(),
    "dataset": lambda _: datasets.Dataset.from_pandas(FRAME),
    "path": lambda folder: write_file(folder, "reviews.csv"),
    "path as a string": lambda folder: str(write_file(folder, "reviews.csv")),
    "path with a space": lambda folder: str(write_file(folder, "my reviews.csv")),
    "format": lambda folder: f"csv@{write_file(folder, 'reviews.data')}",
}


@pytest.mark.parametrize("source", SOURCES)
def test_capture_and_stream_read_examples_as_read_does(source, tmp_path):
    wanted = hs.read(SOURCES[source](tmp_path))
    assert [example.text for example in wanted] == [row["text"] for row in ROWS]
    model = tiny("bert")
    assert list(hs.capture(model, SOURCES[source](tmp_path)).examples) == wanted
    assert [trace.examples[0] for trace in hs.stream(model, SOURCES[source](tmp_path), batch_size=1)] == wanted


@pytest.mark.parametrize("source", SOURCES)
def test_measure_score_and_finetune_read_examples_as_read_does(source, tmp_path):
    wanted, settings = hs.read(SOURCES[source](tmp_path)), make_measure_settings("raw", "entropy")
    job = prepare_job(tiny("bert"), SOURCES[source](tmp_path), settings)
    assert list(job.plan.examples) == wanted
    assert read_examples(SOURCES[source](tmp_path), "the data") == wanted


def test_by_layer_generate_and_score_read_a_data_frame():
    seen = hs.by_layer(tiny("bert"), FRAME, see=lambda trace: [example.id for example in trace.examples])
    assert seen == [["b", "a"]] * 2
    torch.manual_seed(0)
    writer = transformers.AutoModelForCausalLM.from_config(network("gpt2").config).eval()
    written = hs.generate(hs.load(writer, tokenizer=tokenizer()), FRAME, max_new_tokens=1)
    assert [example.label for example in written.examples] == [1, 0]
    judge = transformers.AutoModelForSequenceClassification.from_config(network("bert").config).eval()
    scored = hs.score(hs.load(judge, tokenizer=tokenizer()), FRAME, progress=False)
    assert list(scored["example"].values) == ["b", "a"]


def test_a_string_is_a_text_where_one_text_is_asked_for_and_a_source_where_data_are():
    model = tiny("bert")
    for text in ("the cat sat", "sample", "the cat saw notes.txt", "a\nb.csv", "the@sea", "then:slept", "cat " * 300):
        assert read_texts(text) == [hs.Example("0", text)]
    assert hs.capture(model, "the cat sat").examples == (hs.Example("0", "the cat sat"),)
    with pytest.raises(hs.HeadscopeError, match=r"There is no file 'the cat sat'.* give a list: \[text\]"):
        hs.stream(model, "the cat sat")
    with pytest.raises(hs.HeadscopeError, match=r"There is no file 'cat cat .*…'.* give a list: \[text\]"):
        hs.stream(model, "cat " * 300)
    with pytest.raises(hs.HeadscopeError, match="'glue:rte:dev' does not say where the data are"):
        hs.capture(model, "glue:rte:dev")


def test_second_texts_are_read_in_the_same_way():
    pairs = pandas.Series(["it slept", "it was tired"])
    trace = hs.capture(tiny("bert"), FRAME, pairs)
    assert [(example.id, example.pair, example.label) for example in trace.examples] == [
        ("b", "it slept", 1),
        ("a", "it was tired", 0),
    ]
    assert hs.capture(tiny("bert"), ["the cat"], "it").examples[0].pair == "it"
    with pytest.raises(hs.HeadscopeError, match=r"the list, row 1: nan is neither a text nor"):
        hs.capture(tiny("bert"), ["the cat", "a dog"], ["it", float("nan")])


def test_a_table_that_cannot_be_converted_is_an_error():
    class Bare:
        columns = ("text",)

        def __iter__(self):
            return iter(self.columns)

    with pytest.raises(hs.HeadscopeError, match=r"Cannot read a Bare\. Convert it to a pandas DataFrame"):
        hs.capture(tiny("bert"), Bare())
