"""Trials of `cpu.gaps` as looks: what scheduler inference reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from nephoscope.model import Sample
from nephoscope.scheduler.inference import Gap, Look, Loop
from nephoscope.scheduler.inference.verdict import Pairs

BENCHMARK = "cpu.gaps"

_SHARE = "cpu_share_ratio"
_HISTOGRAMS = ("run_length_ns", "gap_length_ns", "gap_period_ns")
_DEFAULTS = {"duration_ns": 1_000_000_000, "threshold_ns": 100_000, "busy_ns": 500_000_000}

Place = tuple[Any, int]


def look_of(
    target: str,
    trial: str,
    params: Mapping[str, Any],
    samples: Iterable[Sample],
    beside: Mapping[str, Any],
    *,
    machine_cpus: int | None = None,
    notes: Iterable[str] = (),
) -> Look:
    """The look of one trial.

    params: as the plan gave them. samples: all of the trial's; other metrics are passed over.
    beside: the machine's counters over the trial. machine_cpus: those that a process may use there.
    """
    values = {**_DEFAULTS, **{name: value for name, value in params.items() if value is not None}}
    sleep_ns = int(values.get("sleep_ns", 0))
    return Look(
        target=target,
        trial=trial,
        processes=int(values.get("processes_per_cpu", 1)),
        window_ns=int(values["duration_ns"]),
        loops=_loops(samples),
        sleep_ns=sleep_ns,
        every_ns=sleep_ns + int(values["busy_ns"]) if sleep_ns else 0,
        threshold_ns=int(values["threshold_ns"]),
        machine_cpus=machine_cpus,
        steal_ratio=_number(beside.get("steal_ratio")),
        psi_ratio=_number(beside.get("psi_cpu_some_ratio")),
        throttled_ratio=_number(beside.get("throttled_ratio")),
        throttled_count=_count(beside.get("throttled_count")),
        notes=tuple(notes),
    )


def _loops(samples: Iterable[Sample]) -> tuple[Loop, ...]:
    scalars: dict[Place, dict[str, float]] = defaultdict(dict)
    pairs: dict[tuple[Place, str], dict[float, int]] = defaultdict(lambda: defaultdict(int))
    gaps: dict[Place, list[Gap]] = defaultdict(list)
    sleeps: dict[Place, list[Gap]] = defaultdict(list)
    for sample in samples:
        if "cpu" not in sample.factors:
            continue
        place = (sample.factors["cpu"], int(sample.factors.get("process", 0)))
        if sample.metric == "gap_event_ns":
            cause = str(sample.factors.get("cause", "unexplained"))
            gaps[place].append(Gap(sample.at_ns, sample.value, cause))
        elif sample.metric == "sleep_event_ns":
            sleeps[place].append(Gap(sample.at_ns, sample.value, "slept"))
        elif sample.metric in _HISTOGRAMS:
            pairs[place, sample.metric][sample.value] += sample.count
        else:
            scalars[place][sample.metric] = sample.value

    def distribution(place: Place, metric: str) -> Pairs:
        return tuple(sorted(pairs[place, metric].items()))

    def in_order(found: list[Gap]) -> tuple[Gap, ...]:
        return tuple(sorted(found, key=lambda gap: gap.start_ns))

    return tuple(
        Loop(
            cpu=place[0] if isinstance(place[0], int) else None,
            process=place[1],
            share=scalars[place][_SHARE],
            cycles_share=scalars[place].get("cpu_share_cycles_ratio"),
            thread_cpu_ratio=scalars[place].get("thread_cpu_ratio"),
            look_cost_ns=scalars[place].get("look_cost_ns"),
            runs=distribution(place, "run_length_ns"),
            gap_lengths=distribution(place, "gap_length_ns"),
            periods=distribution(place, "gap_period_ns"),
            gaps=in_order(gaps[place]),
            sleeps=in_order(sleeps[place]),
        )
        for place in sorted(scalars, key=lambda place: (str(place[0]), place[1]))
        if _SHARE in scalars[place]
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) else None
