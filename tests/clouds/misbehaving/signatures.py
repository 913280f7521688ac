"""Who asks: Signature Version 4 is computed again from the request.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

from .errors import ApiError

# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html: RequestExpired,
# "more than 15 minutes after the date stamp on the request ..., or the date stamp on the request
# is more than 15 minutes in the future".
LARGEST_SKEW_S = 900.0

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(\S+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?"
    r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})"
)


@dataclass
class Credentials:
    """A key pair of the account. session: token of temporary ones. expires: in real time."""

    secret: str
    session: str = ""
    expires: float = float("inf")


@dataclass(frozen=True)
class Caller:
    """What the signature shows: the access key and the credential scope."""

    key: str
    region: str
    service: str


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def check(
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    known: Mapping[str, Credentials],
    now: float,
) -> Caller:
    """Returns the caller. Raises ApiError for whatever is wrong with the request."""
    found = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    if found is None:
        raise ApiError("MissingAuthenticationToken", "Request is missing Authentication Token", 403)
    key, day, region, service, signed, signature = found.groups()
    stamp = headers.get("x-amz-date", "")
    credentials = known.get(key)
    refused = ApiError(
        "AuthFailure", "AWS was not able to validate the provided access credentials", 401
    )
    if service == "sts" or service == "elasticloadbalancing":
        refused = ApiError(
            "InvalidClientTokenId", "The security token included in the request is invalid.", 403
        )
    if credentials is None or not stamp.startswith(day):
        raise refused
    url = urlsplit(target)
    query = "&".join(
        f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}"
        for k, v in sorted(parse_qsl(url.query, keep_blank_values=True))
    )
    lines = [f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in signed.split(";")]
    canonical = "\n".join(
        (method, url.path or "/", query, "".join(lines), signed, hashlib.sha256(body).hexdigest())
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    to_sign = "\n".join(
        ("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest())
    )
    secret = f"AWS4{credentials.secret}".encode()
    for step in (day, region, service, "aws4_request"):
        secret = _hmac(secret, step)
    if not hmac.compare_digest(_hmac(secret, to_sign).hex(), signature):
        raise refused
    sent = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    if abs(sent - now) > LARGEST_SKEW_S:
        raise ApiError("RequestExpired", "Request has expired.")
    if credentials.session != headers.get("x-amz-security-token", ""):
        raise refused
    if now > credentials.expires:
        # EC2 reports expired temporary credentials like an old request; other services do not.
        code = "RequestExpired" if service == "ec2" else "ExpiredToken"
        raise ApiError(
            code,
            "Request has expired."
            if service == "ec2"
            else "The security token included in the request is expired",
            400,
        )
    return Caller(key, region, service)
