"""Options of `nephoscope watch`, and the words by which a unit repeats them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from nephoscope.commands import options

_NOT_IN_UNIT = {"install", "uninstall", "list_all", "scope", "as_json", "plan", "store", "name"}


_OPTIONS = (
    click.option("--every", metavar="TIME", help="Interval between starts, e.g. 5min."),
    click.option(
        "--cron", metavar="EXPR", help="Cron expression of the starts, instead of --every."
    ),
    click.option(
        "--time-zone",
        default="UTC",
        show_default=True,
        metavar="NAME",
        help="Time zone of --cron, e.g. Europe/Berlin.",
    ),
    click.option(
        "--jitter",
        metavar="RATIO",
        default="10%",
        show_default=True,
        callback=options.ratio(0, 1),
        help="Random part of the interval by which each start is later.",
    ),
    click.option("--name", metavar="NAME", help="Name of the watch [default: the plan's]."),
    click.option(
        "--runs",
        "repetitions",
        type=click.IntRange(1, 10**9),
        metavar="N",
        help="Number of starts, then end [default: until interrupted].",
    ),
    click.option(
        "--max-runs",
        type=click.IntRange(1, 1000),
        default=1,
        show_default=True,
        metavar="N",
        help="Maximum number of runs at once of all watches in the store.",
    ),
    click.option(
        "--max-share",
        metavar="RATIO",
        default="100%",
        show_default=True,
        callback=options.ratio(0.0001, 1),
        help="Maximum share of time that is spent measuring.",
    ),
    click.option(
        "--keep-raw",
        metavar="TIME",
        default="7d",
        show_default=True,
        help="Age of a run at which its trials are merged into its day file.",
    ),
    click.option(
        "--keep",
        metavar="TIME",
        default="2y",
        show_default=True,
        help="Age at which a day file is removed.",
    ),
    click.option(
        "--max-size",
        metavar="SIZE",
        help="Size of the day files, beyond which the oldest is removed.",
    ),
    click.option(
        "--listen",
        metavar="[ADDRESS:]PORT",
        help="Serve OpenMetrics at /metrics; beyond loopback a token is required.",
    ),
    click.option(
        "--token-file", type=options.PATH, metavar="FILE", help="File of the token for --listen."
    ),
    click.option("--otlp", metavar="URL", help="OTLP/HTTP receiver to which metrics are sent."),
    click.option(
        "--otlp-headers",
        type=options.PATH,
        metavar="FILE",
        help="File of HTTP headers for --otlp [default: $OTEL_EXPORTER_OTLP_HEADERS].",
    ),
    options.SETS,
    options.LABELS,
    click.option(
        "--install", is_flag=True, help="Write a systemd unit of this watch, run nothing."
    ),
    click.option("--uninstall", metavar="NAME", help="Remove the systemd unit of a watch."),
    click.option(
        "--scope",
        type=click.Choice(["user", "system"]),
        help="Manager of the unit [default: system for root, else user].",
    ),
    click.option("--list", "list_all", is_flag=True, help="Print the watches of the store."),
    options.STORE,
    options.JSON,
)


def watch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to the command."""
    return options.add_options(command, _OPTIONS)


def repeated_options(context: click.Context) -> Iterator[str]:
    """Yields the options of this command line that the unit repeats, with absolute paths."""
    for option in context.command.params:
        name = str(option.name)
        if name in _NOT_IN_UNIT or not isinstance(option, click.Option):
            continue
        long = next(text for text in option.opts if text.startswith("--"))
        if name == "values":
            yield from (f"{long}={key}={value}" for key, value in context.params[name].items())
        elif name == "multiple_labels" or long == "--label":
            yield from (f"{long}={key}={value}" for key, value in options.given_labels().items())
        elif context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            yield f"{long}={_text(context.params[name])}"


def _text(value: Any) -> str:
    if isinstance(value, Path):
        return str(value.absolute())
    return f"{value:.12g}" if isinstance(value, float) else str(value)
