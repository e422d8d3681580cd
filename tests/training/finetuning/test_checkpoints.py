"""A checkpoint is resumed only if all of it is there; if not, the one before it is, and the user is told."""

import json
import shutil

import pytest

import headscope as hs
from headscope.core.errors import DataWarning, InputError
from headscope.training.finetuning import trainer
from headscope.training.finetuning.folder import (
    MANIFEST,
    TRAINER_FILES,
    TrainingFolder,
    find_defect,
    list_checkpoints,
    seal_checkpoint,
)
from headscope.training.finetuning.trainer import Callbacks
from tests.models import tiny
from tests.training.data import labeled

FAST = {"learning_rate": 1e-3, "max_length": 32, "device": "cpu", "progress": False, "epochs": 2, "batch_size": 4}
FILES = ("model.safetensors", "config.json", *TRAINER_FILES)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that was stopped after step 4 of 6, with checkpoints of steps 3 and 4, and the hash of the whole run."""
    folder = tmp_path_factory.mktemp("run")
    whole = hs.finetune(tiny("bert"), labeled(12), out=folder / "whole", **FAST)
    with pytest.MonkeyPatch.context() as patch:
        real = Callbacks.end_step

        def end_step(self, arguments, state, control, **more):
            if state.global_step == 5:
                raise KeyboardInterrupt
            return real(self, arguments, state, control, **more)

        patch.setattr(Callbacks, "end_step", end_step)
        patch.setattr(trainer, "MIN_INTERVAL", 0.0)
        patch.setattr(trainer, "WRITE_FACTOR", 0)
        with pytest.raises(KeyboardInterrupt, match="The first 4 of 6 steps are saved"):
            hs.finetune(tiny("bert"), labeled(12), out=folder / "stopped", **FAST)
    return folder / "stopped", whole.weights_hash


@pytest.fixture
def run(stopped, tmp_path):
    """A copy of that run to damage."""
    shutil.copytree(stopped[0], tmp_path / "m")
    return tmp_path / "m"


def resume(run):
    return hs.finetune(tiny("bert"), labeled(12), out=run, resume=True, **FAST).weights_hash


def damage(path, how):
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])


def test_two_checkpoints_are_kept(run):
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["checkpoint-3", "checkpoint-4"]


def test_every_checkpoint_lists_all_its_files(run):
    for path in (run / "checkpoints").iterdir():
        listed = json.loads((path / MANIFEST).read_text())
        assert set(listed) == {file.name for file in path.iterdir()} - {MANIFEST}
        assert set(FILES) <= set(listed)
        assert find_defect(path) is None


@pytest.mark.parametrize("how", ["missing", "truncated", "flipped"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_not_as_it_was_written_is_found(run, name, how):
    path = run / "checkpoints" / "checkpoint-4"
    damage(path / name, how)
    assert find_defect(path) == f"{name} is {'missing' if how == 'missing' else 'damaged'}"


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("optimizer.pt", "missing"),
        ("scheduler.pt", "missing"),
        ("rng_state.pth", "missing"),
        ("optimizer.pt", "truncated"),
    ],
)
def test_a_run_without_a_whole_last_checkpoint_resumes_from_the_one_before(run, stopped, name, how):
    damage(run / "checkpoints" / "checkpoint-4" / name, how)
    problem = rf"checkpoint-4 \({name} is {'missing' if how == 'missing' else 'damaged'}\)"
    with pytest.warns(DataWarning, match=f"holds what cannot be resumed: {problem}. Training goes on after step 3."):
        assert resume(run) == stopped[1]


def test_a_run_without_any_whole_checkpoint_starts_again_and_says_so(run, stopped):
    damage(run / "checkpoints" / "checkpoint-3" / "rng_state.pth", "missing")
    damage(run / "checkpoints" / "checkpoint-4" / "scheduler.pt", "truncated")
    problems = r"checkpoint-4 \(scheduler.pt is damaged\) and checkpoint-3 \(rng_state.pth is missing\)"
    with pytest.warns(DataWarning, match=f"{problems}. Training goes on from the beginning."):
        assert resume(run) == stopped[1]


@pytest.mark.parametrize(
    ("content", "defect"),
    [
        (None, "it was not written to its end"),
        ("{", "its checkpoint.json is damaged"),
        ("[1]", "its checkpoint.json is damaged"),
        ('{"config.json": 3}', "its checkpoint.json is damaged"),
        ("{}", "optimizer.pt is damaged"),
    ],
)
def test_a_checkpoint_without_its_manifest_is_not_resumed(run, content, defect):
    path = run / "checkpoints" / "checkpoint-4"
    (path / MANIFEST).unlink() if content is None else (path / MANIFEST).write_text(content)
    assert find_defect(path) == defect
    with pytest.warns(DataWarning, match="after step 3"):
        assert TrainingFolder(run).find_checkpoint() == (run / "checkpoints" / "checkpoint-3", 3)
    assert not path.exists()


def test_a_checkpoint_without_a_file_that_resuming_needs_is_never_whole(run):
    path = run / "checkpoints" / "checkpoint-4"
    (path / "rng_state.pth").unlink()
    seal_checkpoint(path)
    assert find_defect(path) == "rng_state.pth is missing"


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a": [Infinity, "b"]}'])
def test_a_manifest_without_sense_is_damaged(run, content):
    last = list_checkpoints(run / "checkpoints")[0]
    (last / MANIFEST).write_text(content)
    assert find_defect(last) == f"its {MANIFEST} is damaged"


def test_copies_and_files_beside_checkpoints_are_none(run):
    folder = run / "checkpoints"
    before = list_checkpoints(folder)
    (folder / "checkpoint-old").mkdir()
    (folder / f"{before[0].name} (copy)").mkdir()
    (folder / "checkpoint-99").write_text("no folder")
    assert list_checkpoints(folder) == before


@pytest.mark.parametrize("content", ["[]", "{}", "5", '{"finished": true}', '{"facts": {}}', "[" * 100_000])
@pytest.mark.parametrize("resumed", [True, False])
def test_a_stamp_without_sense_is_refused(run, content, resumed):
    (run / "finetune.json").write_text(content)
    with pytest.raises(InputError, match=r"finetune\.json is damaged\. Delete the folder, or give another\."):
        hs.finetune(tiny("bert"), labeled(12), out=run, resume=resumed, **FAST)


def test_damaged_weights_of_a_finished_run_are_refused(run):
    resume(run)
    weights = run / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-100] ^= 64
    weights.write_bytes(content)
    with pytest.raises(InputError, match="changed since headscope wrote them: they are damaged, or of another model"):
        resume(run)
