"""Round trip and throughput between rented machines of each pair of places: the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from nephoscope import catalog
from nephoscope.catalog.instruments import NET_RTT, NET_THROUGHPUT
from nephoscope.core.errors import UsageError
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.runs.rented_network import are_other_zones, network_of
from nephoscope.measure.targets.kinds.rented import RentedRecord

PLAN = "cloud-distances"
UP, DOWN = "up", "down"

TRANSFER_BYTES, ZONES_BYTES = 16_000_000, 256_000_000
"""Carried by a trial of throughput between regions or clouds, and between zones of a region, where
the user says nothing else. The latter takes a fifth of a second at 10 Gbit/s, of which slow start
is a few round trips."""

_SLOW_BYTES_PER_S, _SLOW_ZONES_BYTES_PER_S = 4e6, 4e7
"""Slowest throughputs that the default time limits count with, out of and within a region."""
_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class DistanceRequest:
    """What is measured. records: of places, each of which may stand for several machines.
    transfer_bytes: carried by a trial of throughput; None for `duration_s` instead. benchmarks:
    measured at each place too."""

    records: Sequence[RentedRecord]
    rounds: int
    duration_s: float
    transfer_bytes: int | None = None
    streams: int = 1
    benchmarks: Sequence[str] = ()

    @property
    def machines(self) -> list[RentedRecord]:
        """The machines, in the order of the places."""
        return [machine for record in self.records for machine in record.each()]

    @property
    def has_placements(self) -> bool:
        """Whether kinds of placement are compared, within each place."""
        return any(record.count > 1 for record in self.records)

    def carried_bytes(self, first: RentedRecord, second: RentedRecord) -> int | None:
        """Bytes of a trial of throughput between two machines; None where it takes a set time.

        Between networks and between zones traffic is billed, so that what it costs has to be known
        before.
        """
        if self.transfer_bytes is not None:
            return self.transfer_bytes
        if network_of(first) != network_of(second):
            return TRANSFER_BYTES
        is_free = first.per_gib_zones == 0 == second.per_gib_zones
        return ZONES_BYTES if are_other_zones(first, second) and not is_free else None

    def trial_s(self, first: RentedRecord, second: RentedRecord) -> float:
        """Longest time of one trial between two machines that is counted with."""
        is_near = network_of(first) == network_of(second)
        slow_bytes_per_s = _SLOW_ZONES_BYTES_PER_S if is_near else _SLOW_BYTES_PER_S
        return max(self.duration_s, (self.carried_bytes(first, second) or 0) / slow_bytes_per_s)


def pairs_of(request: DistanceRequest) -> list[tuple[RentedRecord, RentedRecord]]:
    """Returns the machines of each pair that is measured. Raises UsageError for too few places, and
    for several machines in one place."""
    machines = request.machines
    if request.has_placements:
        return list(pairwise(machines))[::2]
    places = list(dict.fromkeys((*network_of(each), each.zone[0]) for each in machines))
    if len(places) < 2:
        raise UsageError(
            f"Distances need two places or more, not {len(places)}.",
            "Repeat --zone or --place, or compare --placement within one; `nephoscope cloud "
            "doctor` lists the zones of each region.",
        )
    if len(machines) > len(places):
        raise UsageError(
            f"Distances are measured with one machine in each place, not {len(machines)} in "
            f"{len(places)}.",
            "Give one --type and one --image.",
        )
    return list(combinations(machines, 2))


def plan_of(request: DistanceRequest, **more: Any) -> Plan:
    """Returns the plan: of each pair the round trip and the throughput in both directions, all
    pairs in random order. more: further keys of the plan."""
    values = {
        "name": PLAN,
        "question": _question(request),
        "targets": list(request.records),
        "benchmarks": [*_entries(request)],
        "repeat": {"min": request.rounds, "max": request.rounds},
        "accept": ["throttled", "late_sends"],
        **more,
    }
    return from_values(values, catalog.load(), lambda _: "")


def _question(request: DistanceRequest) -> str:
    if request.has_placements:
        return "What does a placement group change between two machines of one place?"
    if any(record.zone[0] == "any" for record in request.records) or len(request.records) > 1:
        return "How far are the places from one another, in time and in throughput?"
    return "How far are the zones from one another, in time and in throughput?"


def _entries(request: DistanceRequest) -> Iterator[dict[str, Any]]:
    duration = f"{request.duration_s!r}s"
    for first, second in pairs_of(request):
        transfer_bytes = request.carried_bytes(first, second)
        flow: dict[str, Any] = {"duration_ns": duration}
        if transfer_bytes is not None:
            flow = {"transfer_bytes": transfer_bytes}
        if request.streams > 1:
            flow["streams"] = request.streams
        # A slower path fails its trial, and is named as missing.
        trial_s = request.trial_s(first, second)
        limit_s = trial_s * (1 if transfer_bytes is None else 4) + _LIMIT_S
        ends = {"on": [second.name], "peer": first.name, "timeout": f"{limit_s!r}s"}
        yield {
            "benchmark": NET_RTT,
            **ends,
            "params": {"rate_per_s": 200, "duration_ns": duration},
        }
        for direction in (UP, DOWN):
            yield {
                "benchmark": NET_THROUGHPUT,
                **ends,
                "params": {**flow, "direction": direction},
            }
    for benchmark in request.benchmarks:
        yield {"benchmark": benchmark, "on": [machine.name for machine in request.machines]}
