"""Pages and reports of studies as templates: a person wrote the sentences, and numbers are looked up in results."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2
import xarray as xr

from headscope.core.estimate import estimate
from headscope.core.prose import count_noun, format_signed, join_words
from headscope.experiments.rendering.sentences import conjugate


def fill_template(template: Path | str, **values: Any) -> str:
    """Return a Jinja template, a file or its text, filled with values; a name that has no value is an error.

    Templates look numbers up themselves: `interval(data, "entropy", ".2f", lens="raw")`. Filters are `signed` (a number
    with a form), `words` (a list in words), `span` (from the least to the greatest), `count` (a number and its noun),
    `separator` (of a loop: what stands behind an item of a list in words), `phrases` (every item in a phrase), `tally`
    (counts of verdicts), `conjugate` (one verdict as a predicate). A file may import macros from files beside it.

    >>> data = xr.Dataset({"gain": 0.126, "gain_low": 0.1, "gain_high": 0.15})
    >>> fill_template("It gains {{ interval(data, 'gain', '.2f') }}, {{ ['a', 'b'] | words }}.", data=data)
    'It gains 0.13 [0.10, 0.15], a and b.'
    """
    if isinstance(template, Path):
        beside = _ENVIRONMENT.overlay(loader=jinja2.FileSystemLoader(template.parent))
        return beside.get_template(template.name).render(values)
    return _ENVIRONMENT.from_string(template).render(values)


def join_lines(text: str) -> str:
    r"""Return Markdown with every paragraph in one line, so that a template may have a line for each sentence.

    Headings, rows of tables and code stay as they are; an item of a list begins a line.

    >>> join_lines("# Title\n\nOne sentence.\nAnother.\n\n- An item.\nMore of it.\n")
    '# Title\n\nOne sentence. Another.\n\n- An item. More of it.\n'
    """
    lines: list[str] = []
    code = open_paragraph = False
    for line in text.splitlines():
        fence = line.startswith("```")
        code ^= fence
        prose = bool(line) and not (fence or code or line.startswith(("|", "# ", "##")))
        if prose and open_paragraph and not line.startswith("- "):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
        open_paragraph = prose
    return "\n".join(lines) + ("\n" if text.endswith("\n") else "")


def look_up(data: xr.Dataset, name: str, **where: Any) -> float:
    """Return one number of a result, at labels of its dimensions.

    Parameters
    ----------
    data
        The result.
    name
        The name of the variable.
    **where
        A label for each dimension of the variable.

    >>> look_up(xr.Dataset({"gain": ("lens", [0.1, 0.2])}, {"lens": ["raw", "flow"]}), "gain", lens="flow")
    0.2
    """
    return float(data[name].sel(where))


def format_interval(data: xr.Dataset, name: str, form: str, scale: float = 1.0, unit: str = "", **where: Any) -> str:
    """Return a number with its interval, such as 0.13 [0.10, 0.15]; a dash where it is not known.

    Parameters
    ----------
    data
        The result, which holds the number and the ends of its interval.
    name
        The name of the variable.
    form
        How the numbers are formatted, such as ".2f".
    scale
        A factor, such as 100 for per cent.
    unit
        What stands behind the number, such as " %".
    **where
        A label for each dimension of the variable.

    >>> data = xr.Dataset({"gain": 0.126, "gain_low": 0.1, "gain_high": 0.15})
    >>> format_interval(data, "gain", ".0f", 100.0)
    '13 [10, 15]'
    >>> format_interval(data, "gain", ".0f", 100.0, " %")
    '13 % [10, 15]'
    """
    quantity = estimate(data, name).sel(**where).scale(scale)
    if math.isnan(float(quantity.value)):
        return "–"
    ends = [format_signed(float(end), form) for end in (quantity.low, quantity.high) if end is not None]
    return format_signed(float(quantity.value), form) + unit + (f" [{', '.join(ends)}]" if ends else "")


def format_range(values: Iterable[Any], form: str = ".0f", unit: str = " %") -> str:
    """Return the least and the greatest number, such as −30 to −10 %.

    >>> format_range([-0.4, -0.2], ".1f", ""), format_range([12.2, 11.9])
    ('−0.4 to −0.2', '12 %')
    """
    numbers = [float(value) for value in values]
    if not numbers:
        return "no value"
    low, high = (format_signed(value, form) for value in (min(numbers), max(numbers)))
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def separate_items(loop: Any, last: str = "and") -> str:
    """Return what stands behind an item of a list in words: a comma, the last word, or nothing.

    Parameters
    ----------
    loop
        Jinja's own variable in a loop.
    last
        The word before the last item.

    >>> fill_template("{% for name in names %}on {{ name }}{{ loop | separator }}{% endfor %}", names=["a", "b", "c"])
    'on a, on b and on c'
    """
    if loop.last:
        return ""
    return f" {last} " if loop.revindex == 2 else ", "


def format_phrases(items: Iterable[Any], form: str) -> list[str]:
    """Return every item in a phrase: a value, or a tuple of values, in the places of `form`; lists among them in words.

    >>> format_phrases([("RTE", 0.5), ("MRPC", 0.25)], "{} ({:.2f})")
    ['RTE (0.50)', 'MRPC (0.25)']
    >>> format_phrases([(32, ["a", "b"])], "{} in {}")
    ['32 in a and b']
    """
    rows = [item if isinstance(item, tuple) else (item,) for item in items]
    return [form.format(*(join_words(value) if isinstance(value, list) else value for value in row)) for row in rows]


def tally_verdicts(counts: Mapping[str, int]) -> str:
    """Return counts of verdicts in words.

    >>> tally_verdicts({"holds": 4, "refuted by exactness": 1})
    '4 hold and 1 is refuted by exactness'
    """
    return join_words(f"{count} {conjugate(verdict, count)}" for verdict, count in counts.items())


_ENVIRONMENT = jinja2.Environment(
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
)
_ENVIRONMENT.globals |= {"look_up": look_up, "interval": format_interval}
_ENVIRONMENT.filters |= {
    "signed": format_signed,
    "words": join_words,
    "span": format_range,
    "count": count_noun,
    "separator": separate_items,
    "phrases": format_phrases,
    "tally": tally_verdicts,
    "conjugate": conjugate,
}
