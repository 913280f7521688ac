"""nginx as a web server behind a load balancer, which may fail at a set time."""

from __future__ import annotations

import re
from dataclasses import replace

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    Output,
    ToolCommand,
    ToolError,
    ToolStep,
    last_words,
    numbers,
)
from nephoscope.catalog.adapters.quantities import Params, boolean, choice, period, whole
from nephoscope.catalog.adapters.servers import balancer, nginx
from nephoscope.catalog.meaning import Domain, Resource
from nephoscope.core.model import Sample

ID = "http.nginx"
NONE, DIES, HANGS, SLOWS = "none", "dies", "hangs", "slows"
INTERVAL_NS = 10_000_000
"""Requests that a server answered are counted in intervals of this length."""

_LOGS = """\
  log_format moment '$msec';
  map $status $succeeded { ~^2 1; default 0; }
  access_log served.log momentBUFFER if=$succeeded;
"""

_SITE = """\
  default_type application/octet-stream;
  open_file_cache max=16;
  server {
    listen {host}:{port} backlog=4096PROTOCOL;
    root .;
    location = / { try_files /body =404; }
    location = /health { access_log off; try_files /body =404; }
  }
"""

# The certificate is for nobody: clients take it without a check (`tls_verify` of false).
_CERTIFIED = "; ssl_certificate cert.pem; ssl_certificate_key key.pem"
_CERTIFY = (
    *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
    *("-days", "2", "-subj", "/CN=nephoscope", "-keyout", "key.pem", "-out", "cert.pem"),
)

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


def _command(params: Params) -> ToolCommand:
    fails = params["failure"] != NONE
    # A server that is killed loses what waits to be written.
    logs = _LOGS.replace("BUFFER", "" if fails else " buffer=64k")
    files = nginx.CONNECTIONS + 64
    words = (" ssl" if params["tls"] else "") + (" http2" if params["version"] == "2" else "")
    site = _SITE.replace("PROTOCOL", words + (_CERTIFIED if params["tls"] else ""))
    text = nginx.configuration(logs, site, nginx.CONNECTIONS, files=files)
    after = [ToolStep("wc", ("-l", "served.log"))]
    script = "cat >nginx.conf; exec nginx -p . -e stderr -c nginx.conf"
    if fails:
        after.append(ToolStep("sh", ("-c", "cut -c 1-13 served.log | uniq -c")))
        values = {
            "KIND": params["failure"],
            "AFTER": f"{params['fail_after_ns'] / 1e9:.3f}",
            "FOR_NS": str(params["fail_for_ns"]),
            "FOR": f"{params['fail_for_ns'] / 1e9:.3f}",
        }
        script = balancer.fill_in(_SCRIPT, values)
    command = nginx.web_server_command(("-c", script), text, params, *after)
    if not params["tls"]:
        return command
    return replace(command, prepare=(*command.prepare, ToolStep("openssl", _CERTIFY)))


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


ADAPTER = adapter(
    ID,
    "nginx: a web server that may fail at a set time",
    resource=Resource.SEVERAL,
    domain=Domain.WEB,
    response_counter="served_count",
    params=(
        balancer.ADDRESS,
        balancer.PORT,
        whole("body_bytes", 166, 0, 1 << 30, "Size of the body of each response.", "bytes"),
        choice(
            "version",
            ("1.1", "2"),
            "Version of HTTP; without TLS a server of 2 takes connections of HTTP/2 alone.",
        ),
        boolean(
            "tls",
            False,
            "Encrypt, with a certificate that the target's openssl makes for this server alone.",
        ),
        choice(
            "failure",
            (NONE, DIES, HANGS, SLOWS),
            "Failure of the server: it is killed (SIGKILL) and started again later, it is stopped "
            "(SIGSTOP) and continued, or it is stopped for 90 ms of every 100 ms.",
        ),
        period(
            "fail_after_ns", "2s", "0s", "24h", "Time from the start of the server to its failure."
        ),
        period("fail_for_ns", "2s", "1ms", "24h", "Length of the failure."),
    ),
    metrics=(
        balancer.metric("served_count", "Responses with status 2xx.", headline=True),
        balancer.CPU,
        balancer.STARTED,
        balancer.metric("failure_wall_ns", "When the failure began, on the wall clock.", "ns"),
        balancer.metric("recovery_wall_ns", "When the failure ended, on the wall clock.", "ns"),
        balancer.events("interval_served_count", "Responses with status 2xx in each 10 ms."),
    ),
    overhead="one CPU at most",
    source="nginx, nginx.org",
    load="sh",
    tool="nginx",
    minimum="1.15.1",
    install="apt-get install nginx-light",
    command=_command,
    version_command=nginx.VERSION_COMMAND,
    version=nginx.VERSION,
    parse=_parse,
    measures="""
Nothing by itself: it is a web server behind a load balancer, as a background of a plan. It counts
what it served, in its own log.""",
    how="""
nginx with one worker process runs in a scratch folder with a configuration that Nephoscope writes,
listens on `address` alone and returns one static body. With a `failure` a shell script starts it,
sends the signals at the stated times and notes the moments.""",
    truth="""
Clients and server count the same requests. The server's log ends at the moment of the failure.""",
    cross_check="`http.serve` as the server of the same clients.",
    overhead_page="That of nginx; with a failure each request is written to the log at once.",
    caveats="The log has the time at which nginx finished a response, to a millisecond.",
)
