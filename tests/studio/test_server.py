"""The server as a whole: many requests at once, pages that go away, errors, and the command that starts it."""

import http.client
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import psutil
import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.core.errors import InputError
from headscope.studio.options import Limits, StudioOptions
from headscope.studio.server import StudioServer, bind, serve
from tests.studio.live import SECONDS, run_studio, save_model

TEXT = "the cat sat on a mat"
RAW = [{"name": "raw"}]
LOOK = {"text": TEXT, "models": [{"name": "model"}], "lenses": RAW}
JOB = {"kind": "measure", "data": {"bundled": "sample"}, "statistics": [{"name": "entropy"}]}
WAIT = [sys.executable, "-I", "-c", "import signal; print('here', flush=True); signal.pause()"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    save_model(folder / "model")
    (folder / "data.csv").write_text("text\nthe cat\n")
    return folder


@pytest.fixture(scope="module")
def live(folder):
    with run_studio(folder, limits=replace(Limits(), jobs=2, streams=2)) as live:
        yield live


@pytest.fixture
def busy(live):
    """Keep the thread of the models busy until the event is set."""
    free, began = threading.Event(), threading.Event()
    live.studio.models.submit(lambda: began.set() or free.wait(SECONDS))
    began.wait(SECONDS)
    yield free
    free.set()
    live.until(lambda: live.studio.models.pending == 0)


def post(live, path, body):
    """Send a request and return its connection, without waiting for the answer."""
    content = json.dumps(body).encode()
    connection = live.connect()
    head = f"POST {path} HTTP/1.1\r\nHost: {live.host}\r\nCookie: {live.cookie}\r\nX-Headscope: 1\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    connection.sendall(head.encode() + content)
    return connection


# Many requests


def test_a_hundred_requests_at_once_are_answered(live):
    view = live.ask("/api/look", LOOK).json["view"]
    kinds = [
        (f"/api/views/{view}/header", None),
        (f"/api/views/{view}/block?name=0/0/thumbs", None),
        (f"/api/views/{view}/block?name=0/0/map/1/2", None),
        ("/api/look", LOOK),
        ("/api/predict", {**LOOK, "off": ["L0H1"]}),
        ("/api/files", None),
        ("/api/catalog", None),
        ("/api/jobs", None),
        ("/static/viewer.css", None),
        ("/", None),
    ]
    alone = {path: live.ask(path, body) for path, body in kinds}
    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda kind: (kind[0], live.ask(*kind)), kinds * 10))
    assert len(answers) == 100
    for path, answer in answers:
        if path in ("/api/look", "/api/predict"):
            assert answer.status in (200, 429)
        else:
            assert (answer.status, answer.body) == (200, alone[path].body)
    assert {answer.body for path, answer in answers if path == "/api/predict" and answer.status == 200} == {
        alone["/api/predict"].body
    }
    live.until(lambda: live.studio.models.pending == live.studio.reader.pending == 0)
    assert live.ask("/api/look", LOOK).status == 200


def test_a_flood_of_looks_is_refused_until_the_first_are_done(live, busy):
    waiting = [post(live, "/api/look", LOOK) for _ in range(7)]
    live.until(lambda: live.studio.models.pending == 8)
    for path in ("/api/look", "/api/predict"):
        answer = live.ask(path, LOOK)
        assert (answer.status, answer.error) == (429, "8 requests wait already. Try again in a moment.")
    assert live.ask("/api/files").status == 200  # other answers do not wait
    busy.set()
    assert [connection.recv(12) for connection in waiting] == [b"HTTP/1.1 200"] * 7
    for connection in waiting:
        connection.close()


def test_a_flood_of_jobs_is_refused(live, monkeypatch):
    monkeypatch.setattr(live.studio.jobs, "command", WAIT)
    jobs = [live.ask("/api/jobs", {**JOB, "name": f"job {index}"}) for index in range(12)]
    assert [answer.status for answer in jobs] == [200, 200] + [429] * 10
    assert jobs[-1].error == "2 jobs run or wait already. Cancel one, or wait until one is done."
    for answer in jobs[:2]:
        assert live.ask(f"/api/jobs/{answer.json['id']}/cancel", {}).status == 200
    live.until(lambda: all(job.state == "cancelled" for job in live.studio.jobs.jobs.values()))


