"""Options of `hs.report`."""

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from headscope.core.options import OVERWRITE, describe, option


@dataclass(frozen=True)
class ReportOptions:
    """What `hs.report` takes."""

    what: Any = field(
        metadata=describe(
            "A Dataset, the path of a saved one, Maps, Importances, a list or a mapping of these, or a Document."
        )
    )
    out: Path | str = option("report", "Folder for the page, figures and tables.")
    _: KW_ONLY
    title: str | None = option(None, "Title of the page. Default: the model's name.")
    overwrite: bool = option(False, OVERWRITE)
