"""load.files against the kernel's account of its bytes and CPU time, and its set share of time."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from channel import controlled
from tests.attempts import attempt
from trials import run

LOAD = {"file_bytes": 8 << 20, "block_bytes": 1 << 20, "seed": 3}


@pytest.mark.truth("load.files", "load_bytes_per_s", "load_written_bytes_per_s")
@pytest.mark.truth("load.files", "load_read_bytes_per_s", "load_cpus")
@pytest.mark.parametrize("threads", [1, 2])
def test_the_load_moves_what_it_counts(disk: Path, threads: int) -> None:
    more = {"threads": threads, "duration_ns": 1_500_000_000, "directory": str(disk)}
    trial = run("load.files", {**LOAD, **more})
    seconds = 1.5
    written = trial.one("load_written_bytes_per_s")
    read = trial.one("load_read_bytes_per_s")
    assert trial.one("load_bytes_per_s") == pytest.approx(written + read)
    file_bytes, filled = 8 << 20, threads * (8 << 20)
    # The rates are over the set time. The trial ends later, by the last sync of each thread, in
    # which nothing moves but the file that is under way.
    slack = threads * file_bytes
    for rate, moved in ((written, trial.written_bytes - filled), (read, trial.read_bytes)):
        assert abs(rate * seconds - moved) <= slack + 0.05 * moved, (rate * seconds, moved)
    # Filling takes CPU time too: as much as writing the file once more.
    assert 0 <= trial.cpu_s / seconds - trial.one("load_cpus") <= 0.5 * trial.cpu_s / seconds
    # Whole rounds write as much as they read; a tenth for the time that the trial takes to end.
    assert abs(written - read) * seconds <= 1.1 * threads * file_bytes
    assert list(disk.iterdir()) == []


@pytest.mark.truth("load.files", "load_intensity_ratio", "interval_intensity_ratio")
def test_the_share_of_time_is_what_was_set(disk: Path) -> None:
    more = {"intensity_ratio": 0.4, "period_ns": 100_000_000, "duration_ns": 3_000_000_000}

    def measure() -> tuple[str, bool]:
        told = run("load.files", {**LOAD, **more, "directory": str(disk)})
        share = told.one("load_intensity_ratio")
        inner = told.series("interval_intensity_ratio")[1:-1]
        mean = sum(inner) / len(inner)
        # Three points: a sync of a file may end after the load's last period. An interval may have
        # more of one than of the other.
        held = abs(share - 0.4) <= 0.03 and abs(mean - 0.4) <= 0.06
        return f"{share:.3f}, {mean:.3f} by intervals", held

    attempt("a load of files at 0.4", measure)


@pytest.mark.truth("load.files", "interval_bytes_per_s", "interval_written_bytes_per_s")
@pytest.mark.truth("load.files", "interval_read_bytes_per_s", "load_bytes_per_s")
def test_the_load_ends_in_order_and_leaves_nothing(disk: Path) -> None:
    params = {**LOAD, "duration_ns": 0, "directory": str(disk)}
    with controlled("run", "load.files", params) as load:
        load.ready()
        load.say("go")
        time.sleep(0.6)
        load.say("stop")
        trial = load.trial()
    series = [s["value"] for s in trial.samples if s["metric"] == "interval_bytes_per_s"]
    parts = [
        [s["value"] for s in trial.samples if s["metric"] == f"interval_{word}_bytes_per_s"]
        for word in ("written", "read")
    ]
    assert len(series) >= 4
    assert series == pytest.approx([sum(pair) for pair in zip(*parts, strict=True)])
    # The intervals cover the time but for a last piece that is too short for a rate. One in which
    # the disk stalls is longer than the others.
    ends = [s["at_ns"] for s in trial.samples if s["metric"] == "interval_bytes_per_s"]
    lengths = [later - sooner for sooner, later in pairwise([0, *ends])]
    for name, values in (("", series), ("written_", parts[0]), ("read_", parts[1])):
        whole = trial.one(f"load_{name}bytes_per_s")
        total = sum(ns * value for ns, value in zip(lengths, values, strict=True))
        assert total / ends[-1] == pytest.approx(whole, rel=0.35), name
    assert list(disk.iterdir()) == []
