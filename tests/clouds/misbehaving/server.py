"""The double's process: `python -m tests.clouds.misbehaving.server`.

It prints the addresses of the API and of the control port as JSON, and ends when its standard input
does, so that it never outlives who started it; a controller may be killed while it runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import (  # noqa: F401  (they enter actions)
    balancers,
    catalogue,
    general,
    instances,
    network,
    placements,
    scaling_groups,
    storage,
    wire,
)
from .calls import ACTIONS, Call
from .control import Control
from .errors import ApiError, Dropped
from .metadata import Metadata
from .policies import authorise
from .signatures import Caller, check

MODELS = {"elasticloadbalancing": "elbv2", "servicequotas": "service-quotas"}
"""Service in a credential scope -> botocore's name of its description, where they differ."""

Reply = tuple[int, str, bytes]


class Api:
    """Turns requests into answers, with the faults between them."""

    def __init__(self, control: Control) -> None:
        self.control = control

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
        cloud = self.control.cloud
        action, tree = _named(headers, body)
        entry: dict[str, Any] = {
            "action": action,
            "service": "",
            "region": "",
            "time": cloud.now(),
            "code": "",
        }
        with cloud.lock:
            cloud.calls.append(entry)
        request = str(uuid.uuid4())
        faults = cloud.faults
        if faults.strikes("drop-before", action):
            entry["code"] = "dropped"
            raise Dropped
        service = "ec2"
        try:
            skew = (
                faults.value("skew", "seconds", 3600.0) if faults.strikes("skew", action) else 0.0
            )
            caller = check(method, target, headers, body, cloud.credentials, time.time() + skew)
            service = caller.service
            entry |= {"service": service, "region": caller.region, "key": caller.key}
            reply = self._served(caller, action, tree, entry, request)
        except ApiError as problem:
            entry["code"] = problem.code
            reply = _refusal(service, problem, request)
        except Exception as problem:
            # Never the caller's fault: the fixture of the tests looks for these at its end.
            self.control.defects_seen.append(f"{action}: {type(problem).__name__}: {problem}")
            reply = _refusal(
                service, ApiError("InternalError", "A defect of the double", 500), request
            )
        if faults.strikes("delay", action):
            time.sleep(faults.value("delay", "seconds", 0.2))
        if faults.strikes("drop-after", action):
            entry["code"] += " (answer lost)"
            raise Dropped
        return reply

    def _refuse(self, caller: Caller, action: str) -> None:
        """Raises ApiError where a fault strikes before anything is done."""
        faults = self.control.cloud.faults
        if caller.region not in catalogue.REGIONS:
            # "AuthFailure: The provided credentials could not be validated. You may not be
            # authorized to carry out the request"; so for a region that is not enabled.
            text = "AWS was not able to validate the provided access credentials"
            raise ApiError("AuthFailure", text, 401)
        if faults.strikes("expired", action):
            code = "RequestExpired" if caller.service == "ec2" else "ExpiredToken"
            raise ApiError(code, "Request has expired.")
        down = faults.value("region-down", "region", caller.region)
        if caller.region == down and faults.strikes("region-down", action):
            raise ApiError(*_SUDDEN["unavailable"])
        for name, (code, text, status) in _SUDDEN.items():
            if faults.strikes(name, action):
                raise ApiError(code, text, status)

    def _served(
        self, caller: Caller, action: str, tree: Any, entry: dict[str, Any], request: str
    ) -> Reply:
        cloud = self.control.cloud
        faults = cloud.faults
        model = wire.service(MODELS.get(caller.service, caller.service))
        self._refuse(caller, action)
        handler = ACTIONS.get((caller.service, action))
        if handler is None:
            raise ApiError(
                "InvalidAction", f"The action {action} is not valid for this web service."
            )
        if cloud.settings["old"]:
            _as_of_old(caller.service, action, tree)
        json_body = model.metadata["protocol"] == "json"
        given = tree if json_body else wire.parameters(model, action, tree)
        dry = given.pop("DryRun", False)
        with cloud.lock:
            cloud.throttle(caller.region, action)
            now = cloud.now()
            call = Call(
                cloud,
                caller.region,
                action,
                given,
                now,
                now - cloud.draws.uniform(0, cloud.settings["lag_s"]),
                caller.key,
            )
            if cloud.settings["policy"] is not None:
                authorise(cloud.settings["policy"], caller.service, call)
            if dry:
                raise ApiError(
                    "DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412
                )
            values = handler(call)
        if faults.strikes("internal-after", action):
            raise ApiError("InternalError", "An internal error has occurred", 500)
        if json_body:
            return 200, "application/x-amz-json-1.1", json.dumps(values).encode()
        return 200, "text/xml;charset=UTF-8", wire.answer(model, action, values, request).encode()


