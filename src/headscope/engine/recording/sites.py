"""The attention sites of a model: which attention modules are layers of one stack.

Modules whose names differ only in numbers, such as `layers.0.self_attn` and `layers.1.self_attn`, are layers of one
site. Two towers of a model, or self-attention and cross-attention of one decoder, are different sites, whatever the
shapes of their maps.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any
from weakref import WeakKeyDictionary

from headscope.engine.model import Model, find_word_embeddings, name_modules
from headscope.engine.recording.follow import is_followed
from headscope.engine.recording.interface import computes_attention
from headscope.engine.recording.numbers import number_modules
from headscope.engine.recording.recorder import find_module

CROSS = re.compile(r"cross|x_attn|encoder_att|enc(oder)?_?dec", re.IGNORECASE)
"""What the names of cross-attention modules contain, inside their layer."""

ModulePath = tuple[str, ...]
"""A module's name without numbers, split at its dots: the same for all layers of a site."""

Sides = tuple[str | None, str | None]
"""Whose tokens are queries and keys: "source", "target" (what a decoder reads), or None for neither."""


@dataclass(frozen=True)
class Sites:
    """The attention sites of a model."""

    table: Mapping[ModulePath, str]
    sides: Mapping[str, Sides]  # of the sites that read the inputs
    main: str  # the site that is captured by default
    modules: tuple[str, ...] = ()  # the attention modules
    bypasses: bool = False  # whether one of them computes attention without the interface
    numbers: Mapping[str, int] = field(default_factory=dict)  # of the layers that a model numbers with gaps, by module
    site_names: dict[str, str] = field(default_factory=dict)  # by module

    def find(self, module: str) -> str:
        """Return the site of an attention module, or of one of several computations in its call, which are numbered."""
        if module not in self.site_names:
            path = _remove_numbers(find_module(module))
            number = module.partition("#")[2]
            self.site_names[module] = ".".join([self.table.get(path) or ".".join(path), *([number] if number else [])])
        return self.site_names[module]

    def number(self, module: str, place: int) -> int:
        """Return the layer of an attention module: the number in its name where others are missing, or its place.

        `place` is how many calls at its site come before.
        """
        return self.numbers.get(find_module(module), place)

    def is_numbered(self, site: str) -> bool:
        """Whether the layers of a site have the numbers of their modules, and not those of their calls."""
        return any(self.find(module) == re.sub(r"\.\d+$", "", site) for module in self.numbers)

    def sides_of(self, site: str) -> Sides:
        """Return whose tokens are queries and keys at a site."""
        return self.sides.get(re.sub(r"\.\d+$", "", site), (None, None))


_cache: WeakKeyDictionary[Any, Sites] = WeakKeyDictionary()


def find_sites(model: Model) -> Sites:
    """Return the sites of a model; its network is searched once.

    A model with one stack of layers has the site "self", an encoder-decoder model "encoder", "decoder" and "cross". A
    model with several towers (CLIP, LLaVA) has a site for each, called after the module: "text_model",
    "vision_model". The main site is the one that reads the text. Where one call of a module computes attention in two
    places of its code, such as of a text and of its layout, the second is the site "self.2".
    """
    sites = _cache.get(model.network)
    if sites is None:
        sites = _cache[model.network] = _search(model)
    return sites


