"""A studio that really listens: its server in a thread, asked over sockets."""

import asyncio
import json
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from headscope.studio.app import Studio, make_app
from headscope.studio.folder import StudioFolder
from headscope.studio.guard import Address, Guard
from headscope.studio.options import Limits
from headscope.studio.server import StudioServer, bind, make_config
from headscope.studio.session import Session
from tests.models import network, tokenizer

SECONDS = 60
"""How long anything may take before a test fails; what is waited for comes much sooner."""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return ", ".join(value for key, value in self.headers if key.lower() == name)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        assert self.header("content-type") == "application/json"
        return str(self.json["error"])


@dataclass
class LiveStudio:
    """A server and its secrets."""

    guard: Guard
    server: StudioServer
    port: int
    session: Session
    sockets: list[socket.socket] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def studio(self) -> Studio:
        return self.guard.app.state.studio

    @property
    def cookie(self) -> str:
        return f"headscope-{self.port}={self.session.cookie}"

    def ask(self, path: str, body: Any = None, *, method: str | None = None, **headers: str | None) -> Answer:
        """Ask as the page does; a header of None is left out, `content_type` is Content-Type."""
        sent: dict[str, str | None] = {"host": self.host, "cookie": self.cookie}
        if body is not None:
            sent |= {"content-type": "application/json", "x-headscope": "1"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        connection.putrequest(method or ("GET" if body is None else "POST"), path, skip_host=True)
        for name, value in sent.items():
            if value is not None:
                connection.putheader(name, value)
        if content is not None:
            connection.putheader("content-length", str(len(content)))
        connection.endheaders(content)
        response = connection.getresponse()
        answer = Answer(response.status, response.getheaders(), response.read())
        connection.close()
        return answer

    def connect(self) -> socket.socket:
        """Return a connection for any bytes."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)
        self.sockets.append(connection)
        return connection

    def send(self, content: bytes) -> bytes:
        """Send bytes, and return all that comes until the server closes the connection."""
        with self.connect() as connection:
            connection.sendall(content)
            return read_all(connection)

    def watch(self, **headers: str) -> "Stream":
        """Return a stream of events."""
        connection = self.connect()
        lines = [f"GET /api/events HTTP/1.1\r\nHost: {self.host}\r\nCookie: {self.cookie}\r\n"]
        lines += [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
        connection.sendall("".join([*lines, "\r\n"]).encode())
        return Stream(connection)

    def until(self, condition: Any) -> None:
        """Wait in the server's own loop until a condition of it holds."""
        loop = self.studio.jobs.loop

        async def wait() -> None:
            async with asyncio.timeout(SECONDS):
                while not condition():
                    await asyncio.sleep(0.005)

        asyncio.run_coroutine_threadsafe(wait(), loop).result()


class Stream:
    """Server-sent events, read one by one."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.file = connection, connection.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        while self.file.readline().strip():
            pass

    def next(self) -> Any:
        """Return the content of the next event."""
        for line in self.file:
            if line.startswith(b"data: "):
                return json.loads(line[6:])
        raise EOFError

    def until(self, condition: Any) -> Any:
        """Return the first event with a job for which a condition holds, and that job."""
        while True:
            for job in self.next()["jobs"]:
                if condition(job):
                    return job

    def close(self) -> None:
        self.file.close()
        self.connection.close()


def read_all(connection: socket.socket) -> bytes:
    """Return what comes until a connection is closed."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@contextmanager
def run_studio(
    folder: Path, *, given: Sequence[str] = (), limits: Limits | None = None, host: str = "127.0.0.1"
) -> Iterator[LiveStudio]:
    """Run a studio on a free port of loopback until the block ends."""
    limits = limits or Limits()
    listener, session = bind(host, 0), Session()
    address = Address(host, listener.getsockname()[1])
    guard = make_app(StudioFolder.open(folder, limits), list(given), address, session, limits, warm=False)
    server = StudioServer(make_config(guard, limits), guard)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    live = LiveStudio(guard, server, address.port, session)
    try:
        while not server.started:
            assert thread.is_alive()
            thread.join(0.01)
        yield live
    finally:
        for connection in live.sockets:
            connection.close()
        server.handle_exit(signal.SIGTERM, None)
        thread.join(SECONDS)
        assert not thread.is_alive()


def save_model(folder: Path, kind: str = "bert", architecture: Any = None, **changes: Any) -> Path:
    """Save a tiny model of random weights with its tokenizer; `architecture` is the class of a model with a head."""
    built = network(kind, **changes)
    if architecture is not None:
        whole = architecture(built.config).eval()
        whole.base_model.load_state_dict(built.state_dict(), strict=False)
        built = whole
    built.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder
