"""Files of a studio: what lies in its folder is found by id, and nothing else is ever opened."""

import json
import os
import shutil
import threading
from dataclasses import replace

import h5py
import pytest

import headscope as hs
from headscope.core.checksum import TAG, seal_end
from headscope.core.errors import InputError
from headscope.results.store import save
from headscope.studio.folder import StudioFolder, identify
from headscope.studio.options import Limits
from headscope.studio.shelf import ModelShelf
from tests.models import tiny
from tests.studio.live import run_studio, save_model

SCRIPT = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with one of each, and another that is nobody's business."""
    place = tmp_path_factory.mktemp("place")
    inside, outside = place / "inside", place / "outside"
    data = hs.measure(tiny("bert"), ["the cat sat on a mat"], statistics=["entropy"], progress=False)
    for folder in (inside, outside):
        save_model(folder / "model")
        save(data, folder / "heads.nc")
        save(data, folder / "heads.zarr")
        (folder / "data.csv").write_text("text\nthe cat sat\n")
    return place


@pytest.fixture
def folder(place, tmp_path):
    """A copy of the folder, beside a copy of the other."""
    shutil.copytree(place, tmp_path / "place")
    return tmp_path / "place" / "inside"


@pytest.fixture
def outside(folder):
    return folder.parent / "outside"


@pytest.fixture(scope="module")
def shared(place):
    """A studio for tests that change no file."""
    with run_studio(place / "inside") as live:
        yield live


@pytest.fixture
def live(shared, folder, monkeypatch):
    """The same studio in a folder of the test's own."""
    studio = shared.studio
    own = StudioFolder.open(folder, studio.limits)
    for part in (studio, studio.shelf, studio.jobs):
        monkeypatch.setattr(part, "folder", own)
    return shared


def open_folder(path, **limits):
    return StudioFolder.open(path, replace(Limits(), **limits))


def list_names(path, **limits):
    return [(file.name, file.kind) for file in open_folder(path, **limits).list()]


def open_result(live, name):
    return live.ask("/api/open", {"id": identify(name)})


# What is found


def test_results_data_and_models_are_found_by_what_they_are(folder):
    (folder / "notes.md").write_text("")
    (folder / "empty").mkdir()
    (folder / "empty.zarr").mkdir()
    kinds = [("data.csv", "data"), ("heads.nc", "result"), ("heads.zarr", "result"), ("model", "model")]
    assert list_names(folder) == kinds


def test_files_of_folders_below_are_found_but_not_those_inside_of_models_and_stores(folder):
    (folder / "model" / "train.csv").write_text("")
    (folder / "heads.zarr" / "train.csv").write_text("")
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "c.csv").write_text("")
    names = [name for name, _ in list_names(folder)]
    assert names == ["a/b/c.csv", "data.csv", "heads.nc", "heads.zarr", "model"]
    assert "a/b/c.csv" not in dict(list_names(folder, depth=1))


def test_hidden_files_are_not_found(folder):
    (folder / ".secret.csv").write_text("")
    (folder / ".git").mkdir()
    (folder / ".git" / "x.csv").write_text("")
    assert not [name for name, _ in list_names(folder) if name[0] == "."]


def test_of_very_many_files_those_in_the_upper_folders_are_found_and_the_list_says_that_it_is_not_whole(folder):
    (folder / "a").mkdir()
    for index in range(20):
        (folder / "a" / f"{index}.csv").write_text("")
    files, whole = open_folder(folder, entries=10).scan()
    assert "heads.nc" in [file.name for file in files]
    assert not whole
    assert not open_folder(folder, listed=24 - 1).scan()[1]
    assert open_folder(folder, listed=24 + 1).scan()[1]


def test_a_list_of_files_survives_one_that_is_removed_meanwhile(folder, monkeypatch):
    studio, describe = open_folder(folder), StudioFolder._describe

    def remove_first(self, path, endings):
        path.unlink() if path.name == "heads.nc" else None
        return describe(self, path, endings)

    monkeypatch.setattr(StudioFolder, "_describe", remove_first)
    assert "heads.nc" not in [file.name for file in studio.list()]


def test_a_folder_that_is_removed_lists_nothing(folder):
    studio = open_folder(folder)
    shutil.rmtree(folder)
    assert studio.list() == []


@pytest.mark.parametrize(("name", "found"), [("nowhere", "nothing"), ("data.csv", "a file")])
def test_a_studio_needs_a_folder(folder, name, found):
    with pytest.raises(InputError, match=f"The studio needs a folder, but there is {found} at .*Make it first"):
        open_folder(folder / name)


