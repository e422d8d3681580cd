"""The folder of an atlas: a page that opens from a disk or a web server, and one file a head, loaded on demand."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.lens import Lens
from headscope.core.prose import count_noun
from headscope.core.provenance import read_provenance
from headscope.core.spec import to_spec
from headscope.head_atlas.drawing import Archive, Kept
from headscope.head_atlas.selection import GROUPS, Head, Pick
from headscope.head_atlas.sparse import UNIT
from headscope.results.store import save
from headscope.version import __version__
from headscope.viewer.from_dataset import read_scalars
from headscope.viewer.page import make_head, read_static, script_element, to_json
from headscope.viewer.sheet import Scalar

FORMAT = 1

FILES = " 'self' file:"
"""Scripts that the page may load beside its own: the files of heads.

Of a page on a disk, `file:` is what 'self' is of a page from a server: not every browser takes 'self' for it.
"""


@dataclass(frozen=True)
class AtlasContent:
    """Everything that the folder is written from."""

    result: xr.Dataset
    picks: Mapping[Head, Sequence[Pick]]
    archive: Archive
    activity: tuple[str, str]  # lens and spec
    lenses: Sequence[Lens]
    kept: Kept
    sample: int  # examples among which the median was found

    def describe_head(self, head: Head) -> dict[str, Any]:
        """Return what the file of one head holds."""
        return {"layer": head[0], "head": head[1], "examples": [self._read(head, pick) for pick in self.picks[head]]}

    def _read(self, head: Head, pick: Pick) -> dict[str, Any]:
        stored: dict[str, Any] = json.loads(self.archive.read(head, pick.position))
        about = {"group": pick.group, "position": pick.position}
        return {**about, "activity": round(pick.activity, 6), "above": round(pick.above, 4), **stored}

    def readers(self) -> dict[Head, Callable[[], dict[str, Any]]]:
        """Return for each head a function that reads its file's content, so that one at a time is in memory."""
        return {head: lambda head=head: self.describe_head(head) for head in self.picks}  # type: ignore[misc]


def describe_atlas(content: AtlasContent) -> dict[str, Any]:
    """Return the header: every number by head with its interval, and what the files of the heads hold."""
    data, facts = content.result, read_provenance(content.result)
    lens, spec = content.activity
    count = int(facts["n"])
    return {
        "format": FORMAT,
        "title": f"{str(facts['model']).rpartition('/')[2]} · atlas of {count_noun(count, 'example')}",
        "model": str(facts["model"]),
        "site": str(facts["site"]),
        "made": _list_facts(facts),
        "layers": data["layer"].values.astype(int).tolist(),
        "heads": data["head"].values.astype(int).tolist(),
        "lenses": _describe_lenses(content),
        "scalars": [scalar.describe() for scalar in merge_equal(read_scalars(data.isel(site=0)))],
        "activity": {"name": spec, "lens": lens},
        "examples": count,
        "sample": content.sample,
        "groups": list(GROUPS),
        "kept": {"keys": content.kept.keys, "threshold": content.kept.threshold},
        "unit": UNIT,
        "files": {f"L{layer}H{head}": len(picks) for (layer, head), picks in content.picks.items()},
        "python": _python_line(facts, content),
    }


def merge_equal(scalars: Sequence[Scalar]) -> list[Scalar]:
    """Return numbers that are the same through every lens, such as the effective share, once and without a lens."""
    by_name: dict[str, list[Scalar]] = {}
    for scalar in scalars:
        by_name.setdefault(scalar.name, []).append(scalar)
    lenses = {scalar.lens for scalar in scalars}
    merged: list[Scalar] = []
    for first, *others in by_name.values():
        same = len(others) + 1 == len(lenses) > 1 and all(_equal(first, other) for other in others)
        merged += [replace(first, lens=None)] if same else [first, *others]
    return merged


def write_atlas(content: AtlasContent, header: Mapping[str, Any], folder: Path) -> None:
    """Write all files of an atlas into a new folder."""
    (folder / "heads").mkdir(parents=True)
    (folder / "index.html").write_text(make_page(header), encoding="utf-8", newline="\n")
    (folder / "atlas.json").write_text(to_json(header), encoding="utf-8", newline="\n")
    save(content.result, folder / "atlas.nc")
    for (layer, head), read in content.readers().items():
        text = f"headscopeAtlas({to_script(read())});\n"
        (folder / "heads" / f"L{layer}H{head}.js").write_text(text, encoding="utf-8", newline="\n")


def make_page(header: Mapping[str, Any]) -> str:
    """Return the page: the viewer and the header of the atlas."""
    content = script_element("application/json", "headscope-atlas", to_json(header))
    script = f'<script type="module">{read_static("viewer.js")}</script>'
    return f"{make_head(str(header['title']), FILES)}{content}{script}\n</body>\n</html>\n"


def to_script(value: Any) -> str:
    """Return JSON that is also a literal of a classic script, in ASCII, whatever encoding a server claims."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def check_folder(path: Path, marker: str, what: str, *, overwrite: bool) -> None:
    """Raise InputError unless a folder may be written: it is missing or empty, or an older one that may be replaced."""
    if path.is_file():
        raise InputError(f"{path} is a file, but {what} is a folder. Give another path.")
    if not path.is_dir() or not any(path.iterdir()):
        return
    if not (path / marker).is_file():
        raise InputError(f"{path} is a folder that holds something else than {what}. Give another folder.")
    if not overwrite:
        raise InputError(
            f"{path} exists already. Give another folder, or replace it with overwrite=True, in the shell --force."
        )


def _equal(first: Scalar, second: Scalar) -> bool:
    return np.array_equal(first.values, second.values, equal_nan=True)


def _describe_lenses(content: AtlasContent) -> list[dict[str, Any]]:
    signed = content.archive.signed
    return [
        {"name": spec, "quantity": lens.quantity or f"weight ({spec})", "signed": signed.get(spec, False)}
        for spec, lens in ((to_spec(lens), lens) for lens in content.lenses)
    ]


def _list_facts(facts: Mapping[str, Any]) -> list[list[str]]:
    shown = {name: facts.get(name) for name in ("model", "weights_hash", "data", "n", "site", "max_length", "command")}
    listed = [[name.replace("_", " "), str(value)] for name, value in shown.items() if value is not None]
    return [*listed, ["made with", f"headscope {__version__}"]]


def _python_line(facts: Mapping[str, Any], content: AtlasContent) -> str:
    model, lenses, activity = map(json.dumps, (facts["model"], list(map(to_spec, content.lenses)), content.activity[1]))
    return (
        f"import headscope as hs\n\nmodel = hs.load({model})\n"
        f'data = hs.atlas(model, "your-texts.jsonl", lens={lenses}, activity={activity}, out="atlas")\n'
    )
