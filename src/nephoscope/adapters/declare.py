"""Declarations of adapters: what tools have in common in parameters, metrics and pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nephoscope.adapters.frame import (
    TOOL,
    Adapter,
    Command,
    Output,
    Server,
    ToolError,
    check_ending,
    last_words,
    version_by,
)
from nephoscope.adapters.reports import Figures, scalars, values_at
from nephoscope.catalog import ADAPTER, BenchmarkSpec, MetricSpec, ParamSpec
from nephoscope.errors import UsageError
from nephoscope.model import Better, Sample, Shape

Params = Mapping[str, Any]

SECOND_NS = 1_000_000_000


def whole(name: str, default: int, low: int, high: int, doc: str, unit: str = "count") -> ParamSpec:
    """Returns a parameter that is a whole number."""
    return ParamSpec(name, "int", unit, default, doc, min=low, max=high)


def choice(name: str, default: str, choices: Sequence[str], doc: str) -> ParamSpec:
    """Returns a parameter that is one of several words."""
    return ParamSpec(name, "choice", "none", default, doc, choices=tuple(choices))


def threads(doc: str) -> ParamSpec:
    """Returns the parameter of how many threads or processes a tool has."""
    return whole("threads", 1, 1, 1_024, doc)


def duration(default_s: int) -> ParamSpec:
    """Returns the parameter of how long a tool runs."""
    return _seconds("duration_ns", default_s, "Time that it runs, in whole seconds.")


def timeout(default_s: int) -> ParamSpec:
    """Returns the parameter of how long a tool waits for a response."""
    doc = "Time after which a response counts as an error, in whole seconds."
    return _seconds("timeout_ns", default_s, doc)


def _seconds(name: str, default_s: int, doc: str) -> ParamSpec:
    return whole(name, default_s * SECOND_NS, SECOND_NS, 86_400 * SECOND_NS, doc, unit="ns")


def seconds(tool: str, name: str, value_ns: int) -> int:
    """Returns a time in seconds; UsageError unless it is a whole number of them."""
    if value_ns % SECOND_NS:
        raise UsageError(
            f"{tool}: {name} must be a whole number of seconds, because {tool} counts them.",
            f"Set {name}={max(1, value_ns // SECOND_NS)}s.",
        )
    return value_ns // SECOND_NS


def rate(name: str, doc: str, *, headline: bool = True, unit: str = "per_s") -> MetricSpec:
    """Returns a metric of which more is better."""
    return MetricSpec(name, unit, Better.HIGHER, Shape.SCALAR, headline, doc)


def time(name: str, doc: str, *, headline: bool = False) -> MetricSpec:
    """Returns a metric in nanoseconds of which less is better."""
    return MetricSpec(name, "ns", Better.LOWER, Shape.SCALAR, headline, doc)


def figure(name: str, unit: str, doc: str, *, better: Better = Better.NONE) -> MetricSpec:
    """Returns a metric that is not a headline, in any unit."""
    return MetricSpec(name, unit, better, Shape.SCALAR, False, doc)


def errors(doc: str) -> MetricSpec:
    """Returns the metric of how many operations failed."""
    return MetricSpec("errors_count", "count", Better.LOWER, Shape.SCALAR, False, doc)


HOST = ParamSpec("host", "text", "none", "127.0.0.1", "Name or IP address of the far side.")

DIRECTORY = ParamSpec(
    "directory", "text", "none", "", "Directory of its files; empty takes $TMPDIR, else /var/tmp."
)


def checked_host(tool: str, host: str) -> str:
    """Returns a host's name or address; UsageError for what the tool would read as an option."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.:%_-]*|:[A-Za-z0-9.:%_-]+", host, re.ASCII):
        raise UsageError(
            f"{tool}: host '{host[:60]}' is no name or address of a host.",
            "Set host to a name or an IP address.",
        )
    return host


def size(name: str, doc: str) -> MetricSpec:
    """Returns a headline metric in bytes per second of which more is better."""
    return rate(name, doc, unit="bytes_per_s")


def share(name: str, doc: str) -> MetricSpec:
    """Returns a metric that is a share, of which less is better."""
    return MetricSpec(name, "ratio", Better.LOWER, Shape.SCALAR, False, doc)


RETRANSMITS = MetricSpec(
    "retransmits_count",
    "count",
    Better.LOWER,
    Shape.SCALAR,
    False,
    "Number of retransmitted TCP segments.",
)

ROUND_TRIPS = (
    MetricSpec(
        "rtt_sent_ns",
        "ns",
        Better.LOWER,
        Shape.HISTOGRAM,
        True,
        "Round-trip time of each answered probe, as the tool prints it.",
    ),
    time("rtt_sent_mean_ns", "Mean of these times."),
    time("rtt_sent_max_ns", "Maximum of these times; grows with the number of probes."),
    time("rtt_sent_stdev_ns", "Standard deviation of these times."),
    share("loss_ratio", "Share of probes without an answer."),
)


