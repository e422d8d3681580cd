"""The models of a studio: those that it offers by id, and the few that are loaded."""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.errors import InputError
from headscope.studio.folder import StudioFolder, identify

if TYPE_CHECKING:
    from headscope.engine.model import Model

DEFAULT_NAME = "all-MiniLM-L6-v2 (default)"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?")


@dataclass(frozen=True)
class ModelChoice:
    """A model that can be chosen: its id, what the browser shows, and what `hs.load` takes; None is the default."""

    id: str
    name: str
    source: str | None


@dataclass
class ModelShelf:
    """Finds and loads models; only the last few stay loaded."""

    folder: StudioFolder
    given: Sequence[str]
    say: Callable[[str], None] = lambda _: None
    loaded: "OrderedDict[str | None, Model]" = field(default_factory=OrderedDict)

    def list(self) -> list[ModelChoice]:
        """Return the models given at the start, the default, and those in the folder."""
        found = [ModelChoice(file.id, file.name, str(file.path)) for file in self.folder.list("model")]
        return [*self.started(), *found]

    def started(self) -> Sequence[ModelChoice]:
        """Return the models given at the start, and the default."""
        given = [ModelChoice(identify(f"given {source}"), source, locate(source)) for source in self.given]
        return [*given, ModelChoice("default", DEFAULT_NAME, None)]

    def find(self, chosen: Any) -> str | None:
        """Return what `hs.load` takes for a choice: {"id": …} of the list, or {"name": …}, a hub id or a folder."""
        if isinstance(chosen, Mapping) and isinstance(chosen.get("id"), str):
            source = self._find_listed(chosen["id"])
        elif isinstance(chosen, Mapping) and isinstance(chosen.get("name"), str) and chosen["name"].strip():
            source = self._find_named(chosen["name"].strip())
        else:
            raise InputError("Choose a model of the list, or name a hub id or a folder.")
        self._check(source)
        return source

    def _find_listed(self, identity: str) -> str | None:
        for choice in self.started():
            if choice.id == identity:
                return choice.source
        return str(self.folder.find(identity, "model").path)

    def _find_named(self, name: str) -> str:
        """Return a folder below that of the studio, or a hub id that is no file here or there."""
        inside = self.folder.root / name
        try:
            resolved = inside.resolve()
            if inside.is_dir() and resolved.is_relative_to(self.folder.root):
                return str(resolved)
            exists = inside.exists() or Path(name).expanduser().exists()
        except (OSError, ValueError, RuntimeError):  # a name that no file can have
            exists = True
        if exists or not HUB_ID.fullmatch(name):
            raise InputError(
                f"{name[:120]!r} is neither a hub id nor a folder of models below the folder of this studio, and other "
                "folders are not read. Give it as --model when you start the studio."
            )
        return name

    def _check(self, source: str | None) -> None:
        """Raise InputError for a folder that leads out of that of the studio, unless it was given at the start."""
        if source is None or not Path(source).is_dir():
            return
        if source not in (choice.source for choice in self.started()):
            self.folder.check(Path(source))
        check_weights(Path(source))

    def load(self, source: str | None, limit: int) -> "Model":
        """Return a loaded model; the one that was not used for longest leaves where there are too many."""
        if source in self.loaded:
            self.loaded.move_to_end(source)
            return self.loaded[source]
        from headscope.engine.load import load, silence_transformers

        self._check(source)  # it may have changed since it was chosen
        while len(self.loaded) >= limit:
            self.loaded.popitem(last=False)
        self.say(f"Loading {source or DEFAULT_NAME}")
        with silence_transformers():
            self.loaded[source] = load(source)
        return self.loaded[source]


def check_weights(folder: Path) -> None:
    """Raise InputError for a model whose weights are pickled, or whose index names files elsewhere."""
    for index in folder.glob("*.safetensors.index.json"):
        strange = [name for name in read_index(index) if Path(name).name != name or not name.endswith(".safetensors")]
        if strange:
            raise InputError(
                f"{index.name} of the model {folder.name} names {strange[0][:80]!r}, which is no .safetensors file of "
                "its folder, so it is not opened."
            )
    pickled = sorted(path.name for path in folder.glob("pytorch_model*.bin"))
    if pickled and not any(folder.glob("*.safetensors")):
        raise InputError(
            f"The weights of {folder.name} are pickled ({pickled[0]}), and reading them could run code. The studio "
            "reads safetensors: write them in Python with hs.save(hs.load(folder), new_folder)."
        )


def read_index(path: Path) -> set[str]:
    """Return the files that an index of weights names."""
    try:
        return set(map(str, json.loads(path.read_bytes())["weight_map"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # loading it says what is wrong
        return set()


def locate(source: str) -> str:
    """Return a folder as an absolute path, since jobs run in another folder; a hub id as it is."""
    folder = Path(source).expanduser()
    return str(folder.resolve()) if folder.is_dir() else source
