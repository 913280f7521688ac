"""Who asks an object store: Signature Version 4, in headers or in the query of an address.

https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

KEY, SECRET = "AKIDNEPHOSCOPETEST01", "a-secret-that-must-not-be-seen"
LARGEST_SKEW_S = 900.0
LONGEST_LIFE_S = 604_800


class Refused(Exception):
    """The request is refused, with the code and the status of S3."""

    def __init__(self, code: str, status: int = 403) -> None:
        super().__init__(code)
        self.code, self.status = code, status


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _quoted(text: str, safe: str = "-_.~") -> str:
    return quote(text, safe=safe)


def check(method: str, target: str, headers: Mapping[str, str], body: bytes, now: float) -> None:
    """Raises Refused unless the request is signed with the account's key, for what it asks."""
    url = urlsplit(target)
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    if "X-Amz-Signature" in query:
        _check_query(method, url.path, query, headers, now)
    else:
        _check_headers(method, url.path, query, headers, body, now)


def _check_query(
    method: str, path: str, query: dict[str, str], headers: Mapping[str, str], now: float
) -> None:
    given = query.pop("X-Amz-Signature")
    stamp, credential = query.get("X-Amz-Date", ""), query.get("X-Amz-Credential", "")
    began = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    life_s = int(query.get("X-Amz-Expires", "0"))
    if not 1 <= life_s <= LONGEST_LIFE_S:
        raise Refused("AuthorizationQueryParametersError", 400)
    signed = query.get("X-Amz-SignedHeaders", "")
    wanted = _signature(method, path, query, headers, signed, "UNSIGNED-PAYLOAD", stamp, credential)
    if not hmac.compare_digest(wanted, given):
        raise Refused("SignatureDoesNotMatch")
    # "Request has expired", of the address as a whole; its clock is the store's alone.
    if now > began + life_s or now < began - LARGEST_SKEW_S:
        raise Refused("AccessDenied")


def _check_headers(
    method: str,
    path: str,
    query: dict[str, str],
    headers: Mapping[str, str],
    body: bytes,
    now: float,
) -> None:
    words = headers.get("authorization", "").removeprefix("AWS4-HMAC-SHA256 ").split(",")
    parts = dict(word.strip().split("=", 1) for word in words if "=" in word)
    if not parts:
        raise Refused("AccessDenied")
    stamp, digest = headers.get("x-amz-date", ""), headers.get("x-amz-content-sha256", "")
    if digest not in ("UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()):
        raise Refused("XAmzContentSHA256Mismatch", 400)
    wanted = _signature(
        method, path, query, headers, parts["SignedHeaders"], digest, stamp, parts["Credential"]
    )
    if not hmac.compare_digest(wanted, parts["Signature"]):
        raise Refused("SignatureDoesNotMatch")
    sent = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    if abs(sent - now) > LARGEST_SKEW_S:
        raise Refused("RequestTimeTooSkewed")


def _signature(
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    signed: str,
    digest: str,
    stamp: str,
    credential: str,
) -> str:
    key, day, region, service, _ = credential.split("/")
    if key != KEY or service != "s3" or not stamp.startswith(day):
        raise Refused("InvalidAccessKeyId")
    if "host" not in signed.split(";"):
        raise Refused("SignatureDoesNotMatch")
    pairs = "&".join(f"{_quoted(k)}={_quoted(v)}" for k, v in sorted(query.items()))
    lines = [f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in signed.split(";")]
    canonical = "\n".join((method, path, pairs, "".join(lines), signed, digest))
    scope = f"{day}/{region}/{service}/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashed))
    secret = f"AWS4{SECRET}".encode()
    for step in (day, region, service, "aws4_request"):
        secret = _hmac(secret, step)
    return _hmac(secret, to_sign).hex()
