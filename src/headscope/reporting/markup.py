"""The little markup that texts of a report may have, as HTML, LaTeX or plain text."""

import html
import re
from collections.abc import Callable

_MARKS = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*")


def as_html(text: str) -> str:
    """Text for a page, `code` and **bold** marked up and everything else escaped.

    >>> as_html("**Mind** `a < b` & c")
    '<strong>Mind</strong> <code>a &lt; b</code> &amp; c'
    """
    return _marked(text, html.escape, lambda code: f"<code>{code}</code>", lambda bold: f"<strong>{bold}</strong>")


def as_latex(text: str) -> str:
    """Text for LaTeX, with the same marks.

    >>> as_latex("**5 %** of `a_b`")
    '\\\\textbf{5 \\\\%} of \\\\texttt{a\\\\_b}'
    """
    return _marked(text, latex_escaped, lambda code: f"\\texttt{{{code}}}", lambda bold: f"\\textbf{{{bold}}}")


def as_text(text: str) -> str:
    """Text alone.

    >>> as_text("**5 %** of `a_b`")
    '5 % of a_b'
    """
    return _marked(text, str, str, str)


def latex_escaped(text: str) -> str:
    """Text in which no character means anything to LaTeX, and none is unknown to it without further packages."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _marked(text: str, plain: Callable[[str], str], code: Callable[[str], str], bold: Callable[[str], str]) -> str:
    found, done = [], 0
    for mark in _MARKS.finditer(text):
        found.append(plain(text[done : mark.start()]))
        found.append(code(plain(mark[1])) if mark[1] is not None else bold(plain(mark[2])))
        done = mark.end()
    return "".join([*found, plain(text[done:])])


_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    "[": "{[}",  # after \\ it would open an option
    "]": "{]}",
    "−": "$-$",
    "×": r"$\times$",
    "÷": r"$\div$",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "∞": r"$\infty$",
    "≈": r"$\approx$",
    "→": r"$\to$",
    "·": r"$\cdot$",
    "‖": r"$\|$",
    "Σ": r"$\Sigma$",
    "\n": " ",
}
