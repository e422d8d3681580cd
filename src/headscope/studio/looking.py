"""What the page asks models: maps of a text through lenses, with heads switched off or tokens generated."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headscope.core.catalog import lenses
from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.core.prose import count_noun
from headscope.core.target import parse_target
from headscope.studio.entries import EDITS, check_heads, make_spec
from headscope.studio.fitting import check_generates, check_reads, explain_output
from headscope.studio.options import Limits

if TYPE_CHECKING:
    from headscope.core.maps import Maps
    from headscope.core.trace import Trace
    from headscope.engine.model import Model
    from headscope.viewer.source import ViewSource

TOP = 8
"""Classes or words that a prediction lists."""

GRADIENTLESS = "so the lens 'gradient' has nothing to follow. Leave it out, or choose a model that predicts one."
HEADLESS = "{model} predicts neither classes nor words: it gives a vector for the text, the mean over its tokens."

UNTYPED = ("label", "loss")
"""Targets that need more than a text."""


@dataclass(frozen=True)
class LookRequest:
    """What is asked of models: a text, and how to look at it."""

    text: str
    pair: str | None
    models: tuple[Any, ...]
    lenses: tuple[str, ...] = ()
    target: str | None = None
    off: tuple[str, ...] = ()
    edit: str = EDITS[0]
    show_off: bool = False  # maps of the model without these heads, too
    generate: int = 0

    @classmethod
    def read(cls, body: Mapping[str, Any], limits: Limits) -> "LookRequest":
        """Check what a page sent."""
        text, pair = (_read_text(body, name, limits) for name in ("text", "pair"))
        if not text:
            raise InputError("The text is empty. Type at least one word.")
        models = body.get("models")
        if not isinstance(models, list) or not 0 < len(models) <= limits.models:
            raise InputError(f"Choose one model, or up to {limits.models} to compare.")
        chosen = body.get("lenses", [])
        if not isinstance(chosen, list) or len(chosen) > limits.lenses:
            raise InputError(f"Choose at most {limits.lenses} lenses at once.")
        specs = tuple(dict.fromkeys(make_spec(lenses, lens) for lens in chosen))
        return cls(
            text=text,
            pair=pair,
            models=tuple(models),
            lenses=specs,
            target=_read_target(body, specs),
            off=check_heads(body.get("off", [])),
            edit=_read_edit(body),
            show_off=body.get("showOff") is True,
            generate=_read_count(body, "generate", limits.new_tokens),
        )

    @property
    def example(self) -> Example:
        """The text as an example: a text that names a file is still a text."""
        return Example("text", self.text, self.pair)

    @property
    def edit_spec(self) -> str:
        """The edit that switches the heads off."""
        return f"{self.edit}:heads={'+'.join(self.off)}"


@dataclass
class LookResult:
    """A source for the viewer, how many weights it keeps, and what to say of it."""

    source: "ViewSource"
    weights: int
    messages: list[str] = field(default_factory=list)
    generated: list[str] = field(default_factory=list)


def _read_text(body: Mapping[str, Any], name: str, limits: Limits) -> str | None:
    text = body.get(name)
    if text is not None and not isinstance(text, str):
        raise InputError(f"The {name} must be a text, but got {type(text).__name__}.")
    if text is not None and len(text) > limits.letters:
        raise InputError(f"The {name} has {len(text):,} letters; the studio takes {limits.letters:,} at most.")
    return text.encode("utf-8", "replace").decode() if text and text.strip() else None


def _read_target(body: Mapping[str, Any], specs: Sequence[str]) -> str | None:
    """Return the target where a lens needs one; without one it is what the model predicts."""
    target = body.get("target") or "predicted"
    if not isinstance(target, str) or len(target) > 200:
        raise InputError("The target must be a short text, such as predicted or class=NAME.")
    needed = any(lenses.make(spec).needs_target for spec in specs)
    if not needed:
        return None
    parsed = parse_target(target)
    if parsed.kind in UNTYPED or parsed.column is not None:
        raise InputError(
            f"The target {target} is read from labelled data, and a text that is typed has no label. Give predicted, "
            "class=NAME, mask:word=WORD or next:word=WORD."
        )
    return parsed.spec


def _read_edit(body: Mapping[str, Any]) -> str:
    edit = body.get("edit", EDITS[0])
    if edit not in EDITS:
        raise InputError(f"Heads are switched off by {' or '.join(EDITS)}, but got {str(edit)[:40]!r}.")
    return str(edit)


def _read_count(body: Mapping[str, Any], name: str, most: int) -> int:
    count = body.get(name) or 0
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= most:
        raise InputError(f"{name} must be a whole number from 0 to {most}, but got {str(count)[:40]!r}.")
    return count


def look(models: "Sequence[Model]", request: LookRequest, limits: Limits, say: Callable[[str], None]) -> LookResult:
    """Return what the viewer shows of one text: one sheet for each model and attention site."""
    from headscope.viewer.source import ViewSource, make_source

    result = LookResult(ViewSource([]), 0)
    with collect_warnings(result.messages):
        parts: list[Any] = []
        for model in models:
            say(f"Reading the text with {model.spec}")
            parts += _look_at(model, request, limits, result)
        lazy = [part for part in parts if isinstance(part, ViewSource)]
        maps = [part for part in parts if not isinstance(part, ViewSource)]
        if lazy and maps:
            raise InputError(
                "One of these models needs the text layer by layer, the other does not. Look at one alone."
            )
        if len(lazy) > 1:
            raise InputError("This text is too long to compare two models. Look at one alone, or give a shorter text.")
        source: Any = lazy[0] if lazy else make_source(maps)
        source = replace(source, sheets=_add_predictions(models, request, limits, source.sheets))
        source.header()
    result.source = replace(source, sheets=_add_messages(source.sheets, result.messages)) if result.messages else source
    return result


def _look_at(model: "Model", request: LookRequest, limits: Limits, result: LookResult) -> "list[Maps | ViewSource]":
    """Return the maps of one model at all its sites, or a source that reads a long text layer by layer."""
    from headscope.engine.edited import edited

    size = measure_input(model, request, limits)
    if size.weights * len(request.lenses) > limits.weights:
        return [_look_by_layer(model, request, size)]
    result.weights += size.weights * len(request.lenses) * (2 if request.off and request.show_off else 1)
    maps = _view_all(model, request, result)
    if request.off and request.show_off:
        try:
            with edited(model, request.edit_spec) as changed:
                maps += _view_all(changed, request, result)
        except InputError as error:
            if len(request.models) == 1:
                raise
            result.messages.append(f"{model.spec} has no such heads. {error}")
    return list(maps)


@dataclass(frozen=True)
class InputSize:
    """How large the maps of an input are."""

    tokens: int
    layer_weights: int  # of all heads of one layer
    weights: int  # of all layers


def measure_input(model: "Model", request: LookRequest, limits: Limits) -> InputSize:
    """Return the size of the maps; raise InputError where it is beyond what the studio takes."""
    from headscope.engine.capture import prepare_inputs
    from headscope.engine.model import read_size

    check_reads(model)
    inputs = prepare_inputs(model, [request.example], None, max_length=None, pad_to=None)
    sides = [tokens.real.shape[1] for tokens in (inputs.source, inputs.target) if tokens is not None]
    tokens = max(sides) + request.generate
    if request.generate:
        check_generates(model, max(sides), request.generate)
    config = model.network.config.get_text_config()
    heads, layers = (read_size(config, name) for name in ("num_attention_heads", "num_hidden_layers"))
    if tokens > limits.tokens:
        raise InputError(f"The text has {tokens:,} tokens; the studio takes {limits.tokens:,} at most. Shorten it.")
    if heads * tokens**2 > limits.layer_weights:
        raise InputError(
            f"One layer has {heads * tokens**2:,} weights for {tokens:,} tokens and {count_noun(heads, 'head')}; the "
            f"studio takes {limits.layer_weights:,} at most. Shorten the text."
        )
    return InputSize(tokens, heads * tokens**2, heads * tokens**2 * layers)


def _look_by_layer(model: "Model", request: LookRequest, size: InputSize) -> "ViewSource":
    """Return a source of a long input."""
    from headscope.viewer.long_input import open_long_input

    if request.generate or request.target or (request.off and request.show_off):
        raise InputError(
            f"{size.tokens:,} tokens are read layer by layer, because {size.weights:,} weights for each lens are too "
            "many to keep. Gradients, generated tokens and maps without some heads need a shorter text."
        )
    return open_long_input(model, [request.example], lenses=request.lenses)


def _view_all(model: "Model", request: LookRequest, result: LookResult) -> "list[Maps]":
    from headscope.core.lens import view
    from headscope.engine.recording.sites import find_sites

    sites = find_sites(model)
    several = list(sites.sides) if model.network.config.is_encoder_decoder else [sites.main]
    traces = [_capture(model, request, site, result) for site in several]
    return [view(trace, lens) for trace in traces for lens in request.lenses]


def _capture(model: "Model", request: LookRequest, site: str, result: LookResult) -> "Trace":
    from headscope.engine.capture import capture
    from headscope.engine.generate import generate

    needs = frozenset[str]().union(*(lenses.make(lens).needs for lens in request.lenses))
    keep = sorted({"values"} | (needs - {"gradient"}))
    if not request.generate:
        with explain_output(model, GRADIENTLESS):
            return capture(model, [request.example], site=site, keep=keep, target=request.target)
    if request.target is not None:
        raise InputError("Generated tokens have no gradient: leave out the lens 'gradient', or generate no tokens.")
    trace = generate(model, [request.example], max_new_tokens=request.generate, site=site, keep=keep)
    result.generated.append(str(trace.examples[0].columns.get("generated", "")))
    return trace


def _add_predictions(models: "Sequence[Model]", request: LookRequest, limits: Limits, sheets: Any) -> list[Any]:
    """Return sheets with what their models predict for the text as it was typed."""
    tops: dict[str, Any] = {}
    for model in models:
        try:
            tops[model.spec] = predict_all(model, replace(request, off=()), limits)["before"] or None
        except InputError:  # such as a text without a mask token; the panel of predictions says so when it is asked
            tops[model.spec] = None
    return [replace(sheet, prediction=tops.get(sheet.model)) for sheet in sheets]


def _add_messages(sheets: Any, messages: Sequence[str]) -> list[Any]:
    return [replace(sheets[0], messages=[*sheets[0].messages, *messages]), *sheets[1:]] if sheets else list(sheets)


def predict_all(model: "Model", request: LookRequest, limits: Limits) -> dict[str, Any]:
    """Return what a model predicts for a text, and what it predicts with heads switched off."""
    from headscope.engine.edited import edited
    from headscope.engine.predictions import compare_predictions, cosine, predict

    measure_input(model, request, limits)
    with explain_output(model, "so there is nothing to compare."):
        before = predict(model, request.example)
    if before.scores.isnan().any():
        raise InputError(f"{model.spec} predicts NaN for this text, so there is nothing to compare.")
    answer: dict[str, Any] = {"model": model.spec, "kind": before.kind, "before": before.list_top(TOP)}
    answer["note"] = HEADLESS.format(model=model.spec) if before.kind == "vector" else ""
    if not request.off:
        return answer
    try:
        with edited(model, request.edit_spec) as changed:
            after = predict(changed, request.example)
    except InputError as error:
        if len(request.models) == 1:
            raise
        return answer | {"note": f"{model.spec} has no such heads. {error}"}  # but the other model may
    answer |= {"rows": compare_predictions(before, after, TOP), "edit": request.edit_spec}
    return answer | ({"cosine": cosine(before, after)} if before.kind == "vector" else {})


@contextmanager
def collect_warnings(messages: list[str]) -> Iterator[None]:
    """Add what headscope warns of in this block to the messages."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    notes = [str(note.message) for note in caught if issubclass(note.category, DataWarning)]
    messages.extend(dict.fromkeys(notes))
