"""A real server: where it listens, what it prints, connections, TLS, a run in progress."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests import hardware
from tests.hardware import Feature
from tests.results.made import NULL_PLAN, make_run
from tests.serve.made import PATIENCE_S, TOKEN, RunningServer, listening, running
from tests.tools import needs

from nephoscope import command_line
from nephoscope.core.model import Sample, Setting
from nephoscope.httpd.settings import TOKEN_VARIABLE
from nephoscope.serve import static_files
from nephoscope.store import RUNNING, Store, identity


def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 100.0 + number)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "store"
    make_run(folder, NULL_PLAN, sampler, rounds=2)
    return folder


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[RunningServer]:
    log = store.parent / "log"
    with running(store, log=log, **{TOKEN_VARIABLE: ""}) as process:
        yield process


def ask(server: RunningServer, path: str, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers=names)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, json.loads(content)


def test_it_listens_on_loopback_and_nowhere_else(server: RunningServer) -> None:
    assert server.url.startswith("http://127.0.0.1:")
    assert ask(server, "/api/v1/commands/list")[0] == 200  # by a worker, which stays
    assert Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
    assert listening(server.process.pid) == {("tcp", "0100007F")}
    assert ask(server, "/api/v1/overview")[1]["runs"] == 1


def test_a_body_of_100_mb_is_413_and_ends_the_connection(server: RunningServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as client:
        head = f"POST /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        client.sendall(f"{head}Content-Length: {100 << 20}\r\n\r\n".encode())
        answer = b""
        while part := client.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 413")
    assert ask(server, "/api/v1/overview")[0] == 200


def test_readers_that_take_nothing_hold_up_nobody(server: RunningServer) -> None:
    page = static_files.load()
    script = max(
        (name for name in page if name.endswith(".js")), key=lambda n: len(page[n].content)
    )
    with ExitStack() as stack:
        for _ in range(30):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.connect(("127.0.0.1", server.port))
            client.sendall(f"GET /{script} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 50)
        for _ in range(10):
            assert ask(server, "/api/v1/overview")[0] == 200


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("metric=null_ns", 200),
        ("metric=%00", 400),
        ("metric=%1b%5b31m%e2%80%ae", 400),
        ("metric=../../etc/passwd", 400),
        ("metric=--confirm=x", 400),
        ("metric=null_ns&metric=null_ns", 400),
        ("metric=null_ns&target=<script>", 400),
        ("metric=null_ns&false-alarms=50%25", 400),
        ("metric=null_ns&since=%ff", 400),
        ("metric=null_ns&confirm=latest", 400),
        ("metric=null_ns&forecast=perhaps", 400),
    ],
)
def test_wrong_questions_on_a_history_are_one_sentence(
    server: RunningServer, query: str, status: int
) -> None:
    found, content = ask(server, f"/api/v1/commands/history?{query}")
    assert found == status, content
    if status != 200:
        assert set(content) == {"error", "hint"}
        assert "Traceback" not in content["error"]
        assert not {"\x1b", "\u202e", "\0"} & {*content["error"]}


@pytest.mark.parametrize(
    "request_head",
    [
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /assets/%2e%2e/%2e%2e/settings.py HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://evil.example/api/v1/runs HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_strange_requests_are_refused(server: RunningServer, request_head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as client:
        client.sendall(request_head)
        status = client.recv(65536).split(b" ")[1]
    assert status in (b"400", b"403", b"404", b"421")
    assert ask(server, "/api/v1/overview")[0] == 200


def test_a_connection_without_a_request_is_closed(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    from uvicorn import Config
    from uvicorn.server import ServerState

    from nephoscope.httpd import server as serving

    monkeypatch.setattr(serving, "HEADERS_S", 0.05)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def serve() -> None:
        config = Config(app, http=serving.TimedProtocol, ws="none", log_config=None)
        config.load()
        loop = asyncio.get_running_loop()
        state = ServerState()
        listener = await loop.create_server(
            lambda: serving.TimedProtocol(config, state, {}), "127.0.0.1", 0
        )
        port = listener.sockets[0].getsockname()[1]
        for begun in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begun)
            answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
            assert answer.startswith(b"HTTP/1.1 204") == begun.endswith(b"\r\n\r\n")
            writer.close()
        listener.close()

    asyncio.run(serve())


def test_a_client_that_takes_nothing_loses_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response is written as a whole, so that only the socket still waits for the client."""
    import asyncio

    from uvicorn import Config
    from uvicorn.server import ServerState

    from nephoscope.httpd import server as serving
    from nephoscope.httpd.settings import ServerSettings

    monkeypatch.setattr(serving, "HEADERS_S", 0.05)
    monkeypatch.setattr(serving, "SEND_S", 0.2)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(8 << 20)})

    async def serve() -> None:
        config = Config(app, http=serving.TimedProtocol, ws="none", log_config=None)
        config.load()
        state = ServerState()
        listener = serving.listen(ServerSettings(Store(tmp_path)))
        server = await asyncio.get_running_loop().create_server(
            lambda: serving.TimedProtocol(config, state, {}), sock=listener
        )
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.connect(listener.getsockname())
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(PATIENCE_S):
                while not state.total_requests or state.connections:
                    await asyncio.sleep(0.02)
        server.close()

    asyncio.run(serve())


