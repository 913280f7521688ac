"""A double of CloudStack's API: signed requests, asynchronous jobs, pages, a limit of machines.

Shapes and error codes as in the API reference of Apache CloudStack 4 ("deployVirtualMachine",
"queryAsyncJobResult", "Response error codes"): 401 for a wrong signature, 431 for a parameter that
names nothing, 535 for a limit. A destroyed machine stays listed, and keeps its volume, until it is
expunged.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from tests.servers import serving

KEY, SECRET = "key-of-the-double", "secret-of-the-double"
ZONE, IMAGE, LIMIT = "zone-1", "debian-12", 8
PAGE = 5
OFFERINGS = {"small": (1, 1024), "large": (4, 8192)}


@dataclass
class CloudStack:
    """Its state. port: of loopback, at which it answers."""

    port: int = 0
    machines: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/client/api"

    def answer(self, values: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Status and body of a request."""
        command = values["command"]
        if not _is_signed(values):
            words = "unable to verify user credentials and/or request signature"
            return 401, _failure(command, 401, words)
        with self.lock:
            try:
                return 200, {f"{command.lower()}response": getattr(self, f"_{command}")(values)}
            except _Refused as refused:
                return refused.code, _failure(command, refused.code, str(refused))

    def _listZones(self, values: dict[str, str]) -> Any:  # noqa: N802
        return {"zone": [{"id": "z1", "name": ZONE, "allocationstate": "Enabled"}]}

    def _listServiceOfferings(self, values: dict[str, str]) -> Any:  # noqa: N802
        offerings = [
            {"id": f"o-{name}", "name": name, "cpunumber": cpus, "memory": mib, "cpuspeed": 2000}
            for name, (cpus, mib) in OFFERINGS.items()
        ]
        return {"count": len(offerings), "serviceoffering": offerings}

    def _listTemplates(self, values: dict[str, str]) -> Any:  # noqa: N802
        image = {"id": "t-1", "name": IMAGE, "zoneid": "z1", "hypervisor": "KVM", "size": 1 << 30}
        more = {"format": "QCOW2", "displaytext": IMAGE, "ostypename": "Debian 12"}
        return {"count": 1, "template": [{**image, **more}]}

    def _listNetworks(self, values: dict[str, str]) -> Any:  # noqa: N802
        return {"count": 0}

    def _listPublicIpAddresses(self, values: dict[str, str]) -> Any:  # noqa: N802
        return {}

    def _listPortForwardingRules(self, values: dict[str, str]) -> Any:  # noqa: N802
        return {}

    def _listIpForwardingRules(self, values: dict[str, str]) -> Any:  # noqa: N802
        return {}

    def _deployVirtualMachine(self, values: dict[str, str]) -> Any:  # noqa: N802
        if values["serviceofferingid"] not in {f"o-{name}" for name in OFFERINGS}:
            raise _Refused(431, "Unable to find service offering")
        if len(self.machines) >= LIMIT:
            raise _Refused(
                535, "Maximum number of resources of type 'user_vm' for account has been exceeded."
            )
        id_ = str(uuid.uuid4())
        starts = values.get("startvm", "true").lower() == "true"
        size = values["serviceofferingid"].removeprefix("o-")
        self.machines[id_] = {
            "id": id_,
            "name": values["name"],
            "displayname": values.get("displayname", values["name"]),
            "state": "Running" if starts else "Stopped",
            "zoneid": values["zoneid"],
            "templateid": values["templateid"],
            "serviceofferingname": size,
            "userdata": values.get("userdata", ""),
            "created": "2026-11-27T08:00:00+0000",
            "nic": [{"ipaddress": f"10.1.1.{len(self.machines) % 250 + 2}", "isdefault": True}],
        }
        return self._job("virtualmachine", self.machines[id_], id_)

    def _listVirtualMachines(self, values: dict[str, str]) -> Any:  # noqa: N802
        size = min(int(values.get("pagesize", PAGE)), PAGE)
        first = (int(values.get("page", 1)) - 1) * size
        found = list(self.machines.values())[first : first + size]
        return {"count": len(self.machines), "virtualmachine": found} if found else {}

    def _destroyVirtualMachine(self, values: dict[str, str]) -> Any:  # noqa: N802
        machine = self._known(values["id"])
        machine["state"] = "Destroyed"
        if values.get("expunge", "").lower() == "true":
            del self.machines[machine["id"]]
        return self._job("virtualmachine", machine, machine["id"])

    def _rebootVirtualMachine(self, values: dict[str, str]) -> Any:  # noqa: N802
        machine = self._known(values["id"])
        return self._job("virtualmachine", machine, machine["id"])

    def _queryAsyncJobResult(self, values: dict[str, str]) -> Any:  # noqa: N802
        return self.jobs[values["jobid"]]

    def _known(self, id_: str) -> dict[str, Any]:
        if id_ not in self.machines:
            raise _Refused(431, f"Unable to find virtual machine {id_}")
        return self.machines[id_]

    def _job(self, kind: str, result: dict[str, Any], id_: str) -> dict[str, Any]:
        job = str(uuid.uuid4())
        done = {"jobstatus": 1, "jobresulttype": "object", "jobresult": {kind: dict(result)}}
        self.jobs[job] = {"jobid": job, **done}
        return {"id": id_, "jobid": job}


class _Refused(Exception):
    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


def _failure(command: str, code: int, words: str) -> dict[str, Any]:
    body = {"uuidList": [], "errorcode": code, "cserrorcode": 9999, "errortext": words}
    return {f"{command.lower()}response": body}


def _is_signed(values: dict[str, str]) -> bool:
    """Sorted, escaped, in lower case, HMAC-SHA1 of the secret: "Signing API requests"."""
    pairs = sorted((key.lower(), value) for key, value in values.items() if key != "signature")
    text = "&".join(f"{key}={quote(value, safe='*')}" for key, value in pairs).lower()
    digest = hmac.new(SECRET.encode(), text.encode(), hashlib.sha1).digest()
    return base64.b64encode(digest).decode() == values.get("signature") and (
        values.get("apiKey") == KEY
    )


@contextlib.contextmanager
def running() -> Iterator[CloudStack]:
    """Serves it on loopback."""
    cloud = CloudStack()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = cloud.answer(dict(parse_qsl(urlsplit(self.path).query)))
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing is logged."""

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as cloud.port:
        yield cloud