def page(**sections: str) -> str:
    """Returns a manual page of its six sections, in the order in which all pages have them."""
    headings = {
        "measures": "What it measures",
        "how": "How",
        "truth": "Known truth",
        "cross_check": "Cross-check",
        "overhead": "Overhead",
        "caveats": "Caveats",
    }
    return "\n\n".join(f"# {heading}\n{sections[key].strip()}" for key, heading in headings.items())


def version_by_usage(text: str, version: str) -> Callable[[Output], str]:
    """Returns a reader for programs that state no version: their usage has this text since then."""

    def read(output: Output) -> str:
        if text not in output.stdout + output.stderr:
            raise ToolError(f"its usage is not that of version {version}.{last_words(output)}")
        return version

    return read


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric, and the pattern of the line that states it.

    pattern: matches once, ends with the line's end, and has one group around the number. scale:
    factor into the metric's unit.
    """

    metric: MetricSpec
    pattern: str
    scale: float = 1.0

    @property
    def place(self) -> Figures:
        """Where a report has it."""
        name = self.metric.id
        return Figures(f"'{name}'", self.pattern, {name: self.scale})


def parser_of(
    figures: Sequence[Figure] | Callable[[Output], dict[str, float]], *, on_stderr: bool = False
) -> Callable[[Output], list[Sample]]:
    """Returns the parser of a report from the lines of its figures, or from a function.

    on_stderr: whether the tool prints its report to standard error.
    """

    def parse(output: Output) -> list[Sample]:
        check_ending(output)
        if on_stderr:
            output = replace(output, stdout=output.stderr, stderr=output.stdout)
        if callable(figures):
            values = figures(output)
        else:
            values = values_at(output, *(figure.place for figure in figures))
        if not any(values.values()):
            raise ToolError("all its figures are 0.")
        return scalars(values)

    return parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A third-party program that one or several adapters call.

    version: pattern with one group, in whatever the program answers to the arguments `look` (or to
    that command), or a function that reads it. paths: as for Command. on_stderr: as of `parser_of`.
    """

    name: str
    minimum: str
    install: str
    source: str
    version: str | Callable[[Output], str]
    look: Sequence[str] | Command = ("--version",)
    paths: Sequence[str] = ()
    on_stderr: bool = False

    def adapter(
        self,
        benchmark: str,
        summary: str,
        *,
        command: Callable[[Params], Command],
        overhead: str,
        page: str,
        params: tuple[ParamSpec, ...] = (),
        metrics: tuple[MetricSpec, ...] = (),
        figures: Sequence[Figure] | Callable[[Output], dict[str, float]] = (),
        parse: Callable[[Output], list[Sample]] | None = None,
        server: Server | None = None,
    ) -> Adapter:
        """Returns the adapter of one benchmark.

        figures: the lines of its report, or a function that reads it. parse: the parser, where
        neither is enough. metrics: those that such a function returns.
        """
        if not callable(figures):
            metrics = (*(figure.metric for figure in figures), *metrics)
        spec = BenchmarkSpec(
            id=benchmark,
            summary=summary,
            params=params,
            metrics=(*metrics, TOOL),
            overhead=overhead,
            source=self.source,
            two_sided=server is not None,
            kind=ADAPTER,
            tool=self.name,
            minimum=self.minimum,
            install=self.install,
            page=page,
        )

        def called(params: Params) -> Command:
            made = command(params)
            return replace(made, paths=(*made.paths, *self.paths))

        look = self.look
        if not isinstance(look, Command):
            look = Command(tuple(look), paths=tuple(self.paths))
        return Adapter(
            spec=spec,
            command=called,
            look=look,
            version=version_by(self.version) if isinstance(self.version, str) else self.version,
            parse=parse or parser_of(figures, on_stderr=self.on_stderr),
            server=server,
        )


def adapter(
    id: str,
    summary: str,
    *,
    params: tuple[ParamSpec, ...],
    metrics: tuple[MetricSpec, ...],
    command: Callable[[Params], Command],
    parse: Callable[[Output], list[Sample]],
    version: str,
    source: str,
    minimum: str,
    install: str,
    page: str,
    overhead: str,
    look: tuple[str, ...] = ("--version",),
    tool: str = "",
    server: Server | None = None,
) -> Adapter:
    """Returns the adapter of a program that is one benchmark. tool: the program, where its name is
    not that of the benchmark."""
    program = Program(
        name=tool or id, minimum=minimum, install=install, source=source, version=version, look=look
    )
    return program.adapter(
        id,
        summary,
        params=params,
        metrics=metrics,
        command=command,
        parse=parse,
        overhead=overhead,
        page=page,
        server=server,
    )
