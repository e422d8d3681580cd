"""Measuring a dataset: the numbers, the files, resuming, and errors."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.core.errors import InputError, OutputError
from headscope.core.state import State, Total
from headscope.core.statistic import Statistic
from headscope.data.tagging.tag import tag_examples
from headscope.measuring import measure as measuring
from headscope.measuring.checkpoint import read_checkpoint
from headscope.measuring.observe import Observer
from tests.measuring.data import LENSES, STATISTICS, examples
from tests.models import load, network, text, tiny, tokenizer


def measured(data=None, **options):
    arguments = {"lens": LENSES, "statistics": STATISTICS, "progress": False, **options}
    return hs.measure(tiny("bert"), data or examples(20), **arguments)


def names(folder):
    return [path.name for path in folder.iterdir()]


def one_by_one(data, lens, statistic):
    """Mean and standard deviation over examples, each captured alone."""
    rows = [statistic(hs.view(hs.capture(tiny("bert"), example), lens))[0].double().numpy() for example in data]
    return np.mean(rows, 0), np.std(rows, 0, ddof=1)


def entropy(maps):
    sizes = maps.weights.double().abs()
    rows = sizes / sizes.sum(-1, keepdim=True)
    return torch.special.entr(rows).sum(-1).mean(-1)


@pytest.mark.parametrize("lens", LENSES)
def test_the_mean_is_that_of_examples_captured_one_by_one(lens):
    data = examples(12)
    result = measured(data).sel(lens=lens).isel(site=0)
    mean, spread = one_by_one(data, lens, entropy)
    np.testing.assert_allclose(result["entropy"], mean, atol=1e-5)  # float32 maps
    np.testing.assert_allclose(result["entropy_sd"], spread, atol=1e-5)
    assert (result["entropy_n"] == 12).all()
    share, _ = one_by_one(data, "effective", lambda maps: maps.diagnostics["share"])
    np.testing.assert_allclose(result["effective_share"], share, atol=1e-5)


def test_the_result_has_the_dimensions_and_names_of_the_architecture():
    result = measured()
    assert result["entropy"].dims == ("lens", "site", "layer", "head")
    assert list(result["lens"].values) == LENSES
    assert {f"entropy{end}" for end in ("", "_sd", "_n", "_low", "_high")} <= set(result.data_vars)
    assert result["offsets"].dims == ("lens", "site", "layer", "head", "offset")


def test_the_batch_size_does_not_change_the_result():
    alone, together = measured(batch_size=1), measured(batch_size=20)
    xr.testing.assert_allclose(alone, together, atol=1e-6)


def test_layer_by_layer_equals_all_layers_at_once(monkeypatch):
    streamed = measured()
    monkeypatch.setattr("headscope.measuring.observe.Observer._on_cpu", lambda self: False)
    xr.testing.assert_allclose(streamed, measured(), atol=1e-6)
    monkeypatch.setattr("headscope.measuring.observe.fold_layers", lambda maps: None)
    xr.testing.assert_allclose(streamed, measured(), atol=1e-6)


def test_a_gpu_measures_layer_by_layer_what_does_not_fit_in_its_memory(monkeypatch):
    expected = measured(rows=True, batch_size=3)
    monkeypatch.setattr(Observer, "_on_cpu", lambda self: False)
    monkeypatch.setattr("headscope.measuring.observe.max_cells", lambda model, copies: 3 * 12**2)
    ways = []
    for name in ("_observe_streaming", "_observe_stack"):
        way = getattr(Observer, name)
        monkeypatch.setattr(Observer, name, lambda *args, way=way: ways.append(way.__name__) or way(*args))
    xr.testing.assert_allclose(measured(rows=True, batch_size=3), expected, atol=1e-6)
    assert set(ways) == {"_observe_streaming", "_observe_stack"}


def test_selected_layers_and_heads_equal_those_of_the_whole():
    whole, part = measured(), measured(layers=[1], heads=[0, 2])
    xr.testing.assert_allclose(part, whole.sel(layer=[1], head=[0, 2]), atol=1e-6)


def test_rows_hold_the_value_of_every_example():
    result = measured(rows=True)
    rows = result["entropy_rows"]
    assert rows.dims[-4:] == ("lens", "site", "layer", "head") or "example" in rows.dims
    np.testing.assert_allclose(rows.mean("example").transpose(*result["entropy"].dims), result["entropy"], atol=1e-9)
    assert set(result["example"].values) == {example.id for example in examples(20)}


def test_a_limit_samples_the_same_examples_for_the_same_seed():
    first, again, different = (measured(limit=5, seed=seed, rows=True) for seed in (1, 1, 2))
    assert list(first["example"].values) == list(again["example"].values) != list(different["example"].values)
    assert json.loads(first.attrs["headscope"])["n"] == 5


def test_a_model_is_measured_under_an_edit():
    plain = measured(statistics=["entropy"])
    same = measured(statistics=["entropy"], edit="effective_attention")
    padded = measured(statistics=["entropy"], edit="effective_attention:keys=padded")
    xr.testing.assert_allclose(plain, same, atol=1e-4)  # effective attention gives the same output
    assert json.loads(padded.attrs["headscope"])["edits"] == ["effective_attention:keys=padded"]


def test_two_models_are_compared_head_by_head():
    same = measured(statistics=["similarity"], against=tiny("bert"))
    np.testing.assert_allclose(same["similarity"], 1, atol=1e-6)
    changed = network("bert")
    changed.encoder.layer[1].attention.self.query.weight.data.mul_(-1)
    apart = measured(lens="raw", statistics=["similarity"], against=load(changed, tokenizer=tokenizer()))["similarity"]
    np.testing.assert_allclose(apart.sel(layer=0), 1, atol=1e-6)
    assert (apart.sel(layer=1) < 0.999).all()


@pytest.mark.parametrize(("units", "query"), [("words", "mean"), ("words_first", "first")])
def test_units_can_be_words(units, query):
    data = tag_examples(
        [hs.Example(example.id, example.text + ", untired.") for example in examples(5)]
    )  # words that are split
    result = measured(data, lens="raw", statistics="entropy", units=units).isel(lens=0, site=0)
    rows = [
        entropy(hs.to_words(hs.view(hs.capture(tiny("bert"), example), "raw"), query))[0].numpy() for example in data
    ]
    np.testing.assert_allclose(result["entropy"], np.mean(rows, 0), atol=1e-5)


def test_examples_are_tagged_for_token_types():
    result = measured([("The cat sat.", "It slept.")], lens="raw", statistics="token_types").isel(lens=0, site=0)
    assert (result["token_types_n"].sel(type=["noun", "verb", "pronoun", "punctuation", "cls", "sep"]) == 1).all()
    assert json.loads(result.attrs["headscope"])["tagger"] == "auto"


def test_the_stamp_holds_the_settings():
    facts = json.loads(measured(limit=7, seed=3).attrs["headscope"])
    wanted = {"command": "hs.measure", "n": 7, "limit": 7, "seed": 3, "lenses": LENSES, "statistics": STATISTICS}
    assert wanted.items() <= facts.items()
    assert len(facts["weights_hash"]) == 64
    assert re.fullmatch("[0-9a-f]{16}", facts["data"])


@pytest.mark.parametrize("ending", [".nc", ".zarr", ".csv", ".parquet"])
def test_only_the_result_file_is_left(tmp_path, ending):
    measured(out=tmp_path / f"heads{ending}")
    assert names(tmp_path) == [f"heads{ending}"]


def test_the_saved_result_equals_the_returned_one(tmp_path):
    result = measured(out=tmp_path / "heads.nc")
    xr.testing.assert_equal(hs.open_result(tmp_path / "heads.nc"), result)


def interrupt(monkeypatch, after):
    """Raise KeyboardInterrupt after a number of batches."""
    calls = []
    real = measuring.add_states

    def add(first, second):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return real(first, second)

    monkeypatch.setattr(measuring, "add_states", add)


def test_an_interrupted_run_is_resumed(tmp_path, monkeypatch):
    whole = measured(batch_size=2)
    path = tmp_path / "heads.nc"
    with monkeypatch.context() as patch:
        interrupt(patch, 4)
        with pytest.raises(KeyboardInterrupt, match=r"Stopped after 8 of 20 examples\. They are saved in .*resume"):
            measured(batch_size=2, out=path)
    assert read_checkpoint(tmp_path / "heads.nc.state").done == 8
    xr.testing.assert_identical(measured(batch_size=2, out=path, resume=True), whole)
    assert names(tmp_path) == ["heads.nc"]


def test_an_unfinished_run_is_not_overwritten(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt(patch, 1)
        with pytest.raises(KeyboardInterrupt):
            measured(batch_size=2, out=tmp_path / "heads.nc")
    with pytest.raises(InputError, match=r"holds 2 of 20 examples of an unfinished measurement\. Resume it \("):
        measured(batch_size=2, out=tmp_path / "heads.nc")


@pytest.mark.parametrize(("options", "start"), [({}, ""), ({"resume": True}, "There is nothing to resume: ")])
def test_a_finished_result_is_not_overwritten(tmp_path, monkeypatch, options, start):
    path = tmp_path / "heads.nc"
    measured(lens="raw", statistics="entropy", out=path)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("headscope.measuring.measure.prepare_job", lambda *_, **__: pytest.fail("work was done"))
        with pytest.raises(
            InputError, match=rf"^{start}.*heads\.nc .*overwrite=True, in the shell --force\.\nMore: docs/"
        ):
            measured(out=path, **options)
    assert path.read_bytes() == before
    assert names(tmp_path) == ["heads.nc"]
    replaced = measured(lens="effective", statistics="entropy", out=path, overwrite=True, **options)
    xr.testing.assert_identical(hs.open_result(path), replaced)
    assert names(tmp_path) == ["heads.nc"]


def test_an_older_result_stays_until_the_new_one_is_complete(tmp_path, monkeypatch):
    path = tmp_path / "heads.nc"
    whole = measured(batch_size=2, out=path)
    with monkeypatch.context() as patch:
        interrupt(patch, 4)
        with pytest.raises(KeyboardInterrupt):
            measured(batch_size=2, out=path, overwrite=True)
    xr.testing.assert_identical(hs.open_result(path), whole)
    resumed = measured(batch_size=2, out=path, overwrite=True, resume=True)
    xr.testing.assert_identical(resumed, whole)
    assert names(tmp_path) == ["heads.nc"]


def test_a_finished_shard_is_not_overwritten(tmp_path):
    options = {"lens": "raw", "statistics": "entropy", "shard": "1/2", "out": tmp_path / "s1.state"}
    first = measured(**options)
    before = options["out"].read_bytes()
    with pytest.raises(
        InputError, match=r"holds a finished measurement\. .*, start over \(overwrite=True, in the shell"
    ):
        measured(**options)
    xr.testing.assert_identical(measured(**options, resume=True), first)  # read, not measured again
    assert options["out"].read_bytes() == before
    measured(**{**options, "lens": "effective"}, overwrite=True)
    assert options["out"].read_bytes() != before


def test_a_run_with_other_settings_is_not_resumed(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt(patch, 1)
        with pytest.raises(KeyboardInterrupt):
            measured(batch_size=2, out=tmp_path / "heads.nc")
    with pytest.raises(InputError, match=r"cannot be resumed: its lenses is \['raw', 'effective'\], but this run's is"):
        measured(batch_size=2, lens="raw", out=tmp_path / "heads.nc", resume=True)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    (tmp_path / "heads.nc.state").write_bytes(b"PK nonsense")
    with pytest.raises(InputError, match="is not a state that headscope wrote, or it is damaged"):
        measured(out=tmp_path / "heads.nc", resume=True)


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "headscope.measuring.job.MeasureJob.observe", lambda self, batches: pytest.fail("work was done")
    )
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Cannot write"):
        measured(out=tmp_path / "file" / "heads.nc")


def test_a_full_disk_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "MIN_INTERVAL", 0)
    monkeypatch.setattr(measuring, "WRITE_FACTOR", 0)
    path, writes = tmp_path / "heads.nc", []
    real = Path.write_bytes

    def write(self, data):
        if len(writes) == 3:
            raise OSError(28, "No space left on device")
        writes.append(1)
        return real(self, data)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write)
        with pytest.raises(OutputError, match="the disk is full"):
            measured(batch_size=2, out=path)
    assert read_checkpoint(tmp_path / "heads.nc.state").done == 4
    xr.testing.assert_identical(measured(batch_size=2, out=path, resume=True), measured(batch_size=2))


@pytest.mark.parametrize("text", ["CUDA out of memory.", "DefaultCPUAllocator: can't allocate memory"])
def test_a_batch_too_large_for_memory_is_reported(monkeypatch, text):
    def fail(self, *arguments):
        raise RuntimeError(text)

    monkeypatch.setattr("headscope.measuring.observe.Observer._observe_streaming", fail)
    with pytest.raises(hs.HeadscopeError, match="not enough memory for a batch of 4 examples of up to 31 tokens"):
        measured(batch_size=4)


def test_other_runtime_errors_are_not_taken_for_a_lack_of_memory(monkeypatch):
    def fail(self, *arguments):
        raise RuntimeError("shapes differ")

    monkeypatch.setattr("headscope.measuring.observe.Observer._observe_streaming", fail)
    with pytest.raises(RuntimeError, match="shapes differ"):
        measured()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"statistics": []}, "No statistic was given. Name at least one: "),
        ({"statistics": ["entropie"]}, "Did you mean 'entropy'?"),
        ({"statistics": ["entropy", "entropy:rows=cls"]}, "The statistic 'entropy' was given twice"),
        ({"lens": ["raw", "raw"]}, "The lens 'raw' was given twice"),
        ({"engine": "dask"}, "No engine is called 'dask'. Known: local, ray."),
        ({"limit": 0}, "limit=0 leaves no examples."),
        ({"shard": "17/16"}, "shard='17/16' is not a part of a whole."),
        ({"shard": "3 of 16"}, "Write it as 3/16: the third of sixteen."),
        ({"shard": "30/30"}, "Shard 30/30 is empty: there are fewer examples than shards."),
        ({"batch_size": 0}, "batch_size must be at least 1, but got 0."),
        ({"workers": 2}, "workers=2 is for engine='ray'."),
        ({"statistics": ["similarity"]}, "The statistic 'similarity' compares two models, but only one was given."),
        ({"layers": [9]}, "There is no layer 9"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_invalid_requests_are_refused(options, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        measured(**options)


@dataclass(frozen=True)
class Counted(Statistic):
    """Number of examples: a statistic that is not computed per example."""

    def observe(self, batch):
        return State("counted", {"counted": Total(np.array([len(batch.examples)]))}, {"all": ["all"]})

    def finish(self, state):
        return xr.Dataset({"counted": ("all", state.leaves["counted"].sum)}, coords={"all": ["all"]})


def test_a_statistic_that_is_not_per_example_is_in_the_result():
    result = measured(lens="raw", statistics=[Counted(), "entropy"], batch_size=6)
    assert result["counted"].values.tolist() == [[[20]]]
    assert (result["entropy_n"] == 20).all()


def test_a_tagger_without_use_is_refused():
    with pytest.raises(InputError, match="tagger='english' was given, but no statistic needs tags"):
        measured(tagger="english")


def test_an_unknown_option_is_refused():
    with pytest.raises(InputError, match="No option of hs.measure is called 'batchsize'. Did you mean 'batch_size'"):
        measured(batchsize=3)


def test_duplicate_ids_are_refused():
    twice = [*examples(3), replace(examples(1)[0], text="the cat")]
    with pytest.raises(InputError, match="row 3: the id 'text 0' is already that of row 0"):
        measured(twice)


def test_an_unknown_file_ending_is_refused(tmp_path):
    with pytest.raises(OutputError, match=r"A measurement is saved as \.nc .*, but 'heads\.xls' ends in '\.xls'"):
        measured(out=tmp_path / "heads.xls")


def test_truncated_texts_give_one_warning():
    with pytest.warns(hs.DataWarning, match="2 of 3 texts are longer than 8 tokens and will be truncated") as warnings:
        measured([text(20), text(3), text(30)], max_length=8)
    assert len(warnings) == 1


def test_causal_and_encoder_decoder_models_are_measured():
    for kind, site in (("llama", None), ("t5", "cross")):
        pairs = [("the cat sat", "on a mat"), ("the dog ran fast over the hill", "under the blue sky")]
        result = hs.measure(
            tiny(kind),
            pairs if site else [text for text, _ in pairs],
            lens=LENSES,
            statistics="entropy",
            site=site,
            progress=False,
        )
        assert (result["entropy_n"] == 2).all()
        assert result["site"].values.tolist() == [site or "self"]


def test_an_output_that_another_run_writes_is_refused(tmp_path):
    owner = {"host": "elsewhere", "pid": 7, "command": "headscope measure", "started": "2026-11-18 05:00:00"}
    (tmp_path / ".heads.nc.lock").write_text(json.dumps(owner))
    sentence = r"heads\.nc: it is being written by process 7 on elsewhere \(headscope measure\), which started at 2026"
    with pytest.raises(OutputError, match=sentence):
        measured(out=tmp_path / "heads.nc")
    assert names(tmp_path) == [".heads.nc.lock"]
    measured(out=tmp_path / "other.nc")
    assert (tmp_path / "other.nc").is_file()
