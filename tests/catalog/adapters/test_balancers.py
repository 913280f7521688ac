"""Load balancers and the servers behind them: what is written for them, and what is read back."""

from __future__ import annotations

from typing import Any

import pytest

from nephoscope.catalog.adapters import ADAPTERS, Output, ToolError
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample

BACKENDS = {"backends": ["10.0.0.1:80 3", "10.0.0.2:80"]}

# What HAProxy 2.6 printed, with most columns left out.
HAPROXY = """\
2026-11-22T23:55:09.177412+00:00 Server web/10.0.0.2:80 is DOWN, reason: Layer4 timeout. 1 active.
2026-11-22T23:55:10.571856+00:00 request 10.0.0.2:80 504
2026-11-22T23:55:12.000000+00:00 Server web/10.0.0.2:80 is UP, reason: Layer7 check passed.
# pxname,svname,stot,req_tot,wretr,wredis,hrsp_2xx,hrsp_3xx,hrsp_4xx,hrsp_5xx,
clients,FRONTEND,12,101,,,97,0,0,1,
web,10.0.0.1:80,63,60,0,0,60,0,0,0,
web,BACKEND,100,98,2,3,97,0,0,1,
"""

# What nginx 1.22 printed.
NGINX = """\
Active connections: 1
server accepts handled requests
 5 5 101
Reading: 0 Writing: 1 Waiting: 0
1700000000.250|200|10.0.0.2:80, 10.0.0.1:80|504, 200
1700000001.500|504|10.0.0.2:80|504
"""

SERVED = """\
fails 1700000000123456789
works 1700000002123456789
7 served.log
      4 1700000000.10
      3 1700000000.11
"""


def values(samples: list[Sample]) -> dict[str, float]:
    return {sample.metric: sample.value for sample in samples if not sample.at_ns}


def command_of(benchmark: str, **params: Any) -> str:
    return ADAPTERS[benchmark].build_command({**BACKENDS, **params}, serving=True).input


def test_haproxy_reports_requests_failures_and_states() -> None:
    samples = ADAPTERS["lb.haproxy"].parse(Output(HAPROXY))
    assert values(samples) == {"forwarded_count": 100, "failed_count": 3, "retries_count": 5}
    states = [(s.metric, s.factors["server"], s.at_ns) for s in samples if s.at_ns]
    down_ns, up_ns = 1_795_391_709_177_412_000, 1_795_391_712_000_000_000
    assert states == [
        ("server_down_count", "10.0.0.2:80", down_ns),
        ("server_up_count", "10.0.0.2:80", up_ns),
    ]


def test_nginx_reports_requests_retries_and_the_first_failed_attempt() -> None:
    samples = ADAPTERS["lb.nginx"].parse(Output(NGINX))
    assert values(samples) == {"forwarded_count": 100, "failed_count": 1, "retries_count": 1}
    states = [(s.metric, s.factors["server"], s.at_ns) for s in samples if s.at_ns]
    assert states == [("server_down_count", "10.0.0.2:80", 1_700_000_000_250_000_000)]


def test_a_server_reports_what_it_served_and_when_it_failed() -> None:
    samples = ADAPTERS["http.nginx"].parse(Output(SERVED))
    assert values(samples) == {
        "served_count": 7,
        "failure_wall_ns": float(1_700_000_000_123_456_789),
        "recovery_wall_ns": float(1_700_000_002_123_456_789),
    }
    assert [s.value for s in samples if s.metric == "interval_served_count"] == [4, 3]
    assert values(ADAPTERS["http.apache"].parse(Output(SERVED))) == {"served_count": 7}


@pytest.mark.parametrize(
    ("benchmark", "text", "cut"),
    [
        ("lb.haproxy", HAPROXY, "web,BACKEND"),
        ("lb.nginx", NGINX, "Reading"),
        ("http.apache", SERVED, "7 served.log"),
        ("http.nginx", SERVED, "7 served.log"),
        ("http.nginx", SERVED, "      3 1700"),
    ],
)
def test_what_is_cut_off_is_no_smaller_figure(benchmark: str, text: str, cut: str) -> None:
    with pytest.raises(ToolError):
        ADAPTERS[benchmark].parse(Output(text[: text.index(cut)]))


def test_the_configurations_have_what_was_asked_for() -> None:
    haproxy = command_of(
        "lb.haproxy",
        algorithm="random_two",
        server_keep_alive=False,
        server_connections=7,
        check_ns=200_000_000,
        slow_start_ns=3_000_000_000,
    )
    assert "balance random(2)\n" in haproxy
    assert "option http-server-close\n" in haproxy
    assert (
        "server 10.0.0.1:80 10.0.0.1:80 weight 3 maxconn 7 check inter 200ms fall 2 rise 2 "
        "slowstart 3000ms\n"
    ) in haproxy
    nginx = command_of("lb.nginx", algorithm="least_connections", server_connections=7)
    assert "least_conn;" in nginx
    assert "server 10.0.0.2:80 weight=1 fail_timeout=10s max_conns=7;" in nginx
    # Neither listens anywhere else.
    assert nginx.count("listen ") == haproxy.count("bind ") == 2


def test_the_web_server_speaks_the_version_and_encrypts_where_asked() -> None:
    def called(**params: Any) -> ToolCommand:
        return ADAPTERS["http.nginx"].build_command(params)

    assert "backlog=4096;" in called().input
    assert "backlog=4096 http2;" in called(version="2").input
    both = called(version="2", tls=True)
    certified = "ssl_certificate cert.pem; ssl_certificate_key key.pem;"
    assert f"backlog=4096 ssl http2; {certified}" in both.input
    assert [step.program for step in both.prepare] == ["truncate", "openssl"]
    assert [step.program for step in called().prepare] == ["truncate"]


def test_nginx_has_one_process() -> None:
    with pytest.raises(UsageError, match="one process"):
        command_of("lb.nginx", threads=2)


@pytest.mark.parametrize(
    "backends", [[], ["web:80"], ["10.0.0.1"], ["10.0.0.1:0"], ["1.2.3.4:5 0"]]
)
@pytest.mark.parametrize("benchmark", ["lb.haproxy", "lb.nginx"])
def test_what_names_no_server_is_refused(benchmark: str, backends: list[str]) -> None:
    with pytest.raises(UsageError):
        command_of(benchmark, backends=backends)
