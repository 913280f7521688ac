"""A store whose percentiles are known: what `engine check` asks an engine about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nephoscope import catalog
from nephoscope.cli.kit import options
from nephoscope.core.model import Sample, Setting, TrialKey, TrialRecord, TrialStatus
from nephoscope.core.records import dataclass
from nephoscope.measure import plans
from nephoscope.store import FINISHED, Store, StoredRun
from nephoscope.store.trialfile import MeasuredTrial

TARGETS, ROUNDS = 4, 2
LEVELS, RUNS = 25, 6
_LATENCY, _SPEED = "null", "cpu.hash"
_START_S = 1_780_000_000.0
_HOUR_S = 3600.0
SERVICES, OBSERVERS, EVENT_FILES = 3, 2, 3
"""Of the events of service levels."""
_MOST_EVENTS = 43_200
"""Events of an observer: one for each minute of 30 days."""


@dataclass(slots=True)
class KnownStore:
    """A store, and every latency that its histograms of a target and a level count.

    events: files of events of services, in which the rows of an observer are not in order.
    """

    store: Store
    events: tuple[Path, ...] = ()
    latencies: dict[tuple[str, float], list[np.ndarray[Any, Any]]] = field(default_factory=dict)

    @property
    def runs(self) -> list[StoredRun]:
        """Returns the runs in their order."""
        return [StoredRun(self.store.runs_path / name) for name in self.store.ids()]

    def percentile(self, target: str, level: float, quantile: float) -> float:
        """Returns the value at the nearest rank among all latencies of a series."""
        every = np.sort(np.concatenate(self.latencies[target, level]))
        return float(every[max(1, int(np.ceil(quantile * every.size - 1e-9))) - 1])


def made(folder: Path, samples: int, levels: int = LEVELS, runs: int = RUNS) -> KnownStore:
    """Returns a new store in a folder. samples: of the histograms, at least so many. levels: of a
    factor, each a series on each target. runs: with histograms; one more has speeds."""
    known = KnownStore(Store(folder))
    rng = np.random.default_rng(1)
    targets = options.targets([f"ssh:host{number}" for number in range(TARGETS)])
    values = [float(level) for level in range(1, levels + 1)]
    plan = plans.single(
        _LATENCY, {"value": repr(values)}, targets, budget_s=None, seed=1, rounds=ROUNDS
    )
    of_trial = -(-samples // (TARGETS * levels * runs * ROUNDS))
    benchmarks = catalog.load()
    for number in range(runs):
        settings = plans.expand(plan, benchmarks)
        run = known.store.create(plan, number, catalog=benchmarks, settings=settings)
        names = run.manifest.target_names
        _finish(run, number, list(_latencies(known, settings, names, rng, of_trial)), names)
    speed = plans.single(_SPEED, {}, targets, budget_s=None, seed=1, rounds=ROUNDS)
    settings = plans.expand(speed, benchmarks)
    run = known.store.create(speed, runs, catalog=benchmarks, settings=settings)
    names = run.manifest.target_names
    _finish(run, runs, list(_speeds(settings, names, rng)), names)
    count = min(_MOST_EVENTS, max(100, samples // 50))
    known.events = tuple(_event_files(folder / "events", count, rng))
    return known


def _latencies(
    known: KnownStore,
    settings: list[Setting],
    targets: tuple[str, ...],
    rng: np.random.Generator,
    samples: int,
) -> Iterator[MeasuredTrial]:
    spec = catalog.load().benchmark(_LATENCY)
    position = 0
    for number in range(1, ROUNDS + 1):
        for setting in settings:
            level = float(setting.factors["value"])
            for target in targets:
                drawn = np.floor(rng.lognormal(11 + 0.1 * level, 0.5, samples) / 256) * 256
                known.latencies.setdefault((target, level), []).append(drawn)
                values, counts = np.unique(drawn, return_counts=True)
                pairs = zip(values.tolist(), counts.tolist(), strict=True)
                rows = [Sample("null_latency_ns", value, count) for value, count in pairs]
                rows.append(Sample("null_ns", level * float(rng.lognormal(0, 0.01))))
                yield _record(setting, number, position, target), rows, spec, ()
                position += 1


def _speeds(
    settings: list[Setting], targets: tuple[str, ...], rng: np.random.Generator
) -> Iterator[MeasuredTrial]:
    spec = catalog.load().benchmark(_SPEED)
    metric = next(metric for metric in spec.metrics if metric.headline)
    position = 0
    for number in range(1, ROUNDS + 1):
        for setting in settings:
            for place, target in enumerate(targets):
                value = (1.5 if place else 1.0) * 1e9 * float(rng.lognormal(0, 0.01))
                rows = [Sample(metric.id, value)]
                yield _record(setting, number, position, target), rows, spec, ()
                position += 1


def _record(setting: Setting, number: int, position: int, target: str) -> TrialRecord:
    return TrialRecord(
        key=TrialKey(number, setting.index, target),
        benchmark=setting.benchmark,
        params=setting.params,
        factors=setting.factors,
        status=TrialStatus.VALID,
        reasons=(),
        position=position,
        started_at=_START_S,
        elapsed_ns=10,
        counters={"steal_ratio": 0.0},
    )


def _finish(
    run: StoredRun, number: int, trials: list[MeasuredTrial], targets: tuple[str, ...]
) -> None:
    run.store_all(trials)
    models = {
        target: {"cpu": {"model": f"Model {'A' if place else 'B'}"}}
        for place, target in enumerate(targets)
    }
    run.update(started_at=_START_S + _HOUR_S * number, fingerprints=models)
    run.finish(FINISHED)


def _event_files(folder: Path, count: int, rng: np.random.Generator) -> Iterator[Path]:
    """Writes files with the events of a minute each; each file has every third row of all."""
    folder.mkdir()
    names = [(service, observer) for service in range(SERVICES) for observer in range(OBSERVERS)]
    size = len(names) * count
    order = rng.permutation(size)
    response_ms = rng.lognormal(3.5, 0.8, size)
    columns = {
        "time": _START_S + 60 * np.tile(np.arange(count), len(names)) + rng.uniform(0, 50, size),
        "service": np.repeat([f"service{service}" for service, _ in names], count),
        "observer": np.repeat([f"observer{observer}" for _, observer in names], count),
        "ok": rng.random(size) > 0.01,
        "response_time_ms": response_ms,
    }
    for number in range(EVENT_FILES):
        rows = order[number::EVENT_FILES]
        path = folder / f"events-{number}.parquet"
        pq.write_table(pa.table({name: column[rows] for name, column in columns.items()}), path)
        yield path
