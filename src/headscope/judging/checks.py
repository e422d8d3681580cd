"""Checks of the options of `hs.faithfulness`."""

from dataclasses import fields
from typing import Any

from headscope.core.checks import check_seed
from headscope.core.errors import InputError, unknown_name
from headscope.judging.options import EdgeOptions, FaithfulnessOptions

JUDGES = ("edges", "pictures", "tokens")
CHOICES = {
    "heads": ("each", "all"),
    "remove": ("zero", "renormalize"),
    "read": ("auto", "first", "last", "mean"),
    "replace": ("mask", "unk"),
    "order": ("absolute", "signed"),
}


def list_judges(judge: Any) -> tuple[str, ...]:
    """Return the judges that are asked for; raise InputError for unknown ones and for those that do not go together."""
    judges = tuple(dict.fromkeys([judge] if isinstance(judge, str) else judge))
    if not judges:
        raise InputError(f"No judge was given. Name one: {', '.join(JUDGES)}.")
    for name in judges:
        if name not in JUDGES:
            raise unknown_name("judge", str(name), JUDGES)
    if "tokens" in judges and len(judges) > 1:
        raise InputError(
            "Edges and pictures share their interventions, but tokens are judged by others. Call hs.faithfulness once "
            "with judge='tokens', and once without."
        )
    return judges


def check_options(options: FaithfulnessOptions) -> None:
    """Raise InputError for values that make no sense, before anything runs."""
    for name, known in CHOICES.items():
        if getattr(options, name) not in known:
            raise InputError(f"{name}={getattr(options, name)!r} is none of {', '.join(known)}.")
    least = {"rows": 1, "keys": 2, "min_keys": 2, "top": 1, "random_orders": 1}
    for name, smallest in least.items():
        if getattr(options, name) < smallest:
            raise InputError(f"{name}={getattr(options, name)} is too small. Give at least {smallest}.")
    if options.min_keys > options.keys:
        raise InputError(
            f"min_keys={options.min_keys} is more than the keys={options.keys} that are sampled of a row. Give at most "
            f"{options.keys}."
        )
    if options.top >= options.min_keys:
        raise InputError(
            f"top={options.top} of rows with as few as min_keys={options.min_keys} keys would be all of them. Give "
            f"fewer than {options.min_keys}."
        )
    if not options.threshold > 0:
        raise InputError(f"threshold={options.threshold} must be above 0.")
    shares = options.shares
    if not shares or not all(0 < share <= 1 for share in shares):
        raise InputError(f"shares must be numbers above 0 and up to 1, such as (0.1, 0.2, 0.5), but got {shares!r}.")
    check_seed(options.seed)
    if "tokens" in list_judges(options.judge):
        _check_unused(options)


def _check_unused(options: FaithfulnessOptions) -> None:
    """Raise InputError for options of edges that were given although tokens are judged."""
    defaults = {item.name: item.default for item in fields(EdgeOptions)} | {"keep_edges": False}
    given = [name for name, default in defaults.items() if name != "read" and getattr(options, name) != default]
    if given:
        raise InputError(
            f"{given[0]}={getattr(options, given[0])!r} says which edges are removed, but judge='tokens' replaces "
            "tokens. Leave it out, or judge edges."
        )
