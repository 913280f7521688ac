"""Runs that bring their own lab: what they leave behind is nothing, whatever ends them."""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.attempts import attempt
from tests.tools import needs

from nephoscope.core.errors import UsageError
from nephoscope.core.model import TrialStatus
from nephoscope.measure import runs
from nephoscope.measure.lab.files import from_values
from nephoscope.measure.lab.provisioner import LABS
from nephoscope.measure.plans import Plan
from nephoscope.store import Store

pytestmark = pytest.mark.usefixtures("root_only", "probe")

COMMAND = """
import sys
from nephoscope.measure import runs
from nephoscope.measure.plans import Plan
from nephoscope.store import Store
runs.execute(Plan.model_validate_json(sys.argv[1]), Store(sys.argv[2]))
"""


@pytest.fixture
def name() -> Iterator[str]:
    """The name of a lab of this test alone, removed should the test fail."""
    found = f"rt{secrets.token_hex(3)}"
    yield found
    if is_up(found):
        asyncio.run(LABS.remove(found))


def is_up(name: str) -> bool:
    return any(lab.name == name for lab in LABS.existing())


def topology(name: str) -> dict[str, Any]:
    return {
        "version": 1,
        "name": name,
        "network": "10.78.0.0/16",
        "hosts": {"a": {}, "b": {}},
        "links": {"wan": {"between": ["a", "lan"], "delay": "2ms"}},
    }


def plan_of(name: str, **more: Any) -> Plan:
    values = {
        "name": "inlab",
        "warmup": 0,
        "repeat": {"min": 3, "max": 3},
        "lab": topology(name),
        "targets": [{"name": "a", "kind": "lab"}, {"name": "b", "kind": "lab"}],
        "benchmarks": [{"benchmark": "null", "together": True, "params": {"wait_ns": 20_000_000}}],
        **more,
    }
    return Plan.model_validate(values)


@pytest.mark.alone
@needs("ip", "tc")
def test_hosts_of_a_lab_start_within_a_millisecond(tmp_path: Path, name: str) -> None:
    numbers = itertools.count()

    def measure() -> tuple[str, bool]:
        run = runs.execute(plan_of(name), Store(tmp_path / str(next(numbers))))
        assert not is_up(name), "the lab that the run made is gone with it"
        assert all(r.status is TrialStatus.VALID for r in run.records())
        skews_ns = [r.skew_ns for r in run.records() if r.key.target == "a"]
        held = all(skew is not None and skew < 1_000_000 for skew in skews_ns)
        return f"start skews {skews_ns} ns", held

    attempt("hosts of a lab", measure)


@needs("ip", "tc")
def test_a_lab_that_was_up_is_used_left_up_and_as_it_was(tmp_path: Path, name: str) -> None:
    made = asyncio.run(LABS.create(from_values(topology(name)), say=lambda _: None))
    plan = plan_of(name, factors={"delay": {"path": "lab.links.wan.delay", "levels": ["4ms"]}})
    run = runs.execute(plan, Store(tmp_path))
    assert {r.factors["delay"] for r in run.records()} == {"4ms"}
    assert is_up(name)
    now = LABS.open(name).topology
    assert now.links["wan"].delay_s == made.topology.links["wan"].delay_s == 0.002
    # With another topology under that name the plan is not run at all.
    other = plan_of(name, lab={**topology(name), "hosts": {"a": {}, "b": {}, "c": {}}})
    with pytest.raises(UsageError, match="its topology is another than the plan's"):
        runs.execute(other, Store(tmp_path), fresh=True)
    assert is_up(name)


LONG = {"repeat": {"min": 40, "max": 40}}


def begun(tmp_path: Path, plan: Plan) -> subprocess.Popen[bytes]:
    """A process that measures; returns when it has stored a few trials."""
    have = len(list(tmp_path.glob("runs/[!.]*/trials/*.parquet")))
    command = [sys.executable, "-c", COMMAND, plan.model_dump_json(by_alias=True), str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=dict(os.environ))
    end = time.monotonic() + 120
    while len(list(tmp_path.glob("runs/[!.]*/trials/*.parquet"))) < have + 4:
        assert time.monotonic() < end, "it stores no trial"
        assert process.poll() is None, "it ended"
        time.sleep(0.01)
    return process


@needs("ip", "tc")
def test_an_interrupted_run_leaves_no_lab_and_goes_on(tmp_path: Path, name: str) -> None:
    plan = plan_of(name, **LONG)
    process = begun(tmp_path, plan)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) != 0
    assert not is_up(name)
    # A kill tidies nothing; the same command finds the lab by what the run wrote down, and removes
    # it with the rest.
    process = begun(tmp_path, plan)
    process.kill()
    process.wait()
    assert is_up(name)
    run = runs.execute(plan, Store(tmp_path))
    assert not is_up(name)
    assert run.state == "measured"
    names = [record.key.name for record in run.records()]
    assert len(names) == len(set(names)) == 80
    assert all(record.status is TrialStatus.VALID for record in run.records())
