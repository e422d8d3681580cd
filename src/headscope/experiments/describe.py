"""What results of a study are stamped with: its options, the model and the seed."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.spec import entry_fields, entry_name
from headscope.core.study import Study

if TYPE_CHECKING:
    from headscope.engine.model import Model

SOURCES = (
    "data",
    "dev",
    "train",
    "tuned",
    "mlm",
    "relations",
    "translation",
    "parallel",
    "text",
    "mlm_text",
    "treebank",
    "coreference",
    "negations",
)


def describe_study(study: Any, base: "Model") -> dict[str, Any]:
    """Return what results of a study are stamped with: the command, changed options, the model and the seed."""
    changed = {
        name: value
        for name, value in describe_options(study).items()
        if _is_changed(getattr(study, name), getattr(type(study), name))
    }
    name = entry_name(type(study))
    return {
        "command": f"headscope study {name.replace('_', '-')}",
        "options": changed,
        "study": name,
        "model": base.spec,
        "weights_hash": base.weights_hash,
        "seed": study.seed,
        "device": base.device.type,
        "dtype": str(base.network.dtype).removeprefix("torch."),
    }


def describe_options(study: Study, ignore: Collection[str] = ()) -> dict[str, Any]:
    """Return the parameters of a study; of a path only its name, of data in memory their type."""
    values = {option.name: getattr(study, option.name) for option in entry_fields(study) if option.name not in ignore}
    return {
        name: _name_source(value) if name in SOURCES and value is not None and not isinstance(value, tuple) else value
        for name, value in values.items()
    }


def _name_source(source: Any) -> str:
    return Path(source).name if isinstance(source, str | os.PathLike) else type(source).__name__


def _is_changed(value: Any, default: Any) -> bool:
    """Return whether an option is not its default; data in memory cannot be compared with one."""
    return value is not default and not (isinstance(value, str | int | float | tuple) and value == default)
