"""Trials of `cpu.gaps` as looks: what scheduler inference reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from nephoscope.model import Sample
from nephoscope.scheduler.inference import Gap, Look, Loop

BENCHMARK = "cpu.gaps"

_SHARE = "cpu_share_ratio"
_DURATION_NS = 1_000_000_000
"""Where the plan gives none."""

Place = tuple[Any, int]


def look_of(
    target: str,
    trial: str,
    params: Mapping[str, Any],
    samples: Iterable[Sample],
    beside: Mapping[str, Any],
    *,
    machine_cpus: int | None = None,
) -> Look:
    """The look of one trial.

    params: as the plan gave them. samples: all of the trial's; other metrics are passed over.
    beside: the machine's counters over the trial. machine_cpus: those that a process may use there.
    """
    settings = {name: value for name, value in params.items() if value is not None}
    return Look(
        target=target,
        trial=trial,
        processes=int(settings.get("processes_per_cpu", 1)),
        window_ns=int(settings.get("duration_ns", _DURATION_NS)),
        loops=_loops(samples),
        sleep_ns=int(settings.get("sleep_ns", 0)),
        machine_cpus=machine_cpus,
        steal_ratio=_number(beside.get("steal_ratio")),
        throttled_ratio=_number(beside.get("throttled_ratio")),
        throttled_count=_count(beside.get("throttled_count")),
    )


def _loops(samples: Iterable[Sample]) -> tuple[Loop, ...]:
    scalars: dict[Place, dict[str, float]] = defaultdict(dict)
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
        else:
            scalars[place][sample.metric] = sample.value

    def in_order(found: list[Gap]) -> tuple[Gap, ...]:
        return tuple(sorted(found, key=lambda gap: gap.start_ns))

    return tuple(
        Loop(
            cpu=place[0] if isinstance(place[0], int) else None,
            process=place[1],
            share=scalars[place][_SHARE],
            thread_cpu_ratio=scalars[place].get("thread_cpu_ratio"),
            look_cost_ns=scalars[place].get("look_cost_ns"),
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
