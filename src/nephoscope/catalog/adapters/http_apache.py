"""Apache as a web server behind a load balancer."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolStep, numbers
from nephoscope.catalog.adapters.quantities import Params
from nephoscope.catalog.adapters.servers import balancer, nginx
from nephoscope.catalog.meaning import Domain, Resource
from nephoscope.core.model import Sample

ID = "http.apache"

# One process with threads (-X), so that nothing is left when it is killed.
_CONFIGURATION = """\
ServerRoot {scratch}
ServerName localhost
DefaultRuntimeDir {scratch}
PidFile apache.pid
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authn_core_module /usr/lib/apache2/modules/mod_authn_core.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule alias_module /usr/lib/apache2/modules/mod_alias.so
Listen {host}:{port}
ListenBacklog 4096
StartServers 1
ServerLimit 1
ThreadLimit 64
ThreadsPerChild 64
MaxRequestWorkers 64
MaxConnectionsPerChild 0
AsyncRequestWorkerFactor 256
Timeout 600
KeepAlive On
KeepAliveTimeout 600
MaxKeepAliveRequests 0
DocumentRoot {scratch}
<Directory {scratch}>
  Require all granted
</Directory>
AliasMatch ^/(health)?$ {scratch}/body
ErrorLog error.log
LogFormat . dot
CustomLog served.log dot \
"expr=%{REQUEST_STATUS} -ge 200 && %{REQUEST_STATUS} -lt 300 && %{REQUEST_URI} != '/health'"
"""


def _command(params: Params) -> ToolCommand:
    # It reads its configuration twice, which a pipe does not survive.
    script = "cat >apache.conf; exec apache2 -X -f {scratch}/apache.conf"
    count = ToolStep("wc", ("-l", "served.log"))
    return nginx.web_server_command(("-c", script), _CONFIGURATION, params, count)


def _parse(output: Output) -> list[Sample]:
    served = numbers(output, r"^([0-9]+) served\.log\n", "the number of its responses")[0]
    return [Sample("served_count", served)]


ADAPTER = adapter(
    ID,
    "Apache: a web server",
    resource=Resource.SEVERAL,
    domain=Domain.WEB,
    response_counter="served_count",
    params=(balancer.ADDRESS, balancer.PORT, nginx.BODY),
    metrics=(
        balancer.metric("served_count", "Responses with status 2xx.", headline=True),
        balancer.CPU,
        balancer.STARTED,
    ),
    overhead="64 threads on any CPU",
    source="Apache HTTP Server, httpd.apache.org",
    load="sh",
    tool="apache2",
    minimum="2.4.0",
    command=_command,
    version_command=nginx.VERSION_COMMAND,
    version=r"^Server version: Apache/([0-9]+(?:\.[0-9]+)+)",
    parse=_parse,
    measures="""
Nothing by itself: it is a web server behind a load balancer, as a background of a plan. It counts
what it served, in its own log.""",
    how="""
Apache with one process (event MPM, 64 threads) runs in a scratch folder with a configuration that
Nephoscope writes, without access to the machine's own, listens on `address` alone and returns one
static body.""",
    truth="Clients and server count the same requests.",
    cross_check="`http.nginx` and `http.serve` as the server of the same clients.",
    overhead_page="That of Apache; each request is written to its log at once.",
    caveats="""
The modules are those of Debian's package, in /usr/lib/apache2/modules. The package also starts a
service of its own on port 80, which Nephoscope does not use.""",
)
