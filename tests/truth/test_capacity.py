"""`nephoscope capacity` on a server whose capacity follows from its service time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from http_truth import serving
from tests.e2e.conftest import run_inside

SERVICE_NS = 2_000_000


@pytest.mark.slow
def test_the_capacity_of_one_worker_is_the_inverse_of_its_service_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker serves 500 requests of 2 ms a second. At a higher rate r the queue of a trial of
    1 s grows to (r - 500) x 2 ms of waiting; p90 reaches 20 ms at 511 requests per second.
    """
    monkeypatch.chdir(tmp_path)
    with serving(deadline_s=300) as server:
        host, port = server.address
        done = run_inside(
            [
                *("capacity", f"http://{host}:{port}/service/{SERVICE_NS}"),
                *("--objective", "p90 < 20ms", "-c", "50", "--budget", "90s"),
                *("--precision", "0.03", "--store", str(tmp_path), "--json"),
            ]
        )
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["closed_loop_per_s"] == pytest.approx(500, rel=0.03)
    capacity = found["capacity_per_s"]
    assert capacity is not None, found["sentence"]
    # Between the rate that the worker can serve and the one at which the wait of a trial with its
    # warm-up of 0.2 s is 20 ms; what the machine takes from server and generator lowers it.
    assert capacity["low"] <= 515, found
    assert capacity["high"] >= 480, found
    assert (capacity["high"] - capacity["low"]) / capacity["value"] < 0.15
