"""The web app of a studio: its page, its files, and what the page asks for."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial, wraps
from importlib.resources import files
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from headscope.core.errors import HeadscopeError, InputError
from headscope.studio.commands import make_job
from headscope.studio.entries import describe_catalog
from headscope.studio.failures import explain_failure
from headscope.studio.folder import StudioFolder
from headscope.studio.guard import Address, Guard, Refusal
from headscope.studio.jobs import JobQueue
from headscope.studio.looking import LookRequest, LookResult, collect_warnings, look, predict_all
from headscope.studio.options import Limits
from headscope.studio.session import Session
from headscope.studio.shelf import ModelShelf
from headscope.studio.views import StoredView, ViewStore
from headscope.studio.worker import Worker
from headscope.version import __version__

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>headscope studio</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/viewer.css">
<script type="module" src="/static/viewer.js"></script>
</head>
<body class="headscope-page">
<div id="headscope-studio"><noscript>The studio needs JavaScript.</noscript></div>
</body>
</html>
"""
STATIC = {"viewer.js": "text/javascript; charset=utf-8", "viewer.css": "text/css; charset=utf-8"}
EXAMPLE = (
    "The committee met again in March, but the chair was ill, the minutes had been lost, and nobody knew what they had "
    "decided before; so they agreed to wait until the summer was over."
)
"""What the page shows before anyone types: long enough that effective attention differs from raw attention."""

MAX_NAME = 200
Result = TypeVar("Result")
Endpoint = Callable[["Studio", Any], Awaitable[Any]]


@dataclass
class Studio:
    """What the requests share."""

    folder: StudioFolder
    limits: Limits
    shelf: ModelShelf
    views: ViewStore
    jobs: JobQueue
    models: Worker  # runs models, one request after the other
    reader: Worker  # reads blocks of views

    @classmethod
    def open(cls, folder: StudioFolder, given: list[str], limits: Limits) -> "Studio":
        """Return a studio; a running event loop is needed."""
        jobs = JobQueue(folder, limits)
        shelf = ModelShelf(folder, given, jobs.say_from_thread)
        workers = Worker("models", limits.looks), Worker("blocks", limits.blocks)
        return cls(folder, limits, shelf, ViewStore(limits), jobs, *workers)

    async def run_model(self, function: Callable[[], Result]) -> Result:
        """Return what a function returns in the thread of the models, which says when it is idle again."""

        def work() -> Result:
            try:
                return function()
            finally:
                if self.models.pending <= 1:  # this one
                    self.shelf.say("")

        return await self.models.run(work)

    def warm(self) -> None:
        """Load the first model, so that the first look is quick; what is wrong with it is said then."""
        try:
            self.shelf.load(self.shelf.started()[0].source, self.limits.models)
        except HeadscopeError as error:
            self.shelf.say(f"The first model cannot be used: {error}")
        except Exception as error:
            self.shelf.say(explain_failure(error))
        else:
            self.shelf.say("")


def make_app(
    folder: StudioFolder, given: list[str], address: Address, session: Session, limits: Limits, *, warm: bool = True
) -> Guard:
    """Return the app behind its guard.

    Parameters
    ----------
    folder
        What may be opened.
    given
        Models given at the start.
    address
        Where the server listens.
    session
        The secrets of this start.
    limits
        What is refused.
    warm
        Load the first model at once.
    """

    @asynccontextmanager
    async def live(app: Starlette) -> AsyncIterator[None]:
        studio = app.state.studio = Studio.open(folder, given, limits)
        if warm:
            studio.models.submit(studio.warm)
        try:
            yield
        finally:
            await studio.jobs.close()
            studio.models.stop()
            studio.reader.stop()

    app = Starlette(routes=ROUTES, lifespan=live, exception_handlers={HTTPException: _answer_unknown})
    return Guard(app, address, session, limits)


async def _answer_unknown(_: Request, error: HTTPException) -> Response:
    sentences = {404: "There is nothing at this address.", 405: "This address is asked for in another way."}
    return reply({"error": sentences.get(error.status_code, "That did not work.")}, error.status_code)


