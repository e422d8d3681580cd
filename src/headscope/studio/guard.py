"""What every request must pass before any other code sees it: host, origin, token, method, and the size of its body."""

import asyncio
import ipaddress
import json
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from headscope.studio.options import Limits
from headscope.studio.owner import is_own_connection
from headscope.studio.session import Session

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OWN_HEADER = b"x-headscope"
"""The header of every request that changes something: a page of another origin cannot send it without being asked."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
SAFE_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
WILDCARDS = frozenset({"0.0.0.0", "::", ""})

LINGER = 2.0
"""Seconds in which the rest of a refused body is dropped: a browser that is still sending reads no answer."""

OPEN_AGAIN = "Open the address that headscope studio printed in the terminal."


class Refusal(Exception):  # noqa: N818  (an answer, no failure)
    """An answer in place of what was asked for."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


@dataclass(frozen=True)
class Address:
    """Where the server listens, and by which names it may be asked."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        """Whether only this computer can connect."""
        return self.host in LOOPBACK_NAMES

    def is_own(self, header: str) -> bool:
        """Whether a Host header names this server; a name that only leads here (DNS rebinding) does not.

        >>> here = Address("127.0.0.1", 8000)
        >>> [here.is_own(host) for host in ("127.0.0.1:8000", "localhost:8000", "127.0.0.1:80", "evil.example:8000")]
        [True, True, False, False]
        """
        name, _, port = header.rpartition(":") if not header.endswith("]") else (header, "", "")
        if not port.isdecimal():
            name, port = header, "80"
        name = name.lower().removeprefix("[").removesuffix("]")
        return port == str(self.port) and self._is_own_name(name)

    def _is_own_name(self, name: str) -> bool:
        if name in LOOPBACK_NAMES or (name == self.host.lower() and name not in WILDCARDS):
            return True
        return self.host in WILDCARDS and (_is_number(name) or name == socket.gethostname().lower())


def _is_number(name: str) -> bool:
    """Whether a host is given as numbers, which no name server can turn into another."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Guard:
    """An ASGI app around another: it answers what is not allowed itself, and adds headers to every answer."""

    app: App
    address: Address
    session: Session
    limits: Limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on with its body read."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, _add_headers(send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = _Headers(scope["headers"])
            self._check_origin(headers)
            if _asks_for_entry(scope):
                await self._let_in(scope, send)
                return
            self._check_cookie(headers)
            self._check_method(scope["method"], headers)
            if scope["method"] == "POST":
                receive = await self._read_body(headers, receive)
        except Refusal as refusal:
            await _refuse(scope, receive, send, refusal)
            return
        await self.app(scope, receive, send)

    def _check_origin(self, headers: "_Headers") -> None:
        host = headers.one(b"host")
        if not self.address.is_own(host):
            raise Refusal(403, f"This server does not answer to that host name. {OPEN_AGAIN}")
        origin = headers.one(b"origin")
        if origin and origin != f"http://{host}":
            raise Refusal(403, "Pages of other origins may not ask this server.")
        if headers.one(b"sec-fetch-site") not in ("", "same-origin", "none"):
            raise Refusal(403, f"Other pages may not lead here. {OPEN_AGAIN} Paste it into the address bar.")

    async def _let_in(self, scope: Scope, send: Send) -> None:
        """Exchange the token of an address for a cookie, and lead to the address without it."""
        query = _parse_query(scope)
        tokens, launches = query.get("token", []), query.get("launch", [])
        known = len(tokens) + len(launches) == 1 and (
            any(map(self.session.accepts_token, tokens))
            or (bool(launches) and self._is_own(scope) and any(map(self.session.accepts_launch, launches)))
        )
        if not known:
            raise Refusal(401, f"The token of this address is wrong, or it was of an earlier start. {OPEN_AGAIN}")
        cookie = f"{self.cookie_name}={self.session.cookie}; Path=/; HttpOnly; SameSite=Strict"
        headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    @staticmethod
    def _is_own(scope: Scope) -> bool:
        """Whether the browser is this user's: others can read the address that opened it, and be quicker."""
        return is_own_connection(scope.get("client"), scope.get("server"))

    def _check_cookie(self, headers: "_Headers") -> None:
        if not any(map(self.session.accepts_cookie, headers.cookies(self.cookie_name))):
            raise Refusal(401, f"This browser has not been let in, or the studio was started again. {OPEN_AGAIN}")

    @property
    def cookie_name(self) -> str:
        """The name of the cookie; cookies do not tell ports apart, names do."""
        return f"headscope-{self.address.port}"

    @staticmethod
    def _check_method(method: str, headers: "_Headers") -> None:
        if method in ("GET", "HEAD"):
            return
        if method != "POST":
            raise Refusal(405, f"This server answers GET and POST, not {method[:12]}.")
        if headers.one(OWN_HEADER) != "1":
            raise Refusal(403, "A request that changes something must have the header X-Headscope: 1.")
        if headers.one(b"content-type").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "A request that changes something must be of type application/json.")

    async def _read_body(self, headers: "_Headers", receive: Receive) -> Receive:
        """Read the whole body, which may neither be too large nor too slow, and return what gives it again."""
        length = headers.one(b"content-length")
        if length.isdecimal() and int(length) > self.limits.body:
            raise self._too_large()
        try:
            body = await asyncio.wait_for(self._collect(receive), self.limits.body_seconds)
        except TimeoutError:
            raise Refusal(408, "The request was not sent in time.") from None
        return _replay(body, receive)

    async def _collect(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "The request was not sent completely.")
            body += message.get("body", b"")
            if len(body) > self.limits.body:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)

    def _too_large(self) -> Refusal:
        return Refusal(413, f"A request may have {self.limits.body:,} bytes at most. Give a shorter text.")