_SUDDEN = {
    "throttle": ("RequestLimitExceeded", "Request limit exceeded.", 503),
    "unavailable": ("Unavailable", "The server is overloaded and can't handle the request.", 503),
    "internal-before": ("InternalError", "An internal error has occurred", 500),
}


OLD = frozenset(
    {
        "DescribeInstanceTypeOfferings",
        "DescribeInstanceTypes",
        "DescribeLaunchTemplates",
        "DescribeSpotPriceHistory",
    }
)
"""Actions that OpenStack's EC2 API lacks. It has no other services either, and answers 500 to
parameters that it does not know: https://opendev.org/openstack/ec2-api"""


def _as_of_old(service: str, action: str, tree: Any) -> None:
    if service != "ec2" or action in OLD:
        raise ApiError("InvalidRequest", "The request received was invalid.")
    if {"TagSpecification", "MetadataOptions", "InstanceMarketOptions"} & set(tree):
        raise ApiError("TypeError", "Unknown error occurred.", 500)


def _refusal(service: str, problem: ApiError, request: str) -> Reply:
    kind, text = wire.error(wire.service(MODELS.get(service, service)), problem, request)
    return problem.status, kind, text.encode()


def _named(headers: dict[str, str], body: bytes) -> tuple[str, Any]:
    if "x-amz-target" in headers:
        return headers["x-amz-target"].rpartition(".")[2], json.loads(body or b"{}")
    tree = wire.tree_of(body.decode())
    return str(tree.get("Action", "")), tree


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    # The head and the body of an answer leave together: else each waits for the other's receipt.
    wbufsize = -1
    disable_nagle_algorithm = True

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _lower(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _send(self, status: int, kind: str, body: bytes, cut: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut

    def log_message(self, *_: object) -> None:
        pass


def api_handler(api: Api) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        def _serve(self) -> None:
            body = self._body()
            try:
                reply = api.answer(self.command, self.path, self._lower(), body)
            except Dropped:
                self.close_connection = True
                return
            action = _named(self._lower(), body)[0]
            self._send(*reply, cut=api.control.cloud.faults.strikes("truncate", action))

        do_POST = do_GET = _serve  # noqa: N815

    return Handler


def control_handler(api: Api) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        def do_POST(self) -> None:
            asked = json.loads(self._body())
            name, control = asked.pop("do"), api.control
            try:
                if name.startswith("_") or not hasattr(Control, name):
                    raise ValueError(f"no command {name}")
                with control.cloud.lock:
                    status, answer = 200, getattr(control, name)(**asked)
            except Exception as problem:
                status, answer = 400, f"{type(problem).__name__}: {problem}"
            self._send(status, "application/json", json.dumps(answer).encode())

        def do_GET(self) -> None:
            self._metadata()

        def do_PUT(self) -> None:
            self._metadata()

        def _metadata(self) -> None:
            # /imds/<instance>/latest/...: what the machine itself sees at 169.254.169.254.
            instance, _, rest = self.path.removeprefix("/imds/").partition("/")
            with api.control.cloud.lock:
                cloud = api.control.cloud
                service = cloud.__dict__.setdefault("metadata", Metadata(cloud))
                status, text = service.answer(instance, self.command, f"/{rest}", self._lower())
            self._send(status, "text/plain", text.encode())

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        # A client that was killed in the middle of a request is what tests are about.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*_)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    wire.warm_up()
    control = Control(given.seed, given.scale)
    api = Api(control)
    servers = [_Server(("127.0.0.1", 0), make(api)) for make in (api_handler, control_handler)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    names = ("endpoint", "control")
    print(  # noqa: T201
        json.dumps(
            {n: f"http://127.0.0.1:{s.server_port}" for n, s in zip(names, servers, strict=True)}
        ),
        flush=True,
    )
    sys.stdin.buffer.read()
    if control.cloud.machines is not None:
        control.cloud.machines.close()


if __name__ == "__main__":
    main()
