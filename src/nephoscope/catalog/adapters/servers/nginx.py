"""nginx with one static body, for the tools that load a web server."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.catalog.adapters.frame import (
    Output,
    ToolCommand,
    ToolServer,
    ToolStep,
    numbers,
    version_by,
)
from nephoscope.catalog.adapters.quantities import Params, whole

URL = "http://{peer_host}:{peer_port}/"
"""Where a client finds the body."""

BODY = whole(
    "body_bytes", 166, 0, 1 << 30, "Size of the body that nginx returns to each request.", "bytes"
)

_LOGS = """\
  log_format line '.';
  map $status $succeeded { ~^2 1; default 0; }
  map $status $failed { ~^2 0; default 1; }
  access_log succeeded.log line buffer=64k if=$succeeded;
  access_log failed.log line buffer=64k if=$failed;
"""

_SITE = """\
  default_type application/octet-stream;
  open_file_cache max=16;
  server {
    listen {host}:{port} backlog=4096HTTP2;
    root .;
    location = / { try_files /body =404; }
  }
"""

CONNECTIONS = 16_384


def configuration(
    logs: str, sites: str, connections: int, *, files: int = 0, level: str = "crit"
) -> str:
    """Returns a configuration of nginx.

    One process: it ends with the probe, and is the same server on any number of CPUs. files: open
    at once, by default one for each connection. level: of the messages that it prints.
    """
    return f"""\
daemon off;
master_process off;
pid nginx.pid;
error_log stderr {level};
worker_rlimit_nofile {files or connections};
events {{ worker_connections {connections}; }}
http {{
  client_body_temp_path body-temp; proxy_temp_path proxy-temp; fastcgi_temp_path fastcgi-temp;
  uwsgi_temp_path uwsgi-temp; scgi_temp_path scgi-temp;
{logs}\
  keepalive_requests 4294967295;
  keepalive_timeout 600s;
{sites}\
}}
"""


def _command(params: Params) -> ToolCommand:
    http2 = " http2" if params.get("protocol") == "h2c" else ""
    text = configuration(_LOGS, _SITE.replace("HTTP2", http2), CONNECTIONS, level="warn")
    count = ToolStep("wc", ("-l", "succeeded.log", "failed.log"))
    return web_server_command(("-p", ".", "-e", "stderr", "-c", "/dev/stdin"), text, params, count)


def web_server_command(
    arguments: Sequence[str], text: str, params: Params, *after: ToolStep
) -> ToolCommand:
    """Returns the call of a web server in a scratch folder that has the file `body`."""
    return ToolCommand(
        arguments,
        input=text,
        needs_bytes=params["body_bytes"],
        prepare=(ToolStep("truncate", ("--size", str(params["body_bytes"]), "body")),),
        paths=("/usr/sbin",),
        user="nobody",
        after=after,
    )


def _counters(output: Output) -> dict[str, int]:
    names = {"served_count": "succeeded", "refused_count": "failed"}
    return {
        name: int(numbers(output, rf"^ *([0-9]+) {log}\.log\n", f"the requests of {log}.log")[0])
        for name, log in names.items()
    }


VERSION_COMMAND = ToolCommand(("-v",), paths=("/usr/sbin",))
VERSION = version_by(r"^nginx version: nginx/([0-9]+(?:\.[0-9]+)+)")
"""How nginx is asked for its version, and how the answer is read."""

SERVER = ToolServer(
    tool="nginx", command=_command, install="apt-get install nginx-light", counters=_counters
)

PAGE = """\
The server is nginx with one worker process on the target that `peer` names (without one, on the
machine itself), with a configuration of its own in a scratch folder; it returns one static body. It
counts the requests that it served. No TLS."""
"""What the pages of these tools say about the server."""
