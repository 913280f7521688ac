"""Questions about systems as servers: which of several is faster for my database or web server."""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from tests.attempts import attempt
from tests.measure.runs.factory import FakeRunning, Fakes, FakeTarget
from tests.profiles import by_profile
from tests.questions.conftest import Asking

from nephoscope import catalog
from nephoscope.core.model import Sample, Shape
from nephoscope.measure.targets import Done, TargetTrial
from nephoscope.measure.targets.base import Endpoint
from nephoscope.measure.targets.kinds.local import LocalRecord
from nephoscope.measure.targets.kinds.ssh import SshRecord

SPEED = {"vm1": 1.0, "vm2": 0.5, "vm3": 0.25}
"""Planted truth: what each system serves, relative to vm1."""

ADDRESSES = {name: f"10.9.0.{1 + at}" for at, name in enumerate(SPEED)}
CLIENT_CPUS = 0.4


class Machine(FakeTarget):
    """A machine that answers at once, with figures that follow from the speed of the server."""

    client_cpus = CLIENT_CPUS

    async def open(self, timeout_s: float = 30.0) -> Mapping[str, Any]:
        await super().open(timeout_s)
        return {
            "identity": {"machine_id_hash": self.name},
            "topology": {"allowed_cpus": [0, 1, 2, 3]},
        }

    def endpoint(self, client: Any, version: Any = None) -> Endpoint:
        return Endpoint(ADDRESSES[self.name], ADDRESSES[self.name])

    async def start(self, *words: Any, **options: Any) -> FakeRunning:
        benchmark, params = words[:2]
        peer = options.get("peer")
        address = peer.address if peer is not None else str(params.get("url", ""))
        server = next((name for name, at in ADDRESSES.items() if at in address), self.name)
        self.answer = lambda *_: self._figures(benchmark, SPEED.get(server, 1.0))
        return await super().start(*words, **options)

    def _figures(self, benchmark: str, speed: float) -> TargetTrial:
        noisy = speed * random.Random(f"{len(self.timeouts_s)}{speed}").uniform(0.99, 1.01)
        samples = tuple(
            Sample(metric.id, 1000.0 * noisy if metric.id.endswith("_per_s") else 1e6 / noisy)
            for metric in catalog.load().benchmark(benchmark).metrics
            if metric.shape is Shape.SCALAR and metric.headline
        )
        beside = {"own_busy_cpus": self.client_cpus}
        return TargetTrial(samples, {}, Done(1_000_000, len(samples), beside), None)


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers for every host that is reached by ssh, and for this one."""
    fakes = Fakes()
    for record in (SshRecord, LocalRecord):
        monkeypatch.setattr(record, "make", lambda self: Machine(self, fakes))


def compared(ask: Asking, metric: str) -> dict[str, Any]:
    document = ask("nephoscope compare latest --json").json()
    (line,) = [one for one in document["comparisons"] if one["metric"] == metric]
    comparison: dict[str, Any] = line["comparison"]
    assert (line["a"], line["b"]) == ("vm1", "vm2")
    assert line["factors"] == {}, "the system is what is compared, and no factor"
    return comparison


@pytest.mark.usefixtures("machines")
def test_which_of_two_vms_is_faster_for_my_postgres(ask: Asking) -> None:
    """Which of my two VMs is faster for PostgreSQL?"""
    answer = ask("nephoscope bench db.pgbench --target ssh:vm1 --target ssh:vm2 --repetitions 10")
    answer.says(r"vm2 relative to vm1 gives 0\.[45]\d* .*: worse")
    answer.says("Client and server shared the CPUs of each of vm1 and vm2: .* whole machines")
    comparison = compared(ask, "transactions_per_s")
    assert comparison["verdict"]["word"] == "worse"
    assert comparison["ratio"]["low"] < 0.5 < comparison["ratio"]["high"]
    ranking = ask("nephoscope rank latest --by target --metric transactions_per_s --json").json()
    assert ranking["alternatives"] == ["vm1", "vm2"]


@pytest.mark.usefixtures("machines")
def test_which_server_answers_one_client_faster(ask: Asking) -> None:
    """My client stays here: which of the two servers should it use for Redis?"""
    answer = ask(
        "nephoscope bench redis-benchmark --client local --target ssh:vm1 --target ssh:vm2 "
        "--repetitions 10"
    )
    answer.says(r"vm2 relative to vm1 gives 0\.[45]\d* .*: worse")
    answer.says("The client ran on local; vm1 and vm2 served")
    answer.never_says("bottleneck")
    comparison = compared(ask, "requests_per_s")
    assert comparison["verdict"]["word"] == "worse"
    assert comparison["ratio"]["low"] < 0.5 < comparison["ratio"]["high"]


@pytest.mark.usefixtures("machines")
def test_is_my_client_fast_enough_to_tell_web_servers_apart(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of three hosts is the best web server, and can one small client tell?"""
    monkeypatch.setattr(Machine, "client_cpus", 0.97)
    names = "--target ssh:vm3 --target ssh:vm1 --target ssh:vm2"
    answer = ask(f"nephoscope bench ab --client local {names} --repetitions 10")
    answer.says(r"The client of ab on local was the bottleneck: it used 0\.970 of the 1\.00 CPUs")
    answer.says("The server can do more than was measured")
    ranking = ask("nephoscope rank latest --by target --json").json()
    assert sorted(ranking["alternatives"]) == ["vm1", "vm2", "vm3"], "the client is none of them"


