"""nginx as a web server behind a load balancer, which may fail at a set time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nephoscope.adapters.frame import (
    TOOL,
    Adapter,
    Command,
    Output,
    Server,
    Step,
    ToolError,
    last_words,
    numbers,
)
from nephoscope.adapters.quantities import choice, whole
from nephoscope.adapters.servers import balancer, nginx
from nephoscope.catalog import ADAPTER as KIND
from nephoscope.catalog import BenchmarkSpec
from nephoscope.model import Sample

ID = "http.nginx"
NONE, DIES, HANGS, SLOWS = "none", "dies", "hangs", "slows"
INTERVAL_NS = 10_000_000
"""Requests that a server answered are counted in intervals of this length."""

_CONFIGURATION = """\
daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
worker_rlimit_nofile 16448;
events { worker_connections 16384; }
http {
  client_body_temp_path body-temp; proxy_temp_path proxy-temp; fastcgi_temp_path fastcgi-temp;
  uwsgi_temp_path uwsgi-temp; scgi_temp_path scgi-temp;
  log_format moment '$msec';
  map $status $succeeded { ~^2 1; default 0; }
  access_log served.log momentBUFFER if=$succeeded;
  keepalive_requests 4294967295;
  keepalive_timeout 600s;
  default_type application/octet-stream;
  open_file_cache max=16;
  server {
    listen {host}:{port} backlog=4096;
    root .;
    location = / { try_files /body =404; }
    location = /health { access_log off; try_files /body =404; }
  }
}
"""

# Every wait is for a child in the background, so that the end is never late. The moment is read
# before the signal is sent. What it starts ends with it, also after a kill.
_SCRIPT = """\
begin() { setpriv --pdeathsig KILL nginx -p . -e stderr -c nginx.conf & server=$!; }
pause() { setpriv --pdeathsig KILL sleep "$1" & wait $!; }
mark() { echo "$1 $(date +%s%N)"; }
finish() { kill -CONT $server; kill -TERM $server; wait $server; exit 0; }
trap finish TERM
cat >nginx.conf
begin
pause AFTER
mark fails
case KIND in
  dies) kill -KILL $server; pause FOR; mark works; begin ;;
  hangs) kill -STOP $server; pause FOR; mark works; kill -CONT $server ;;
  slows)
    end=$(($(date +%s%N) + FOR_NS))
    while [ "$(date +%s%N)" -lt $end ]; do
      kill -STOP $server; pause 0.09; kill -CONT $server; pause 0.01
    done
    mark works ;;
esac
while :; do pause 3600; done
"""

SPEC = BenchmarkSpec(
    id=ID,
    summary="nginx: a web server that may fail at a set time",
    params=(
        balancer.ADDRESS,
        balancer.PORT,
        whole("body_bytes", 166, 0, 1 << 30, "Size of the body of each response.", "bytes"),
        choice(
            "failure",
            NONE,
            (NONE, DIES, HANGS, SLOWS),
            "Failure of the server: it is killed (SIGKILL) and started again later, it is stopped "
            "(SIGSTOP) and continued, or it is stopped for 90 ms of every 100 ms.",
        ),
        whole(
            "fail_after_ns",
            2_000_000_000,
            0,
            86_400_000_000_000,
            "Time from the start of the server to its failure.",
            "ns",
        ),
        whole(
            "fail_for_ns",
            2_000_000_000,
            1_000_000,
            86_400_000_000_000,
            "Length of the failure.",
            "ns",
        ),
    ),
    metrics=(
        balancer.metric("served_count", "Responses with status 2xx.", headline=True),
        balancer.CPU,
        balancer.STARTED,
        balancer.metric("failure_wall_ns", "When the failure began, on the wall clock.", "ns"),
        balancer.metric("recovery_wall_ns", "When the failure ended, on the wall clock.", "ns"),
        balancer.events("interval_served_count", "Responses with status 2xx in each 10 ms."),
        TOOL,
    ),
    overhead="one CPU at most",
    source="nginx, nginx.org",
    two_sided=False,
    load=True,
    kind=KIND,
    tool="nginx",
    minimum="1.15.1",
    install="apt-get install nginx-light",
    page="""\
# What it measures
Nothing by itself: it is a web server behind a load balancer, as a background of a plan. It counts
what it served, in its own log.

# How
nginx with one worker process runs in a scratch folder with a configuration that Nephoscope writes,
listens on `address` alone and returns one static body. With a `failure` a shell script starts it,
sends the signals at the stated times and notes the moments.

# Known truth
Clients and server count the same requests. The server's log ends at the moment of the failure.

# Cross-check
`http.serve` as the server of the same clients.

# Overhead
That of nginx; with a failure each request is written to the log at once.

# Caveats
The log has the time at which nginx finished a response, to a millisecond.""",
)


def _command(params: Mapping[str, Any]) -> Command:
    fails = params["failure"] != NONE
    # A server that is killed loses what waits to be written.
    text = _CONFIGURATION.replace("BUFFER", "" if fails else " buffer=64k")
    script = _SCRIPT
    for name, value in {
        "KIND": params["failure"],
        "AFTER": f"{params['fail_after_ns'] / 1e9:.3f}",
        "FOR_NS": str(params["fail_for_ns"]),
        "FOR": f"{params['fail_for_ns'] / 1e9:.3f}",
    }.items():
        script = script.replace(name, value)
    counted = "uniq -c served.log" if not fails else "cut -c 1-13 served.log | uniq -c"
    return Command(
        ("-c", script if fails else "cat >nginx.conf; exec nginx -p . -e stderr -c nginx.conf"),
        input=text,
        needs_bytes=params["body_bytes"],
        prepare=(Step("truncate", ("--size", str(params["body_bytes"]), "body")),),
        paths=("/usr/sbin",),
        user="nobody",
        after=(
            Step("wc", ("-l", "served.log")),
            *((Step("sh", ("-c", counted)),) if fails else ()),
        ),
    )


_SERVED = re.compile(r"^ *([0-9]+) ([0-9]{10})\.([0-9]{2})$", re.MULTILINE | re.ASCII)


def _parse(output: Output) -> list[Sample]:
    served = int(numbers(output, r"^([0-9]+) served\.log\n", "the number of its responses")[0])
    samples = [Sample("served_count", float(served))]
    for name, word in (("failure_wall_ns", "fails"), ("recovery_wall_ns", "works")):
        moments = re.findall(rf"^{word} ([0-9]{{19}})\n", output.stdout, re.MULTILINE | re.ASCII)
        samples += [Sample(name, float(moment)) for moment in moments]
    counted = [
        (int(count), int(seconds) * 1_000_000_000 + int(part) * INTERVAL_NS)
        for count, seconds, part in _SERVED.findall(output.stdout)
    ]
    if counted and sum(count for count, _ in counted) != served:
        raise ToolError(f"its log does not add up to its responses.{last_words(output)}")
    samples += [Sample("interval_served_count", float(n), at_ns=at_ns) for n, at_ns in counted]
    return samples


ADAPTER = Adapter(
    spec=SPEC,
    command=_command,
    look=nginx.LOOK,
    version=nginx.VERSION,
    parse=_parse,
    server=Server(tool="sh", command=_command, install=SPEC.install),
)