def test_ids_say_nothing_of_the_path_and_are_the_same_after_a_restart(folder):
    first, second = open_folder(folder).list(), open_folder(folder).list()
    assert [file.id for file in first] == [file.id for file in second]
    assert set(first[0].describe()) == {"id", "name", "kind", "bytes", "changed"}
    assert str(folder) not in json.dumps([file.describe() for file in first])


def test_a_name_that_is_no_text_is_listed(live, folder):
    (folder / os.fsdecode(b"caf\xe9.csv")).write_text("text\nthe cat\n")
    answer = live.ask("/api/files")
    assert answer.status == 200
    assert [file["name"] for file in answer.json["files"] if "caf" in file["name"]] == ["caf\udce9.csv"]


def test_a_script_in_names_arrives_as_text_in_json(live, folder):
    shutil.copytree(folder / "model", folder / SCRIPT)
    (folder / f"{SCRIPT}.csv").write_text("text\nthe cat\n")
    files, catalog = live.ask("/api/files"), live.ask("/api/catalog")
    assert {answer.header("content-type") for answer in (files, catalog)} == {"application/json"}
    assert {f"{SCRIPT}.csv", SCRIPT} <= {file["name"] for file in files.json["files"]}
    assert SCRIPT in [model["name"] for model in catalog.json["models"]]


# Results


@pytest.mark.parametrize("name", ["heads.nc", "heads.zarr"])
def test_a_result_is_opened_by_its_id(live, name):
    answer = open_result(live, name)
    assert (answer.status, answer.json["name"]) == (200, name)
    header = live.ask(f"/api/views/{answer.json['view']}/header").json
    assert "entropy" in [scalar["name"] for sheet in header["sheets"] for scalar in sheet["scalars"]]


@pytest.mark.parametrize("identity", ["heads.nc", "../outside/heads.nc", "/etc/passwd", "", None, 5, ["x"], {"a": 1}])
def test_a_path_is_no_id(live, identity):
    answer = live.ask("/api/open", {"id": identity})
    assert answer.status == 400
    assert answer.error == "There is no result of that id in inside. It may have been moved; reload the list."


def test_data_and_models_are_not_opened_as_results(live):
    for name in ("data.csv", "model"):
        assert open_result(live, name).status == 400


@pytest.mark.parametrize("name", ["heads.nc", "heads.zarr", "data.csv", "model"])
def test_a_link_that_leads_out_is_not_there(live, folder, outside, name):
    link = folder / f"link{name}"
    link.symlink_to(outside / name)
    assert link.name not in [file["name"] for file in live.ask("/api/files").json["files"]]
    assert open_result(live, link.name).status == 400


def test_a_folder_that_leads_out_is_not_there(live, folder, outside):
    (folder / "below").symlink_to(outside)
    assert "below/heads.nc" not in [file["name"] for file in live.ask("/api/files").json["files"]]
    assert open_result(live, "below/heads.nc").status == 400


def test_links_in_circles_and_to_nothing_are_not_there(live, folder):
    (folder / "circle.nc").symlink_to(folder / "circle.nc")
    (folder / "up").symlink_to(folder)
    (folder / "nothing.nc").symlink_to(folder / "gone")
    assert [file["name"] for file in live.ask("/api/files").json["files"] if file["kind"] == "result"] == [
        "heads.nc",
        "heads.zarr",
    ]


def test_a_link_that_stays_inside_is_opened(live, folder):
    (folder / "alias.nc").symlink_to(folder / "heads.nc")
    assert open_result(live, "alias.nc").status == 200


def test_a_store_with_an_inner_link_that_leads_out_is_not_opened(live, folder, outside):
    chunk = next(path for path in (folder / "heads.zarr" / "entropy").iterdir() if not path.name.startswith("."))
    chunk.unlink()
    chunk.symlink_to(outside / "heads.zarr" / "entropy" / chunk.name)
    answer = open_result(live, "heads.zarr")
    assert answer.status == 400
    assert answer.error == "heads.zarr leads out of the folder of this studio, so it is not opened."


