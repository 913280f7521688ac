"""The tools that load a web server, live on loopback: what they count is what nginx counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from live import measured, values
from tests.tools import needs

from nephoscope.catalog.adapters import ADAPTERS

EXACT = [
    ("ab", {"requests": 2000, "connections": 4}),
    ("ab", {"requests": 500, "connections": 4, "keep_alive": False, "body_bytes": 30_000}),
    ("h2load", {"requests": 2000, "connections": 4, "streams": 5}),
    ("h2load", {"requests": 2000, "connections": 4, "protocol": "http/1.1"}),
    ("httperf", {"rate": 400, "connections": 200, "calls": 2}),
    ("siege", {"connections": 4, "requests": 5_000}),
]
TIMED = [
    ("wrk", {"connections": 4, "duration_ns": 1_000_000_000}),
    ("wrk", {"connections": 6, "threads": 2, "duration_ns": 1_000_000_000}),
]


def _marked(cases: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    return [pytest.param(*case, marks=needs(case[0])) for case in cases]


@needs("nginx")
@pytest.mark.parametrize(("tool", "params"), _marked(EXACT))
def test_what_was_asked_for_is_served(probe: Path, tool: str, params: dict[str, Any]) -> None:
    trial, served = measured(tool, params)
    asked = params.get("requests", 1)
    if tool in ("httperf", "siege"):  # what each connection sends
        asked = params["connections"] * params.get("calls", asked)
    assert values(trial)["errors_count"] == 0
    assert (served["served_count"], served["refused_count"]) == (asked, 0)
    assert served["cpu_ns"] > 0


@needs("nginx")
@pytest.mark.parametrize(("tool", "params"), _marked(TIMED))
def test_what_is_counted_is_served_but_for_the_last(
    probe: Path, tool: str, params: dict[str, Any]
) -> None:
    trial, served = measured(tool, params)
    text = trial.documents["tool"]["stdout"]
    found = values(trial)
    assert found["errors_count"] == 0
    counted = int(text.partition("\ncounts ")[2].split()[0])
    # Little's law, with what each connection does between two requests.
    in_flight = found["requests_per_s"] * found["latency_mean_ns"] / 1e9
    assert 0 < in_flight <= params["connections"] * 1.05
    assert found["corrected_mean_ns"] >= found["latency_mean_ns"]
    seen = served["served_count"] + served["refused_count"]
    assert counted <= seen <= counted + params["connections"]


def test_every_tool_of_a_web_server_is_tried() -> None:
    of_nginx = {
        name
        for name, adapter in ADAPTERS.items()
        if adapter.server and adapter.server.tool == "nginx" and not adapter.spec.load
    }
    assert of_nginx == {tool for tool, _ in (*EXACT, *TIMED)}