def test_two_requests_at_once_start_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    from nephoscope.serve import launch
    from nephoscope.serve.workers import Refusal

    started = []

    class Process:
        returncode = None
        stderr = object()

    async def start(*words: str, **options: Any) -> Process:
        await asyncio.sleep(0)
        started.append(words)
        return Process()

    async def run_id(stream: Any) -> str:
        return "20260101-000000-aaaa"

    async def nothing(stream: Any) -> None:
        return

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    monkeypatch.setattr(launch, "_id_of", run_id)
    monkeypatch.setattr(launch, "_drain", nothing)

    async def both() -> list[Any]:
        launcher = launch.Launcher(tmp_path, None)
        requests = (launcher.start(None, "quick"), launcher.start(None, "quick"))
        return await asyncio.gather(*requests, return_exceptions=True)

    first, second = asyncio.run(both())
    assert first == "20260101-000000-aaaa"
    assert isinstance(second, Refusal)
    assert second.status == 409
    assert len(started) == 1


def test_a_run_in_progress_is_streamed_to_its_end(tmp_path: Path) -> None:
    store = tmp_path / "store"
    run = make_run(store, NULL_PLAN, sampler, rounds=1, one_by_one=True)
    run.update(state=RUNNING)
    with running(store, log=tmp_path / "log") as server, run.lock():
        run.event({"event": "session_started", **identity()})
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        connection.request("GET", f"/api/v1/runs/{run.id}/events")
        response = connection.getresponse()
        assert response.getheader("content-type", "").startswith("text/event-stream")
        lines: list[str] = []

        def read_until(text: str) -> None:
            while text not in (line := response.readline().decode()):
                assert line, "the stream ended"
                lines.append(line)

        read_until('"state": "running"')
        status, refused = ask(server, f"/api/v1/runs/{run.id}/result")
        assert status == 503
        assert "would disturb" in refused["error"]
        run.event({"event": "warning", "sentence": "Something was seen."})
        read_until("Something was seen.")
        run.finish("finished")
        read_until("event: end")
        connection.close()
        assert sum(line == "event: trial\n" for line in lines) == 2


def test_the_token_is_in_a_file_and_neither_printed_nor_an_argument(store: Path) -> None:
    log = store.parent / "token-log"
    with running(store, "--token", log=log) as server:
        file = store / "serve-token"
        token = file.read_text().strip()
        assert ask(server, "/api/v1/runs")[0] == 401
        assert ask(server, "/api/v1/runs", authorization=f"Bearer {token}")[0] == 200
        assert ask(server, "/api/v1/runs", authorization="Bearer wrong")[0] == 401
        arguments = Path(f"/proc/{server.process.pid}/cmdline").read_text()
    assert str(file) in log.read_text()
    assert token not in log.read_text() + arguments + server.url


@dataclass(frozen=True)
class Signed:
    """A certificate with its key, in memory and as files."""

    certificate: Any
    private: Any
    cert: Path
    key: Path


def signed(folder: Path, name: str, by: Signed | None = None) -> Signed:
    """Writes a certificate for 127.0.0.1: an authority that signs itself, or one signed by it."""
    from datetime import UTC, datetime, timedelta
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(alternative, critical=False)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .sign(by.private if by else private, hashes.SHA256())
    )
    made = Signed(certificate, private, folder / f"{name}.pem", folder / f"{name}.key")
    made.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    made.key.write_bytes(private.private_bytes(serialization.Encoding.PEM, *form))
    return made


