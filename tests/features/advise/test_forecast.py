"""Predictions from stored runs whose every value and fingerprint the test sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.features.advise.test_telemetry import of as observed
from tests.features.census.test_result import fingerprint, run_of

from nephoscope import command_line
from nephoscope.core.model import Better
from nephoscope.features.advise import answers, forecast, result, stored_values
from nephoscope.features.advise.stored_values import Metric, PlatformValues, StoredValues
from nephoscope.store import Store

DAY_S = 86_400.0


def fleet(store: Path, kind: str, count: int, *, seed: int = 1, at: float | None = None) -> None:
    """A run on so many machines of a type, 5 % apart."""
    random = np.random.default_rng(seed)
    machines = {
        f"{kind}{i}": fingerprint("X", f"h{kind}{i}", instance=f"i{kind}{i}", kind=kind)
        for i in range(count)
    }
    times = np.exp(random.normal(0, 0.05, count)) * 1e6
    run_of(store, machines, dict(zip(machines, times, strict=True)), at=at)


def predicted(store: Path, grouping: Any = "type") -> dict[str, forecast.Prediction]:
    stored = stored_values.read(Store(store).runs(), grouping)
    made = forecast.forecast(stored, None, "cpu", confidence=0.9, now_s=20 * DAY_S)
    return {
        entry.platform: entry for entry in made.predictions if entry.metric == "pi_digits_per_s"
    }


def test_a_platform_is_predicted_from_its_machines(tmp_path: Path) -> None:
    fleet(tmp_path, "m5", 8, at=5 * DAY_S)
    fleet(tmp_path, "c5", 2, at=12 * DAY_S)
    found = predicted(tmp_path)
    assert list(found) == ["aws c5", "aws m5"]
    large, small = found["aws m5"], found["aws c5"]
    assert (large.machines, large.runs, large.estimate.note) == (8, 8, "")
    assert (large.oldest_days, large.newest_days) == (15, 15)
    assert large.estimate.n == 8
    assert large.estimate.low is not None
    assert large.between == pytest.approx(0.05, rel=0.5)
    assert large.within == pytest.approx(0.0016, rel=0.1)
    assert small.estimate.low is None
    assert small.estimate.note.startswith("Too few machines: 2 measured")
    assert small.newest_days == 8


def test_platforms_are_types_models_or_machines(tmp_path: Path) -> None:
    fleet(tmp_path, "m5", 3)
    fleet(tmp_path, "c5", 3, seed=2)
    assert list(predicted(tmp_path)) == ["aws c5", "aws m5"]
    assert {name: entry.machines for name, entry in predicted(tmp_path, "model").items()} == {
        "X": 6
    }
    by_machine = predicted(tmp_path, "machine")
    assert len(by_machine) == 6
    assert all(entry.machines == 1 for entry in by_machine.values())


def test_a_machine_is_predicted_from_its_runs(tmp_path: Path) -> None:
    for number in range(5):
        machine = {"a": fingerprint("X", "h1")}
        run_of(tmp_path, machine, {"a": 1e6 * (1 + number / 100)})
    (entry,) = predicted(tmp_path, "machine").values()
    assert (entry.machines, entry.runs) == (5, 5)
    assert predicted(tmp_path, "model")["X"].machines == 1


def stored(speeds: dict[str, dict[str, float]], here: str) -> StoredValues:
    """A store of one rate by platform and machine."""
    platforms = {}
    for name, machines in speeds.items():
        platforms[name] = PlatformValues("per_s", Better.HIGHER)
        for machine, value in machines.items():
            platforms[name].add(machine, "run", 0.0, [value])
    return StoredValues({Metric("cpu.pi", "m", "{}", "{}"): platforms}, here, "h0")


def test_the_run_time_follows_the_speed_of_the_resources_in_use() -> None:
    telemetry = observed(running=0.8)
    speeds = {"here": {"h0": 10.0, "h1": 11.0}, "fast": {f"f{i}": 20.0 for i in range(4)}}
    made = forecast.forecast(stored(speeds, "here"), telemetry, "cpu", confidence=0.9, now_s=0.0)
    by_platform = {entry.platform: entry for entry in made.times}
    fast = by_platform["fast"].estimate
    assert fast.n == 4
    assert fast.value == pytest.approx(0.2 + 0.8 / 2, abs=0.01)
    assert by_platform["here"].estimate.low is None
    assert by_platform["here"].estimate.n == 2


def test_a_platform_without_the_needed_benchmarks_is_named() -> None:
    telemetry = observed(running=0.5, in_disk=[True, False])
    values = stored({"here": {"h0": 10.0}}, "here")
    made = forecast.forecast(values, telemetry, None, confidence=0.9, now_s=0.0)
    assert made.times == ()
    assert "no machine has benchmarks of cpu and disk" in made.notes[0]


def test_without_a_run_here_no_run_time_is_predicted() -> None:
    made = forecast.forecast(
        stored({"a": {"x": 1.0}}, ""), observed(running=0.8), "cpu", confidence=0.9, now_s=0.0
    )
    assert made.times == ()
    assert "no stored run measured this host" in made.notes[0]


def test_a_declared_resource_beats_the_observed_one_and_is_flagged() -> None:
    application = answers.read(None, {"resource": "disk"})
    advice = result.advise(application, observed(running=0.9))
    assert advice.resource == "disk"
    assert "Your answer is disk, the observed process shows cpu" in advice.notes[0]
    assert result.advise(answers.read(None, {}), observed(running=0.9)).resource == "cpu"
    assert result.advise(answers.read(None, {}), observed()).resource is None


def test_waiting_for_storage_against_a_short_upload_is_flagged() -> None:
    sets = {"data": "1GB", "link": "100Mbit/s", "turnaround": "24h"}
    advice = result.advise(answers.read(None, sets), observed(in_disk=[True, True, True, False]))
    assert advice.primary == "data-intensive"
    assert any("it counts as data-intensive" in note for note in advice.notes)


def test_the_command_tests_its_own_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, "m5", 8)
    words = ["advise", "--back-test", "--store", str(tmp_path)]
    assert command_line.main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    tested = document["back_test"]
    assert tested["machines"] == 8
    assert tested["coverage"]["n"] == 8
    assert tested["error"]["value"] < 0.1
    assert command_line.main(words) == 0
    text = capsys.readouterr().out
    assert "Predicted performance of a new machine" in text
    assert "inside the interval of 90 %" in text
    assert "Classes" not in text  # no application was described


@pytest.mark.slow
def test_coverage_of_stored_runs_by_leaving_one_machine_out(tmp_path: Path) -> None:
    for number, count in enumerate((6, 9, 14, 22, 30, 45, 60)):
        fleet(tmp_path, f"t{number}", count, seed=100 + number)
    read = stored_values.read(Store(tmp_path).runs(), "type")
    tested = forecast.back_test(read, confidence=0.9)
    assert tested.coverage is not None
    assert tested.machines == 186
    # 186 machines alone leave 4.3 % of randomness, as the interval of the coverage says.
    assert tested.coverage.low is not None
    assert tested.coverage.high is not None
    assert tested.coverage.low <= 0.9 <= tested.coverage.high