def answer(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """Let an endpoint return plain data, and turn its errors into sentences.

    An error of headscope is for the user. Any other is printed in the terminal; the page gets its id only.
    """

    @wraps(endpoint)
    async def respond(request: Request) -> Response:
        try:
            content = await endpoint(request.app.state.studio, request)
            return content if isinstance(content, Response) else reply(content)
        except Refusal as refusal:
            return reply({"error": refusal.sentence}, refusal.status)
        except HeadscopeError as error:
            return reply({"error": str(error)}, 400)
        except Exception as error:
            return reply({"error": explain_failure(error)}, 500)

    return respond


def reply(content: Any, status: int = 200) -> Response:
    """Return data as JSON in ASCII: names of files and what a page sent may hold letters that UTF-8 does not have."""
    return Response(json.dumps(content, allow_nan=False), status, media_type="application/json")


async def read_body(request: Request) -> Mapping[str, Any]:
    """Return the JSON object of a request."""
    try:
        body = json.loads(await request.body(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InputError("The request is not JSON.") from None
    if not isinstance(body, dict):
        raise InputError("The request must be a JSON object.")
    return body


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


async def run_while_connected(
    request: Request, run: Callable[[Callable[[], Result]], Awaitable[Result]], work: Callable[[], Result]
) -> Result:
    """Return the result of work that a thread does; where the page has gone, it does not begin, or ends early."""
    left = threading.Event()

    def work_while_wanted() -> Result:
        from headscope.studio.stopping import stop_when

        with stop_when(left):
            return work()

    task = asyncio.ensure_future(run(work_while_wanted))
    gone = asyncio.ensure_future(_wait_until_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            raise Refusal(499, "The page has gone.")
        return task.result()
    finally:
        left.set()
        gone.cancel()


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def find_models(studio: Studio, asked: LookRequest) -> list[str | None]:
    """Return what `hs.load` takes for the models of a request, each once."""
    return await asyncio.to_thread(lambda: list(dict.fromkeys(map(studio.shelf.find, asked.models))))


async def _show_page(_: Request) -> Response:
    return Response(PAGE, media_type="text/html; charset=utf-8")


async def _send_static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404)
    content = (files("headscope") / "static" / name).read_bytes()
    return Response(content, headers={"content-type": STATIC[name]})


@answer
async def _list_all(studio: Studio, _: Request) -> dict[str, Any]:
    catalog = await asyncio.to_thread(describe_catalog)
    models = [{"id": model.id, "name": model.name} for model in await asyncio.to_thread(studio.shelf.list)]
    facts = {"version": __version__, "folder": studio.folder.root.name, "example": EXAMPLE}
    limits = {"letters": studio.limits.letters, "models": studio.limits.models, "newTokens": studio.limits.new_tokens}
    return {**catalog, **facts, "models": models, "limits": limits}


@answer
async def _list_files(studio: Studio, _: Request) -> dict[str, Any]:
    found, whole = await asyncio.to_thread(studio.folder.scan)
    return {"files": [file.describe() for file in found], "whole": whole}


@answer
async def _look(studio: Studio, request: Request) -> dict[str, Any]:
    asked = LookRequest.read(await read_body(request), studio.limits)
    if not asked.lenses:
        raise InputError("Choose at least one lens.")
    sources = await find_models(studio, asked)

    def work() -> tuple[StoredView, LookResult]:
        models = [studio.shelf.load(source, studio.limits.models) for source in sources]
        result = look(models, asked, studio.limits, studio.shelf.say)
        return studio.views.add(result.source, result.weights), result

    view, result = await run_while_connected(request, studio.run_model, work)
    return {"view": view.id, "messages": result.messages, "generated": result.generated}


@answer
async def _predict(studio: Studio, request: Request) -> dict[str, Any]:
    asked = LookRequest.read(await read_body(request), studio.limits)
    sources = await find_models(studio, asked)

    def work() -> dict[str, Any]:
        models, messages = [studio.shelf.load(source, studio.limits.models) for source in sources], list[str]()
        with collect_warnings(messages):
            predictions = [predict_all(model, asked, studio.limits) for model in models]
        return {"predictions": predictions, "messages": messages}

    return await run_while_connected(request, studio.run_model, work)


@answer
async def _open_result(studio: Studio, request: Request) -> dict[str, Any]:
    body = await read_body(request)
    file = await asyncio.to_thread(studio.folder.find, body.get("id"), "result")

    def work() -> StoredView:
        from headscope.results.store import open_result
        from headscope.viewer.source import make_source

        studio.shelf.say(f"Opening {file.name}")
        data = open_result(studio.folder.check(file.path))
        return studio.views.add(make_source(data), int(data.nbytes) // 4)

    view = await run_while_connected(request, studio.run_model, work)
    return {"view": view.id, "name": file.name}


@answer
async def _send_header(studio: Studio, request: Request) -> Response:
    return Response(studio.views.find(request.path_params["id"]).header, media_type="application/json")


@answer
async def _send_block(studio: Studio, request: Request) -> Response:
    view, name = studio.views.find(request.path_params["id"]), request.query_params.get("name", "")
    if not 0 < len(name) <= MAX_NAME:
        raise InputError("A block is asked for by its name.")
    content = await run_while_connected(request, studio.reader.run, partial(view.source.block, name))
    return Response(content, media_type="application/octet-stream")


@answer
async def _list_jobs(studio: Studio, _: Request) -> dict[str, Any]:
    return {"jobs": studio.jobs.list()}


@answer
async def _add_job(studio: Studio, request: Request) -> dict[str, Any]:
    body = await read_body(request)
    job = await asyncio.to_thread(make_job, body, studio.folder, studio.shelf)
    return studio.jobs.add(job).describe(studio.folder)


@answer
async def _cancel_job(studio: Studio, request: Request) -> dict[str, Any]:
    return studio.jobs.cancel(request.path_params["id"]).describe(studio.folder)


@answer
async def _resume_job(studio: Studio, request: Request) -> dict[str, Any]:
    return studio.jobs.resume(request.path_params["id"]).describe(studio.folder)


@answer
async def _watch(studio: Studio, request: Request) -> Response:
    events = studio.jobs.watch(request.headers.get("last-event-id", "")[:40])
    first = await anext(events)  # a refusal comes before the answer begins

    async def stream() -> AsyncIterator[str]:
        async with aclosing(events):
            yield first
            async for event in events:
                yield event

    return StreamingResponse(stream(), media_type="text/event-stream")


ROUTES = [
    Route("/", _show_page),
    Route("/static/{name}", _send_static),
    Route("/api/catalog", _list_all),
    Route("/api/files", _list_files),
    Route("/api/look", _look, methods=["POST"]),
    Route("/api/predict", _predict, methods=["POST"]),
    Route("/api/open", _open_result, methods=["POST"]),
    Route("/api/views/{id}/header", _send_header),
    Route("/api/views/{id}/block", _send_block),
    Route("/api/jobs", _list_jobs),
    Route("/api/jobs", _add_job, methods=["POST"]),
    Route("/api/jobs/{id}/cancel", _cancel_job, methods=["POST"]),
    Route("/api/jobs/{id}/resume", _resume_job, methods=["POST"]),
    Route("/api/events", _watch),
]