@pytest.mark.parametrize("what", ["cancel", "resume"])
def test_a_job_that_is_not_there_says_so(live, what):
    answer = live.ask(f"/api/jobs/0123/{what}", {})
    assert (answer.status, answer.error) == (404, "There is no job of that id. The studio may have been started again.")


# Pages that go away


def count_streams(live):
    return live.studio.jobs.streams


def test_too_many_pages_that_watch_are_refused_until_one_is_closed(live):
    first, second = live.watch(), live.watch()
    live.until(lambda: count_streams(live) == 2)
    answer = live.ask("/api/events")
    assert (answer.status, answer.error) == (429, "2 pages watch this studio already. Close one.")
    first.close()
    live.until(lambda: count_streams(live) == 1)
    third = live.watch()
    assert third.next()["whole"]
    for stream in (second, third):
        stream.close()
    live.until(lambda: count_streams(live) == 0)


def test_a_page_that_never_reads_holds_up_nobody_and_leaves_nothing(live):
    """The events are larger than what the system keeps for a socket that nobody reads."""
    deaf, page = live.watch(), live.watch()
    for index in range(10):
        live.studio.jobs.say_from_thread("x" * 1_000_000 + str(index))
        while not page.next()["work"].endswith(str(index)):
            pass
    deaf.close()
    page.close()
    live.until(lambda: count_streams(live) == 0)
    live.studio.jobs.say_from_thread("")
    assert live.ask("/").status == 200


def test_a_look_whose_page_is_closed_before_it_begins_is_dropped(live, busy):
    before = set(live.studio.views.views)
    page = post(live, "/api/look", LOOK)
    live.until(lambda: live.studio.models.pending == 2)
    page.close()
    live.until(lambda: not [task for task in live.server.server_state.tasks if not task.done()])
    busy.set()
    live.until(lambda: live.studio.models.pending == 0)
    assert set(live.studio.views.views) == before


def test_a_look_whose_page_is_closed_while_it_runs_ends_and_says_that_nothing_is_done(live, monkeypatch):
    began, free = threading.Event(), threading.Event()
    load = live.studio.shelf.load

    def load_slowly(source, limit):
        began.set()
        free.wait(SECONDS)
        live.studio.shelf.say("Loading for a page that is gone")
        return load(source, limit)

    monkeypatch.setattr(live.studio.shelf, "load", load_slowly)
    page = post(live, "/api/look", LOOK)
    began.wait(SECONDS)
    page.close()
    live.until(lambda: not [task for task in live.server.server_state.tasks if not task.done()])
    free.set()
    live.until(lambda: live.studio.models.pending == 0 and live.studio.jobs.work == "")
    assert live.ask("/api/look", LOOK).status == 200


@pytest.mark.parametrize(
    ("path", "more"), [("/api/look", {}), ("/api/look", {"off": ["L0H1"], "showOff": True}), ("/api/predict", {})]
)
def test_a_model_stops_at_its_next_layer_when_the_page_is_closed(live, path, more):
    """The model waits in its first layer until the page is gone; no later layer runs, and it is as it was before."""
    view = live.ask("/api/look", LOOK).json["view"]
    expected = live.ask(f"/api/views/{view}/block?name=0/0/map/1/2").body
    views, model = set(live.studio.views.views), next(iter(live.studio.shelf.loaded.values()))
    layers, began, free, later = model.network.encoder.layer, threading.Event(), threading.Event(), []
    hooks = [
        layers[0].register_forward_hook(lambda *_: began.set() or (free.wait(SECONDS) and None)),
        layers[1].register_forward_hook(lambda *_: later.append(1)),
    ]
    page = post(live, path, {**LOOK, **more})
    assert began.wait(SECONDS)
    page.close()
    live.until(lambda: not [task for task in live.server.server_state.tasks if not task.done()])
    free.set()
    live.until(lambda: live.studio.models.pending == 0 and live.studio.jobs.work == "")
    for hook in hooks:
        hook.remove()
    assert not later
    assert set(live.studio.views.views) == views
    again = live.ask("/api/look", LOOK).json["view"]
    assert live.ask(f"/api/views/{again}/block?name=0/0/map/1/2").body == expected


