"""What the console refuses: strangers, other sites, names that are paths, and clients that only take up room."""

from __future__ import annotations

import json
import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from estimator_container.contract import events
from estimator_container.contract.names import Layout
from estimator_container.logs.frames import NO_RANK

from estimator_sdk import EstimatorError, InvalidArgument
from estimator_sdk.cli.main import main
from estimator_sdk.server import serving
from estimator_sdk.server.api.logs import MOST_DOWNLOADS
from estimator_sdk.server.app import OPERATIONS
from estimator_sdk.server.changes import MOST_LISTENERS
from tests.console.folders import make_job, tell, writer
from tests.console.server import PATIENCE, console, wait_until

LONG = 64 << 20  # bytes of a log


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    make_job(folder, "short")
    frames = writer(make_job(folder, "long"))
    block = (b"x" * 1023 + b"\n") * 64
    for _ in range(LONG // len(block)):
        frames.write(0, 1, block)
    frames.close()
    return folder


@pytest.fixture(scope="module")
def server(home):
    with console(home, "--allow-host", "Console.Example.org") as running:
        yield running


@pytest.mark.parametrize("path", ["/", "/api/jobs", "/page/app.js", "/api/events", "/api/openapi.json", "/nothing"])
@pytest.mark.parametrize("token", [None, "wrong", "wrong-token-of-the-right-length-0123456789"])
def test_without_the_token_nothing_is_answered(server, path, token):
    status, _, body = server.ask(path, token=token)
    assert status == 401
    assert json.loads(body)["error"].startswith("the token is missing or wrong")


def test_the_token_in_an_address_opens_the_page_alone_and_becomes_a_cookie(server):
    assert server.ask(f"/api/jobs?token={server.token}", token=None)[0] == 401
    status, headers, body = server.ask(f"/?token={server.token}", token=None)
    assert status == 200 and b"<!doctype html>" in body
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict"]
    assert server.ask("/api/jobs", token=None, headers={"Cookie": f"other=1; {cookie}"})[0] == 200
    assert server.ask("/api/jobs", token=None, headers={"Cookie": cookie[:-1]})[0] == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""]
)
def test_a_name_that_is_not_ours_is_not_answered(server, host):
    status, _, _ = server.ask("/api/jobs", headers={"Host": host.format(port=server.port)})
    assert status == 421


def test_a_proxy_s_name_is_ours_however_it_is_written(server):
    assert server.ask("/api/jobs", headers={"Host": "console.example.org"})[0] == 200


@pytest.mark.parametrize("path", ["/api/jobs/short/stop", "/api/jobs/short/retry", "/api/jobs/short/window"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_another_site_cannot_act(server, path, headers):
    own = {name: value.format(port=server.port) for name, value in headers.items()}
    cookie = f"estimator-console-{server.port}={server.token}"
    status, _, body = server.ask(path, "POST", {**own, "Cookie": cookie}, token=None)
    assert status == 403, body


def test_the_page_itself_can_act(server):
    headers = {"Origin": f"http://127.0.0.1:{server.port}", "Sec-Fetch-Site": "same-origin"}
    cookie = f"estimator-console-{server.port}={server.token}"
    status, _, body = server.ask("/api/jobs/short/stop", "POST", {**headers, "Cookie": cookie}, token=None)
    assert (status, json.loads(body)) == (202, {"said": "short has ended already: it is Completed"})


def test_another_site_cannot_read(server):
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}):
        assert server.ask("/api/jobs", headers=headers)[0] == 403


@pytest.mark.parametrize("path", ["/", "/api/jobs", "/api/jobs/none", "/nothing", "/page/style.css"])
def test_every_answer_forbids_what_the_page_does_not_need(server, path):
    _, headers, _ = server.ask(path)
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["form-action"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py",
        "/page/%2e%2e/app.py",
        "/page/..%2fapp.py",
        "/page//etc/passwd",
        "/page/package.json",
        "/api/jobs/..",
        "/api/jobs/..%2f..%2fetc",
        "/api/jobs/%2e%2e/logs",
        "/api/jobs/short%00/logs",
        "/api/jobs/" + "a" * 5000,
        "/api/jobs/short/logs?host=..",
        "/api/jobs/short/logs?host=../../other/hosts/algo-1",
        "/api/jobs/short/logs?attempt=99",
        "/api/jobs/short/logs?before=1:2:3;4",
        "/api/jobs/short/logs?before=" + "0:1:1." * 20000,
        "/api/jobs/short/logs?limit=1000000",
        "/api/jobs/short/logs?at=nan",
        "/api/jobs/short/logs?unknown=1",
        "/api/jobs/short/machines?host=../../other/hosts/algo-1",
        "/api/jobs?cursor=W10",
        "/api/jobs?cursor=%ff",
        "/api/jobs?sort=__class__",
    ],
    ids=lambda path: path[:60],
)
def test_what_is_no_name_or_value_gets_a_sentence(server, path):
    status, _, body = server.ask(path)
    assert status in (400, 404, 431), (status, body)
    assert b"root:" not in body and b"import" not in body
    if status != 431:
        try:
            assert json.loads(body)["error"]
        except ValueError:  # what is no request at all is refused before there is an application
            assert body == b"Invalid HTTP request received."


def test_a_body_is_not_taken(server):
    for headers in ({"Content-Length": "100000"}, {"Transfer-Encoding": "chunked"}):
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
            given = {"Host": f"127.0.0.1:{server.port}", "Authorization": f"Bearer {server.token}", **headers}
            lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
            client.sendall(f"POST /api/jobs/short/stop HTTP/1.1\r\n{lines}\r\n".encode())
            assert client.recv(100).startswith(b"HTTP/1.1 413")


