"""The viewer as a widget of a notebook. Importing this module needs the extra `notebook`."""

from functools import cached_property
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex

from headscope.core.errors import HeadscopeError, InputError, first_line, require_package
from headscope.display import state as states
from headscope.display.notebook import ShownOnce
from headscope.display.options import ViewerOptions
from headscope.display.still import describe_header, make_bundle
from headscope.viewer.page import read_static, write_viewer_page
from headscope.viewer.source import Source

PURPOSE = "The viewer in a notebook"
anywidget = require_package("anywidget", "notebook", PURPOSE)
traitlets = require_package("traitlets", "notebook", PURPOSE)


class SelectionError(InputError, traitlets.TraitError):  # type: ignore[misc, name-defined]  # of an extra
    """What was chosen is not in the source. Traitlets keeps the old value after an error of its own kind only."""


class Position(traitlets.Int):  # type: ignore[misc, name-defined]  # of an extra
    """An integer of any kind, also of numpy."""

    def validate(self, obj: Any, value: Any) -> Any:
        """Return it as an int."""
        plain = isinstance(value, SupportsIndex) and not isinstance(value, bool)
        return super().validate(obj, index(value) if plain else value)


class ViewerWidget(ShownOnce, anywidget.AnyWidget):  # type: ignore[misc, name-defined]  # of an extra
    """The viewer of a source. What is chosen in the browser is in `layer`, `head`, … here, and the other way around.

    Arrays stay in Python until the browser asks for one.
    """

    header = traitlets.Dict(help="What is shown, without weights.").tag(sync=True)
    sheet = Position(0, help="Position of the model or attention site.").tag(sync=True)
    view = traitlets.Unicode("grid", help="grid, head, compare, matrix, layers, models or result.").tag(sync=True)
    lens = traitlets.Unicode("", help="Name of the lens.").tag(sync=True)
    layer = Position(0, help="Label of the layer.").tag(sync=True)
    head = Position(0, help="Label of the head.").tag(sync=True)
    token = Position(None, allow_none=True, help="Position of the chosen token, or None.").tag(
        sync=True, to_json=lambda value, _: -1 if value is None else value
    )
    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(self, source: Source, options: ViewerOptions | None = None) -> None:
        self.source = source
        super().__init__(header=source.header(), **states.make_state(source.header(), options or ViewerOptions()))
        self.on_msg(self._answer)

    @traitlets.default("_esm")  # type: ignore[untyped-decorator]  # of an extra
    def _read_script(self) -> str:
        return read_static("viewer.js")

    @traitlets.default("_css")  # type: ignore[untyped-decorator]  # of an extra
    def _read_style(self) -> str:
        return read_static("viewer.css")

    @traitlets.validate("sheet", "view", "lens", "layer", "head", "token")  # type: ignore[untyped-decorator]  # of an extra
    def _check(self, proposal: dict[str, Any]) -> Any:
        """Return what was chosen, as it is stored; raise an InputError for what is not in the source."""
        name, value = proposal["trait"].name, proposal["value"]
        try:
            return self._check_value(name, value)
        except InputError as error:
            raise SelectionError(str(error)) from error

    def _check_value(self, name: str, value: Any) -> Any:
        match name:
            case "view":
                return states.check_view(value)
            case "sheet":
                return states.check_sheet(self.header, value)
            case "lens":
                return states.check_lens(self.header, self.sheet, value)
            case "token":
                return states.check_token(self.header, self.sheet, value)
        return states.check_label(self.header, self.sheet, name, value)

    @traitlets.observe("sheet")  # type: ignore[untyped-decorator]  # of an extra
    def _keep_known(self, _: Any) -> None:
        """Choose the first lens, layer or head of another sheet where it does not have the one that was chosen."""
        for name in ("lens", "layer", "head", "token"):
            try:
                self._check_value(name, getattr(self, name))
            except InputError:
                setattr(self, name, self._check_value(name, None))

    def _answer(self, _: Any, content: Any, buffers: Any) -> None:  # noqa: ARG002  (ipywidgets gives the buffers)
        """Send the block that the browser asks for, or a sentence on why there is none."""
        if not isinstance(content, dict) or content.get("type") != "block":
            return
        ticket = {"ticket": content.get("ticket")}
        try:
            block = self.source.block(str(content.get("name")))
        except HeadscopeError as error:
            self.send({**ticket, "error": str(error)})
        except Exception as error:  # the browser waits for an answer whatever happens
            self.send({**ticket, "error": f"Python could not read it: {first_line(error)}."})
        else:
            self.send(ticket, buffers=[block])

    def write_page(self, path: Path) -> None:
        """Write the viewer with all its arrays as a page; `hs.save(viewer, "page.html")` calls this."""
        write_viewer_page(self.source, path)

    def __repr__(self) -> str:
        return f"ViewerWidget({describe_header(self.header, self.sheet)}, at L{self.layer}H{self.head})"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the widget, and a picture of it for viewers without widgets."""
        view = {"version_major": 2, "version_minor": 1, "model_id": self.model_id}
        return {"text/plain": repr(self), **self._still, "application/vnd.jupyter.widget-view+json": view}

    @cached_property
    def _still(self) -> dict[str, str]:
        return make_bundle(self.source, {"sheet": self.sheet, "lens": self.lens})