@pytest.mark.parametrize("name", ["heads.nc", "heads.zarr"])
def test_a_result_that_becomes_a_link_after_it_was_found_is_not_opened(live, folder, outside, name):
    """The worker is busy between the check of a request and the opening, and the file is exchanged meanwhile."""
    busy = threading.Event()
    live.studio.models.submit(busy.wait)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(open_result(live, name)))
    asking.start()
    live.until(lambda: live.studio.models.pending == 2)
    shutil.move(folder / name, folder / "moved")
    (folder / name).symlink_to(outside / name)
    busy.set()
    asking.join()
    assert answers[0].status == 400
    assert "leads out of the folder of this studio" in answers[0].error


@pytest.mark.parametrize("kind", ["storage", "link", "soft link", "virtual"])
def test_a_result_whose_content_is_in_another_file_is_not_opened(live, folder, outside, kind):
    secret = outside / "secret"
    secret.write_bytes(b"a secret" * 1000)
    path = folder / "evil.nc"
    shutil.copy(folder / "heads.nc", path)
    with h5py.File(path, "r+") as file:
        shape, kind_of_numbers = file["entropy"].shape, file["entropy"].dtype
        del file["entropy"]
        if kind == "storage":
            file.create_dataset("entropy", shape, kind_of_numbers, external=[(str(secret), 0, h5py.h5f.UNLIMITED)])
        elif kind == "link":
            file["entropy"] = h5py.ExternalLink(str(outside / "heads.nc"), "/entropy")
        elif kind == "soft link":
            file["group/entropy"] = h5py.ExternalLink(str(outside / "heads.nc"), "/entropy")
            file["entropy"] = h5py.SoftLink("/group/entropy")
        else:
            layout = h5py.VirtualLayout(shape, kind_of_numbers)
            layout[...] = h5py.VirtualSource(str(outside / "heads.nc"), "entropy", shape)
            file.create_virtual_dataset("entropy", layout)
    path.write_bytes(seal_end(path.read_bytes().replace(TAG, b"-" * len(TAG))))
    answer = open_result(live, "evil.nc")
    assert answer.status == 400
    assert "not a NetCDF file that headscope wrote" in answer.error


def test_a_damaged_result_is_refused_with_a_sentence(live, folder):
    content = bytearray((folder / "heads.nc").read_bytes())
    content[len(content) // 2] ^= 255
    (folder / "heads.nc").write_bytes(content)
    assert "it changed since headscope wrote it" in open_result(live, "heads.nc").error


# Traversal by addresses


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/%2e%2e/studio/app.py",
        "/static/..%2f..%2fstudio%2fapp.py",
        "/static/%2e%2e%2f%2e%2e%2fversion.py",
        "/static/%252e%252e%252fversion.py",
        "/static/..\\..\\version.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/viewer.js%00.css",
        "/static/viewer.js/../../version.py",
        "/static/",
        "/static",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/api/views/..%2f..%2fetc/header",
        "/api/views/%2e%2e/header",
        "/api/../static/../../version.py",
    ],
)
def test_no_address_leads_to_another_file(shared, path):
    answer = shared.ask(path)
    assert answer.status == 404
    assert answer.header("content-type") == "application/json"
    assert b"root:" not in answer.body
    assert b"__version__" not in answer.body


@pytest.mark.parametrize(
    "name", ["..", "../../heads.nc", "0/../../x", "/etc/passwd", "result/../../x.svg", "x" * 201, ""]
)
def test_the_name_of_a_block_is_no_path(shared, name):
    view = open_result(shared, "heads.nc").json["view"]
    answer = shared.ask(f"/api/views/{view}/block?name={name}")
    assert answer.status == 400
    assert "no block" in answer.error or answer.error == "A block is asked for by its name."


# Names of new results


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "..",
        ".",
        ".hidden",
        "a/b",
        "a\\b",
        "/etc/x",
        "~/x",
        "~root",
        "-o",
        "--out=/etc/x",
        "%2e%2e%2fx",
        "x\0y",
        "x\ny",
        " x",
        "x ",
        "",
        "x" * 81,
        "\U0001d49c" * 80,
        "$(touch x)",
        "x;y",
        "x\u202ey",
        None,
        5,
        ["x"],
    ],
)
@pytest.mark.parametrize("kind", ["measure", "study"])
def test_the_name_of_a_result_is_no_path_and_no_option(shared, name, kind):
    body = {"kind": kind, "name": name, "data": {"bundled": "sample"}, "statistics": [{"name": "entropy"}]}
    answer = shared.ask("/api/jobs", {**body, "study": "effective_attention"})
    assert answer.status == 400
    assert answer.error.startswith("The name ")
    assert shared.ask("/api/jobs").json["jobs"] == []


