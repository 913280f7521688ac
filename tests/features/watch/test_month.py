"""A watch of many days on a clock that runs faster: disk, memory, kills, and what is left of it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import theilslopes
from tests.features.watch.made import START_S, plan_file
from tests.features.watch.month import DAY_S, EVERY_S, defined, latencies

from nephoscope.features.watch.events import events, state_of
from nephoscope.features.watch.folder import WatchFolder
from nephoscope.features.watch.loop import schedule_of
from nephoscope.store import Store, day_files, query

ROOT = Path(__file__).resolve().parents[3]


class Month:
    """The store of a watch, and the process that fills it and keeps trials for `raw_days`."""

    def __init__(self, path: Path, targets: int, raw_days: float) -> None:
        self.raw_days = raw_days
        self.store = Store(path / "store")
        self.targets = [f"t{number}" for number in range(targets)]
        self.plan = plan_file(path / "plan.yaml", self.targets)
        self.folder = WatchFolder(self.store, "web")
        self.lines: list[tuple[int, float, int]] = []

    def run(self, days: float, kill: tuple[int, float] | None = None) -> None:
        """Runs until the day, or kills the process so many seconds after so many lines."""
        words = [
            sys.executable,
            "-m",
            "tests.features.watch.month",
            str(self.store.path),
            str(self.plan),
        ]
        process = subprocess.Popen(
            [*words, str(days), str(self.raw_days)], stdout=subprocess.PIPE, cwd=ROOT, text=True
        )
        assert process.stdout is not None
        with process, process.stdout:
            for number, line in enumerate(process.stdout, start=1):
                count, day, size = line.split()
                self.lines.append((int(count), float(day), int(size)))
                if kill is not None and number == kill[0]:
                    time.sleep(kill[1])
                    process.kill()
                    break
        assert process.returncode == (0 if kill is None else -signal.SIGKILL)

    def kill_and_restart(self, moments: Sequence[tuple[int, float]], days: float) -> None:
        """Kills the process at these moments; what it had reported is there each time."""
        for moment in moments:
            self.run(days, moment)
            known = sum(state_of(self.folder.events).counts.values())
            assert known >= self.lines[-1][0], "an event is lost"
        self.run(days)

    def check_events(self) -> None:
        """Every moment of the schedule is a repetition or a missed start; each has ended once."""
        kinds = Counter(str(event["event"]) for event in events(self.folder.events))
        begun = [
            e["due_s"] for e in events(self.folder.events) if e["event"] == "repetition_started"
        ]
        assert len(set(begun)) == len(begun), "a moment was used twice"
        assert kinds["repetition_ended"] + kinds["repetition_interrupted"] == len(begun)
        missed = state_of(self.folder.events).counts.get("starts_missed", 0)
        moments = schedule_of(defined(self.plan)).count(START_S, begun[-1])
        assert len(begun) + missed == pytest.approx(moments, abs=1)

    def runs(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Run -> target -> p99 as stored, and of the values that were observed."""
        problems: list[str] = []
        found: dict[str, dict[str, tuple[float, float]]] = {}
        kept = self.store.runs()
        for run in kept:
            rows = query.histograms(run)
            found[run.id] = {
                row.target: self._pair(row.target, run.manifest.started_at, row.values, row.counts)
                for row in rows
            }
        without = {run.id for run in kept}
        for one in day_files.summaries(self.store.path, problems, without=without):
            found[one.run] = {
                metric.target: self._pair(metric.target, one.started_s, *metric.histograms()[0])
                for metric in one.metrics
                if metric.metric == "null_latency_ns"
            }
        assert not problems
        return found

    def _pair(
        self, target: str, at_s: float, values: Sequence[float], counts: Sequence[int]
    ) -> tuple[float, float]:
        stored = np.quantile(np.repeat(values, counts), 0.99, method="inverted_cdf")
        observed = np.quantile(latencies(target, at_s), 0.99, method="inverted_cdf")
        return float(stored), float(observed)

    def check_percentiles(self) -> int:
        """Every p99 of every run is within the half bucket of three digits of the raw value.

        Returns their number.
        """
        ended = [e["run"] for e in events(self.folder.events) if e["event"] == "repetition_ended"]
        runs = self.runs()
        assert set(ended) <= runs.keys()
        pairs = [pair for run in ended for pair in runs[run].values()]
        assert len(pairs) == len(ended) * len(self.targets)
        stored, observed = np.array(pairs).T
        errors = np.abs(stored - observed) / observed
        assert np.all(errors <= 0.0005)
        assert np.any(errors > 0), "nothing was rounded: these are not the raw values"
        return len(pairs)

    @property
    def size_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.store.path.rglob("*") if path.is_file())


def test_three_hours_with_kills_lose_no_event_and_keep_their_percentiles(tmp_path: Path) -> None:
    month = Month(tmp_path, targets=2, raw_days=1 / 24)
    month.kill_and_restart([(2, 0.0), (4, 0.01)], days=1 / 8)
    month.check_events()
    assert month.check_percentiles() >= 2 * 12
    assert day_files.day_files(month.store.path, "web"), "nothing was compacted"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory: a kill loses nothing that was written, and syncing takes most of the time."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="nephoscope-month-", dir=memory) as made:
        yield Path(made)


@pytest.mark.slow
def test_thirty_days_of_ten_targets(folder: Path) -> None:
    """Ten kills in the first half, at random moments of repetitions and waits; the process that is
    left then runs through the second half, in which its memory is observed."""
    month = Month(folder, targets=10, raw_days=2)
    drawn = random.Random(17)
    half = int(15 * DAY_S / EVERY_S)
    ends = sorted(drawn.sample(range(1, half), 10))
    moments = [(b - a, drawn.uniform(0, 0.2)) for a, b in pairwise((0, *ends))]
    month.kill_and_restart(moments, days=30)
    month.check_events()
    pairs = month.check_percentiles()
    assert pairs >= 10 * 0.99 * 30 * DAY_S / EVERY_S
    assert month.size_bytes < 200_000_000
    first = next(e for e in events(month.folder.events) if e["event"] == "repetition_started")
    assert datetime.fromisoformat(str(first["at"])).timestamp() - START_S < 2 * EVERY_S
    kinds = Counter(str(event["event"]) for event in events(month.folder.events))
    # Values of one process that follow each other are alike: a day counts as one.
    days, sizes = np.array([line[1:] for line in month.lines if line[1] > 16]).T
    numbers = np.unique(np.floor(days))
    medians = [float(np.median(sizes[np.floor(days) == number])) for number in numbers]
    slope, _, low, high = theilslopes(medians, numbers, 0.95)
    sys.stdout.write(
        f"{pairs} percentiles of {kinds['repetition_ended']} repetitions; "
        f"{kinds['repetition_interrupted']} interrupted, {kinds['watch_started']} starts; "
        f"{month.size_bytes / 1e6:.1f} MB; memory {sizes.min() / 1e6:.1f} to "
        f"{sizes.max() / 1e6:.1f} MB, slope {slope:.0f} B/d [{low:.0f}, {high:.0f}], "
        f"n = {numbers.size} days with these medians: {medians}\n"
    )
    assert low <= 0 <= high
