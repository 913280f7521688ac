"""nginx as a load balancer, with a configuration of its own."""

from __future__ import annotations

import re

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, ToolStep, matched
from nephoscope.catalog.adapters.quantities import Params, period, seconds
from nephoscope.catalog.adapters.servers import balancer, nginx
from nephoscope.catalog.meaning import Resource
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample

ID = "lb.nginx"

_LOGS = """\
  log_format attempts '$msec|$status|$upstream_addr|$upstream_status';
  map $upstream_status $failed { ~, 1; ~^5 1; - 1; default 0; }
  access_log failed.log attempts if=$failed;
"""

_SITES = """\
  upstream web {
    zone web 256k;
SERVERS  }
  server {
    listen {host}:{port} backlog=4096;
    location / {
      proxy_pass http://web;
      proxy_buffering off;
      proxy_http_version 1.1;
      proxy_set_header Connection "CONNECTION";
      proxy_connect_timeout TIMEOUT; proxy_read_timeout TIMEOUT; proxy_send_timeout TIMEOUT;
      proxy_next_upstream error timeout;
    }
  }
  server {
    listen unix:SOCKET;
    access_log off;
    location / { stub_status; }
  }
"""

_ALGORITHMS = {
    balancer.ROUND_ROBIN: "",
    balancer.LEAST: "    least_conn;\n",
    balancer.SOURCE: "    hash $remote_addr consistent;\n",
    balancer.RANDOM: "    random two least_conn;\n",
}


def _command(params: Params) -> ToolCommand:
    if params["threads"] > 1:
        raise UsageError(
            f"{ID}: nginx has one process here, so that nothing is left when it is killed.",
            "Set threads=1.",
        )
    servers = _ALGORITHMS[params["algorithm"]]
    more = f"fail_timeout={seconds(ID, params, 'retry_after_ns')}s"
    if params["server_connections"]:
        more += f" max_conns={params['server_connections']}"
    for backend in balancer.backends_of(ID, params):
        servers += f"    server {backend.address} weight={backend.weight} {more};\n"
    if params["server_keep_alive"]:
        servers += f"    keepalive {params['connections']};\n"
    values = {
        "SERVERS": servers,
        "SOCKET": balancer.SOCKET,
        "CONNECTION": "" if params["server_keep_alive"] else "close",
        "TIMEOUT": balancer.milliseconds(params["timeout_ns"]),
    }
    sites = balancer.fill_in(_SITES, values)
    return ToolCommand(
        ("-p", ".", "-e", "stderr", "-c", "/dev/stdin"),
        input=nginx.configuration(_LOGS, sites, 2 * params["connections"] + 64),
        paths=("/usr/sbin",),
        user="nobody",
        closing=(balancer.ASK,),
        after=(ToolStep("tail", ("--lines=20000", "failed.log")),),
    )


_FAILED = re.compile(r"^([0-9]+)\.([0-9]{3})\|([0-9]+)\|([^|\n]+)\|([^|\n]+)$", re.M | re.A)


def _parse(output: Output) -> list[Sample]:
    counts = matched(
        output, r"^server accepts handled requests\n ([0-9]+ [0-9]+ [0-9]+) *\n", "its requests"
    )
    if not re.search(r"^Reading: [0-9]+ Writing: [0-9]+ Waiting: [0-9]+ *\n", output.stdout, re.M):
        raise ToolError("its status page was cut off.")
    retries = failed = 0
    seen: dict[str, int] = {}
    for second, milliseconds, status, addresses, statuses in _FAILED.findall(output.stdout):
        at_ns = int(second) * 1_000_000_000 + int(milliseconds) * 1_000_000
        attempts = list(zip(addresses.split(", "), statuses.split(", "), strict=False))
        retries += len(attempts) - 1
        failed += status.startswith("5")
        for server, outcome in attempts:
            if outcome in ("502", "504", "-"):
                seen.setdefault(server, at_ns)
    # The request for the status page is one of its requests.
    forwarded = float(counts[0].split()[2]) - 1
    return [
        Sample("forwarded_count", forwarded),
        Sample("failed_count", float(failed)),
        Sample("retries_count", float(retries)),
        *(
            Sample("server_down_count", 1.0, at_ns=at_ns, factors={"server": server})
            for server, at_ns in seen.items()
        ),
    ]


ADAPTER = adapter(
    ID,
    "nginx: a load balancer for HTTP",
    resource=Resource.SEVERAL,
    params=(
        *balancer.PARAMS,
        period(
            "retry_after_ns",
            "10s",
            "1s",
            "1h",
            "Time after which a server that failed is tried again, in whole seconds.",
        ),
    ),
    metrics=balancer.METRICS,
    overhead="the CPU time of nginx, which is measured",
    source="nginx, nginx.org, module ngx_http_upstream_module",
    load="nginx",
    tool="nginx",
    minimum="1.15.1",
    install="apt-get install nginx-light curl",
    command=_command,
    version_command=nginx.VERSION_COMMAND,
    version=nginx.VERSION,
    parse=_parse,
    measures="""
Nothing by itself: it is the load balancer under test, as a background of a plan. It counts the
requests of its clients, its retries, the servers that it saw fail, and its CPU time.""",
    how="""
nginx runs in a scratch folder with a configuration that Nephoscope writes, without access to the
machine's own, and listens on `address` alone. Its status page, on a socket in that folder, is read
with curl before it ends. It logs requests of which an attempt failed, and no others.""",
    truth="""
The requests that it counts are those that its clients sent, and its servers count the same.""",
    cross_check="`lb.haproxy` does the same work.",
    overhead_page="That of nginx.",
    caveats="""
The free nginx has no health checks and no slow start: it notices a failed server by the requests
that fail there, and tries it again after `retry_after_ns`. `server_down_count` is the first failed
attempt at a server.""",
)
