"""Distances between places, from the trials of a stored run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nephoscope.catalog.instruments import NET_RTT, NET_THROUGHPUT
from nephoscope.core.model import Estimate, MetricResult
from nephoscope.features.cloud.distance_records import (
    CloudDistances,
    PlaceDistance,
    PlacementEffect,
    PlacePrice,
    PlaceSpeed,
)
from nephoscope.features.cloud.distances import DOWN, UP
from nephoscope.features.cloud.places import labels_of
from nephoscope.measure.runs.rented_network import network_of
from nephoscope.measure.targets.kinds.rented import RentedRecord
from nephoscope.results.run_data import RunData
from nephoscope.stats.statistics.ratios import quotient

RTT, GOODPUT = "rtt_p50_ns", "goodput_bytes_per_s"
NONE = "none"


def analyse(data: RunData) -> CloudDistances | None:
    """Returns the distances of a run of `cloud distances`; None for any other."""
    plan = data.manifest.plan
    machines = {
        values["name"]: RentedRecord.model_validate(values)
        for values in plan.get("targets", ())
        if values.get("kind") == "rented"
    }
    entries = [
        (entry["on"][0], entry["peer"])
        for entry in plan.get("benchmarks", ())
        if entry.get("benchmark") == NET_RTT and entry.get("peer") and entry.get("on")
    ]
    pairs = [(first, second) for second, first in entries if {first, second} <= machines.keys()]
    if not pairs:
        return None
    labels = labels_of(machines.values())
    distances = tuple(
        _distance(data, machines[first], machines[second], labels) for first, second in pairs
    )
    return CloudDistances(
        tuple(dict.fromkeys(labels.values())),
        distances,
        tuple(_effects(distances)),
        tuple(_speeds(data.metrics, labels)),
        tuple(_prices(data, labels)),
    )


def _distance(
    data: RunData, first: RentedRecord, second: RentedRecord, labels: Mapping[str, str]
) -> PlaceDistance:
    def estimate_of(metric: str, direction: str = "") -> Estimate | None:
        for line in data.metrics:
            own = line.factors
            # With a single pair there is one peer, which is no factor then.
            ends = own.get("peer", first.name), own.get("direction", direction)
            wanted = (metric, second.name, first.name, direction)
            if (line.metric, line.target, *ends) == wanted:
                return line.estimate
        return None

    levels = {first.placement[0], second.placement[0]}
    distance = PlaceDistance(
        labels[first.name],
        labels[second.name],
        first.name,
        second.name,
        estimate_of(RTT),
        estimate_of(GOODPUT, DOWN),
        estimate_of(GOODPUT, UP),
        levels.pop() if labels[first.name] == labels[second.name] else "",
        "private" if network_of(first) == network_of(second) else "public",
    )
    if None in (distance.rtt, distance.goodput, distance.goodput_back):
        return replace(distance, missing=_reason(data, first.name, second.name))
    return distance


def _reason(data: RunData, first: str, second: str) -> str:
    """Returns why trials of a pair are not valid: the first reason of the latest one."""
    for record in reversed(data.records):
        of_pair = record.factors.get("peer", first) == first and record.key.target == second
        if of_pair and record.benchmark in (NET_RTT, NET_THROUGHPUT) and record.reasons:
            return record.reasons[0]
    return "No trial of it was measured."


def _effects(distances: Sequence[PlaceDistance]) -> Iterator[PlacementEffect]:
    without = {pair.place_a: pair for pair in distances if pair.placement == NONE}
    for pair in distances:
        base = without.get(pair.place_a)
        if pair.placement in ("", NONE) or base is None or base.rtt is None or pair.rtt is None:
            continue
        yield PlacementEffect(
            pair.place_a,
            pair.placement,
            base.rtt,
            pair.rtt,
            quotient([pair.rtt], [base.rtt], unit="ratio"),
            _goodput_ratio(pair, base),
        )


def _goodput_ratio(pair: PlaceDistance, base: PlaceDistance) -> Estimate | None:
    if pair.goodput is None or base.goodput is None:
        return None
    return quotient([pair.goodput], [base.goodput], unit="ratio")


def _speeds(lines: Sequence[MetricResult], labels: Mapping[str, str]) -> Iterator[PlaceSpeed]:
    for line in lines:
        is_speed = line.headline and line.benchmark not in (NET_RTT, NET_THROUGHPUT)
        if is_speed and line.target in labels and line.better in ("lower", "higher"):
            yield PlaceSpeed(
                labels[line.target],
                line.benchmark,
                line.metric,
                line.better == "lower",
                line.estimate,
            )


def _prices(data: RunData, labels: Mapping[str, str]) -> Iterator[PlacePrice]:
    rented: Mapping[str, Mapping[str, Any]] = data.manifest.rented
    for name, label in labels.items():
        known = rented.get(name, {})
        yield PlacePrice(
            label,
            known.get("per_hour"),
            known.get("per_gib_out"),
            known.get("currency", "USD"),
            known.get("per_gib_zones"),
        )
