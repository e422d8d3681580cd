"""Requests that a browser, or another program, sends without being allowed to."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from headscope.studio import owner as owner_module
from headscope.studio import session as session_module
from headscope.studio.app import ROUTES
from headscope.studio.guard import HEADERS, Address
from headscope.studio.options import Limits
from headscope.studio.owner import is_own_connection
from headscope.studio.session import LAUNCH_SECONDS
from tests.studio.live import SECONDS, read_all, run_studio

PLACES = [
    (method, route.path.replace("{name}", "viewer.js").replace("{id}", "0123456789abcdef"))
    for route in ROUTES
    for method in sorted(route.methods - {"HEAD"})
]
EVIL = "http://evil.example"


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    with run_studio(tmp_path_factory.mktemp("studio")) as live:
        yield live


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """A studio of little patience."""
    limits = replace(Limits(), header_seconds=0.2, body_seconds=0.2, connections=3)
    with run_studio(tmp_path_factory.mktemp("strict"), limits=limits) as live:
        yield live


# Whom the server answers: DNS rebinding


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "localhost.evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "127.0.0.1:{port}.evil.example",
        "evil.example@127.0.0.1:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:0{port}",
        "localhost:{port}0",
        "0.0.0.0:{port}",
        "127.0.0.2:{port}",
        "[::2]:{port}",
        "",
    ],
)
@pytest.mark.parametrize("path", ["/", "/static/viewer.js", "/api/catalog"])
def test_a_foreign_host_is_refused(live, host, path):
    answer = live.ask(path, host=host.format(port=live.port))
    assert answer.status == 403
    assert b"does not answer to that host name. Open the address that headscope studio printed" in answer.body


def test_a_foreign_host_gets_no_cookie_for_the_right_token(live):
    answer = live.ask(f"/?token={live.session.token}", host=f"evil.example:{live.port}", cookie=None)
    assert (answer.status, answer.header("set-cookie")) == (403, "")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost", "[::1]"])
def test_the_names_of_this_computer_are_answered(live, host):
    assert live.ask("/", host=f"{host}:{live.port}").status == 200


@pytest.mark.parametrize("lines", ["", "Host: {own}\r\nHost: evil.example\r\n", "Host: {own}\r\nHost: {own}\r\n"])
def test_a_missing_or_second_host_is_refused(live, lines):
    head = f"GET / HTTP/1.1\r\n{lines.format(own=live.host)}Cookie: {live.cookie}\r\n\r\n"
    assert live.send(head.encode()).startswith(b"HTTP/1.1 400 ")


def test_an_old_request_without_host_is_refused(live):
    assert live.send(f"GET / HTTP/1.0\r\nCookie: {live.cookie}\r\n\r\n".encode()).startswith(b"HTTP/1.1 403 ")


def test_an_address_for_other_computers_answers_to_numbers_but_to_no_foreign_name():
    everywhere = Address("0.0.0.0", 8000)
    own = ["127.0.0.1:8000", "192.168.0.7:8000", "[fe80::1]:8000", f"{socket.gethostname()}:8000"]
    assert [everywhere.is_own(host) for host in own] == [True] * 4
    foreign = ["evil.example:8000", "192.168.0.7.evil.example:8000", "192.168.0.7:80", "0x7f000001:8000", ":8000"]
    assert [everywhere.is_own(host) for host in foreign] == [False] * 5
    assert [Address("127.0.0.1", 80).is_own(host) for host in ("127.0.0.1", "[::1]", "evil.example")] == [1, 1, 0]
    assert not everywhere.is_local


def test_an_address_for_other_computers_still_needs_the_token(tmp_path):
    with run_studio(tmp_path, host="0.0.0.0") as open_studio:
        assert open_studio.ask("/", cookie=None).status == 401
        assert open_studio.ask("/", cookie=None, host=f"evil.example:{open_studio.port}").status == 403
        assert open_studio.ask("/").status == 200


# Pages of other origins


@pytest.mark.parametrize(
    "origin", [EVIL, "null", "http://localhost:{port}", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "file://"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_a_foreign_origin_is_refused_and_not_invited(live, origin, method):
    body = {} if method == "POST" else None
    answer = live.ask("/api/jobs", body, method=method, origin=origin.format(port=live.port))
    assert (answer.status, answer.error) == (403, "Pages of other origins may not ask this server.")
    assert not [name for name, _ in answer.headers if name.lower().startswith("access-control")]


def test_the_own_origin_is_answered(live):
    assert live.ask("/api/jobs", origin=f"http://{live.host}").status == 200


def test_a_second_origin_is_refused(live):
    head = f"GET / HTTP/1.1\r\nHost: {live.host}\r\nOrigin: http://{live.host}\r\nOrigin: {EVIL}\r\n\r\n"
    assert b"The header origin was sent more than once." in live.send(head.encode())


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
@pytest.mark.parametrize("path", ["/", "/static/viewer.css", "/api/events", "/?token={token}"])
def test_another_site_leads_nowhere(live, site, path):
    answer = live.ask(path.format(token=live.session.token), sec_fetch_site=site)
    assert (answer.status, answer.header("set-cookie")) == (403, "")
    assert b"Other pages may not lead here." in answer.body


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_the_page_itself_and_the_address_bar_lead_here(live, site):
    assert live.ask("/", sec_fetch_site=site).status == 200


def test_no_answer_allows_another_origin_anything(live):
    preflight = {"access_control_request_method": "POST", "access_control_request_headers": "x-headscope"}
    for answer in (live.ask("/api/jobs", method="OPTIONS", **preflight), live.ask("/"), live.ask("/api/jobs")):
        assert not [name for name, _ in answer.headers if name.lower().startswith("access-control")]


# Token and cookie


@pytest.mark.parametrize(("method", "path"), PLACES)
def test_nothing_is_answered_without_the_cookie(live, method, path):
    answer = live.ask(path, {} if method == "POST" else None, cookie=None)
    assert answer.status == 401
    assert b"This browser has not been let in" in answer.body


@pytest.mark.parametrize(
    "cookie",
    [
        "headscope-{port}=",
        "headscope-{port}=guess",
        "headscope-{port}={token}",
        "headscope-{port}={cookie}x",
        "headscope-{port}={part}",
        "headscope-1={cookie}",
        "headscope={cookie}",
        "{cookie}",
    ],
)
def test_another_cookie_is_refused(live, cookie):
    secret, token = live.session.cookie, live.session.token
    sent = cookie.format(port=live.port, cookie=secret, token=token, part=secret[:-1])
    assert live.ask("/api/jobs", cookie=sent).status == 401


def test_a_cookie_among_those_of_other_servers_is_found(live):
    for cookie in (f"a=b; {live.cookie}; c=d", f"headscope-{live.port}=foreign; {live.cookie}"):
        assert live.ask("/api/jobs", cookie=cookie).status == 200


@pytest.mark.parametrize(
    "query",
    [
        "token=guess",
        "token=",
        "token={part}",
        "token={token}x",
        "token={cookie}",
        "launch={token}",
        "token={token}&token=guess",
        "token={token}&launch=guess",
        "token={token}&" + "a=1&" * 30,
        "token=%ff%00é".encode().decode("latin-1"),
    ],
)
def test_a_guessed_token_lets_nobody_in(live, query):
    secrets = {"token": live.session.token, "part": live.session.token[:-1], "cookie": live.session.cookie}
    answer = live.ask(f"/?{query.format(**secrets)}".encode("latin-1").decode("ascii", "ignore"), cookie=None)
    assert answer.status in (400, 401)
    assert answer.header("set-cookie") == ""
    assert live.session.cookie.encode() not in answer.body


def test_the_token_is_exchanged_for_a_cookie_that_no_script_and_no_other_site_can_use(live):
    answer = live.ask(f"/?token={live.session.token}", cookie=None)
    assert (answer.status, answer.header("location"), answer.body) == (303, "/", b"")
    cookie, *flags = answer.header("set-cookie").split("; ")
    assert cookie == live.cookie
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} == set(flags)
    assert live.session.token not in str(answer.headers)
    assert live.ask("/", cookie=cookie).status == 200


def test_the_token_counts_nowhere_but_in_the_address_of_the_page(live):
    for path in ("/api/jobs", "/static/viewer.js"):
        assert live.ask(f"{path}?token={live.session.token}", cookie=None).status == 401
    assert live.ask(f"/?token={live.session.token}", {}, cookie=None).status == 401
    assert live.ask("/api/jobs", cookie=None, authorization=f"Bearer {live.session.token}").status == 401


def test_the_address_that_opens_a_browser_works_once(live):
    address = f"/?launch={live.session.launch}"
    assert live.ask(address, cookie=None).status == 303
    assert live.ask(address, cookie=None).status == 401


def test_the_address_that_opens_a_browser_works_for_a_moment(live, monkeypatch):
    address = f"/?launch={live.session.launch}"
    monkeypatch.setattr(live.session, "started", time.monotonic() - LAUNCH_SECONDS - 1)
    assert live.ask(address, cookie=None).status == 401


ROW = "   1: {client} {server} 01 00000000:00000000 00:00000000 00000000 {owner:5}        0 22 1 0 20 4 30 10 -1"
HERE, THERE, ELSEWHERE = "0100007F:1F90", "0100007F:9C47", "0200007F:1F90"
MAPPED, NUMBER = "0000000000000000FFFF00000100007F:1F90", "00000000000000000000000001000000:1F90"


@pytest.mark.skipif(sys.byteorder != "little", reason="the table is written in the byte order of the system")
@pytest.mark.parametrize(
    ("rows", "client", "own"),
    [
        ([(HERE, THERE, 1000)], "127.0.0.1", True),
        ([(HERE, THERE, 1001)], "127.0.0.1", False),
        ([(HERE, THERE, 0)], "127.0.0.1", True),  # what forwards for Windows
        ([(THERE, HERE, 1000)], "127.0.0.1", False),  # the server's own end
        ([(ELSEWHERE, THERE, 1000)], "127.0.0.1", False),
        ([(ELSEWHERE, THERE, 1000), (HERE, THERE, 1001)], "127.0.0.1", False),
        ([(HERE, THERE, 1000)], "::ffff:127.0.0.1", True),
        ([(MAPPED, THERE, 1000)], "127.0.0.1", True),
        ([(NUMBER, THERE, 1000)], "::1", True),
        ([], "127.0.0.1", False),
        ([(HERE, "nonsense", 1000)], "127.0.0.1", False),
        ([(HERE, THERE, 1000)], "no address", False),
    ],
)
def test_whose_a_connection_is_stands_in_the_table_of_the_system(tmp_path, monkeypatch, rows, client, own):
    lines = [ROW.format(client=one, server=other, owner=owner) for one, other, owner in rows]
    (tmp_path / "tcp").write_text("\n".join(["  sl  local_address ...", *lines, ""]))
    monkeypatch.setattr(owner_module, "TABLES", (str(tmp_path / "tcp"), str(tmp_path / "missing")))
    monkeypatch.setattr(owner_module.os, "getuid", lambda: 1000)
    monkeypatch.setattr(owner_module.sys, "platform", "linux")
    assert is_own_connection((client, 8080), ("127.0.0.1", 40007)) is own


def test_where_command_lines_are_private_nobody_asks_whose_a_connection_is(monkeypatch):
    monkeypatch.setattr(owner_module.sys, "platform", "darwin")
    assert is_own_connection(None, None)


def test_another_user_who_reads_the_address_that_opens_a_browser_is_refused_and_uses_nothing_up(live, monkeypatch):
    address = f"/?launch={live.session.launch}"
    with monkeypatch.context() as other:
        other.setattr(owner_module, "_find_owners", lambda *_: iter([54321]))
        answer = live.ask(address, cookie=None)
        assert (answer.status, answer.header("set-cookie")) == (401, "")
        assert live.ask(f"/?token={live.session.token}", cookie=None).status == 303  # which is in no command line
    assert live.ask(address, cookie=None).status == 303


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can be another user")
def test_a_program_of_another_user_cannot_use_the_address_that_opens_a_browser(live):
    code = (
        "import encodings.idna, http.client, os, sys; os.setuid(int(sys.argv[3])); "
        "connection = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1])); "
        "connection.request('GET', sys.argv[2]); print(connection.getresponse().status)"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(live.port), f"/?launch={live.session.launch}"]
    answers = [
        subprocess.run([*command, user], capture_output=True, text=True, timeout=SECONDS).stdout.strip()
        for user in ("65534", "0")
    ]
    assert answers == ["401", "303"]


def test_secrets_are_compared_in_constant_time(live, monkeypatch):
    compared, compare = [], session_module.hmac.compare_digest
    monkeypatch.setattr(
        session_module.hmac, "compare_digest", lambda one, other: compared.append(other) or compare(one, other)
    )
    live.ask("/?token=guess", cookie=None)
    live.ask("/?launch=guess", cookie=None)
    live.ask("/api/jobs", cookie=f"headscope-{live.port}=guess")
    session = live.session
    assert compared == [secret.encode() for secret in (session.token, session.launch, session.cookie)]


def test_secrets_are_long_differ_and_are_not_shown(live):
    session = live.session
    secrets = [session.token, session.cookie, session.launch]
    assert len(set(secrets)) == 3
    assert all(len(secret) == 43 for secret in secrets)  # 256 bits
    assert not [secret for secret in secrets if secret in repr(session) + repr(live.guard)]


# Requests that change something


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x_headscope": None}, 403),
        ({"x_headscope": "0"}, 403),
        ({"content_type": None}, 415),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
        ({"content_type": "text/plain; application/json"}, 415),
        ({"content_type": "multipart/form-data; boundary=x"}, 415),
    ],
)
@pytest.mark.parametrize("path", [path for method, path in PLACES if method == "POST"])
def test_a_change_needs_json_and_our_header(live, path, headers, status):
    answer = live.ask(path, {}, **headers)
    assert answer.status == status
    assert "A request that changes something must" in answer.error


@pytest.mark.parametrize("path", [path for method, path in PLACES if method == "POST" and path != "/api/jobs"])
def test_a_change_cannot_be_asked_for_by_get(live, path):
    answer = live.ask(path, x_headscope="1", content_type="application/json")
    assert (answer.status, answer.error) == (405, "This address is asked for in another way.")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(live, method):
    answer = live.ask("/api/jobs", method=method)
    assert (answer.status, answer.error) == (405, f"This server answers GET and POST, not {method}.")


# Headers of every answer


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET / HTTP/1.1", 200),
        ("HEAD / HTTP/1.1", 200),
        ("GET /static/viewer.js HTTP/1.1", 200),
        ("GET /static/viewer.css HTTP/1.1", 200),
        ("GET /static/other.js HTTP/1.1", 404),
        ("GET /nowhere HTTP/1.1", 404),
        ("GET /api/catalog HTTP/1.1", 200),
        ("GET /api/views/0/header HTTP/1.1", 404),
        ("GET /api/look HTTP/1.1", 405),
        ("PUT /api/look HTTP/1.1", 405),
        ("POST /api/look HTTP/1.1", 403),
        ("GET /?token=guess HTTP/1.1", 401),
        ("GET /?token={token} HTTP/1.1", 303),
        ("nonsense", 400),
        ("GET /\u00e9 HTTP/1.1", 400),
        ("GET / SPDY/1.1", 400),
    ],
)
def test_every_answer_has_the_headers_of_safety(live, request_line, status):
    line = request_line.format(token=live.session.token)
    head = f"{line}\r\nHost: {live.host}\r\nCookie: {live.cookie}\r\nConnection: close\r\n\r\n"
    received, _, _ = live.send(head.encode()).partition(b"\r\n\r\n")
    first, *lines = received.decode().split("\r\n")
    assert first.split()[1] == str(status)
    headers = dict(line.lower().split(": ", 1) for line in lines)
    assert {name: headers[name] for name in HEADERS} == {name: value.lower() for name, value in HEADERS.items()}
    assert "server" not in headers


def test_an_error_inside_has_the_headers_of_safety(live, monkeypatch, capsys):
    monkeypatch.setattr(live.studio.jobs, "list", lambda: 1 / 0)
    answer = live.ask("/api/jobs")
    assert answer.status == 500
    assert all(answer.header(name) == value for name, value in HEADERS.items())


def test_the_policy_allows_no_inline_code_and_no_other_place():
    policy = dict(part.strip().split(" ", 1) for part in HEADERS["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in str(policy)
    assert "http" not in str(policy)


def test_the_page_has_no_inline_code(live):
    page = live.ask("/").body.decode()
    assert page.count("<script") == page.count('<script type="module" src="/static/viewer.js"></script>') == 1
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)


# Bodies


@pytest.mark.parametrize("size", [1_000_001, 8_000_000])
def test_an_oversize_body_is_refused_and_the_sender_reads_why(live, size):
    answer = live.ask("/api/look", b" " * size)
    assert answer.status == 413
    assert answer.error == "A request may have 1,000,000 bytes at most. Give a shorter text."


def test_a_body_as_large_as_allowed_is_read(live):
    answer = live.ask("/api/look", json.dumps({"text": ""}).encode().ljust(1_000_000))
    assert (answer.status, answer.error) == (400, "The text is empty. Type at least one word.")


def test_an_announced_oversize_body_is_refused_before_it_comes(live):
    with live.connect() as connection:
        connection.sendall(post_head(live, "Content-Length: 99999999999"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_an_oversize_body_in_chunks_is_refused(live):
    with live.connect() as connection:
        connection.sendall(post_head(live, "Transfer-Encoding: chunked"))
        for _ in range(16):
            connection.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("length", ["-1", "1e3", "9" * 5000, "5, 6"])
def test_a_length_that_is_none_is_refused(live, length):
    assert live.send(post_head(live, f"Content-Length: {length}")).startswith(b"HTTP/1.1 400 ")


def test_a_body_of_two_lengths_is_not_read_as_two_requests(live):
    smuggled = f"GET /api/jobs HTTP/1.1\r\nHost: {live.host}\r\nCookie: {live.cookie}\r\n\r\n"
    received = live.send(
        post_head(live, "Content-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close")
        + b"0\r\n\r\n"
        + smuggled.encode()
    )
    assert received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no json",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"text": NaN}',
        b'{"text": -Infinity}',
        b'{"text": ' + b"9" * 5000 + b"}",
    ],
)
@pytest.mark.parametrize("path", ["/api/look", "/api/jobs"])
def test_what_is_no_json_is_refused(live, path, body):
    answer = live.ask(path, body)
    assert (answer.status, answer.error) == (400, "The request is not JSON.")


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"null", b"1e999"])
def test_what_is_no_object_is_refused(live, body):
    answer = live.ask("/api/look", body)
    assert (answer.status, answer.error) == (400, "The request must be a JSON object.")


def post_head(live, length):
    head = f"POST /api/look HTTP/1.1\r\nHost: {live.host}\r\nCookie: {live.cookie}\r\nX-Headscope: 1\r\n"
    return f"{head}Content-Type: application/json\r\n{length}\r\n\r\n".encode()


# Slow clients, and many


def test_a_connection_that_says_nothing_is_closed(strict):
    with strict.connect() as connection:
        assert connection.recv(1) == b""


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(strict):
    with strict.connect() as connection:
        connection.settimeout(0.02)
        assert dribble(connection, b"GET / HTTP/1.1\r\nX: " + b"x" * 300) == b""


def test_a_second_head_that_comes_byte_by_byte_is_not_waited_for(strict):
    head = f"HEAD /nowhere HTTP/1.1\r\nHost: {strict.host}\r\nCookie: {strict.cookie}\r\n".encode()
    with strict.connect() as connection:
        connection.sendall(head + b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 404 ")
        connection.settimeout(0.02)
        assert dribble(connection, head + b"X: " + b"x" * 300) == b""


def test_a_body_that_comes_byte_by_byte_is_not_waited_for(strict):
    with strict.connect() as connection:
        connection.sendall(post_head(strict, "Content-Length: 10000"))
        connection.settimeout(0.02)
        answer = dribble(connection, b" " * 300)
        connection.settimeout(SECONDS)
        while not answer.endswith(b"}"):
            answer += connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"The request was not sent in time." in answer


def dribble(connection, content):
    """Send one byte after the other until something comes back, and return it."""
    for byte in content:
        try:
            connection.sendall(bytes([byte]))
            return connection.recv(65536)
        except TimeoutError:
            continue
        except (BrokenPipeError, ConnectionResetError):
            return b""
    raise AssertionError("All was read.")


def test_too_many_connections_are_closed_and_leave_room_again(strict):
    waiting = [strict.connect() for _ in range(3)]
    strict.until(lambda: len(strict.server.server_state.connections) == 3)
    head = f"GET / HTTP/1.1\r\nHost: {strict.host}\r\nCookie: {strict.cookie}\r\nConnection: close\r\n\r\n"
    with strict.connect() as connection, suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(head.encode())
        assert read_all(connection) == b""
    for connection in waiting:
        connection.close()
    strict.until(lambda: not strict.server.server_state.connections)
    assert strict.ask("/").status == 200


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),  # a browser that tries https
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X" * 100_000,
        b"\r\n" * 50 + b"\x00" * 50,
        bytes(range(256)) * 40,
    ],
)
def test_what_is_no_http_is_answered_or_closed_and_the_server_goes_on(strict, content):
    received = strict.send(content)
    assert not received or received.startswith(b"HTTP/1.1 4")
    assert strict.ask("/").status == 200


def test_a_web_socket_is_refused(live):
    lines = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n"
    head = f"GET /api/events HTTP/1.1\r\nHost: {live.host}\r\n{lines}\r\n"
    assert live.send(head.encode()).startswith(b"HTTP/1.1 401 ")
