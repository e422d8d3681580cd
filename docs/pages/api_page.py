"""The page docs/api.md: every public name with its signature, its docstring and its example."""

import doctest
import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

import headscope

GROUPS = {
    group: re.split(r",\s+", names)
    for group, names in re.findall(r"^(\w.+): (\w+(?:,\s+\w+)*)$", headscope.__doc__ or "", re.MULTILINE)
}
"""Names by what people want, as `help(headscope)` has them."""

HEADER = """# All public names

Generated from the docstrings by `docs/make.py`. The examples run as tests, after these lines:

```python
{preamble}
```

Lenses, statistics, probes, figures and edits: [lenses](lenses.md), [statistics](statistics.md), [probes](probes.md),
[figures](gallery.md), [edits](edits.md), and [how to write your own](extending.md). `hs.__version__` is the version.
"""


def page() -> bytes:
    """Return the page."""
    names = {name for group in GROUPS.values() for name in group}
    if different := names ^ (set(headscope.__all__) - {"__version__"}):
        raise SystemExit(f"{', '.join(sorted(different))} must be in the docstring of headscope and in the façade.")
    preamble = "".join(example.source for example in examples(headscope)[:-1]).rstrip()
    anchors = _make_anchors(name for group in GROUPS.values() for name in group)
    index = [f"- {group}: {', '.join(f'[`{name}`](#{anchors[name]})' for name in GROUPS[group])}" for group in GROUPS]
    parts = [HEADER.format(preamble=preamble), "\n".join(index) + "\n"]
    for group, members in GROUPS.items():
        parts.append(f"## {group}\n")
        parts += [_describe(name) for name in members]
    return "\n".join(parts).encode()


def examples(thing: Any) -> list[doctest.Example]:
    """Return the examples in a docstring."""
    return doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")


def _describe(name: str) -> str:
    thing = getattr(headscope, name)
    parts = [
        f"### hs.{name}\n",
        f"```python\n{_signature(name, thing)}\n```\n",
        _to_markdown(inspect.getdoc(thing) or ""),
    ]
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        parts += _members(thing)
    return "\n".join(parts)


def _signature(name: str, thing: Any) -> str:
    """Return the call with its defaults, without annotations, wrapped like code."""
    if inspect.isclass(thing) and (issubclass(thing, Exception) or inspect.isabstract(thing)):
        bases = ", ".join(base.__name__ for base in thing.__bases__ if base.__module__ != "abc")
        return f"class {name}({bases})" if bases else f"class {name}"
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_readable(parameter.default))
        for parameter in inspect.signature(thing).parameters.values()
    ]
    call = str(inspect.Signature(parameters))
    line = f"hs.{name}{call}"
    return line if len(line) <= 100 else f"hs.{name}(\n    {call[1:-1]},\n)"


class _Repr(str):
    __slots__ = ()
    __repr__ = str.__str__


def _readable(default: Any) -> Any:
    """Return a default as it is written, "..." where that is a function or a factory."""
    hidden = default is not inspect.Parameter.empty and re.search(r"factory| at 0x", repr(default))
    return _Repr("...") if hidden else default


def _members(kind: type) -> Iterator[str]:
    """Yield a line for each public method and property of a class."""
    lines = []
    for name, member in vars(kind).items():
        target = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") or not (inspect.isfunction(target) or isinstance(target, property)):
            continue
        first = (inspect.getdoc(target) or "").partition("\n")[0]
        call = "" if isinstance(target, property) else "(…)"
        lines.append(f"- `.{name}{call}`: {first}")
    if lines:
        yield "\n".join(lines) + "\n"


def _to_markdown(text: str) -> str:
    """Return a docstring with its examples as code blocks, and its parameters as a list."""
    text = re.sub(r"^Parameters\n-+\n((?:.+\n?)*)", lambda match: _list_parameters(match[1]), text, flags=re.MULTILINE)
    text = re.sub(r"^(>>>(?:.+\n?)*)", lambda match: f"```pycon\n{match[1].rstrip()}\n```\n", text, flags=re.MULTILINE)
    return text.strip("\n") + "\n"


def _list_parameters(text: str) -> str:
    """Return a list from `name`, and its description indented below."""
    return re.sub(r"^(\S.*)\n    ", r"- `\1`: ", text, flags=re.MULTILINE).replace("\n    ", "\n  ")


def _make_anchors(names: Iterable[str]) -> dict[str, str]:
    """Return the anchors that Markdown gives to the titles, numbered where two differ only in capitals."""
    anchors: dict[str, str] = {}
    for name in names:
        same = sum(other.lower() == name.lower() for other in anchors)
        anchors[name] = f"hs{name.lower()}-{same}" if same else f"hs{name.lower()}"
    return anchors
