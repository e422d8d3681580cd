"""Messages of the library in the words of the shell: `max_length=0` becomes `--max-length 0`."""

import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, get_args, get_origin

from typer.models import ArgumentInfo, OptionInfo

ALIASES = {"overwrite": "force"}
"""Python parameters whose option has another name."""

VALUE = r"hs\.\w+\([^()]*\)|'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\([^)]*\)|[^\s,;:()'\"]*[^\s,;:.()'\"]"
QUOTES = "'\" "
_BOTH = re.compile(rf"(?:hs\.\w+\([^()]*\)|\b\w+=(?:{VALUE})),\s+in the shell\s+")
_CALL = re.compile(r"\bhs\.(\w+)(?:\([^()]*\))?")


def to_shell_words(message: str, flags: Mapping[str, tuple[str, str]], commands: Iterable[str]) -> str:
    """Replace Python parameters by the options of a command, and calls such as `hs.measure(…)` by the command.

    `flags` are those of `option_flags`.

    >>> flags = {"max_length": ("--max-length", ""), "resume": ("--resume", "--no-resume")}
    >>> to_shell_words("max_length=0 is too small. Leave max_length out, or add resume=True.", flags, ())
    '--max-length 0 is too small. Leave --max-length out, or add --resume.'
    >>> to_shell_words("Resume it (resume=True, in the shell --resume).", flags, ())
    'Resume it (--resume).'
    """
    known = set(commands)
    message = _BOTH.sub("", message)
    message = _CALL.sub(lambda call: f"headscope {call[1].replace('_', '-')}" if call[1] in known else call[0], message)
    for name, (flag, off) in flags.items():
        pattern = rf"(?<![\w.:,-]){name}=({VALUE})?"
        message = re.sub(pattern, partial(_write_option, flag, off), message)
        if "_" in name:
            message = re.sub(rf"(?<![\w.:,-]){name}\b(?![=(])", flag, message)
    return message


def option_flags(command: Callable[..., Any]) -> dict[str, tuple[str, str]]:
    """Return the option of every parameter, and for a boolean that which turns it off; of an argument its name."""
    flags = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind, *about = get_args(parameter.annotation) if get_origin(parameter.annotation) else [parameter.annotation]
        info = next((item for item in about if isinstance(item, OptionInfo | ArgumentInfo)), None)
        if isinstance(info, ArgumentInfo):
            flags[name] = (info.metavar or name.upper(), "")
        elif info is not None:
            words = (info.default, *(info.param_decls or ()))  # typer takes the first name for the default
            names = [word for word in words if isinstance(word, str) and word.startswith("--")]
            flag, _, off = (names or [f"--{name.replace('_', '-')}"])[0].partition("/")
            boolean = kind is bool or bool in get_args(kind)
            flags[name] = (flag, off or (f"--no-{flag[2:]}" if boolean else ""))
    return flags | {name: flags[option] for name, option in ALIASES.items() if option in flags}


def _write_option(flag: str, off: str, match: re.Match[str]) -> str:
    """Return an option with its value; a boolean option, which has an `off`, has none."""
    value: str | None = match[1]
    if value is None:
        return flag
    if off:
        return off if value == "False" else flag
    items = value[1:-1].split(",") if value[0] in "[(" else [value]  # an option of several values is repeated
    return " ".join(f"{flag} {shlex.quote(item.strip(QUOTES))}" for item in items if item.strip())
