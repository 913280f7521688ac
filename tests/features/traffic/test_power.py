"""Traces of a power meter: planted energies come out by state, and bad traces are one sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.features.traffic.made import pcap, power_meter
from tests.features.traffic.test_energy import SIMPLE

from nephoscope import command_line
from nephoscope.core.errors import UsageError
from nephoscope.features.traffic import power
from nephoscope.features.traffic.energy import RadioInterval, energy_of, intervals_of
from nephoscope.features.traffic.shape import Burst
from nephoscope.stats.statistics.values import Array

DEVICE_W = 0.7
"""Of the device besides its radio."""
BURSTS = [Burst(at, 2.0, 100, 250_000.0) for at in (0.0, 20.0, 40.0)]
VOLTS = 3.7


def model_watts(intervals: Sequence[RadioInterval], times: Array) -> Array:
    """The power of the radio at some times; that of sleep outside all intervals."""
    watts = np.full(times.shape, SIMPLE.asleep_w)
    for interval in intervals:
        if interval.duration_s:
            inside = (times >= interval.start_s) & (times < interval.end_s)
            watts[inside] = interval.energy_j / interval.duration_s
    return watts


def planted(
    file: Path,
    *,
    step_s: float = 0.002,
    factor: Callable[[Array], Array] = np.ones_like,
    start_s: float = 5.0,
    column: str = "current_a",
) -> Path:
    """A trace of device and radio over 60 s, from `start_s` before the first packet.

    factor: at some times, of what the radio needs above its sleep.
    """
    times = np.arange(-start_s, 55, step_s) + step_s / 2
    radio = model_watts(intervals_of(BURSTS, SIMPLE, until_s=55.0), times) - SIMPLE.asleep_w
    watts = DEVICE_W + SIMPLE.asleep_w + radio * factor(times)
    currents = watts / VOLTS * (1000 if column == "current_ma" else 1)
    rows = [
        f"{time + start_s:.6f},{current:.9g},{VOLTS}"
        for time, current in zip(times, currents, strict=True)
    ]
    file.write_text("\n".join([f"time_s,{column},voltage_v", *rows]) + "\n", "utf-8")
    return file


def test_the_intervals_of_a_radio_have_its_energy() -> None:
    intervals = intervals_of(BURSTS, SIMPLE, until_s=55.0)
    whole = energy_of(BURSTS, SIMPLE, until_s=55.0)
    assert sum(interval.energy_j for interval in intervals) == pytest.approx(whole.total_j)
    assert [one.state for one in intervals[:5]] == ["promotion", "active", "tail", "tail", "sleep"]
    for before, after in pairwise(intervals):
        assert before.end_s == pytest.approx(after.start_s)


@pytest.mark.parametrize("column", ["current_a", "current_ma"])
def test_planted_energies_come_out_by_state(tmp_path: Path, column: str) -> None:
    # What the radio really needs is a quarter more than its model says.
    file = planted(
        tmp_path / "meter.csv", factor=lambda times: np.full(times.shape, 1.25), column=column
    )
    compared = power.compare(power.read(file), BURSTS, SIMPLE, start_s=5.0)
    assert compared.sleep_w == pytest.approx(DEVICE_W + SIMPLE.asleep_w, rel=1e-3)
    states = {state.state: state for state in compared.states}
    # Worked out by hand: 3 bursts of 2 s at 2 W and 0.5 J for each Mbit; tails of 3 s at 1 W and of
    # 2 s at 0.5 W; promotions of 0.5 s at 1 W; all less 0.1 W of sleep.
    above_sleep_j = {
        "promotion": 3 * (0.5 - 0.05),
        "active": 3 * (2 * 2 + 0.5 * 2 - 0.2),
        "tail": 3 * (3 + 1 - 0.5),
        "sleep": 0.0,
    }
    for state, expected in above_sleep_j.items():
        assert states[state].modelled_j == pytest.approx(expected, abs=1e-9), state
        # A step of 2 ms at each change of state, of at most 2 W.
        assert states[state].above_sleep_j == pytest.approx(1.25 * expected, abs=0.04), state
    assert sum(state.duration_s for state in compared.states) == pytest.approx(60, abs=0.01)
    assert compared.transfers == 3
    assert compared.ratio is not None
    assert compared.ratio.value == pytest.approx(1.25, rel=2e-3)
    assert compared.lag_s == pytest.approx(0, abs=0.002)
    assert compared.notes == ()


def test_repeated_transfers_have_an_interval(tmp_path: Path) -> None:
    factors = (0.9, 1.0, 1.2)
    file = planted(
        tmp_path / "meter.csv",
        factor=lambda times: np.select([times < 19, times < 39], factors[:2], factors[2]),
    )
    compared = power.compare(power.read(file), BURSTS, SIMPLE, start_s=5.0)
    assert compared.ratio is not None
    assert compared.transfer_j is not None
    assert compared.ratio.value == pytest.approx(np.mean(factors), rel=2e-3)
    # Student's t of three values: 4.303 standard errors.
    half = 4.303 * np.std(factors, ddof=1) / 3**0.5
    assert compared.ratio.high == pytest.approx(np.mean(factors) + half, rel=2e-3)
    assert compared.transfer_j.value == pytest.approx(np.mean(factors) * 8.75, rel=3e-3)


def test_clocks_that_differ_and_slow_samples_are_stated(tmp_path: Path) -> None:
    trace = power.read(planted(tmp_path / "meter.csv", step_s=0.01))
    compared = power.compare(trace, BURSTS, SIMPLE, start_s=4.5)
    assert compared.lag_s == pytest.approx(0.5, abs=0.02)
    assert any("best 0.5 s later: compare the clocks" in note for note in compared.notes)
    slow = power.read(planted(tmp_path / "slow.csv", step_s=0.4))
    (note,) = power.compare(slow, BURSTS, SIMPLE, start_s=5.0).notes
    assert note.startswith("Samples are 0.4 s apart, and the radio is in the state 'promotion'")


def test_without_sleep_nothing_is_claimed_about_the_radio(tmp_path: Path) -> None:
    trace = power.read(planted(tmp_path / "meter.csv", start_s=0.6))
    short = power.PowerTrace("short", trace.times_s[250:2000], trace.watts[250:2000], trace.step_s)
    compared = power.compare(short, BURSTS[:1], SIMPLE, start_s=0.6)
    assert compared.sleep_w is compared.transfer_j is compared.ratio is None
    assert all(state.above_sleep_j is None for state in compared.states)
    assert any("never sleeps" in note for note in compared.notes)


ROWS = [f"{at / 100},0.2,3.7" for at in range(20)]


@pytest.mark.parametrize(
    ("head", "changed", "sentence"),
    [
        ("time_s,current_a,voltage_v", {5: "0.05,nan,3.7"}, ":7: current_a 'nan' is not a number."),
        ("time_s,current_a,voltage_v", {5: "0.05,1e300,3.7"}, ":7: current_a '1e300' is too large"),
        ("time_s,current_a,voltage_v", {5: "0.05,0.2,-1"}, ":7: voltage_v '-1' is below 0."),
        ("time_s,current_a,voltage_v", {5: "0.04,0.2,3.7"}, ":7: the time 0.04 is not after"),
        ("time_s,current_a,voltage_v", {19: "9,0.2,3.7"}, ":21: no sample for 8.82 s"),
        ("time_s,current_a,voltage_v", {5: "0.05,0.2"}, ":7: 2 fields under 3 columns."),
        ("time_s,power_w,voltage_v", {}, ":1: unknown column 'power_w'"),
        ("time_s,voltage_v", {}, " 3 fields under 2 columns."),
        ("current_a,current_ma,voltage_v", {}, "the column 'time_s' is missing."),
        ("time_s,current_a,voltage_v", dict.fromkeys(range(4, 20), ""), "has 4 samples;"),
    ],
)
def test_bad_traces_are_one_sentence(
    tmp_path: Path, head: str, changed: dict[int, str], sentence: str
) -> None:
    file = tmp_path / "meter.csv"
    rows = [changed.get(at, row) for at, row in enumerate(ROWS)]
    file.write_text("\n".join([head, *rows]), "utf-8")
    with pytest.raises(UsageError, match=re.escape(sentence)):
        power.read(file)


def test_a_trace_needs_one_current(tmp_path: Path) -> None:
    file = tmp_path / "meter.csv"
    file.write_text("time_s,voltage_v\n0,3.7\n", "utf-8")
    with pytest.raises(UsageError, match="one column of current"):
        power.read(file)


def test_a_trace_of_the_captures_own_clock(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    capture, meter = tmp_path / "capture.pcap", tmp_path / "meter.csv"
    capture.write_bytes(pcap())
    meter.write_text(power_meter(), "utf-8")
    trace = power.read(meter)
    words = ["network", "traffic", str(capture), "--radio", "lte", "--power", str(meter)]
    assert command_line.main([*words, "--json"]) == 0
    (traffic,) = json.loads(capsys.readouterr().out)["traffic"]
    (compared,) = traffic["power"]
    # 0.4 W all the time.
    measured_j = sum(state["measured_j"] for state in compared["states"])
    assert measured_j == pytest.approx(0.4 * (trace.times_s[-1] - trace.times_s[0]))
    assert command_line.main(words) == 0
    assert "measured above sleep" in capsys.readouterr().out
    assert command_line.main([*words, "--power-start", "1e6"]) == 2
    told = capsys.readouterr().err
    assert "after the first packet, and the traffic lasts" in told
    assert told.count("\n") == 1
    assert command_line.main([*words[:5], "--power-start", "1"]) == 2
    assert "--power-start needs a trace" in capsys.readouterr().err