def test_pages_that_are_closed_in_the_midst_of_anything_leave_nothing(live):
    bodies = [("/api/look", LOOK), ("/api/predict", LOOK), ("/api/open", {"id": "0"}), ("/api/jobs", {})]
    for _ in range(5):
        for path, body in bodies:
            post(live, path, body).close()
        live.watch().close()
    state = live.server.server_state
    live.until(lambda: not state.connections and not state.tasks and count_streams(live) == 0)
    live.until(lambda: live.studio.models.pending == live.studio.reader.pending == 0)
    assert live.ask("/api/look", LOOK).status == 200


def test_a_page_of_an_earlier_start_is_told_to_open_the_new_address(live, folder):
    with run_studio(folder) as later:
        name = f"headscope-{later.port}"
        answer = later.ask("/api/jobs", cookie=f"{name}={live.session.cookie}")
    assert answer.status == 401
    assert answer.error.endswith("Open the address that headscope studio printed in the terminal.")


# Errors


def test_an_error_is_a_trace_in_the_terminal_and_an_id_in_the_page(live, monkeypatch, capfd):
    def fail(*_):
        raise RuntimeError("something private")

    monkeypatch.setattr(live.studio.shelf, "load", fail)
    answer = live.ask("/api/look", LOOK)
    identity = re.fullmatch(
        r"Something went wrong in the studio. The terminal shows what, as error (\w{8}).", answer.error
    )
    assert answer.status == 500
    assert identity
    printed = capfd.readouterr().err
    assert f"Error {identity[1]} in headscope studio:\nTraceback (most recent call last):" in printed
    assert "RuntimeError: something private" in printed
    assert live.session.token not in printed


def test_too_little_memory_is_said(live, monkeypatch, capfd):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(live.studio.shelf, "load", fail)
    answer = live.ask("/api/look", LOOK)
    assert (answer.status, capfd.readouterr().err) == (500, "")
    assert answer.error.startswith("There is not enough memory for this.")


def test_an_answer_that_is_no_json_is_an_error_with_an_id(live, monkeypatch, capfd):
    monkeypatch.setattr(live.studio.jobs, "list", lambda: float("nan"))
    answer = live.ask("/api/jobs")
    assert (answer.status, answer.header("content-type")) == (500, "application/json")
    assert "The terminal shows what, as error" in answer.error


@pytest.mark.parametrize("given", [True, False])
def test_a_first_model_that_does_not_load_is_said_and_the_studio_goes_on(folder, monkeypatch, capfd, given):
    def fail(_):
        raise (InputError("The model is missing.") if given else RuntimeError("x"))

    monkeypatch.setattr("headscope.engine.load.load", fail)
    with run_studio(folder) as live:
        live.studio.models.submit(live.studio.warm).result(SECONDS)
        live.until(lambda: live.studio.jobs.work)
        expected = "The first model cannot be used: The model is missing." if given else "Something went wrong"
        assert live.watch().next()["work"].startswith(expected)
        assert live.ask("/api/jobs").status == 200


# The command


@pytest.fixture
def served(monkeypatch, tmp_path):
    """Return a function that starts a studio which ends at once, and returns what it printed."""

    async def end(self, sockets):
        for listener in sockets:
            listener.close()

    monkeypatch.setattr(StudioServer, "serve", end)
    monkeypatch.setenv("HEADSCOPE_SAFETENSORS", "")

    def start(**options):
        lines = []
        serve(StudioOptions(tmp_path, **{"browser": False, **options}), lines.append)
        return "\n".join(lines)

    return start


