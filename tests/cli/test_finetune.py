"""The verbs `headscope finetune` and `headscope score`."""

import json

import pytest

from headscope.results.store import open_result
from headscope.training.finetuning.trainer import Callbacks
from tests.cli.test_cli import headscope  # noqa: F401  (a fixture)
from tests.measuring.data import saved_model
from tests.training.data import labeled


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a tiny model, and reviews to learn from and to score."""
    path = tmp_path_factory.mktemp("data")
    saved_model(path / "model")
    for name, examples in (("train", labeled(32)), ("dev", labeled(12, start=50))):
        lines = [json.dumps({"review": example.text, "animal": example.columns["label_name"]}) for example in examples]
        (path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return path


def make_command(folder):
    return ("--text", "review", "--label", "animal", "--device", "cpu"), (
        "finetune",
        folder / "train.jsonl",
        "--dev",
        folder / "dev.jsonl",
        "--model",
        folder / "model",
        "--epochs",
        "2",
        "--learning-rate",
        "3e-3",
        "--max-length",
        "32",
    )


def test_a_model_is_tuned_and_scored(headscope, folder, tmp_path):  # noqa: F811
    columns, command = make_command(folder)
    done = headscope(*command, *columns, "-o", tmp_path / "tuned")
    assert done.returncode == 0, done.stderr
    assert "Task: classification, because labels are names of classes; 32 training" in done.stderr
    assert done.stdout.splitlines()[0].split() == ["epoch", "accuracy", "f1", "matthews"]
    assert "The most common label is 50.0% of train." in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if not line.startswith("Wrote"))
    data = (folder / "dev.jsonl", "--model", tmp_path / "tuned", *columns)
    scored = headscope("score", *data, "-o", tmp_path / "score.nc", "--edit", "effective_attention")
    assert scored.returncode == 0, scored.stderr
    assert scored.stdout.startswith("The accuracy of the model on classification is ")
    assert "majority" in scored.stdout
    assert all(len(line) <= 80 for line in scored.stdout.splitlines() if not line.startswith("Wrote"))
    assert open_result(tmp_path / "score.nc").sizes == {"example": 12, "class": 2}


def test_an_interrupted_run_is_resumed(headscope, folder, tmp_path, monkeypatch):  # noqa: F811
    real = Callbacks.end_step

    def end_step(self, arguments, state, control, **more):
        if state.global_step == 5:  # one after the first epoch
            raise KeyboardInterrupt
        return real(self, arguments, state, control, **more)

    columns, command = make_command(folder)
    monkeypatch.setattr(Callbacks, "end_step", end_step)
    done = headscope(*command, *columns, "-o", tmp_path / "tuned")
    assert done.returncode == 130
    assert "The first 4 of 8 steps are saved" in done.stderr
    assert "--resume" in done.stderr
    monkeypatch.setattr(Callbacks, "end_step", real)
    assert headscope(*command, *columns, "-o", tmp_path / "tuned").returncode == 2
    done = headscope(*command, *columns, "-o", tmp_path / "tuned", "--resume")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tuned" / "config.json").is_file()


def test_a_model_without_a_head_is_refused(headscope, folder, tmp_path):  # noqa: F811
    done = headscope(
        "score", folder / "dev.jsonl", "--model", folder / "model", "--text", "review", "--label", "animal"
    )
    assert done.returncode == 2
    assert "which has no head for any task. Tune it first" in done.stderr


def test_a_config_starts_a_new_model_with_the_words_of_the_texts(headscope, folder, tmp_path):  # noqa: F811
    config = {"model_type": "gpt2", "is_causal": False, "n_layer": 1, "n_head": 2, "n_embd": 16}
    (tmp_path / "config.json").write_text(json.dumps(config))
    command = ("finetune", folder / "train.jsonl", "--text", "review", "--label", "animal", "--device", "cpu")
    options = ("--from-scratch", "--config", tmp_path / "config.json", "--epochs", "1", "-o", tmp_path / "new")
    done = headscope(*command, *options)
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "new" / "config.json").read_text())
    assert (written["is_causal"], written["n_layer"], written["model_type"]) == (False, 1, "gpt2")
    refused = headscope(*command, *options, "--model", folder / "model")
    assert refused.returncode == 2
    assert "are given, but one model is trained" in " ".join(refused.stderr.split())


def test_a_new_encoder_decoder_learns_subwords_and_is_scored(headscope, tmp_path):  # noqa: F811
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64}
    (tmp_path / "bart.json").write_text(json.dumps({"model_type": "bart", "vocab_size": 300, **sizes, **heads}))
    options = ("--task", "translation", "--config", tmp_path / "bart.json", "--epochs", "1", "--max-length", "32")
    command = ("finetune", "translation_templates:train:16", *options, "--device", "cpu")
    done = headscope(*command, "-o", tmp_path / "model")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "model" / "config.json").read_text())["vocab_size"] == 300
    scored = headscope("score", "translation_templates:test:2", "--model", tmp_path / "model", "--device", "cpu")
    assert scored.returncode == 0, scored.stderr
    assert all(name in scored.stdout for name in ("bleu", "chrf", "log likelihood"))
    refused = headscope(*command, "--tokenizer", "letters", "-o", tmp_path / "other")
    assert refused.returncode == 2
    assert "Known: subwords, words" in " ".join(refused.stderr.split())