@needs("curl")
def test_mutual_tls_needs_a_certificate_of_the_authority(store: Path, tmp_path: Path) -> None:
    authority, stranger = signed(tmp_path, "authority"), signed(tmp_path, "stranger")
    own, client = (signed(tmp_path, name, authority) for name in ("server", "client"))
    foreign = signed(tmp_path, "foreign", stranger)
    options = [f"--tls-cert={own.cert}", f"--tls-key={own.key}", f"--client-ca={authority.cert}"]
    with running(store, *options, log=tmp_path / "log") as server:
        assert server.url.startswith("https://")

        def ask_as(one: Signed | None, trusted: Signed = authority) -> int:
            context = ssl.create_default_context(cafile=str(trusted.cert))
            if one is not None:
                context.load_cert_chain(one.cert, one.key)
            return ask_tls(server, context)

        for nobody in (None, foreign):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                ask_as(nobody)
        with pytest.raises(ssl.SSLCertVerificationError):
            ask_as(client, trusted=stranger)
        assert ask_as(client) == 200
        words = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", authority.cert]
        address = f"https://127.0.0.1:{server.port}/api/v1/overview"
        for one, answered in ((client, True), (foreign, False), (None, False)):
            own_words = [] if one is None else ["--cert", one.cert, "--key", one.key]
            done = subprocess.run([*words, *own_words, address], capture_output=True, text=True)
            assert (done.returncode == 0, done.stdout) == (answered, "200" if answered else "000")
    assert "Traceback" not in (tmp_path / "log").read_text()


def ask_tls(server: RunningServer, context: ssl.SSLContext) -> int:
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.port, timeout=PATIENCE_S, context=context
    )
    try:
        connection.request("GET", "/api/v1/overview")
        return connection.getresponse().status
    finally:
        connection.close()


def bearer(server: RunningServer, token: str) -> int:
    return ask(server, "/api/v1/overview", authorization=f"Bearer {token}")[0]


def test_a_token_that_is_replaced_counts_from_the_next_request_on(
    store: Path, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    with running(
        store, f"--token-file={file}", log=tmp_path / "log", **{TOKEN_VARIABLE: ""}
    ) as server:
        former = file.read_text().strip()
        assert file.stat().st_mode & 0o777 == 0o600
        assert bearer(server, former) == 200
        renewed = tmp_path / "new"
        renewed.write_text("too short\n")
        renewed.chmod(0o600)
        renewed.rename(file)
        assert bearer(server, former) == 200, "a file without a token changes nothing"
        renewed.write_text(f"{TOKEN}\n")
        renewed.chmod(0o600)
        renewed.rename(file)
        assert bearer(server, former) == 401
        assert bearer(server, TOKEN) == 200
        assert [bearer(server, "wrong") for _ in range(6)][-1] == 429


@hardware.needs(Feature.ROOT, os.geteuid() == 0)
@needs("curl", "setpriv")
def test_another_user_of_the_machine_reaches_nothing_without_the_token(
    store: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
    with running(store, "--token", log=tmp_path / "log") as server:
        address = f"http://127.0.0.1:{server.port}/api/v1"

        def answered(*words: object, path: str = "overview") -> str:
            done = subprocess.run(
                [*nobody, "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", *map(str, words),
                 f"{address}/{path}"], capture_output=True, text=True,
            )  # fmt: skip
            return done.stdout

        for path in ("overview", "runs", "commands/list", "runs/latest/report.html"):
            assert answered(path=path) == "401", path
        assert answered("-H", "Cookie: nephoscope_session=x") == "401"
        # By one process: on a busy machine six take so long that guesses are allowed again.
        requests = [
            ["-sS", "-o", "/dev/null", "-w", "%{http_code} ",
             "-H", f"Authorization: Bearer guess-{number}", f"{address}/overview", "--next"]
            for number in range(6)
        ]  # fmt: skip
        guesses = subprocess.run(
            [*nobody, "curl", *itertools.chain.from_iterable(requests)][:-1],
            capture_output=True, text=True,
        )  # fmt: skip
        assert guesses.stdout.split() == ["401"] * 5 + ["429"]
        # Who has the token does not wait for the guesses of another user.
        assert bearer(server, (store / "serve-token").read_text().strip()) == 200
        for file in (store / "serve-token", store / "runs", f"/proc/{server.process.pid}/environ"):
            read = subprocess.run([*nobody, "cat", file], capture_output=True, text=True)
            assert read.returncode != 0, file
            assert TOKEN not in read.stdout


def test_runs_start_where_they_may_and_can_be_stopped(tmp_path: Path) -> None:
    store, data = tmp_path / "store", tmp_path / "data"
    data.mkdir()
    plan = NULL_PLAN.replace("min: 10, max: 50", "min: 100000, max: 100000")
    (data / "plan.yaml").write_text(plan)
    (tmp_path / "elsewhere.yaml").write_text(plan)
    environment = {TOKEN_VARIABLE: TOKEN}
    options = ["--allow-runs", f"--data={data}"]
    with running(store, *options, log=tmp_path / "log", **environment) as server:

        def post(path: str, body: Any) -> tuple[int, Any]:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
            headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
            connection.request("POST", f"/api/v1/{path}", json.dumps(body), headers)
            response = connection.getresponse()
            content = json.loads(response.read())
            connection.close()
            return response.status, content

        assert post("runs", {"plan": "../elsewhere.yaml"})[0] == 404
        assert post("runs", {"plan": "/etc/passwd"})[0] == 404
        assert post("runs", {})[0] == 400
        assert post("runs", {"survey": "--help"})[0] == 400
        status, started = post("runs", {"plan": "plan.yaml"})
        assert status == 202, started
        assert post("runs", {"plan": "plan.yaml"})[0] == 409
        stopped = post(f"runs/{started['run']}/stop", {})
        assert stopped[0] == 200
        assert stopped[1]["run"] == started["run"]
    run = Store(store).open(started["run"])
    assert run.status in ("interrupted", "not started")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--address=example.org"], "no IP address"),
        (["--tls-cert=x"], "--tls-cert and --tls-key"),
        (["--tls-cert=no", "--tls-key=no"], "TLS files cannot be used"),
        (["--data=/no/such"], "no directory"),
        (["--host-name=a/b"], "no name of a host"),
        (["--address=192.0.2.1"], "cannot be taken"),
    ],
)
def test_wrong_options_are_one_sentence(
    tmp_path: Path, options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["serve", "--port=0", f"--store={tmp_path}", *options]) == 2
    message = capsys.readouterr().err
    assert sentence in message
    assert message.count("\n") == 1


