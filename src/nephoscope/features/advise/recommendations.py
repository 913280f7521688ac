"""Facts to know before a contract, and benchmarks to run, by class of application."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nephoscope.core import units
from nephoscope.features.advise.answers import Application
from nephoscope.features.advise.classes import ClassScore, upload_s
from nephoscope.report import wording
from nephoscope.stats.stragglers import harmonic_number

PARCEL_S = 48 * 3600.0
"""Assumed time from disk to disk of a parcel; an express service takes one to two days."""

INSTANCE_AVAILABILITY = 0.995
"""Availability that large providers promise for one instance (Amazon EC2, instance level)."""

_MONTH_S, _YEAR_S = 30 * 86_400, 365 * 86_400


@dataclass(frozen=True, slots=True)
class RecommendedBenchmark:
    """A command to run on a platform before choosing it, and what it tells."""

    command: str
    reason: str


_OF_CLASS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "data-intensive": (
        ("bench net.throughput", "time to upload and fetch the data"),
        ("bench disk.io", "sequential and random throughput of the storage"),
        ("bench disk.files", "creation and reading of many files"),
    ),
    "latency-sensitive": (
        ("bench net.rtt", "round-trip time, delay variation and loss, with percentiles"),
        ("bench cpu.gaps", "pauses of the CPU, which delay every answer"),
        ("isolate net_send", "what a neighbour that sends does to your network"),
        ("isolate disk_write", "what a neighbour that writes does to your disk"),
    ),
    "geo-distributed": (
        ("simulate geo SCENARIO --place", "the fewest sites that serve your users in time"),
        ("bench net.rtt", "round-trip time from each region of your users"),
    ),
    "mission-critical": (
        (
            "sla verdict CONTRACT EVENTS",
            "whether a promised availability was kept, with its credit",
        ),
        ("bench disk.sync", "durable writes"),
        ("balance --failure dies", "errors and recovery when a server dies"),
        ("bench net.rtt", "loss and its episodes"),
    ),
    "parallel": (
        ("bench net.collective", "what barriers and exchanges add to the slowest rank's work"),
        ("bench cpu.gaps", "pauses of the CPU: one paused node stops all"),
        ("bench net.rtt", "loss and delay variation, which delay every exchange"),
        ("isolate cpu", "what a busy neighbour takes from a node"),
    ),
    "general": (("survey", "CPU, memory, disk and network together"),),
}

_OF_RESOURCE: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cpu": (
        ("bench cpu.hash", "speed of the CPU by number of threads"),
        ("bench cpu.gaps", "share of the CPU that the hypervisor gives"),
        ("isolate cpu", "what a busy neighbour takes from you"),
    ),
    "memory": (
        ("bench mem.stream", "memory bandwidth"),
        ("bench mem.latency", "memory latency"),
        ("isolate memory", "what a neighbour takes of the bandwidth"),
    ),
    "disk": (
        ("bench disk.io", "sequential and random throughput of the storage"),
        ("bench disk.sync", "durable writes"),
        ("isolate disk_write", "what a neighbour that writes does to your disk"),
    ),
    "network": (
        ("bench net.throughput", "throughput to your clients and between your nodes"),
        ("bench net.rtt", "round-trip time, delay variation and loss, with percentiles"),
        ("isolate net_send", "what a neighbour that sends does to your network"),
    ),
}

RESOURCES = tuple(_OF_RESOURCE)

_OF_KIND: Mapping[str, tuple[tuple[str, str], ...]] = {
    "voip": (("network voice FILE", "quality of calls over the path, by the E-model"),),
    "video-call": (("network series FILE", "delay, delay variation and loss of the path"),),
    "streaming": (("network traffic FILE", "bursts of the stream"),),
    "game": (("bench net.query", "answer time of a game server"),),
    "web": (("capacity URL", "the highest rate within the response time"),),
    "transactions": (
        ("bench db.pgbench", "transactions of a database"),
        ("capacity URL", "the highest rate within the response time"),
    ),
    "batch": (("bench sysbench.cpu", "work per second of the whole machine"),),
    "parallel": (
        ("bench net.collective", "what barriers and exchanges add to the slowest rank's work"),
    ),
}


def benchmarks(
    application: Application, scores: Sequence[ClassScore], resource: str | None
) -> tuple[RecommendedBenchmark, ...]:
    """Returns the benchmarks to run: of the kind, of the attached classes and of the resource."""
    attached = [entry.name for entry in scores if entry.attached] or ["general"]
    rows = list(_OF_KIND.get(application.kind or "", ()))
    rows += [row for name in attached for row in _OF_CLASS[name]]
    rows += _OF_RESOURCE.get(resource or "", ())
    if (application.nodes or 1) > 1:
        rows.append(("bench net.throughput", "throughput to your clients and between your nodes"))
    reasons = dict(reversed(rows))
    commands = dict.fromkeys(command for command, _ in rows)
    return tuple(RecommendedBenchmark(f"nephoscope {name}", reasons[name]) for name in commands)


def facts(application: Application, scores: Sequence[ClassScore]) -> tuple[str, ...]:
    """Returns what to know before a contract, one sentence each."""
    attached = {entry.name for entry in scores if entry.attached}
    sentences = [*_upload(application)]
    if "latency-sensitive" in attached:
        sentences.append(
            "Ask for limits of delay variation and loss, not of means; ask for dedicated or pinned "
            "CPUs: neighbours that use disk or network heavily delay your answers."
        )
    if "geo-distributed" in attached and application.users:
        region, share = max(application.users.items(), key=lambda item: item[1])
        sentences.append(
            f"One site in {region} is near {wording.percent(share, 3)} of your users; ask where "
            "data are placed and how they move."
        )
    if "mission-critical" in attached:
        sentences += _availability(application)
    if "parallel" in attached:
        sentences += _stragglers(application)
    return tuple(sentences)


def _upload(application: Application) -> Iterable[str]:
    upload = upload_s(application)
    if upload is None or application.link is None or application.turnaround is None:
        return
    verdict = "longer" if upload > application.turnaround else "not longer"
    yield (
        f"The upload takes {units.format_duration(upload)}, {verdict} than the "
        f"{units.format_duration(application.turnaround)} that it may take."
    )
    even = wording.bytes_text(PARCEL_S * application.link / 8)
    yield (
        f"A parcel with disks that takes {units.format_duration(PARCEL_S)} (our assumption) is "
        f"faster than this link from {even} on."
    )


def _stragglers(application: Application) -> Iterable[str]:
    yield (
        "Every step lasts as long as its slowest node: ask for instances of one CPU model, with "
        "dedicated CPUs, near each other in one zone."
    )
    if (application.nodes or 1) > 1:
        nodes = application.nodes or 1
        yield (
            f"Of {nodes:,} nodes with independent exponential delays the slowest has "
            f"{harmonic_number(nodes):.3g} times the mean delay; a pause that a node has in 1 % of "
            f"the steps stops all nodes in {wording.percent(1 - 0.99**nodes)} of them."
        )


def _availability(application: Application) -> Iterable[str]:
    yield (
        "Ask for availability and for durability, each with its credit; a credit is a part of the "
        "bill, not of your loss."
    )
    target = application.availability
    if target is None or target >= 1:
        return
    month, year = ((1 - target) * seconds for seconds in (_MONTH_S, _YEAR_S))
    yield (
        f"{100 * target:.7g} % allow an outage of {units.format_duration(month)} in 30 days, "
        f"{units.format_duration(year)} in a year."
    )
    if target > INSTANCE_AVAILABILITY:
        exact = math.log(1 - target) / math.log(1 - INSTANCE_AVAILABILITY)
        copies = math.ceil(exact - 1e-9)
        yield (
            f"It takes {copies} instances of {100 * INSTANCE_AVAILABILITY:g} %, each of which can "
            "do the whole work, if they fail independently; zones and software often do not."
        )
