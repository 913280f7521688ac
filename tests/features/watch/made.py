"""A clock that the test moves, a plan file, and a measuring step that stores real runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.store.factory import record

from nephoscope import catalog
from nephoscope.core.model import Sample, Setting
from nephoscope.features.watch.events import EventLog
from nephoscope.features.watch.records import Definition
from nephoscope.features.watch.repetition import Created, Measure, Repetition
from nephoscope.features.watch.schedule import Clock
from nephoscope.measure import plans
from nephoscope.store import FINISHED, MEASURED, Store

START_S = 1_790_000_100.0
"""A multiple of 300 s, so that schedules of whole minutes begin there."""
EVERY_S = 300.0

PLAN = """
version: 1
name: web
repeat: {min: 1, max: 1}
warmup: 0
targets: [TARGETS]
benchmarks: [{benchmark: "null", params: {value: VALUE}}]
"""

Sampler = Callable[[Setting, str, float], Sequence[Sample]]
"""Setting, target and moment of a run -> its samples."""


class FakeClock(Clock):
    """Moves when somebody waits. steps: (monotonic s, step in s) at which the wall is set."""

    def __init__(self, now_s: float = START_S, steps: Sequence[tuple[float, float]] = ()) -> None:
        self._wall_s = now_s
        self._monotonic_s = 0.0
        self._steps = list(steps)

    def now_s(self) -> float:
        return self._wall_s

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def wait(self, seconds: float) -> None:
        self._wall_s += seconds
        self._monotonic_s += seconds
        while self._steps and self._steps[0][0] <= self._monotonic_s:
            self._wall_s += self._steps.pop(0)[1]


class Said:
    """A screen that keeps what it was given."""

    piece_s = 10.0

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def say(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def waiting(self, next_s: float, log: EventLog) -> None:
        """Shows nothing."""


def plan_file(path: Path, targets: Sequence[str] = ("web",), value: float = 1.0) -> Path:
    listed = ", ".join(f"{{name: {name}, kind: local}}" for name in targets)
    path.write_text(PLAN.replace("TARGETS", listed).replace("VALUE", str(value)))
    return path


def definition(plan: Path, **more: object) -> Definition:
    values = {"name": "web", "plan": str(plan), "every_s": EVERY_S, **more}
    return Definition(**values)  # type: ignore[arg-type]


def one_value(setting: Setting, target: str, at_s: float) -> Sequence[Sample]:
    return [Sample("null_ns", 100.0)]


def measuring(
    clock: Clock,
    *,
    takes_s: float = 10.0,
    sampler: Sampler = one_value,
    lost: Mapping[str, str] | None = None,
    before_finish: Callable[[], None] = lambda: None,
) -> Measure:
    """Returns a step that stores a run with one trial on each target that is not lost."""

    def measure(
        plan: plans.Plan,
        store: Store,
        labels: Mapping[str, str],
        absent: Mapping[str, str],
        created: Created,
    ) -> Repetition:
        known = catalog.load()
        settings = plans.expand(plan, known)
        run = store.create(plan, 7, catalog=known, settings=settings, labels=labels)
        created(run.id)
        at_s = clock.now_s()
        gone = {**absent, **(lost or {})}
        trials = []
        for setting in settings:
            spec = known.benchmark(setting.benchmark)
            for target in setting.targets:
                if target in gone:
                    continue
                trial = record(setting, 1, len(trials), target, started_at=at_s, counters={})
                trials.append((trial, sampler(setting, target, at_s), spec, ()))
        run.append_together(trials)
        run.update(started_at=at_s)
        before_finish()
        clock.wait(takes_s)
        run.finish(MEASURED)
        run.finish(FINISHED)
        return Repetition(run.id, "fine", gone)

    return measure
