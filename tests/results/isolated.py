"""Runs of victims beside loads whose every sample the test sets: the truth of isolation."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.store.factory import record

from nephoscope import catalog
from nephoscope.core.model import Sample, Setting, TrialKey, TrialRecord, TrialStatus
from nephoscope.measure import plans
from nephoscope.measure.plans.files.load import from_text
from nephoscope.store import FINISHED, Store, StoredRun
from nephoscope.store.trialfile import AuxiliarySamples

PLAN = """
name: iso
targets:
  - {name: victim, roles: [victim]}
  - {name: neighbour-1, roles: [aggressor]}
benchmarks:
  - {benchmark: mem.stream, on: victim, headline: [stream_bytes_per_s]}
  - {benchmark: disk.sync, on: victim, headline: [sync_latency_ns]}
backgrounds:
  - {name: cpu, benchmark: load.cpu, on: aggressor, params: {threads: 1}}
  - {name: memory, benchmark: load.memory, on: aggressor, params: {threads: 1}}
  - {name: idle, benchmark: load.cpu, on: aggressor, params: {threads: 1, intensity_ratio: 0.0}}
factors:
  resource: {path: backgrounds, levels: [none, cpu, memory, idle]}
  intensity: {path: "backgrounds.*.params.intensity_ratio", levels: INTENSITIES}
design: {around: AROUND, baseline: {resource: none}, exclude: EXCLUDE}
repeat: {min: 10, max: 10}
"""

REACHED = 0.8
"""What the made loads reach of what is asked."""

Factor = Callable[[str, str, float], float]
"""(benchmark, resource, intensity) -> true interference factor."""


def memory_hurts_stream(benchmark: str, resource: str, intensity: float) -> float:
    """Memory load costs mem.stream up to half, CPU load costs disk.sync nothing."""
    if benchmark == "mem.stream":
        return 1 + intensity * {"memory": 1.0, "cpu": 0.1}.get(resource, 0.0)
    return 1.0


@dataclass(frozen=True)
class Truth:
    """What the samples are made from. after: how much worse quiet is after a loaded trial than
    before it. drift: growth of the quiet over the whole run. steal: steal beside a memory load."""

    factor: Factor = memory_hurts_stream
    noise: float = 0.01
    after: float = 1.0
    drift: float = 1.0
    steal: float = 0.0
    others: float | None = 0.0
    rounds: int = 10
    seed: int = 1
    intensities: tuple[float, ...] = (0.25, 0.5, 1.0)
    around: bool = True
    lost: frozenset[str] = field(default_factory=frozenset)
    """Names of trials that do not count."""

    @property
    def plan(self) -> str:
        levels = "[" + ", ".join(map(str, self.intensities)) + "]"
        exclude = ", ".join(
            f"{{resource: idle, intensity: {level}}}" for level in self.intensities[:-1]
        )
        text = PLAN.replace("INTENSITIES", levels).replace("EXCLUDE", f"[{exclude}]")
        return text.replace("AROUND", str(self.around).lower())


def make(store: Path, truth: Truth) -> StoredRun:
    """A finished run in a store."""
    known = catalog.load()
    plan = from_text(truth.plan, "plan.yaml", {}, known)
    settings = plans.expand(plan, known)
    run = Store(store).create(plan, 7, catalog=known, settings=settings)
    rng = random.Random(truth.seed)
    quiet = plans.baseline_of(plan, settings)
    active = [(setting.index, target) for setting in settings for target in setting.targets]
    total = 0
    trials: list[
        tuple[TrialRecord, list[Sample], catalog.BenchmarkSpec, list[AuxiliarySamples]]
    ] = []
    for number in range(1, truth.rounds + 1):
        steps = plans.order_aba_round(7, number, active, quiet, {})
        total = total or len(steps) * truth.rounds
        level = math.exp(rng.gauss(0, 0.1))
        worn = 1.0
        for step in steps:
            position = len(trials)
            setting, target = settings[step.pair[0]], step.pair[1]
            key = TrialKey(number, setting.index, target, step.repeat_index)
            around = {}
            if step.baseline is not None:
                around = {
                    side: TrialKey(number, step.baseline[0], step.baseline[1], turn).name
                    for side, turn in (("before", step.before), ("after", step.after))
                }
            time = level * worn * truth.drift ** (position / total)
            load = setting.factors["resource"]
            if load != "none":
                worn *= truth.after
                time *= truth.factor(
                    setting.benchmark, str(load), float(setting.factors["intensity"])
                )
            record = _record(key, setting, around, position, truth)
            spec = known.benchmark(setting.benchmark)
            samples = _samples(setting, time, truth.noise, rng)
            trials.append((record, samples, spec, _auxiliary(setting, known, rng)))
    run.store_all(trials)
    run.update(fingerprints={})
    run.finish(FINISHED)
    return run


def _record(
    key: TrialKey, setting: Setting, around: Mapping[str, str], position: int, truth: Truth
) -> TrialRecord:
    lost = key.name in truth.lost
    counters: dict[str, Any] = {"steal_ratio": 0.0, "throttled_ratio": 0.0}
    if truth.others is not None:
        counters |= {"others_busy_cpus": truth.others, "others_io_bytes_per_s": 0.0}
    if setting.factors["resource"] == "memory":
        counters["steal_ratio"] = truth.steal
    return record(
        setting,
        key.round,
        position,
        key=key,
        status=TrialStatus.INVALID if lost else TrialStatus.VALID,
        reasons=("the test says so",) if lost else (),
        started_at=1000.0 + position,
        counters=counters,
        around=around,
    )


def _samples(setting: Setting, time: float, noise: float, rng: random.Random) -> list[Sample]:
    own = time * math.exp(rng.gauss(0, noise))
    if setting.benchmark == "mem.stream":
        fixed = {"kernel": "triad", "type": "double", "threads": 1}
        return [Sample("stream_bytes_per_s", 1e10 / own, factors=fixed)]
    samples = [Sample("syncs_per_s", 1000 / own)]
    # 100 requests a trial: p50 at the trial's own time, one in twenty four times as long.
    for share, count in ((0.9, 40), (1.0, 35), (1.1, 20), (4.0, 5)):
        value = round(1e6 * own * share * math.exp(rng.gauss(0, noise)))
        samples.append(Sample("sync_latency_ns", float(value), count))
    return samples


def _auxiliary(
    setting: Setting, known: catalog.Catalog, rng: random.Random
) -> list[AuxiliarySamples]:
    out = []
    for load in setting.backgrounds:
        reached = REACHED * float(setting.factors["intensity"]) * math.exp(rng.gauss(0, 0.01))
        if load.name == "idle":
            reached = 0.0
        spec = known.benchmark(load.benchmark)
        samples = [Sample("load_intensity_ratio", reached)]
        out += [
            AuxiliarySamples(spec, target, {"load": load.name}, samples) for target in load.targets
        ]
    return out
