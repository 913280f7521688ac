"""HAProxy as a load balancer, with a configuration of its own."""

from __future__ import annotations

import csv
import re
from datetime import datetime

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, last_words
from nephoscope.catalog.adapters.quantities import Params, period
from nephoscope.catalog.adapters.servers import balancer, nginx
from nephoscope.catalog.meaning import Resource
from nephoscope.core.model import Sample

ID = "lb.haproxy"

_CONFIGURATION = """\
global
  maxconn CONNECTIONS
  nbthread THREADS
  log stdout format iso local0 info
defaults
  mode http
  log global
  option dontlog-normal
  option dontlognull
  option redispatch
  option REUSE
  http-reuse always
  retries 3
  maxconn CONNECTIONS
  timeout connect TIMEOUT
  timeout server TIMEOUT
  timeout queue TIMEOUT
  timeout check TIMEOUT
  timeout client 600s
  timeout http-keep-alive 600s
frontend clients
  bind {host}:{port} backlog 4096
  log-format "request %s %ST"
  default_backend web
frontend status
  bind unix@SOCKET
  no log
  stats enable
  stats uri /
backend web
  balance ALGORITHM
"""

_ALGORITHMS = {
    balancer.ROUND_ROBIN: "roundrobin",
    balancer.LEAST: "leastconn",
    balancer.SOURCE: "source",
    balancer.RANDOM: "random(2)",
}


def _command(params: Params) -> ToolCommand:
    values = {
        "CONNECTIONS": str(params["connections"]),
        "THREADS": str(params["threads"]),
        "REUSE": "http-keep-alive" if params["server_keep_alive"] else "http-server-close",
        "TIMEOUT": balancer.milliseconds(params["timeout_ns"]),
        "SOCKET": balancer.SOCKET,
        "ALGORITHM": _ALGORITHMS[params["algorithm"]],
    }
    text = balancer.fill_in(_CONFIGURATION, values)
    if params["check_ns"]:
        text += "  option httpchk GET /health\n"
    for backend in balancer.backends_of(ID, params):
        name = re.sub(r"[\[\]]", "", backend.address)
        text += f"  server {name} {backend.address} weight {backend.weight}"
        if params["server_connections"]:
            text += f" maxconn {params['server_connections']}"
        if params["check_ns"]:
            text += f" check inter {balancer.milliseconds(params['check_ns'])} fall 2 rise 2"
        if params["slow_start_ns"]:
            text += f" slowstart {balancer.milliseconds(params['slow_start_ns'])}"
        text += "\n"
    return ToolCommand(
        ("-f", "/dev/stdin"),
        input=text,
        paths=("/usr/sbin",),
        user="nobody",
        closing=(balancer.ASK,),
    )


_EVENT = re.compile(r"^(\S+) Server web/(\S+) is (UP|DOWN)", re.MULTILINE | re.ASCII)


def _parse(output: Output) -> list[Sample]:
    start = output.stdout.rfind("# pxname,")
    rows = list(csv.DictReader(output.stdout[start + 2 :].splitlines())) if start >= 0 else []
    by_name = {(row["pxname"], row["svname"]): row for row in rows}
    try:
        web = by_name["web", "BACKEND"]
        # The frontend counts a client's closing of its connection as a request. Requests that a
        # dying server had begun end without response and log line, and are in no other counter.
        forwarded = int(web["stot"])
        failed = forwarded - sum(int(web[f"hrsp_{digit}xx"]) for digit in (2, 3, 4))
        retries = int(web["wretr"]) + int(web["wredis"])
    except (KeyError, TypeError, ValueError) as error:
        raise ToolError(f"it does not report its counters.{last_words(output)}") from error
    samples = [
        Sample("forwarded_count", float(forwarded)),
        Sample("failed_count", float(failed)),
        Sample("retries_count", float(retries)),
    ]
    for moment, server, state in _EVENT.findall(output.stdout[:start]):
        name = f"server_{state.lower()}_count"
        samples.append(Sample(name, 1.0, at_ns=_wall_ns(moment), factors={"server": server}))
    return samples


def _wall_ns(text: str) -> int:
    """Ns since the epoch of a time as HAProxy writes it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ToolError(f"its log has '{text[:40]}' for a time.") from error
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000


ADAPTER = adapter(
    ID,
    "HAProxy: a load balancer for HTTP",
    resource=Resource.SEVERAL,
    params=(
        *balancer.PARAMS,
        period(
            *("check_ns", "0s", "0s", "1h"),
            "Time from one health check of a server to the next; 0 for no checks. Two in a row "
            "decide.",
        ),
        period(
            "slow_start_ns",
            "0s",
            "0s",
            "1h",
            "Time in which a server that came back reaches its whole share.",
        ),
    ),
    metrics=balancer.METRICS,
    overhead="the CPU time of HAProxy, which is measured",
    source="HAProxy, www.haproxy.org",
    load="haproxy",
    tool="haproxy",
    minimum="2.2",
    install="apt-get install haproxy curl",
    command=_command,
    version_command=nginx.VERSION_COMMAND,
    version=r"^HA-?Proxy version ([0-9]+(?:\.[0-9]+)+)",
    parse=_parse,
    measures="""
Nothing by itself: it is the load balancer under test, as a background of a plan. It counts the
requests of its clients, its retries, the servers that it saw fail, and its CPU time.""",
    how="""
HAProxy runs in a scratch folder with a configuration that Nephoscope writes, without access to the
machine's own, and listens on `address` alone. Its statistics page, on a socket in that folder, is
read with curl before it ends; changes of a server's state are read from its log.""",
    truth="""
The requests that it counts are those that its clients sent, and its servers count the same.""",
    cross_check="`lb.nginx` does the same work.",
    overhead_page="That of HAProxy.",
    caveats="""
A server that accepts connections and does not answer is only noticed by a health check, which asks
for `/health`, or by requests that exceed `timeout_ns`.""",
)
