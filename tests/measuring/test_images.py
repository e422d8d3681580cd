"""Images are measured, streamed and averaged; verbs of texts say what can be done with images."""

import numpy as np
import pytest
import transformers
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.core.errors import InputError
from headscope.core.provenance import read_provenance
from headscope.results.store import open_result
from tests.engine.recording.test_sites import clip
from tests.engine.test_images import MODEL, picture, processor
from tests.models import network, tokenizer

QUIET = {"progress": False}


@pytest.fixture
def folder(tmp_path):
    for seed in range(5):
        picture(seed).save(tmp_path / f"{seed}.png")
    (tmp_path / "notes.txt").write_text("no image")
    return tmp_path


def entropies(data, **options):
    return hs.measure(MODEL, data, statistics=["entropy"], lens=["raw", "effective"], rows=True, **options, **QUIET)


def test_a_list_of_images_is_measured_as_captures_are(folder):
    paths = sorted(folder.glob("*.png"))
    result = entropies(paths)
    for index, path in enumerate(paths):
        maps = hs.view(hs.capture(MODEL, path), "raw").weights.double()
        expected = -(maps * maps.clamp_min(1e-300).log()).sum(-1).mean(-1)[0]
        row = result["entropy_rows"].sel(lens="raw").isel(site=0, example=index)
        np.testing.assert_allclose(row.transpose("layer", "head"), expected, atol=1e-5)  # float32 attention
    assert result["text"].values.tolist() == [path.name for path in paths]


def test_paths_images_folders_and_batches_are_the_same(folder):
    whole = entropies(folder)
    for data in ([str(path) for path in sorted(folder.glob("*.png"))], [picture(seed) for seed in range(5)]):
        np.testing.assert_allclose(
            entropies(data, batch_size=2)["entropy"], whole["entropy"], atol=1e-6
        )  # other batches


def test_the_data_are_known_by_the_content_of_images(folder):
    def stamped():
        return read_provenance(entropies(folder))["data"]

    before = stamped()
    assert stamped() == before
    picture(9).save(folder / "3.png")
    assert stamped() != before


def test_a_measurement_of_images_is_resumed_and_sharded(folder, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    shards = []
    for part in ("1/2", "2/2"):
        entropies(folder, shard=part, out=out / f"{part[0]}.state")
        shards.append(out / f"{part[0]}.state")
    entropies(folder, shard="2/2", out=shards[1], resume=True)
    np.testing.assert_allclose(hs.merge(*shards)["entropy"], entropies(folder)["entropy"], atol=1e-6)  # other batches


def test_images_are_streamed_and_averaged(folder):
    traces = list(hs.stream(MODEL, folder, batch_size=2))
    assert [example.id for trace in traces for example in trace.examples] == list("01234")
    assert traces[0].examples[0].columns["picture"].shape == (12, 12, 3)
    assert int(hs.average_heads(MODEL, folder)["head_output_n"].max()) == 5 * 10


def test_two_models_are_compared_on_the_same_images(folder):
    result = hs.measure(MODEL, folder, statistics="similarity", lens="raw", against=MODEL, **QUIET)
    assert float(result["similarity"].min()) == pytest.approx(1, abs=1e-6)


def test_the_shell_measures_a_folder_of_images(folder, tmp_path):
    saved, out = tmp_path / "vit", str(tmp_path / "a.nc")
    network("vit").save_pretrained(saved)
    processor().save_pretrained(saved)
    words = ["measure", str(folder), "--model", str(saved), "--statistics", "entropy", "-o", out]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert int(open_result(out)["entropy_n"].max()) == 5


def classifier():
    return hs.load(transformers.ViTForImageClassification(network("vit").config).eval(), processor=processor())


VERBS = {
    "score": lambda model, path: hs.score(model, [path], **QUIET),
    "ablate": lambda model, path: hs.ablate(model, [path], **QUIET),
    "head_importance": lambda model, path: hs.head_importance(model, [picture()], **QUIET),
    "pruning_curve": lambda model, path: hs.pruning_curve(model, [path], **QUIET),
    "generate": lambda model, path: hs.generate(model, path),
    "probe": lambda model, path: hs.probe(model, [path], "dependency"),
    "words": lambda model, path: hs.measure(model, [path], statistics="entropy", units="words", **QUIET),
}


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_of_texts_say_what_can_be_done_with_images(verb, folder, monkeypatch):
    model = classifier()
    with pytest.raises(InputError) as error:
        VERBS[verb](model, str(folder / "0.png"))
    assert "ViTForImageClassification reads images, but" in str(error.value)
    advice = str(error.value).partition("captured and measured: ")[2].rstrip(".")
    for name in "ab":
        picture().save(folder / f"{name}.png")
    monkeypatch.chdir(folder)
    captured, measured = advice.split("), ")
    assert eval(captured + ")", {"hs": hs, "model": model}).examples[0].text == "a.png"
    assert "entropy" in eval(measured, {"hs": hs, "model": model})


def test_finetuning_says_the_same(folder, tmp_path):
    rows = [{"text": "cat", "label": 0}, {"text": "dog", "label": 1}]
    with pytest.raises(InputError, match="ViTForImageClassification reads images, but hs.finetune trains on texts"):
        hs.finetune(classifier(), rows, out=tmp_path / "m", **QUIET)


def test_what_is_no_image_is_refused_before_anything_runs(folder):
    with pytest.raises(InputError, match="There is no picture nowhere.png. Give the path of a file here"):
        entropies([folder / "0.png", "nowhere.png"])
    with pytest.raises(InputError, match="Cannot read item 1, a int: it must be a path or a PIL image"):
        entropies([folder / "0.png", 3])
    with pytest.raises(InputError, match="The model reads images, but example '0' is a text. Give paths of images"):
        entropies(hs.read(["the cat"]))
    with pytest.raises(InputError, match="A picture goes in whole: leave out max_length, pad_to and pad_positions"):
        entropies(folder, max_length=8)
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match="There is no picture in the folder .*empty. Known endings: .bmp .gif"):
        entropies(folder / "empty")


def test_a_model_of_texts_and_images_names_the_verb_that_takes_both():
    with pytest.raises(InputError, match="A CLIPModel reads texts and images together. Give both as a tokenized batch"):
        hs.measure(hs.load(clip(), tokenizer=tokenizer()), ["the cat"], statistics="entropy", **QUIET)
