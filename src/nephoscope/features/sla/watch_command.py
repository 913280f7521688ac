"""`sla watch`: probes services and keeps every event."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.options import CSV_FILE, FILE, SEEDS, duration, option, ratio, repeated
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.measure.targets.kinds.record import TargetRecord

_TIME = duration("50 ms", "30 d")


@click.command()
@click.argument("services", nargs=-1, required=True, metavar="[NAME=]ADDRESS...")
@option("-o --output to", CSV_FILE, "File to append the events to.", required=True)
@option("--interval interval_s", _TIME, "Time between probes.", default="60s")
@option(
    "--jitter",
    ratio(0, 1),
    "Largest random delay of a probe, as a share of the interval.",
    default="10%",
)
@option("--timeout timeout_s", _TIME, "Longest wait for a response.", default="5s")
@option("--for duration_s", _TIME, "Duration [default: until interrupted].")
@repeated(
    "--from targets",
    "[NAME=]TARGET",
    "Host that probes the services, an observer of its own [default: local].",
)
@option("--observer", "NAME", "Name of this host as an observer [default: its host name].")
@option(
    "--control",
    "ADDRESS",
    "Address near each observer; while its probes fail too, failures count as unknown.",
)
@option("--metrics", FILE, "File of counters for Prometheus (textfile collector).")
@option("--seed", SEEDS, "Random seed of the schedule.")
@options.JSON
def watch(
    services: Sequence[str],
    to: Path,
    interval_s: float,
    jitter: float,
    timeout_s: float,
    duration_s: float | None,
    targets: Sequence[str],
    observer: str | None,
    control: str | None,
    metrics: Path | None,
    seed: int | None,
    as_json: bool,
) -> int:
    """Probe services on a fixed schedule and keep every event.

    ADDRESS is http://HOST/, https://HOST/, tcp://HOST:PORT, icmp://HOST, dns://SERVER/NAME or
    script:COMMAND. TARGET is local, ssh:[user@]host[:port] or lab:LAB/HOST; what several observers
    see is a vote in `sla verdict`, so that the broken network of one is no outage.
    """
    from nephoscope.features.sla import probes
    from nephoscope.features.sla.observers import ServiceObserver
    from nephoscope.features.sla.watch import EventFile, ProbeSchedule, ServiceWatch

    watched = [probes.service_of(text) for text in services]
    if len({service.name for service in watched}) < len(watched):
        raise UsageError("Two services have the same name.", "Use NAME=ADDRESS.")
    if control is not None:
        probes.request_of(control)
    records = _records(targets or ("local",), observer)
    schedule = ProbeSchedule(interval_s, jitter, timeout_s, duration_s or 0.0, seed)
    observers = [ServiceObserver(name, record, output.log) for name, record in records.items()]
    watching = ServiceWatch(watched, schedule, observers, EventFile(to), to, control, metrics)
    outcome = asyncio.run(watching.run())
    if as_json:
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