@pytest.mark.usefixtures("machines")
def test_which_running_web_server_is_faster(ask: Asking) -> None:
    """nginx runs on both VMs already: which one serves my page faster from here?"""
    ask(
        "nephoscope bench http.load --client local --target ssh:vm1 --target ssh:vm2 "
        "--set url=http://{server}:8080/ --repetitions 10"
    ).says(r"vm2 relative to vm1 gives 0\.[45]\d* .*: worse")
    assert compared(ask, "requests_per_s")["verdict"]["word"] == "worse"
    refused = ask("nephoscope bench cpu.pi --client local --target ssh:vm1", code=2)
    refused.says("cpu.pi has no server of its own, so --client means nothing. Omit --client.")


LAB = """
name: {name}
network: 10.84.0.0/24
hosts:
  whole: {{cpu: {{cap: 20%}}}}
  half: {{cpu: {{cap: 10%}}}}
  client: {{}}
"""


@pytest.mark.alone
@pytest.mark.usefixtures("root_only", "probe")
def test_a_host_with_half_the_cpu_is_the_slower_redis(ask: Asking) -> None:
    """One of my two hosts has half the CPU: is its Redis slower, from the same client?

    In `make test-all` each host is also asked by a client of its own.
    """
    name = f"q{secrets.token_hex(3)}"
    ask.write("two.yaml", LAB.format(name=name))
    ask("nephoscope lab up two.yaml")
    hosts = f"--target lab:{name}/whole --target lab:{name}/half"

    def slower(ends: str, requests: int) -> tuple[str, bool]:
        # So many that the quota is refilled some ten times: its phase does not decide then.
        ask(
            f"nephoscope bench redis-benchmark {ends} {hosts} --set requests={requests} "
            "--repetitions 7"
        )
        document = ask("nephoscope compare latest --metric requests_per_s --json").json()
        (line,) = document["comparisons"]
        assert (line["a"], line["b"], line["factors"]) == ("whole", "half", {})
        ratio = line["comparison"]["ratio"]
        is_slower = line["comparison"]["verdict"]["word"] == "worse"
        return f"half / whole = {ratio['value']:.3g}", is_slower and ratio["high"] < 1

    try:
        if by_profile(quick=False, whole=True):
            attempt("each with itself", partial(slower, "", 4000), contends=True)
        client = f"--client lab:{name}/client"
        attempt(client, partial(slower, client, 10_000), contends=True)
    finally:
        ask(f"nephoscope lab down {name}")
