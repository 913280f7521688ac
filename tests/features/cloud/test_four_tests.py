"""The four tests of services, against a server whose service times are known."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.cloud import four_tests
from nephoscope.features.cloud.four_tests import FourTestsRequest, latencies, plan_of, service_of
from nephoscope.measure import runs
from nephoscope.measure.targets.kinds.local import LocalRecord
from nephoscope.results import analyse_run
from nephoscope.store import Store

IO_NS, CPU_NS = 5_000_000, 2_000_000


@pytest.fixture
def server(probe: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    params = {"port": port, "duration_ns": 110 * 10**9}
    words = [str(probe), "run", "http.serve", "--params", json.dumps(params), "--deadline", "120"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 30
            while time.monotonic() < until:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.kill()


def request(*services: str, **more: object) -> FourTestsRequest:
    values = {
        "paths": {"io": f"/service/{IO_NS}", "cpu": f"/cpu/{CPU_NS}"},
        "rounds": 6,
        "duration_s": 0.2,
        **more,
    }
    return FourTestsRequest(
        [service_of(text, ()) for text in services],
        [LocalRecord()],
        **values,  # type: ignore[arg-type]
    )


def test_each_test_is_one_setting_of_each_service() -> None:
    plan = plan_of(request("a=http://127.0.0.1:1/", "b=http://127.0.0.1:2"))
    urls = [entry.params["url"] for entry in plan.benchmarks]
    assert urls == [
        "{url}/bytes/43",
        "{url}/bytes/2000000",
        "{url}/cpu/2000000",
        "{url}/service/5000000",
    ]
    assert {entry.params["connections"] for entry in plan.benchmarks} == {1}
    assert [target.name for target in plan.targets] == ["local", "a", "b"]
    assert plan.design.baseline == {"target": "a"}


def test_the_latency_of_each_test_is_that_of_its_work(server: str, tmp_path: Path) -> None:
    asked = request(f"a={server}")
    run = runs.execute(plan_of(asked), Store(tmp_path))
    found = {one.test: one.latency for one in latencies(analyse_run.build(run), asked)}
    assert list(found) == list(four_tests.TESTS)
    pixel, cpu, io = found["pixel"], found["cpu"], found["io"]
    assert pixel is not None
    assert cpu is not None
    assert io is not None
    assert io.value >= IO_NS
    assert cpu.value >= CPU_NS
    assert pixel.value < io.value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("front", "names no service with a web address"),
        ("a=redis://127.0.0.1", "names no service with a web address"),
        ("a=https://shop.example/", "load could disturb its owner"),
    ],
)
def test_a_service_that_cannot_be_tested_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        service_of(text, ("www.shop.example",))
    assert service_of("https://shop.example/", ("shop.example",)).name == "shop-example"
