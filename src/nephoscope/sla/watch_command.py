"""`sla watch`: probes services and keeps every event."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path

import click

from nephoscope.commands import options, output
from nephoscope.errors import UsageError


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
@click.option("--observer", metavar="NAME", help="Name of this observer [default: the host's].")
@click.option(
    "--control",
    metavar="ADDRESS",
    help="Address near this host; while it fails too, failures are unknown.",
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
    observer: str | None,
    control: str | None,
    metrics: Path | None,
    seed: int | None,
    as_json: bool,
) -> int:
    """Probe services on a fixed schedule and keep every event.

    ADDRESS is http://HOST/, https://HOST/, tcp://HOST:PORT, icmp://HOST, dns://SERVER/NAME or
    script:COMMAND. Run it on several hosts, each with its own file; `sla verdict` lets them vote.
    """
    from nephoscope.sla import probes
    from nephoscope.sla.watch import EventFile, Schedule, Watch

    watched = [probes.service_of(text) for text in services]
    if len({service.name for service in watched}) < len(watched):
        raise UsageError("Two services have the same name.", "Use NAME=ADDRESS.")
    if control is not None:
        probes.check_address(control)
    name = (observer or socket.gethostname())[:100]
    if any(ord(c) < 32 or c in '",' for c in name):
        raise UsageError(
            "--observer has commas, quotes or control characters.", "Use a plain name."
        )
    schedule = Schedule(
        _seconds("--interval", interval),
        jitter,
        _seconds("--timeout", timeout),
        0.0 if duration is None else _seconds("--for", duration),
        seed,
    )
    watching = Watch(watched, schedule, name, EventFile(to), to, control, metrics)
    outcome = asyncio.run(watching.run())
    if as_json:
        output.document(outcome)
    else:
        output.say(
            f"{outcome.file}: {outcome.events} events appended, {outcome.failed} failed, "
            f"{outcome.unknown} unknown."
        )
    return 0


def _seconds(option: str, text: str) -> float:
    seconds = options.seconds_of(option, text, (0.05, 30 * 86_400), "50 ms to 30 d")
    assert seconds is not None
    return seconds
