"""Options of `hs.show`."""

from dataclasses import dataclass

from headscope.core.options import option


@dataclass(frozen=True, kw_only=True)
class ViewerOptions:
    """What the viewer shows at first."""

    example: int = option(0, "Position of the text, of maps of several.")
    view: str | None = option(
        None, "grid, head, compare, matrix, layers, models or result. Default: grid, or head where one is chosen."
    )
    sheet: int = option(0, "Position of the model or attention site, of several.")
    lens: str | None = option(None, "A lens that is shown. Default: the first.")
    layer: int | None = option(None, "A layer, by its label; negative ones count from the end. Default: the first.")
    head: int | None = option(None, "A head, by its label; negative ones count from the end. Default: the first.")
    token: int | None = option(None, "Position of a token whose weights are shown. Default: none.")
