"""A watch on a clock that runs faster, in a process of its own that tests kill.

`python -m tests.features.watch.month STORE PLAN DAYS RAW_DAYS`: repeats the plan until so many
simulated days are over, keeps trials for so many, and prints a line before each wait: events so
far, simulated days, bytes of its own memory.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from tests.features.watch.made import START_S, FakeClock, definition, measuring

from nephoscope.core.model import Sample, Setting
from nephoscope.features.compaction.compact import Policy, compact
from nephoscope.features.watch.events import EventLog, events
from nephoscope.features.watch.folder import WatchFolder
from nephoscope.features.watch.loop import Watch
from nephoscope.features.watch.records import Definition
from nephoscope.stats.statistics.values import Array
from nephoscope.store import Store

DAY_S = 86_400.0
EVERY_S = 600.0


class Over(Exception):
    """The simulated time is over."""


def defined(plan: Path) -> Definition:
    return definition(plan, every_s=EVERY_S, jitter=0.05)


def latencies(target: str, at_s: float, count: int = int(EVERY_S)) -> Array:
    """Nanoseconds that one probe a second observes: log-normal, whole, the same in any process."""
    seed = [int(target.removeprefix("t")), round(at_s * 1000)]
    return np.round(np.random.default_rng(seed).lognormal(13.0, 0.5, count))


def bucketed(values: Array) -> tuple[Array, Array]:
    """Returns values and counts as hdrhistogram stores three digits: middles of its buckets."""
    width = 2.0 ** np.maximum(0, np.floor(np.log2(values)) - 10)
    middles = np.floor(values / width) * width + np.floor(width / 2)
    distinct, counts = np.unique(middles, return_counts=True)
    return distinct, counts.astype(np.float64)


def probes(setting: Setting, target: str, at_s: float) -> Sequence[Sample]:
    values, counts = bucketed(latencies(target, at_s))
    return [
        Sample("null_latency_ns", value, int(count), at)
        for at, (value, count) in enumerate(zip(values.tolist(), counts.tolist(), strict=True))
    ]


class Lines:
    """A screen for another process."""

    piece_s = 60.0

    def __init__(self, clock: FakeClock, until_s: float) -> None:
        self._clock = clock
        self._until_s = until_s
        self._next_s = 0.0

    def say(self, sentence: str) -> None:
        """Shows nothing."""

    def waiting(self, next_s: float, log: EventLog) -> None:
        if next_s > self._until_s:
            raise Over
        if next_s != self._next_s:
            days = (self._clock.now_s() - START_S) / DAY_S
            sys.stdout.write(f"{sum(log.state.counts.values())} {days:.4f} {own_memory_bytes()}\n")
            sys.stdout.flush()
            self._next_s = next_s


def own_memory_bytes() -> int:
    """Anonymous pages in memory or swap. The kernel takes pages of programs away as it likes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(
        int(line.split()[1]) << 10 for line in lines if line.startswith(("RssAnon", "VmSwap"))
    )


def main(path: str, plan: str, days: str, raw_days: str) -> None:
    store = Store(path)
    limits = Policy(float(raw_days) * DAY_S, 730 * DAY_S, max_size_bytes=200_000_000)
    made = defined(Path(plan))
    folder = WatchFolder(store, made.name).events
    newest = max((str(event["at"]) for event in events(folder)), default="")
    clock = FakeClock(datetime.fromisoformat(newest).timestamp() + 1.0 if newest else START_S)
    watch = Watch(
        store,
        made,
        measuring(clock, takes_s=1.0, sampler=probes),
        Lines(clock, START_S + float(days) * DAY_S),
        clock=clock,
        retain=lambda: compact(store, limits, watch=made.name, now_s=clock.now_s()),
    )
    try:
        watch.run()
    except Over:
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
