"""`sla watch`: probes services and keeps every event."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.options import (
    CSV_FILE,
    FILE,
    SEEDS,
    argument,
    duration,
    option,
    ratio,
    repeated,
)
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.measure.targets.kinds.record import TargetRecord

_TIME = duration("50 ms", "30 d")


@dataclass(frozen=True, slots=True)
class ServiceWatchArguments:
    """Arguments of `nephoscope sla watch`."""

    services: Sequence[str] = argument(nargs=-1, required=True, metavar="[NAME=]ADDRESS...")
    to: Path = option("-o --output", CSV_FILE, "File to append the events to.", required=True)
    interval_s: float = option("--interval", _TIME, "Time between probes.", default="60s")
    jitter: float = option(
        "--jitter",
        ratio(0, 1),
        "Largest random delay of a probe, as a share of the interval.",
        default="10%",
    )
    timeout_s: float = option("--timeout", _TIME, "Longest wait for a response.", default="5s")
    duration_s: float | None = option("--for", _TIME, "Duration [default: until interrupted].")
    targets: Sequence[str] = repeated(
        "--from",
        "[NAME=]TARGET",
        "Host that probes the services, an observer of its own [default: local].",
    )
    observer: str | None = option(
        "--observer", "NAME", "Name of this host as an observer [default: its host name]."
    )
    control: str | None = option(
        "--control",
        "ADDRESS",
        "Address near each observer; while its probes fail too, failures count as unknown.",
    )
    metrics: Path | None = option(
        "--metrics", FILE, "File of counters for Prometheus (textfile collector)."
    )
    seed: int | None = option("--seed", SEEDS, "Random seed of the schedule.")
    as_json: bool = options.JSON


@command(
    prints=Document("watch", ".features.sla.watch:WatchResult"),
    requests=Excluded("measures services"),
    examples=(
        "web=https://shop.example/ -o events.csv --interval 60s",
        "web=https://shop.example/ -o events.csv --from local --from us=ssh:probe@10.8.0.4",
    ),
)
def watch(args: ServiceWatchArguments) -> int:
    """Probe services on a fixed schedule and keep every event.

    ADDRESS is http://HOST/, https://HOST/, tcp://HOST:PORT, icmp://HOST, dns://SERVER/NAME or
    script:COMMAND. TARGET is local, ssh:[user@]host[:port] or lab:LAB/HOST; what several observers
    see is a vote in `sla verdict`, so that the broken network of one is no outage.
    """
    from nephoscope.features.sla import probes
    from nephoscope.features.sla.observers import ServiceObserver
    from nephoscope.features.sla.watch import EventFile, ProbeSchedule, ServiceWatch

    watched = [probes.service_of(text) for text in args.services]
    if len({service.name for service in watched}) < len(watched):
        raise UsageError("Two services have the same name.", "Use NAME=ADDRESS.")
    if args.control is not None:
        probes.request_of(args.control)
    records = _records(args.targets or ("local",), args.observer)
    schedule = ProbeSchedule(
        args.interval_s, args.jitter, args.timeout_s, args.duration_s or 0.0, args.seed
    )
    observers = [ServiceObserver(name, record, output.log) for name, record in records.items()]
    watching = ServiceWatch(
        watched, schedule, observers, EventFile(args.to), args.to, args.control, args.metrics
    )
    outcome = asyncio.run(watching.run())
    if args.as_json:
        output.document(outcome)
        return 0
    output.paragraph(
        f"{outcome.file}: {outcome.events} events appended, {outcome.failed} failed, "
        f"{outcome.unknown} unknown."
    )
    for seen in outcome.observers if len(observers) > 1 else ():
        output.say(
            f"  {seen.name}: {seen.events} events, {seen.failed} failed, {seen.unknown} unknown, "
            f"connection lost: {seen.losses}."
        )
    return 0


def _records(texts: Sequence[str], here: str | None) -> dict[str, TargetRecord]:
    """Returns the targets by the names of the observers. here: that of this machine."""
    from nephoscope.measure.targets import kinds
    from nephoscope.measure.targets.kinds.local import LocalRecord

    records: dict[str, TargetRecord] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        record = kinds.parse(rest if equals else text)
        traits = record.traits()
        if traits.simulated:
            raise UsageError(
                f"--from {text}: a simulated machine probes no services.",
                "Use local, ssh:HOST or lab:LAB/HOST.",
            )
        if not equals:
            is_here = isinstance(record, LocalRecord)
            name = (here or socket.gethostname()) if is_here else record.name
        if not name or len(name) > 100 or any(ord(c) < 32 or c in '",' for c in name):
            raise UsageError(
                f"'{name[:100]}' is no name of an observer: it is empty, longer than 100 "
                "characters, or has commas, quotes or control characters.",
                "Use a plain name.",
            )
        if name in records:
            raise UsageError(f"Two observers have the name '{name}'.", "Use NAME=TARGET.")
        records[name] = record
    if here is not None and here not in records:
        raise UsageError(
            "--observer names this host, and no --from is local.", "Use --from NAME=TARGET."
        )
    return records