@dataclass(frozen=True)
class _Headers:
    """The headers of a request; one that must be unique is empty where it is missing, and refused where it is not."""

    pairs: Iterable[tuple[bytes, bytes]]

    def one(self, name: bytes) -> str:
        values = [value for key, value in self.pairs if key.lower() == name]
        if len(values) > 1:
            raise Refusal(400, f"The header {name.decode()} was sent more than once.")
        return values[0].decode("latin-1").strip() if values else ""

    def cookies(self, name: str) -> list[str]:
        """Return the values of a cookie."""
        lines = [value.decode("latin-1") for key, value in self.pairs if key.lower() == b"cookie"]
        parts = [part.strip().partition("=") for line in lines for part in line.split(";")]
        return [value for key, _, value in parts if key == name]


def _parse_query(scope: Scope) -> dict[str, list[str]]:
    return parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=20)


def _asks_for_entry(scope: Scope) -> bool:
    if scope["path"] != "/" or scope["method"] != "GET":
        return False
    try:
        return not {"token", "launch"}.isdisjoint(_parse_query(scope))
    except ValueError:  # more fields than any address of ours has
        raise Refusal(400, "This address has too many fields.") from None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a function that gives the body first, and then what the connection says."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _add_headers(send: Send) -> Send:
    async def send_safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *SAFE_HEADERS]
        await send(message)

    return send_safely


async def _refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    """Answer with a sentence: as JSON to the page's own code, as text to a reader."""
    to_code = scope["path"].startswith("/api/")
    body = json.dumps({"error": refusal.sentence}) if to_code else refusal.sentence
    kind = b"application/json" if to_code else b"text/plain; charset=utf-8"
    content = body.encode()
    length = str(len(content)).encode()
    headers = [(b"content-type", kind), (b"content-length", length), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": True})
    with suppress(TimeoutError):
        await asyncio.wait_for(_drop_body(receive), LINGER)
    await send({"type": "http.response.body", "body": b""})


async def _drop_body(receive: Receive) -> None:
    while (await receive()).get("more_body", False):
        pass
