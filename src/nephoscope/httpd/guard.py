"""Refuses requests before the application sees them, and adds the security headers.

A request passes where its Host header is a name of this server (a page of another site that
rebinds its DNS name to this address has another), where no other origin sent it, where its body is
small, and where it carries the token or a session. Both directions have time limits, so that a slow
client holds nothing for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nephoscope.httpd.access import COOKIE, Access, TooManyFailures
from nephoscope.httpd.local_users import user_of
from nephoscope.httpd.responses import Refusal, failure_of
from nephoscope.httpd.settings import ServerSettings, is_loopback

MAX_BODY_BYTES = 1 << 20
BODY_S = 10.0
"""Seconds within which a body has to arrive."""
SEND_S = 60.0
"""Seconds for which a client may take nothing of a response."""
API = "/api/"
SESSION = "/api/v1/session"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
"""Headers of every response that does not set them itself."""


class Guard:
    """ASGI middleware around the whole application.

    protected: beginning of the paths that need the token, where the server has one.
    """

    def __init__(
        self, app: ASGIApp, settings: ServerSettings, access: Access, *, protected: str = API
    ) -> None:
        self._app = app
        self._protected = protected
        self._access = access
        self._hosts = settings.allowed_hosts
        self._scheme = settings.scheme

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it with the refusal."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # WebSockets are not offered: without an answer the server refuses them
        sender = _Sender(send)
        try:
            headers = _headers(scope)
            self._check_host(headers)
            self._check_origin(scope, headers)
            self._check_access(scope, headers)
            body = await _body(headers, receive)
        except Refusal as refusal:
            stated = failure_of(refusal)
            response = Response(stated.body, stated.status, stated.headers, stated.content_type)
            await response(scope, receive, sender)
            return
        await self._app(scope, _Replay(body, receive), sender)

    def _check_host(self, headers: Mapping[str, str]) -> None:
        if _without_port(headers.get("host", "")) not in self._hosts:
            raise Refusal(
                421,
                "This server does not answer under that host name.",
                "Use its address, or start it with --host-name NAME.",
            )

    def _check_origin(self, scope: Scope, headers: Mapping[str, str]) -> None:
        origin = headers.get("origin")
        own = f"{self._scheme}://{headers['host'].lower()}"
        if origin is not None and origin.lower() != own:
            raise Refusal(403, "Requests of other origins are refused.")
        site = headers.get("sec-fetch-site", "none")
        opened = scope["method"] == "GET" and not scope["path"].startswith(API)
        if site not in ("none", "same-origin") and not opened:
            raise Refusal(403, "Requests of other sites are refused.")

    def _check_access(self, scope: Scope, headers: Mapping[str, str]) -> None:
        path = scope["path"]
        if not self._access.needs_token or not path.startswith(self._protected) or path == SESSION:
            return
        if self._access.is_session(session_of(headers)):
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Refusal(
                401,
                "This server needs its token.",
                "Log in, or send the header `Authorization: Bearer TOKEN`.",
                www_authenticate="Bearer",
            )
        check_token(self._access, token.strip(), client_of(scope))


def check_token(access: Access, token: str, client: str) -> None:
    """Raises Refusal for a wrong token, and where wrong ones came too often."""
    try:
        right = access.is_token(token, client)
    except TooManyFailures as error:
        wait_s = str(int(error.wait_s) + 1)
        raise Refusal(
            429, "Too many wrong tokens.", f"Try again in {wait_s} s.", retry_after=wait_s
        ) from None
    if not right:
        raise Refusal(
            401,
            "This is not the token of this server.",
            "The server printed where its token is kept.",
            www_authenticate="Bearer",
        )


def client_of(scope: Scope) -> str:
    """Returns who sent a request: the address, and on loopback the user, too."""
    client = scope.get("client")
    if not client:
        return ""
    address = str(client[0])
    user = user_of(address, int(client[1])) if is_loopback(address) else ""
    return f"{address} user {user}" if user else address


def session_of(headers: Mapping[str, str]) -> str:
    """Returns the session that a request's cookie names; empty without one."""
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel is not None else ""


def _headers(scope: Scope) -> dict[str, str]:
    """Returns the headers by name; two values of one that decides are refused."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in headers and key in ("host", "origin", "content-length", "authorization"):
            raise Refusal(400, f"The header {key} was sent twice.")
        headers[key] = value.decode("latin-1")
    return headers


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()


async def _body(headers: Mapping[str, str], receive: Receive) -> bytes:
    """Returns the body of a request. Refusal for one that is large or slow."""
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 18 or int(length) > MAX_BODY_BYTES:
        raise _too_large()
    if length == "0" and "transfer-encoding" not in headers:
        return b""
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                content += message.get("body", b"")
                if len(content) > MAX_BODY_BYTES:
                    raise _too_large()
                if not message.get("more_body"):
                    return bytes(content)
    except TimeoutError:
        raise Refusal(
            408, f"The body did not arrive within {BODY_S:g} s.", connection="close"
        ) from None


def _too_large() -> Refusal:
    return Refusal(
        413,
        f"The body is larger than {MAX_BODY_BYTES >> 20} MiB.",
        "Requests name files of the folder of --data; they do not send them.",
        connection="close",
    )


class _Replay:
    """Gives the application the body that was read, then what the server receives."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._message: Message | None = {"type": "http.request", "body": body, "more_body": False}
        self._receive = receive

    async def __call__(self) -> Message:
        message, self._message = self._message, None
        return message if message is not None else await self._receive()


class _Sender:
    """Adds headers to a response, and gives up on a client that does not take it."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message.get("headers", ())}
            added = [
                (name.encode(), value.encode())
                for name, value in HEADERS.items()
                if name.encode() not in present
            ]
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        try:
            async with asyncio.timeout(SEND_S):
                await self._send(message)
        except TimeoutError:
            raise OSError("the client does not take its response") from None