def _search(model: Model) -> Sites:
    config = model.network.config
    attention = [(module, name) for module, name in name_modules(model.network).items() if computes_attention(module)]
    modules: dict[ModulePath, str] = {}  # the first module of each site
    counts = Counter[ModulePath]()  # modules of each site
    for _, name in attention:
        modules.setdefault(_remove_numbers(name), name)
        counts[_remove_numbers(name)] += 1
    cross = [path for path, name in modules.items() if CROSS.search(_split_layer(name)[1])]
    own = [path for path in modules if path not in cross]
    table = _label_own(own, is_encoder_decoder=config.is_encoder_decoder) | _label_cross(cross)
    for segment, site in reversed(model.family.sites):  # the first that fits is written last, and stays
        table |= {path: site for path in table if segment in path}
    main, reads_source = "encoder" if config.is_encoder_decoder else "self", True
    readers = [path for path in own if table[path] != "decoder"]
    if readers and main not in table.values():
        embeddings = find_word_embeddings(model.network)
        main, reads_source = (
            table[_nearest(embeddings[0] if embeddings else "", {path: counts[path] for path in readers})],
            embeddings is not None,
        )
    sides: dict[str, Sides] = {main: ("source", "source")} if reads_source else {}
    if config.is_encoder_decoder:
        sides |= {"decoder": ("target", "target"), "cross": ("target", "source")}
    else:
        layers = {_split_layer(modules[path])[0] for path in own if table[path] in sides}
        sides |= {table[path]: ("source", None) for path in cross if _split_layer(modules[path])[0] in layers}
    kinds: set[Any] = {type(module) for module, _ in attention}
    bypasses = any(map(is_followed, kinds))
    names = [name for _, name in attention]
    by_site: dict[str, list[str]] = {}
    for name in names:
        by_site.setdefault(table[_remove_numbers(name)], []).append(name)
    return Sites(table, sides, main, tuple(names), bypasses, number_modules(model.network, by_site.values()))


def _remove_numbers(name: str) -> ModulePath:
    segments = name.split(".")
    return tuple(segment for segment in segments if not segment.isdigit() and segment != "_orig_mod")  # torch.compile


def _split_layer(name: str) -> tuple[str, str]:
    """Return the name of the layer that a module is in, and the module's name inside the layer.

    >>> _split_layer("decoder.layers.0.encoder_attn")
    ('decoder.layers.0', 'encoder_attn')
    """
    match = re.match(r"(.*\.)?\d+(?=\.)", name)
    layer = match[0] if match else ""
    return layer, name[len(layer) :].removeprefix(".")


def find_layer(name: str) -> str:
    """Return the name of the layer that an attention module is in; nothing if it is in no numbered module."""
    return _split_layer(name)[0]


def _label_own(own: list[ModulePath], *, is_encoder_decoder: bool) -> dict[ModulePath, str]:
    """Name the sites where a tower attends to itself."""
    if len(own) == 1 and not is_encoder_decoder:
        return {own[0]: "self"}
    labels = {path: _unique_prefix(path, own) for path in own}
    if is_encoder_decoder:
        halves = {path: next((segment for segment in path if segment in ("encoder", "decoder")), None) for path in own}
        counts = Counter(halves.values())
        labels |= {path: half for path, half in halves.items() if half and counts[half] == 1}
    return labels


def _label_cross(cross: list[ModulePath]) -> dict[ModulePath, str]:
    if len(cross) == 1:
        return {cross[0]: "cross"}
    return {path: f"{_unique_prefix(path, cross)}.cross" for path in cross}


def _unique_prefix(path: ModulePath, everyone: Iterable[ModulePath]) -> str:
    """Return the shortest beginning that no other name has, without what all names begin with; at least a segment.

    >>> _unique_prefix(("model", "tower", "attn"), [("model", "layers", "attn")])
    'tower'
    """
    others = [other for other in everyone if other != path]
    shared = min((_count_shared(path, other) for other in others), default=0)
    ends = range(shared + 1, len(path) + 1)
    end = next((end for end in ends if all(other[:end] != path[:end] for other in others)), len(path))
    return ".".join(path[min(shared, len(path) - 1) : end])


def _count_shared(left: ModulePath, right: ModulePath) -> int:
    """Return the number of segments that two names begin with."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))))


def _nearest(name: str, sites: Mapping[ModulePath, int]) -> ModulePath:
    """Return the site whose name begins most like a given one; of several that of most layers, then the least deep.

    `sites` has the number of modules of each. Beside a layer that is known, the least deep comes first: what is deeper
    is inside of another tower (Evolla's encoder of proteins).
    """
    path = _remove_numbers(name)
    depth = len if name else lambda _: 0
    return max(sites, key=lambda site: (_count_shared(path, site), -depth(site), sites[site], -len(site)))