@pytest.mark.parametrize("name", ["heads", "heads.nc", "link"])
def test_a_new_result_replaces_nothing(live, folder, outside, name):
    (folder / "link.nc").symlink_to(outside / "new.nc")
    body = {"kind": "measure", "name": name, "data": {"bundled": "sample"}, "statistics": [{"name": "entropy"}]}
    answer = live.ask("/api/jobs", body)
    assert answer.status == 400
    assert answer.error.endswith("Give another name.")


# Models


@pytest.mark.parametrize(
    "name",
    [
        "../outside/model",
        "..",
        "/etc",
        "~",
        "~/model",
        "model/../../outside/model",
        "%2e%2e/outside/model",
        "..%2foutside%2fmodel",
        "a/b/c",
        "--model",
        "-x",
        "x y",
        "x\0y",
        "x" * 5000,
        "data.csv",
        "file:///etc/passwd",
        "https://evil.example/model",
    ],
)
def test_the_name_of_a_model_leads_to_no_other_folder(shared, name):
    for path, body in (
        ("/api/look", {"text": "the cat", "lenses": [{"name": "raw"}]}),
        ("/api/predict", {"text": "x"}),
    ):
        answer = shared.ask(path, {**body, "models": [{"name": name}]})
        assert answer.status == 400
        assert "is neither a hub id nor a folder of models below the folder of this studio" in answer.error


@pytest.mark.parametrize("chosen", [{"name": "linked"}, {"id": identify("linked")}])
def test_a_linked_folder_is_no_model_in_a_look_and_in_a_job(live, folder, outside, chosen):
    (folder / "linked").symlink_to(outside / "model")
    job = {"kind": "measure", "name": "new", "data": {"bundled": "sample"}, "statistics": [{"name": "entropy"}]}
    for path, body in (
        ("/api/predict", {"text": "the cat", "models": [chosen]}),
        ("/api/jobs", {**job, "model": chosen}),
    ):
        assert live.ask(path, body).status == 400


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("chosen", [{"name": "model"}, {"id": identify("model")}])
def test_a_model_with_a_link_that_leads_out_is_not_opened(live, folder, outside, name, chosen):
    (folder / "model" / name).unlink()
    (folder / "model" / name).symlink_to(outside / "model" / name)
    job = {"kind": "measure", "name": "new", "data": {"bundled": "sample"}, "statistics": [{"name": "entropy"}]}
    asked = (("/api/predict", {"text": "the cat", "models": [chosen]}), ("/api/jobs", {**job, "model": chosen}))
    for path, body in asked:
        answer = live.ask(path, body)
        assert answer.status == 400
        assert answer.error == "model leads out of the folder of this studio, so it is not opened."


def test_a_model_that_is_exchanged_after_it_was_chosen_is_not_opened(folder, outside):
    shelf = ModelShelf(open_folder(folder), [])
    source = shelf.find({"name": "model"})
    (folder / "model" / "model.safetensors").unlink()
    (folder / "model" / "model.safetensors").symlink_to(outside / "model" / "model.safetensors")
    with pytest.raises(InputError, match="model leads out of the folder of this studio, so it is not opened"):
        shelf.load(source, 2)


def test_a_model_given_at_the_start_may_be_anywhere_and_jobs_find_it_by_its_whole_path(folder, outside, monkeypatch):
    (outside / "linked").mkdir()
    for path in (outside / "model").iterdir():
        (outside / "linked" / path.name).symlink_to(path)
    monkeypatch.chdir(folder.parent)
    shelf = ModelShelf(open_folder(folder), ["outside/linked", "some/hub-id"])
    given, hub, default, _ = shelf.list()
    assert (given.name, given.source) == ("outside/linked", str(outside / "linked"))
    assert (hub.source, default.source) == ("some/hub-id", None)
    assert shelf.load(shelf.find({"id": given.id}), 2).network.config.model_type == "bert"


@pytest.mark.parametrize("shard", ["../../outside/model/model.safetensors", "/etc/passwd", "weights.bin"])
def test_an_index_of_weights_names_no_other_files(live, folder, shard):
    weights = json.dumps({"weight_map": {"embeddings.word_embeddings.weight": shard}})
    (folder / "model" / "model.safetensors.index.json").write_text(weights)
    answer = live.ask("/api/predict", {"text": "the cat", "models": [{"name": "model"}]})
    assert answer.status == 400
    assert "is no .safetensors file of its folder, so it is not opened" in answer.error
