"""Options of `nephoscope watch`, and the words by which a unit repeats them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from nephoscope.cli.kit import options
from nephoscope.cli.kit.options import FILE, Checked, Count, duration, flag, option, ratio
from nephoscope.features.compaction.command import AGE, SIZE

_NOT_IN_UNIT = {"install", "uninstall", "list_all", "scope", "as_json", "plan", "store", "name"}


EVERY = Checked("TIME", duration("1 s", "30 d").read)

_OPTIONS = (
    option("--every", EVERY, "Interval between starts, e.g. 5min."),
    option("--cron", "EXPR", "Cron expression of the starts, instead of --every."),
    option("--time-zone", "NAME", "Time zone of --cron, e.g. Europe/Berlin.", default="UTC"),
    option(
        "--jitter",
        ratio(0, 1),
        "Largest random delay of a start, as a share of the interval.",
        default="10%",
    ),
    option("--name", "NAME", "Name of the watch [default: the plan's]."),
    option(
        "--runs repetitions",
        Count(1, 10**9),
        "Number of starts, then end [default: until interrupted].",
    ),
    option(
        "--max-runs",
        Count(1, 1000),
        "Maximum number of runs at once of all watches in the store.",
        default=1,
    ),
    option(
        "--max-share",
        ratio(0.0001, 1),
        "Maximum share of time that is spent measuring.",
        default="100%",
    ),
    option(
        "--keep-raw",
        AGE,
        "Age of a run at which its trials are merged into its day file.",
        default="7d",
    ),
    option("--keep", AGE, "Age at which a day file is removed.", default="2y"),
    option("--max-size", SIZE, "Size of the day files, beyond which the oldest is removed."),
    option(
        "--listen",
        "[ADDRESS:]PORT",
        "Serve OpenMetrics at /metrics; beyond loopback a token is required.",
    ),
    option("--token-file", FILE, "File of the token for --listen."),
    option("--otlp", "URL", "OTLP/HTTP receiver to which metrics are sent."),
    option(
        "--otlp-headers",
        FILE,
        "File of HTTP headers for --otlp [default: $OTEL_EXPORTER_OTLP_HEADERS].",
    ),
    options.SETS,
    options.LABELS,
    flag("--install", "Write a systemd unit of this watch; run nothing."),
    option("--uninstall", "NAME", "Remove the systemd unit of a watch."),
    option(
        "--scope",
        click.Choice(["user", "system"]),
        "systemd manager of the unit [default: system for root, else user].",
    ),
    flag("--list list_all", "Print the watches of the store."),
    options.STORE,
    options.JSON,
)


def watch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to the command."""
    return options.add_options(command, _OPTIONS)


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
