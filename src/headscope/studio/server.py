"""Start the server of a studio: a socket, the printed address, and a protocol that slow clients cannot hold up."""

import asyncio
import os
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from headscope.core.errors import InputError, first_line
from headscope.engine.load import SAFETENSORS
from headscope.studio.app import make_app
from headscope.studio.folder import StudioFolder
from headscope.studio.guard import SAFE_HEADERS, WILDCARDS, Address
from headscope.studio.options import Limits, StudioOptions
from headscope.studio.session import Session

KEEP_ALIVE = 30
HEAD_BYTES = 32_768
BACKLOG = 512
WARNING = (
    "Warning: with --host {host}, other computers can reach this studio. Whoever has the address below can use your "
    "models and the results in this folder, and the connection is not encrypted."
)


def serve(options: StudioOptions, say: Callable[[str], None]) -> None:
    """Run a studio until it is interrupted.

    Parameters
    ----------
    options
        Folder, models, address.
    say
        Prints a line for the user.
    """
    limits = Limits()
    folder = StudioFolder.open(options.folder, limits)
    listener = bind(options.host, options.port)
    address, session = Address(options.host, listener.getsockname()[1]), Session()
    os.environ[SAFETENSORS] = "only"
    app = make_app(folder, list(options.model), address, session, limits)
    if not address.is_local:
        say(WARNING.format(host=options.host))
    say(f"The studio of {folder.root.name or folder.root} is at\n\n    {write_url(address, 'token', session.token)}\n")
    say("Whoever has this address can use it. Stop the studio with Ctrl-C.")
    if options.browser:
        url = write_url(address, "launch", session.launch)
        threading.Thread(target=webbrowser.open, args=[url], daemon=True).start()  # one in a terminal would not return
    asyncio.run(StudioServer(make_config(app, limits), app).serve(sockets=[listener]))


def write_url(address: Address, name: str, secret: str) -> str:
    """Return an address that lets a browser in."""
    host = socket.gethostname() if address.host in WILDCARDS else address.host
    return f"http://{f'[{host}]' if ':' in host else host}:{address.port}/?{name}={secret}"


def bind(host: str, port: int) -> socket.socket:
    """Return a socket at an address; raise InputError where that cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)  # a browser that is quicker than the server waits
    except (OSError, OverflowError, UnicodeError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or first_line(error)
        raise InputError(
            f"The studio cannot listen at host={host} port={port}: {reason}. "
            "Leave out port for a free one, and host for this computer alone."
        ) from error
    return listener


def make_config(app: Any, limits: Limits) -> Any:
    """Return the settings of the server: no log of requests, no name of the server, no proxies, no web sockets."""

    class Protocol(TimedProtocol):
        header_seconds, most = limits.header_seconds, limits.connections

    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=HEAD_BYTES,
        backlog=BACKLOG,
    )


class StudioServer(uvicorn.Server):  # type: ignore[misc]  # uvicorn is not checked
    """A server that ends its streams of events when it is interrupted."""

    def __init__(self, config: Any, app: Any) -> None:
        super().__init__(config)
        self.guard = app

    async def serve(self, sockets: Any = None) -> None:
        """Run until a signal comes, also that of a terminal which is closed."""
        closed = signal.SIGHUP
        if threading.current_thread() is threading.main_thread() and signal.getsignal(closed) is signal.SIG_DFL:
            asyncio.get_running_loop().add_signal_handler(closed, self.handle_exit, closed, None)
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End what would never end by itself, then the server."""
        studio = getattr(self.guard.app.state, "studio", None)
        if studio is not None:
            studio.jobs.loop.call_soon_threadsafe(studio.jobs.close_streams)
        super().handle_exit(sig, frame)


class TimedProtocol(H11Protocol):  # type: ignore[misc]  # uvicorn is not checked
    """A connection that is closed where the head of a request does not come in time, or where there are too many."""

    header_seconds, most = 10.0, 512
    timer: Any = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
            return
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read; where that is not yet the whole head of a request, wait for the rest."""
        before = self.cycle
        if self.timer is None and self._is_between_requests():
            self._wait()  # the first bytes of the next request
        super().data_received(data)
        if self.cycle is not before:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, with the headers of every answer; where one has begun already, only close."""
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"), *SAFE_HEADERS]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for part in (answer, h11.Data(data=msg.encode()), h11.EndOfMessage()):
                self.transport.write(self.conn.send(part))
        self.transport.close()

    def _is_between_requests(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def _wait(self) -> None:
        self.timer = self.loop.call_later(self.header_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _give_up(self) -> None:
        self.timer = None
        if not self.transport.is_closing():
            self.transport.close()
