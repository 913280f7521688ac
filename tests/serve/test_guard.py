"""What is refused before the application sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.serve.made import TOKEN, Reply, call, settings

from nephoscope.httpd import guard
from nephoscope.httpd.access import COOKIE, FAILURES_PER_CLIENT, Access
from nephoscope.httpd.guard import MAX_BODY_BYTES, Guard

API = "/api/v1/runs"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the length of the body that it received."""
    message = await receive()
    content = json.dumps(len(message["body"])).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": content})


@pytest.fixture
def app(tmp_path: Path) -> Guard:
    return Guard(echo, settings(tmp_path), Access(None))


@pytest.fixture
def locked(tmp_path: Path) -> Guard:
    return Guard(echo, settings(tmp_path), Access(TOKEN))


def is_sentence(reply: Reply) -> bool:
    return set(reply.json) == {"error", "hint"} and reply.json["error"].endswith(".")


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "LOCALHOST", "[::1]:8765"])
def test_own_names_are_answered(app: Guard, host: str) -> None:
    assert call(app, API, headers={"host": host}).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "0.0.0.0:8765"]
)
def test_a_rebound_name_is_refused(app: Guard, host: str) -> None:
    reply = call(app, API, headers={"host": host})
    assert reply.status == 421
    assert is_sentence(reply)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "https://127.0.0.1:8765"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_origins_are_refused(app: Guard, method: str, headers: dict[str, str]) -> None:
    reply = call(app, API, method=method, headers=headers)
    assert reply.status == 403
    assert is_sentence(reply)
    assert "access-control-allow-origin" not in reply.headers


def test_the_own_page_may_ask_and_a_link_may_lead_to_it(app: Guard) -> None:
    own = {"origin": "http://127.0.0.1:8765", "sec-fetch-site": "same-origin"}
    assert call(app, API, method="POST", headers=own, body=b"{}").status == 200
    assert call(app, "/", headers={"sec-fetch-site": "cross-site"}).status == 200


def test_no_token_is_401_and_the_page_itself_needs_none(locked: Guard) -> None:
    reply = call(locked, API)
    assert reply.status == 401
    assert reply.headers["www-authenticate"] == "Bearer"
    assert is_sentence(reply)
    for path in ("/api/openapi.json", "/api/v1/overview", "/api/", "/api/v1/runs/x/events"):
        assert call(locked, path).status == 401
    assert call(locked, "/").status == 200
    assert call(locked, "/api/v1/session").status == 200


def test_the_token_and_a_session_pass(locked: Guard) -> None:
    assert call(locked, API, headers={"authorization": f"Bearer {TOKEN}"}).status == 200
    assert call(locked, API, headers={"authorization": f"bearer {TOKEN}"}).status == 200
    assert call(locked, API, headers={"authorization": f"Basic {TOKEN}"}).status == 401
    assert call(locked, API, headers={"cookie": f"{COOKIE}={TOKEN}"}).status == 401
    session = locked._access.open_session()
    assert call(locked, API, headers={"cookie": f"x=1; {COOKIE}={session}"}).status == 200
    assert call(locked, f"{API}?token={TOKEN}").status == 401


def test_wrong_tokens_are_limited(locked: Guard) -> None:
    wrong = {"authorization": "Bearer wrong"}
    statuses = [call(locked, API, headers=wrong).status for _ in range(FAILURES_PER_CLIENT)]
    assert set(statuses) == {401}
    reply = call(locked, API, headers={"authorization": f"Bearer {TOKEN}"})
    assert reply.status == 429
    assert int(reply.headers["retry-after"]) > 0


def test_large_bodies_are_refused_before_they_are_read(app: Guard) -> None:
    length = {"content-length": str(100 << 20)}
    for method in ("POST", "GET", "PUT"):
        reply = call(app, API, method=method, headers=length)
        assert reply.status == 413
        assert reply.headers["connection"] == "close"
    for text in ("-1", "1e3", "many", "\xb2", "9" * 5000):
        assert call(app, API, method="POST", headers={"content-length": text}).status == 413
    assert call(app, API, method="POST", body=b"x" * MAX_BODY_BYTES).json == MAX_BODY_BYTES
    assert call(app, API, method="POST", body=b"x" * (MAX_BODY_BYTES + 1)).status == 413


def test_bodies_without_a_length_are_bounded_too(app: Guard) -> None:
    part = b"x" * (MAX_BODY_BYTES // 4)
    assert call(app, API, method="POST", body=part, chunks=4).json == MAX_BODY_BYTES
    assert call(app, API, method="POST", body=part, chunks=5).status == 413


def test_headers_that_decide_may_not_come_twice(app: Guard) -> None:
    reply = call(app, API, headers={"Host": "evil.example"})  # beside the helper's own
    assert reply.status == 400


def test_every_response_has_the_security_headers(app: Guard) -> None:
    for reply in (call(app, "/"), call(app, API, headers={"host": "evil.example"})):
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["x-frame-options"] == "DENY"
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy


def test_a_client_that_takes_nothing_is_given_up(
    app: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    monkeypatch.setattr(guard, "SEND_S", 0.01)

    async def never(message: Any) -> None:
        await asyncio.Event().wait()

    async def nothing() -> Any:
        return {"type": "http.request", "body": b""}

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [(b"host", b"localhost")],
        "client": None,
    }
    with pytest.raises(OSError, match="does not take"):
        asyncio.run(app(scope, nothing, never))


def test_a_body_that_does_not_arrive_is_given_up(
    app: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    monkeypatch.setattr(guard, "BODY_S", 0.01)
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/session",
        "headers": [(b"host", b"localhost"), (b"content-length", b"10")],
        "client": None,
    }
    asyncio.run(app(scope, never, send))
    assert sent[0]["status"] == 408
