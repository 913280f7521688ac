"""The metadata service of a machine: version 2 needs a token of a session.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from . import catalogue
from .cloud import Cloud, Resource

TOKEN, TTL = "x-aws-ec2-metadata-token", "x-aws-ec2-metadata-token-ttl-seconds"


class Metadata:
    """Answers for all machines of a cloud."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._tokens: dict[str, tuple[str, float]] = {}

    def answer(
        self, instance: str, method: str, path: str, headers: Mapping[str, str]
    ) -> tuple[int, str]:
        """The status and text for a request; header names are in lower case."""
        cloud = self._cloud
        each = cloud.resources.get(instance)
        if each is None or each.data["metadata"].get("HttpEndpoint") == "disabled":
            return 403, "Forbidden"
        if method == "PUT":
            # A request that passed a proxy gets no token.
            ttl = headers.get(TTL, "")
            if path != "/latest/api/token" or not ttl.isdigit() or not 1 <= int(ttl) <= 21600:
                return 400, "Bad Request"
            if "x-forwarded-for" in headers:
                return 403, "Forbidden"
            made = secrets.token_urlsafe(32)
            self._tokens[made] = (instance, time.monotonic() + int(ttl))
            return 200, made
        token = headers.get(TOKEN)
        if token is None and each.data["metadata"].get("HttpTokens") == "required":
            return 401, "Unauthorized"
        if token is not None:
            owner, ends = self._tokens.get(token, ("", 0.0))
            if owner != instance or ends < time.monotonic():
                return 401, "Unauthorized"
        found = self._value(each, path.removeprefix("/latest/"))
        return (404, "Not Found") if found is None else (200, found)

    def _value(self, each: Resource, path: str) -> str | None:
        now, data = self._cloud.now(), each.data
        notice = data["notice"]
        if path in ("meta-data/spot/instance-action", "meta-data/spot/termination-time"):
            # 404 until the notice is out.
            if notice is None or notice > now:
                return None
            ends = f"{datetime.fromtimestamp(each.since('shutting-down'), UTC):%Y-%m-%dT%H:%M:%SZ}"
            return (
                ends if path.endswith("time") else json.dumps({"action": "terminate", "time": ends})
            )
        key = next(
            (
                k.data["text"]
                for k in self._cloud.of_kind("key-pair", each.region, now)
                if k.data["name"] == data["key"]
            ),
            None,
        )
        document = {
            "accountId": catalogue.ACCOUNT,
            "region": each.region,
            "availabilityZone": each.zone,
            "instanceId": each.id,
            "instanceType": data["type"],
            "imageId": data["image"],
            "privateIp": data["private"],
        }
        return {
            "meta-data/instance-id": each.id,
            "meta-data/instance-type": data["type"],
            "meta-data/ami-id": data["image"],
            "meta-data/local-ipv4": data["private"],
            "meta-data/public-ipv4": data.get("elastic") or data["address"],
            "meta-data/placement/availability-zone": each.zone,
            "meta-data/placement/region": each.region,
            "meta-data/instance-life-cycle": "spot" if data["spot"] else "on-demand",
            "meta-data/public-keys/0/openssh-key": key,
            "dynamic/instance-identity/document": json.dumps(document),
            "user-data": base64.b64decode(data["user_data"]).decode(errors="replace") or None,
        }.get(path)