def test_an_interrupt_ends_it_in_order(tmp_path: Path) -> None:
    with running(tmp_path / "store", log=tmp_path / "log") as server:
        server.process.send_signal(signal.SIGINT)
        code = server.process.wait(PATIENCE_S)
    assert code in (0, 130)
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_the_command_line_does_not_load_the_web_libraries() -> None:
    code = (
        "import sys; from nephoscope.command_line import main; main(['serve', '--help']);"
        "print([name for name in ('fastapi', 'uvicorn', 'starlette') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_500_silent_connections_of_one_address_hold_up_nobody(server: RunningServer) -> None:
    with ExitStack() as stack:
        clients = []
        for number in range(500):
            client = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
            clients.append(stack.enter_context(client))
            if number % 2:
                client.sendall(b"GET / HTTP/1.1\r\nHost: loc")
            elif number % 4:
                head = f"POST /api/v1/runs HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                client.sendall(f"{head}Content-Length: 900000\r\n\r\n{{".encode())
            if number % 50 == 49:
                assert ask(server, "/api/v1/overview")[0] == 200, number
        # The oldest are closed, and the newest may still send.
        assert clients[0].recv(1) == b""
        clients[-1].sendall(b"alhost\r\n\r\n")
        assert clients[-1].recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/commands/run?plan=" + "a" * 3000,
        "/api/v1/commands/run?plan=" + "a/" * 1500,
        "/api/v1/commands/run?plan=",
        "/api/v1/compare?a=&b=",
        "/api/v1/compare?a=&b=latest",
        "/api/v1/compare?a=" + "a" * 3000 + "&b=b",
        "/api/v1/runs/" + "a" * 3000 + "/result",
        "/api/v1/commands/compare?runs=&runs=",
        "/api/v1/commands/sla%20verdict?contract=" + "a" * 300,
    ],
)
def test_empty_and_long_names_are_a_sentence(server: RunningServer, path: str) -> None:
    status, content = ask(server, path)
    assert status in (400, 404)
    assert set(content) == {"error", "hint"}
    assert "defect" not in content["error"]
