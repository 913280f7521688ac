"""Options of `nephoscope watch`, and the words by which a unit repeats them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nephoscope.cli.kit import options
from nephoscope.cli.kit.options import FILE, Checked, Count, argument, duration, flag, option, ratio
from nephoscope.features.compaction.command import AGE, SIZE

_NOT_IN_UNIT = {"install", "uninstall", "list_all", "scope", "as_json", "plan", "store", "name"}


if TYPE_CHECKING:
    from nephoscope.features.watch.alarms import AlarmAction
    from nephoscope.features.watch.unit import Scope

_ALARM_EVERY = Checked("TIME", duration("0 s", "366 d").read)
EVERY = Checked("TIME", duration("1 s", "30 d").read)


@dataclass(frozen=True, slots=True)
class WatchArguments:
    """Arguments of `nephoscope watch`."""

    plan: Path | None = argument(options.PATH, required=False)
    every: str | None = option("--every", EVERY, "Interval between starts, e.g. 5min.")
    cron: str | None = option(
        "--cron", "EXPR", "Cron expression of the starts, instead of --every."
    )
    time_zone: str = option(
        "--time-zone", "NAME", "Time zone of --cron, e.g. Europe/Berlin.", default="UTC"
    )
    jitter: float = option(
        "--jitter",
        ratio(0, 1),
        "Largest random delay of a start, as a share of the interval.",
        default="10%",
    )
    name: str | None = option("--name", "NAME", "Name of the watch [default: the plan's].")
    repetitions: int | None = option(
        "--runs", Count(1, 10**9), "Number of starts, then end [default: until interrupted]."
    )
    max_runs: int = option(
        "--max-runs",
        Count(1, 1000),
        "Maximum number of runs at once of all watches in the store.",
        default=1,
    )
    max_share: float = option(
        "--max-share",
        ratio(0.0001, 1),
        "Maximum share of time that is spent measuring.",
        default="100%",
    )
    keep_raw: str = option(
        "--keep-raw",
        AGE,
        "Age of a run at which its trials are merged into its day file.",
        default="7d",
    )
    keep: str = option("--keep", AGE, "Age at which a day file is removed.", default="2y")
    max_size: str | None = option(
        "--max-size", SIZE, "Size of the day files, beyond which the oldest is removed."
    )
    listen: str | None = option(
        "--listen",
        "[ADDRESS:]PORT",
        "Serve OpenMetrics at /metrics; beyond loopback a token is required.",
    )
    token_file: Path | None = option("--token-file", FILE, "File of the token for --listen.")
    otlp: str | None = option("--otlp", "URL", "OTLP/HTTP receiver to which metrics are sent.")
    otlp_headers: Path | None = option(
        "--otlp-headers",
        FILE,
        "File of HTTP headers for --otlp [default: $OTEL_EXPORTER_OTLP_HEADERS].",
    )
    on_alarm: str | None = option(
        "--on-alarm",
        "COMMAND",
        "Command for each warning, failed target and failed repetition, without a shell; it gets "
        "the finding as JSON on standard input.",
    )
    alarm_every: str = option(
        "--alarm-every",
        _ALARM_EVERY,
        "Least time between two calls of --on-alarm for the same finding or target.",
        default="1h",
    )
    digest: str | None = option(
        "--digest",
        "COMMAND",
        "Command that gets the digest of each day (UTC) as JSON on standard input.",
    )
    values: Mapping[str, str] = options.SETS
    labels: Mapping[str, str] = options.LABELS
    install: bool = flag("--install", "Write a systemd unit of this watch; run nothing.")
    uninstall: str | None = option("--uninstall", "NAME", "Remove the systemd unit of a watch.")
    scope: Scope | None = option(
        "--scope",
        click.Choice(["user", "system"]),
        "systemd manager of the unit [default: system for root, else user].",
    )
    list_all: bool = flag("--list", "Print the watches of the store.")
    store: Path | None = options.STORE
    as_json: bool = options.JSON


def alarm_action(args: WatchArguments) -> AlarmAction | None:
    """Returns what --on-alarm asks for. UsageError where its command cannot be started."""
    from nephoscope.features.watch.alarms import action_of

    if args.on_alarm is None:
        return None
    return action_of(args.on_alarm, _ALARM_EVERY.read(args.alarm_every))


def digest_action(args: WatchArguments) -> AlarmAction | None:
    """Returns what --digest asks for. UsageError where its command cannot be started."""
    from nephoscope.features.watch.alarms import action_of

    return None if args.digest is None else action_of(args.digest, 0.0, "--digest")


def repeated_options(context: click.Context) -> Iterator[str]:
    """Yields the options of this command line that the unit repeats, with absolute paths."""
    for parameter in context.command.params:
        name = str(parameter.name)
        if name in _NOT_IN_UNIT or not isinstance(parameter, click.Option):
            continue
        long = next(text for text in parameter.opts if text.startswith("--"))
        if name == "values":
            yield from (f"{long}={key}={value}" for key, value in context.params[name].items())
        elif long == "--label":
            yield from (f"{long}={key}={value}" for key, value in options.given_labels().items())
        elif context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            yield f"{long}={_text(context.params[name])}"


def _text(value: Any) -> str:
    if isinstance(value, Path):
        return str(value.absolute())
    return f"{value:.12g}" if isinstance(value, float) else str(value)
