"""The link between both sides is cut in the middle of each benchmark that has two."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import tools
from tests.e2e.conftest import PROGRAM
from tests.e2e.test_lab import lab_name, left
from tests.hardware import Feature, needs

from nephoscope import catalog
from nephoscope.catalog.adapters import ADAPTERS
from nephoscope.core.model import TrialStatus
from nephoscope.measure.lab import names
from nephoscope.store import Store

__all__ = ("lab_name",)

pytestmark = [pytest.mark.slow, needs(Feature.ROOT, os.geteuid() == 0), tools.needs("ip", "tc")]

TIMEOUT_S = 15
"""Of a trial: it is cut within the first seconds, and then has to end by itself or by this."""
PHASES_S = 60 + 10 + 10 + 60
"""Limits of the other phases of a trial, by default."""
LONG: dict[str, Any] = {
    "duration_ns": 12_000_000_000,
    "requests": 10_000_000,
    "probes_per_hop": 1000,
}
"""Values with which a benchmark is still measuring when the link is cut."""
OWN = {"httperf": {"connections": 100_000}}
RATES = ("_per_s", "_bytes_per_s", "_bits_per_s")
LOST = ("loss_ratio", "lost_count", "errors_count", "unanswered_count", "late_ratio")


def two_sided() -> Iterator[Any]:
    """Every benchmark of the catalogue with two sides, with the programs that it needs."""
    for spec in catalog.load().benchmarks.values():
        if not spec.needs_peer:
            continue
        adapter = ADAPTERS.get(spec.id)
        programs = [] if adapter is None else [adapter.spec.tool]
        programs += [] if adapter is None or adapter.server is None else [adapter.server.tool]
        marks = tools.needs(*dict.fromkeys(programs)) if programs else ()
        yield pytest.param(spec, id=spec.id, marks=marks)


def params_of(spec: catalog.BenchmarkSpec) -> dict[str, Any]:
    common = {name: value for name, value in LONG.items() if spec.has(name)}
    return {**common, **OWN.get(spec.id, {})}


def plan_of(spec: catalog.BenchmarkSpec, lab: str) -> str:
    entry = {
        "benchmark": spec.id, "on": "a", "peer": "b", "params": params_of(spec),
        "timeout": f"{TIMEOUT_S}s",
    }  # fmt: skip
    plan = {
        "version": 1, "name": "cut", "warmup": 0, "repeat": {"min": 1, "max": 1},
        "targets": [{"name": "a", "kind": "lab"}, {"name": "b", "kind": "lab"}],
        "lab": {
            "version": 1, "name": lab, "hosts": {"a": {}, "b": {}},
            # Else a path of one hop would be known before the link can be cut.
            "links": {"wan": {"between": ["a", "lan"], "delay": "20ms"}},
        },
        "benchmarks": [entry],
    }  # fmt: skip
    return json.dumps(plan)


def received(lab: str) -> int:
    """Packets that have reached the far host; 0 before there is one."""
    words = ["ip", "-n", names.namespace(lab, "b"), "-s", "-j", "link", "show", "eth0"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        return 0
    return int(json.loads(done.stdout)[0]["stats64"]["rx"]["packets"])


def cut(lab: str, process: subprocess.Popen[str]) -> None:
    """Takes the far end down once both sides have spoken for a second."""
    until, before = time.monotonic() + 240, 0
    moving = 0
    while moving < 4:
        assert time.monotonic() < until, "nothing is sent"
        assert process.poll() is None, process.communicate()
        time.sleep(0.25)
        now = received(lab)
        moving = moving + 1 if now > before else moving
        before = now
    end = ["ip", "-n", names.namespace(lab, "b"), "link", "set", "eth0", "down"]
    subprocess.run(end, check=True)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory in which also other users may have folders: pytest's own are closed to them."""
    path = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="nephoscope-test-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("spec", [*two_sided()])
def test_a_cut_link_ends_the_trial_in_a_sentence(
    spec: catalog.BenchmarkSpec, lab_name: str, scratch: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(plan_of(spec, lab_name))
    with subprocess.Popen(
        [*PROGRAM, "run", str(plan)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(scratch), "NO_COLOR": "1"},
    ) as process:  # fmt: skip
        try:
            cut(lab_name, process)
            out, err = process.communicate(timeout=TIMEOUT_S + PHASES_S)
        finally:
            process.kill()
    assert left(lab_name) == []
    assert list(scratch.iterdir()) == []
    assert "Traceback" not in out + err
    assert "defect" not in out + err
    (run,) = Store().runs()
    ((trial, table),) = run.tables()
    values = dict(zip(table["metric"].to_pylist(), table["value"].to_pylist(), strict=True))
    if trial.status == TrialStatus.VALID:
        # What it measured is the cut itself, and it says so in a figure of its own.
        assert any(values.get(name, 0) > 0 for name in LOST), values
    else:
        assert trial.reasons, trial
    for name, value in values.items():
        assert value != 0 or not name.endswith(RATES), (name, values)
