"""`sla watch`: probes services and keeps every event."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.commands import options, output
from nephoscope.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.targets.kinds.record import TargetRecord


@click.command()
@click.argument("services", nargs=-1, required=True, metavar="[NAME=]ADDRESS...")
@click.option(
    "-o",
    "--output",
    "to",
    type=options.PATH,
    required=True,
    metavar="FILE.csv",
    help="File to append the events to.",
)
@click.option(
    "--interval", metavar="TIME", default="60s", show_default=True, help="Time between probes."
)
@click.option(
    "--jitter",
    metavar="RATIO",
    default="10%",
    show_default=True,
    callback=options.ratio(0, 1),
    help="Random part of the interval by which each probe is later.",
)
@click.option(
    "--timeout", metavar="TIME", default="5s", show_default=True, help="Longest wait for an answer."
)
@click.option("--for", "duration", metavar="TIME", help="Duration [default: until interrupted].")
@click.option(
    "--from",
    "targets",
    multiple=True,
    metavar="[NAME=]TARGET",
    help="Host that probes the services, an observer of its own [default: local]; may be repeated.",
)
@click.option(
    "--observer", metavar="NAME", help="Name of this host as an observer [default: the host's]."
)
@click.option(
    "--control",
    metavar="ADDRESS",
    help="Address near each observer; while it fails too, failures are unknown.",
)
@click.option(
    "--metrics",
    type=options.PATH,
    metavar="FILE",
    help="File of counters for Prometheus (textfile collector).",
)
@click.option("--seed", type=options.SEEDS, metavar="N", help="Random seed of the schedule.")
@options.JSON
def watch(
    services: Sequence[str],
    to: Path,
    interval: str,
    jitter: float,
    timeout: str,
    duration: str | None,
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
    from nephoscope.sla import probes
    from nephoscope.sla.observers import Observer
    from nephoscope.sla.watch import EventFile, Schedule, Watch

    watched = [probes.service_of(text) for text in services]
    if len({service.name for service in watched}) < len(watched):
        raise UsageError("Two services have the same name.", "Use NAME=ADDRESS.")
    if control is not None:
        probes.request_of(control)
    records = _records(targets or ("local",), observer)
    schedule = Schedule(
        _seconds("--interval", interval),
        jitter,
        _seconds("--timeout", timeout),
        0.0 if duration is None else _seconds("--for", duration),
        seed,
    )
    observers = [Observer(name, record, output.log) for name, record in records.items()]
    watching = Watch(watched, schedule, observers, EventFile(to), to, control, metrics)
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
    from nephoscope.targets import kinds
    from nephoscope.targets.kinds.local import LocalRecord

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


def _seconds(option: str, text: str) -> float:
    seconds = options.seconds_of(option, text, (0.05, 30 * 86_400), "50 ms to 30 d")
    assert seconds is not None
    return seconds
