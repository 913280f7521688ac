"""Round trip and throughput between machines of each pair of zones: the plan and its matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from nephoscope import catalog
from nephoscope.catalog.instruments import NET_RTT, NET_THROUGHPUT
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate, RunResult
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.targets.kinds.rented import RentedRecord

RTT, GOODPUT = "rtt_p50_ns", "goodput_bytes_per_s"
_UP, _DOWN = "up", "down"


@dataclass(frozen=True, slots=True)
class Distance:
    """What one pair of zones has. goodput: from `zone_a` to `zone_b`, and back; None where no trial
    of it is valid."""

    zone_a: str
    zone_b: str
    rtt: Estimate | None
    goodput: Estimate | None
    goodput_back: Estimate | None


def machines_of(record: RentedRecord) -> dict[str, str]:
    """Returns machine -> zone, in the order of the zones. Raises UsageError below two zones, and
    for several machines in one zone."""
    machines = {each.name: each.zone[0] for each in record.each()}
    zones = list(dict.fromkeys(machines.values()))
    if len(zones) < 2:
        raise UsageError(
            f"Distances need two zones or more, not {len(zones)}.",
            "Repeat --zone; `nephoscope cloud doctor` lists the zones of each region.",
        )
    if len(machines) > len(zones):
        raise UsageError(
            f"Distances are measured with one machine in each zone, not {len(machines)} in "
            f"{len(zones)}.",
            "Give one --type and one --image.",
        )
    return machines


def plan_of(record: RentedRecord, rounds: int, duration_s: float, **more: Any) -> Plan:
    """Returns the plan: a machine in each zone; of each pair the round trip and the throughput in
    both directions, all pairs in random order. more: further keys of the plan."""
    duration = f"{duration_s!r}s"
    entries: list[dict[str, Any]] = []
    for first, second in combinations(machines_of(record), 2):
        ends = {"on": [second], "peer": first, "timeout": f"{duration_s + 60!r}s"}
        entries.append(
            {"benchmark": NET_RTT, **ends, "params": {"rate_per_s": 200, "duration_ns": duration}}
        )
        entries += [
            {
                "benchmark": NET_THROUGHPUT,
                **ends,
                "params": {"duration_ns": duration, "direction": direction},
            }
            for direction in (_UP, _DOWN)
        ]
    values = {
        "name": "cloud-distances",
        "question": "How far are the zones from one another, in time and in throughput?",
        "targets": [record],
        "benchmarks": entries,
        "repeat": {"min": rounds, "max": rounds},
        "accept": ["throttled", "late_sends"],
        **more,
    }
    return from_values(values, catalog.load(), lambda _: "")


def matrix(result: RunResult, machines: Mapping[str, str]) -> list[Distance]:
    """Returns the distances of all pairs of zones."""

    def estimate_of(metric: str, target: str, peer: str, direction: str = "") -> Estimate | None:
        for line in result.metrics:
            own = line.factors
            # With two zones there is one peer, which is no factor then.
            ends = own.get("peer", peer), own.get("direction", direction)
            if (line.metric, line.target, *ends) == (metric, target, peer, direction):
                return line.estimate
        return None

    return [
        Distance(
            machines[first],
            machines[second],
            estimate_of(RTT, second, first),
            estimate_of(GOODPUT, second, first, _DOWN),
            estimate_of(GOODPUT, second, first, _UP),
        )
        for first, second in combinations(machines, 2)
    ]


def rows_of(distances: Sequence[Distance]) -> list[tuple[str, Estimate | None]]:
    """Returns each figure of the matrix with the words that say what it is."""
    return [
        row
        for pair in distances
        for row in (
            (f"{pair.zone_a} - {pair.zone_b}: round trip p50", pair.rtt),
            (f"{pair.zone_a} -> {pair.zone_b}: TCP goodput", pair.goodput),
            (f"{pair.zone_b} -> {pair.zone_a}: TCP goodput", pair.goodput_back),
        )
    ]