def test_the_address_with_the_token_is_printed_once(served):
    printed = served()
    assert len(re.findall(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", printed)) == 1
    assert "Warning" not in printed
    assert os.environ["HEADSCOPE_SAFETENSORS"] == "only"


def test_a_studio_for_other_computers_warns_and_has_a_token_too(served):
    printed = served(host="0.0.0.0")
    assert printed.startswith("Warning: with --host 0.0.0.0, other computers can reach this studio. Whoever has")
    assert re.search(rf"http://{re.escape(socket.gethostname())}:\d+/\?token=[\w-]{{43}}", printed)


def test_no_option_switches_the_token_off():
    assert not [name for name in StudioOptions.__dataclass_fields__ if "token" in name or "auth" in name]


def test_a_browser_is_opened_by_an_address_that_works_once_and_not_by_the_token(served, monkeypatch):
    opened = queue.SimpleQueue()
    monkeypatch.setattr("webbrowser.open", opened.put)
    printed = served(browser=True)
    address = opened.get(timeout=SECONDS)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?launch=[\w-]{43}", address)
    assert address.partition("launch=")[2] not in printed
    assert re.search(r"token=([\w-]{43})", printed)[1] not in address


def test_a_browser_that_does_not_return_does_not_hold_up_the_server(served, monkeypatch):
    closed = threading.Event()
    monkeypatch.setattr("webbrowser.open", lambda _: closed.wait(SECONDS))
    assert served(browser=True)
    closed.set()


def test_a_browser_that_is_quicker_than_the_server_waits():
    listener = bind("127.0.0.1", 0)
    with listener, socket.create_connection(listener.getsockname(), timeout=SECONDS):
        pass


@pytest.mark.parametrize(
    ("host", "port", "reason"),
    [
        ("127.0.0.1", 99_999, "port must be 0-65535"),
        ("127.0.0.1", None, "Address already in use"),
        ("192.0.2.1", 0, "Cannot assign requested address"),
        ("no such host", 0, ""),
        ("x" * 300, 0, ""),
    ],
)
def test_a_place_where_nobody_can_listen_is_said(host, port, reason):
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1] if port is None else port
        with pytest.raises(
            InputError, match=f"The studio cannot listen at host={host} port={port}: .*{reason}"
        ) as error:
            bind(host, port)
    assert ".." not in str(error.value)


def test_the_help_fits_a_terminal():
    shown = CliRunner(env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).invoke(app, ["studio", "--help"]).output
    assert max(map(len, shown.splitlines())) <= 80
    for word in ("--model", "--port", "--host", "--no-browser", "lets other computers", "headscope studio results"):
        assert word in " ".join(shown.split())


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_a_missing_package_is_said_with_the_command_that_installs_it(package, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    result = CliRunner().invoke(app, ["studio", str(tmp_path), "--no-browser"])
    assert result.exit_code == 2
    assert f"The studio needs the package {package}, which is not installed." in " ".join(result.output.split())
    assert "pip install 'headscope[studio]'" in " ".join(result.output.split())


def test_a_folder_that_is_not_there_is_said(tmp_path):
    result = CliRunner().invoke(app, ["studio", str(tmp_path / "nowhere"), "--no-browser"])
    assert result.exit_code == 2
    assert "The studio needs a folder, but there is nothing at" in " ".join(result.output.split())


def test_the_command_logs_no_token_and_ends_with_its_jobs_at_an_interrupt(folder):
    command = [
        sys.executable,
        "-m",
        "headscope",
        "studio",
        str(folder),
        "--no-browser",
        "--model",
        str(folder / "model"),
    ]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's job in the background ignores it
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    printed = []
    while not (found := re.search(r"127\.0\.0\.1:(\d+)/\?token=(\S+)", "".join(printed))):
        printed.append(process.stdout.readline())
        assert printed[-1], process.stderr.read()
    port, token = int(found[1]), found[2]
    let_in, cookie = ask(port, f"/?token={token}")
    assert let_in == 303
    for path in (f"/?token={token}&token=x", f"/nowhere?token={token}", "/?launch=x", "/api/jobs?x=" + token):
        ask(port, path, cookie)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(f"GET /?token={token} nonsense\r\n\r\n".encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert ask(port, "/api/jobs", cookie, {**JOB, "name": "interrupted"})[0] == 200
    children = []
    while not children:
        children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=SECONDS)
    whole = "".join(printed) + output + errors
    assert process.returncode == 130
    assert whole.count(token) == 1
    assert cookie.partition("=")[2] not in whole
    assert "Traceback" not in whole
    assert not [child for child in children if child.is_running()]


def ask(port, path, cookie="", body=None):
    """Ask a studio of another process; return the status and the cookie."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    headers = {"Cookie": cookie, "X-Headscope": "1", "Content-Type": "application/json"}
    connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, (response.getheader("set-cookie") or "").partition(";")[0]
