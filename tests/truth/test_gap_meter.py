"""Gap meters cost the work on the other core nothing, and see who takes the CPU they watch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import hardware
from tests.attempts import attempt
from tests.hardware import Feature
from tests.majorities import hold_in_most
from trials import probe_path

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import gap_meter

pytestmark = hardware.needs(Feature.CPUS, {0, 1} <= os.sched_getaffinity(0))

ROUNDS = 150
"""Of some tens of milliseconds each; enough for half a percent on a quiet machine."""


@pytest.mark.slow
@pytest.mark.parametrize("meter", ["spinning", "sleeping"])
def test_a_meter_costs_the_other_core_nothing(meter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval of the factor contains 1 and is at most 1 % to either side."""
    monkeypatch.setenv("NEPHOSCOPE_PROBE", probe_path())

    def measure() -> tuple[str, bool]:
        row = getattr(gap_meter, meter)(ROUNDS)
        ratio = row.ratio
        said = f"factor {ratio.value:.4f} [{ratio.low:.4f}, {ratio.high:.4f}], n = {ratio.n}"
        return said, gap_meter.costs_nothing(row)

    attempt(f"{meter} meter", measure)


def metered(benchmark: str, params: dict[str, object], cpus: str = "0,1") -> dict[str, object]:
    command = ["taskset", "-c", cpus, probe_path(), "run", benchmark, "--gap-meter"]
    done = subprocess.run(
        [*command, "--params", json.dumps(params)], capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1])["done"]["counters"])


def test_it_sees_who_keeps_the_spare_cpu_busy() -> None:
    """Half of a CPU that one busy program has; its looks are short, so it takes several trials."""
    params = {"cpus": [0], "duration_ns": 1_000_000_000}

    def missed() -> float:
        return float(str(metered("cpu.gaps", params)["spare_gap_ratio"]))

    def measure() -> tuple[str, bool]:
        load = ["taskset", "-c", "1", probe_path(), "run", "load.cpu", "--params"]
        # What is missing of a free CPU is others' doing: the least of three looks has least of it.
        # One below half of what is taken at least needs no other.
        free = 1.0
        for _ in range(3):
            if (free := min(free, missed())) < 0.1:
                break
        looks: list[float] = []

        def near() -> tuple[bool, bool, bool]:
            looks.append(missed())
            return looks[-1] >= 0.2, looks[-1] <= 0.8, looks[-1] > 2 * free

        with subprocess.Popen(
            [*load, json.dumps({"threads": 1, "duration_ns": 8_000_000_000})],
            stdout=subprocess.DEVNULL,
        ) as busy:
            try:
                # A slice of the other within 5 ms is a fifth of them at least, and a look that
                # began in the meter's favour loses less than half.
                held = hold_in_most(3, near)
            finally:
                busy.kill()
        return f"free {free:.3f}, taken {', '.join(f'{look:.3f}' for look in looks)}", held

    attempt("gaps of a busy spare CPU", measure, contends=True)


@pytest.mark.together
@pytest.mark.parametrize(
    ("benchmark", "params", "cpus", "reason"),
    [
        ("cpu.gaps", {"duration_ns": 20_000_000}, "0,1", "every CPU"),
        ("cpu.pi", {"digits": 1000}, "0,1", "every CPU"),
        ("cpu.pi", {"threads": 1, "digits": 1000}, "1", "one CPU"),
        ("load.cpu", {"threads": 1, "duration_ns": 20_000_000}, "0,1", "requested"),
    ],
)
def test_where_there_is_no_spare_cpu_the_reason_is_told(
    benchmark: str, params: dict[str, object], cpus: str, reason: str
) -> None:
    beside = metered(benchmark, params, cpus)
    assert reason in str(beside["spare_missing"])
    for key in ("spare_cpu", "spare_gap_ratio", "spare_gaps_count", "spare_gap_longest_ns"):
        assert beside[key] is None


def test_the_cpu_is_the_one_that_is_left() -> None:
    for used, spare in ((0, 1), (1, 0)):
        beside = metered("cpu.gaps", {"cpus": [used], "duration_ns": 20_000_000})
        assert (beside["spare_cpu"], beside["spare_missing"]) == (spare, None)
        # What the meter does is none of the trial's doing: it sleeps twenty times meanwhile.
        assert int(str(beside["voluntary_switches_count"])) < 10
