"""A new tool with a server is one file and one line of a table; plans and runs then know it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hardware import Feature, lacking
from tests.tools import fixture_needs, needs
from toy_echo import ADAPTER, SPEC

from nephoscope import catalog
from nephoscope.catalog.adapters import ADAPTERS
from nephoscope.core.errors import Lacking, PlanError
from nephoscope.measure import plans, runs
from nephoscope.measure.plans.files.load import from_text
from nephoscope.measure.targets import parse, session
from nephoscope.measure.targets.base import IpVersion
from nephoscope.measure.targets.probe.target import Target
from nephoscope.store import Store

PLAN = """
name: echo
seed: 1
warmup: 0
repeat: {min: 2, max: 2}
targets: [{name: here}]
benchmarks:
  - {benchmark: toy.echo, peer: here, params: {count: 5}}
"""


@pytest.fixture(autouse=True)
def _in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The adapter's line in the table, and its declaration where `make generate` puts it."""
    monkeypatch.setitem(ADAPTERS, SPEC.id, ADAPTER)
    known = catalog.load()
    larger = replace(known, benchmarks={**known.benchmarks, SPEC.id: SPEC})
    monkeypatch.setattr(catalog, "load", lambda: larger)


def plan_of(text: str) -> plans.Plan:
    return from_text(text, "plan.yaml", {}, catalog.load())


async def measured(client: Target, server: Target, version: IpVersion | None = None) -> None:
    """Holds one trial to what both sides counted."""
    try:
        await client.open()
        await server.open()
        trial, served = await session.run_pair(
            client, server, SPEC.id, {"count": 30}, 30, version=version
        )
    finally:
        await client.close()
        await server.close()
    assert trial.failure is None, trial.failure
    assert served.failure is None, served.failure
    assert [sample.metric for sample in trial.samples] == ["echo_ns"]
    assert 1_000 < trial.samples[0].value < 1e9
    assert served.done is not None
    assert served.done.served["echoed_bytes"] == 30
    assert served.done.served["cpu_ns"] > 0


@pytest.mark.parametrize("version", [4, 6])
def test_both_sides_run_on_loopback(probe: Path, version: IpVersion) -> None:
    asyncio.run(measured(parse("local").make(), parse("local").make(), version))


def test_a_plan_measures_it(probe: Path, tmp_path: Path) -> None:
    run = runs.execute(plan_of(PLAN), Store(tmp_path))
    assert [record.status for record in run.records()] == ["valid", "valid"]
    with pytest.raises(PlanError, match=r"toy\.echo has two sides"):
        plan_of(PLAN.replace("peer: here, ", ""))


@pytest.fixture(scope="module")
@fixture_needs("ip", "tc")
def lab(root_only: None) -> Iterator[str]:
    """Two bare hosts on a link."""
    from nephoscope.measure.lab import files
    from nephoscope.measure.lab.provisioner import LABS

    name = f"e{secrets.token_hex(4)}"
    values = {"version": 1, "name": name, "hosts": {"a": {}, "b": {}}}
    try:
        asyncio.run(LABS.create(files.from_values(values), say=lambda line: None))
    except Lacking as error:
        lacking(Feature.LAB, str(error))
    yield name
    asyncio.run(LABS.remove(name))


def test_two_hosts_of_a_lab_run_a_side_each(probe: Path, lab: str) -> None:
    asyncio.run(measured(parse(f"lab:{lab}/a").make(), parse(f"lab:{lab}/b").make()))


def test_a_server_that_is_missing_is_reported_with_its_package(
    probe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ADAPTER.server is not None
    absent = replace(ADAPTER.server, tool="no-such-server", install="apt-get install it")
    monkeypatch.setitem(ADAPTERS, SPEC.id, replace(ADAPTER, server=absent))

    async def refused() -> None:
        target = parse("local").make()
        try:
            await target.open()
            await session.run_pair(target, target, SPEC.id, {}, 30)
        finally:
            await target.close()

    with pytest.raises(Exception, match="no-such-server") as caught:
        asyncio.run(refused())
    assert "apt-get install it" in str(caught.value)


@pytest.mark.usefixtures("probe")
def test_a_server_that_is_not_installed_is_named_before_the_first_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ADAPTER.server is not None
    absent = replace(ADAPTER.server, tool="echo-server-of-nobody", install="apt-get install echod")
    monkeypatch.setitem(ADAPTERS, SPEC.id, replace(ADAPTER, server=absent))
    with pytest.raises(Lacking) as caught:
        runs.execute(plan_of(PLAN), Store(tmp_path))
    assert str(caught.value) == (
        "here: the server of toy.echo, the program echo-server-of-nobody, is not installed. "
        "Install it there: `apt-get install echod`."
    )


@needs("ip", "tc")
@pytest.mark.usefixtures("probe", "root_only")
def test_one_client_measures_the_servers_of_two_hosts(tmp_path: Path) -> None:
    name = f"cs{secrets.token_hex(3)}"
    text = f"""
name: echo
seed: 1
warmup: 0
repeat: {{min: 2, max: 2}}
lab: {{name: {name}, network: 10.85.0.0/24, hosts: {{a: , b: , client: }}}}
targets: [{{name: a, kind: lab}}, {{name: b, kind: lab}}, {{name: client, kind: lab}}]
benchmarks:
  - {{benchmark: toy.echo, client: client, params: {{count: 5}}}}
  - {{benchmark: toy.echo, on: [a, b], peer: self, params: {{count: 5}}}}
"""
    run = runs.execute(plan_of(text), Store(tmp_path))
    records = [record for record in run.records() if record.key.round > 0]
    assert {record.status.value for record in records} == {"valid"}
    by_setting = {(record.key.setting, record.key.target) for record in records}
    assert by_setting == {(0, "a"), (0, "b"), (1, "a"), (1, "b")}
    for record in records:
        served_elsewhere = record.key.setting == 0
        assert ("client_own_busy_cpus" in record.counters) == served_elsewhere
        assert record.counters["own_busy_cpus"] is not None
