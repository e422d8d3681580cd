"""Capture the chosen examples again, and store their maps: one archive a batch, one entry for each example and head."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example, tabulate_examples
from headscope.core.lens import Lens
from headscope.core.maps import Maps
from headscope.core.progress import show_progress
from headscope.core.tokens import Tokens, token_labels
from headscope.core.trace import Trace, at_least_float32
from headscope.engine.capture import capture_batch, map_layers
from headscope.head_atlas.selection import Head, Pick
from headscope.head_atlas.sparse import keep_largest
from headscope.measuring.job import MeasureJob, make_inputs
from headscope.measuring.observe import view_with_nan
from headscope.results.atomic import atomic_path, make_folders
from headscope.results.hashes import fingerprint

LENSES = "lenses.json"
"""The entry that says of each lens whether its maps are signed."""


@dataclass(frozen=True)
class Kept:
    """How much of a map is stored."""

    keys: int
    threshold: float


def draw_examples(
    job: MeasureJob, picks: Mapping[Head, Sequence[Pick]], kept: Kept, folder: Path, *, quiet: bool
) -> dict[int, Path]:
    """Store the maps of all chosen examples, batch by batch, and return the archive of each position.

    A batch that is stored already is left alone.
    """
    wanted, paths = _heads_by_position(picks), dict[int, Path]()
    make_folders(folder)
    with show_progress(len(wanted), unit="chosen examples", quiet=quiet) as advance:
        for batch in job.plan.batches():
            chosen = {at: example for at, example in zip(batch.positions, batch.examples, strict=True) if at in wanted}
            if not chosen:
                continue
            path = archive_path(folder, list(chosen))
            if not path.exists():
                with atomic_path(path) as temporary:
                    _draw_batch(job, chosen, wanted, kept, temporary)
            paths |= dict.fromkeys(chosen, path)
            advance(len(chosen))
    return paths


def archive_path(folder: Path, batch: Sequence[int]) -> Path:
    """Return the archive of a batch, named by the positions of its examples."""
    return folder / f"{fingerprint(map(str, batch))}.zip"


class Archive:
    """The stored maps of all batches, read one by one."""

    def __init__(self, paths: Mapping[int, Path]) -> None:
        self._paths = paths  # by position

    @property
    def signed(self) -> dict[str, bool]:
        """Whether the maps of each lens are signed; empty where no example was chosen."""
        for path in self._paths.values():
            with ZipFile(path) as archive:
                return dict(json.loads(archive.read(LENSES)))
        return {}

    def read(self, head: Head, position: int) -> str:
        """Return the stored example of a head as JSON."""
        with ZipFile(self._paths[position]) as archive:
            return archive.read(_entry(head, position)).decode()


def _heads_by_position(picks: Mapping[Head, Sequence[Pick]]) -> dict[int, set[Head]]:
    wanted: dict[int, set[Head]] = {}
    for head, chosen in picks.items():
        for pick in chosen:
            wanted.setdefault(pick.position, set()).add(head)
    return wanted


def _entry(head: Head, position: int) -> str:
    return f"L{head[0]}H{head[1]}/{position}.json"


def _draw_batch(
    job: MeasureJob, batch: Mapping[int, Example], wanted: Mapping[int, set[Head]], kept: Kept, path: Path
) -> None:
    """Capture one batch, and store the maps of its examples; on a CPU each layer is freed before the next."""
    observer = job.observer
    inputs, _ = make_inputs(observer, tuple(batch.values()))
    with observer.edited_model() as model, ZipFile(path, "w", ZIP_DEFLATED) as archive:
        write = partial(_write_trace, archive, observer.settings.lenses, list(batch), wanted, kept)
        request = observer.make_request(model)
        if observer.streams(inputs):
            map_layers(model, inputs, request, write)
        else:
            write(capture_batch(model, inputs, request))


def _write_trace(
    archive: ZipFile,
    lenses: Sequence[Lens],
    batch: Sequence[int],
    wanted: Mapping[int, set[Head]],
    kept: Kept,
    trace: Trace,
) -> None:
    """Store an entry for each example and head that wants it, with the map of every lens."""
    if trace.other_layers or len(trace.examples) != len(batch):
        raise InputError(
            f"An atlas shows a map of each head for an example, but the maps of layers {list(trace.layers)} are of "
            "windows of pictures, or differ in shape from those of other layers. Look at one picture: "
            "hs.show(hs.capture(model, picture))."
        )
    maps = [view_with_nan(trace, lens) for lens in lenses]
    if LENSES not in archive.namelist():
        archive.writestr(LENSES, json.dumps({each.lens: each.signed for each in maps}))
    for index, layer in enumerate(maps[0].layers):
        weights = [at_least_float32(each.layer(layer)).cpu() for each in maps]
        visible = maps[0].visible[index].cpu()
        for row, position in enumerate(batch):
            heads = [head for head in maps[0].heads if (layer, head) in wanted[position]]
            about = _describe_example(maps[0], row) if heads else {}
            for head in heads:
                column = maps[0].heads.index(head)
                stored = [_store_map(each[row, column], visible[row], maps[0], row, kept) for each in weights]
                archive.writestr(_entry((layer, head), position), json.dumps({**about, "maps": stored}))


def _store_map(weights: Tensor, visible: Tensor, maps: Maps, row: int, kept: Kept) -> dict[str, Any] | None:
    """Return a map without padding as plain data; None where it is NaN."""
    rows, columns = (side.real[row].cpu() for side in (maps.queries, maps.keys))
    cells, seen = (table[rows][:, columns].numpy() for table in (weights, visible))
    if not np.isfinite(np.where(seen, cells, 0.0)).all():
        return None
    return keep_largest(cells, seen, kept.keys, kept.threshold).describe()


def _describe_example(maps: Maps, row: int) -> dict[str, Any]:
    """Return the id, label and tokens of an example; keys are None where they are the queries."""
    queries, keys = (_describe_tokens(side, row) for side in (maps.queries, maps.keys))
    table = tabulate_examples([maps.examples[row]])
    labels: dict[str, Any] = {name: table[name][0] for name in ("label", "label_name") if name in table}
    return {"id": maps.examples[row].id, **labels, "queries": queries, "keys": None if keys == queries else keys}


def _describe_tokens(tokens: Tokens, row: int) -> dict[str, Any]:
    special = tokens.special[row].cpu()[tokens.real[row].cpu()]
    return {"text": token_labels(list(tokens.text[row])).tolist(), "special": special.nonzero()[:, 0].tolist()}