def test_a_thousand_connections_that_ask_for_nothing_keep_nobody_out(server):
    with ExitStack() as stack:
        for _ in range(1000):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE))
            client.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert server.get("jobs")["total"] == 2
        wait_until(lambda: server.descriptors() < 2 * serving.MOST_CONNECTIONS, "too many connections are held")
        assert server.get("jobs")["total"] == 2


def test_readers_that_take_nothing_are_few_and_cost_little(server):
    request = f"HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    before = server.memory()
    with ExitStack() as stack:
        for _ in range(MOST_DOWNLOADS):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE))
            client.sendall(f"GET /api/jobs/long/logs/download {request}".encode())
            assert client.recv(15) == b"HTTP/1.1 200 OK"
        status, headers, body = server.ask("/api/jobs/long/logs/download")
        assert (status, headers["retry-after"]) == (503, "5"), body
        assert server.get("jobs/short")["status"] == "Completed"
        assert server.memory() - before < 48 << 20
    wait_until(lambda: server.ask("/api/jobs/short/logs/download")[0] == 200, "a download that was left is kept")


def test_the_pages_that_listen_have_a_bound(server):
    request = f"HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    with ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE))
            for _ in range(2 * MOST_LISTENERS)
        ]
        for client in clients:  # all at once
            client.sendall(f"GET /api/events?job=long {request}".encode())
        answers = [client.recv(12) for client in clients]
        assert answers.count(b"HTTP/1.1 200") == MOST_LISTENERS
        assert answers.count(b"HTTP/1.1 503") == MOST_LISTENERS
        assert server.ask("/api/events")[0] == 503
        assert server.get("jobs")["total"] == 2
    wait_until(lambda: server.descriptors() < MOST_LISTENERS, "those that left are kept")


def test_a_download_has_every_byte(server):
    status, headers, body = server.ask("/api/jobs/long/logs/download?host=algo-1&rank=0&stream=stdout")
    assert status == 200 and body == (b"x" * 1023 + b"\n") * (LONG // 1024)
    assert headers["content-disposition"] == 'attachment; filename="long-algo-1-0-stdout.log"'


@pytest.mark.parametrize("rank", [None, 0])
def test_a_download_of_a_stream_is_bare_where_one_script_writes_it(server, home, rank):
    name, number = f"of-{rank}", NO_RANK if rank is None else rank
    frames = writer(make_job(home, name))
    tell(frames, events.RankStarted(rank))
    frames.write(number, 1, b"a\0b\n")
    frames.write(number, 2, b"warning\n")
    frames.write(number, 1, b"no end of line")
    frames.close()
    wait_until(lambda: server.ask(f"/api/jobs/{name}")[0] == 200)
    _, _, body = server.ask(f"/api/jobs/{name}/logs/download?host=algo-1&stream=stdout")
    if rank is None:
        assert body == b"a\0b\nno end of line"
    else:  # another rank may write there, too
        assert body == b"[1,0]<stdout>:a\0b\n[1,0]<stdout>:no end of line\n"


def test_a_trace_is_given_only_where_it_is_a_file_of_the_job(server, home):
    path = Path(Layout(str(home / "jobs" / "short" / "hosts" / "algo-1")).output_data, "horovod_timeline.json")
    path.parent.mkdir(parents=True)
    path.symlink_to("/etc/passwd")
    assert server.ask("/api/jobs/short/window/trace")[0] == 404
    assert server.get("jobs/short/window")["size"] is None
    path.unlink()
    os.mkfifo(path)
    assert server.ask("/api/jobs/short/window/trace")[0] == 404
    path.unlink()
    path.write_text("{}")
    assert server.ask("/api/jobs/short/window/trace")[2] == b"{}"
    origin = {"Origin": f"http://127.0.0.1:{server.port}"}
    status, _, body = server.ask("/api/jobs/short/window?seconds=5", "POST", origin)
    assert (status, json.loads(body)["error"].partition(",")[0]) == (409, "short has ended")


def test_openapi_describes_every_address(server):
    described = server.get("openapi.json")["paths"]
    assert {(path, method) for path in described for method in described[path]} == {
        (each.path, each.method.lower()) for each in OPERATIONS
    }


def test_a_token_file_is_made_kept_and_not_shared(tmp_path):
    place = tmp_path / "token"
    token = serving.token_of(str(place))
    assert place.stat().st_mode & 0o777 == 0o600
    assert serving.token_of(str(place)) == token
    place.chmod(0o644)
    with pytest.raises(EstimatorError, match="can be read by others"):
        serving.token_of(str(place))
    place.chmod(0o600)
    place.write_text("short")
    with pytest.raises(EstimatorError, match="holds no token of at least 16 characters"):
        serving.token_of(str(place))


def test_an_address_beyond_loopback_needs_a_token_file(capsys):
    assert main(["console", "--host", "0.0.0.0"]) == 2
    assert "add --token-file FILE" in capsys.readouterr().err
    with pytest.raises(InvalidArgument, match="is not an IP address"):
        serving.check_host("example.org", has_token_file=True)
    serving.check_host("0.0.0.0", has_token_file=True)
    serving.check_host("::1", has_token_file=False)


def test_a_port_that_is_taken_is_said(server, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path))
    assert main(["console", "--no-browser", "--port", str(server.port)]) == 1
    assert "choose another --port" in capsys.readouterr().err
