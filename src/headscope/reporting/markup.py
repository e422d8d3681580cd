"""Texts and captions of a report, with `code` and **bold**, as HTML, LaTeX or plain text."""

import html
import re

from headscope.core.document import Picture, Table

_MARKS = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*")


def full_caption(part: Table | Picture) -> str:
    """Return the caption of a table or picture with its number of examples, and why that was reduced."""
    n = f"{part.n:,}" if isinstance(part.n, int) else part.n
    sentences = [_end_sentence(part.caption), _end_sentence(f"n = {n}") if n else ""]
    if part.reduced:
        sentences.append(f"**Reduced:** {_end_sentence(part.reduced)}")
    return " ".join(filter(None, sentences))


def _end_sentence(text: str) -> str:
    """Add a full stop where the text has none.

    >>> _end_sentence("Entropy by layer"), _end_sentence("Which one?")
    ('Entropy by layer.', 'Which one?')
    """
    text = text.strip()
    return text if not text or text[-1] in ".?!" else f"{text}."


def to_html(text: str) -> str:
    """Return text as HTML, with `code` and **bold** marked up and everything else escaped.

    >>> to_html("**Mind** `a < b` & c")
    '<strong>Mind</strong> <code>a &lt; b</code> &amp; c'
    """
    return _convert(html.escape(text), "<code>{}</code>", "<strong>{}</strong>")


def to_latex(text: str) -> str:
    """Return text as LaTeX, with the same markup.

    >>> to_latex("**5 %** of `a_b`")
    '\\\\textbf{5 \\\\%} of \\\\texttt{a\\\\_b}'
    """
    return _convert(escape_latex(text), r"\texttt{{{}}}", r"\textbf{{{}}}")


def to_text(text: str) -> str:
    """Return text without markup.

    >>> to_text("**5 %** of `a_b`")
    '5 % of a_b'
    """
    return _convert(text, "{}", "{}")


def escape_latex(text: str) -> str:
    """Replace characters that are special in LaTeX, or unknown to it without further packages."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _convert(text: str, code: str, bold: str) -> str:
    """Replace marks by the formats of code and bold."""
    return _MARKS.sub(lambda mark: code.format(mark[1]) if mark[1] is not None else bold.format(mark[2]), text)


_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    "[": "{[}",  # after \\ it would begin an optional argument
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
