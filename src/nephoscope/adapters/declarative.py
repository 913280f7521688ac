"""Adapters of tools with short reports: each figure is a metric and the line it stands in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nephoscope.adapters.declare import scalars
from nephoscope.adapters.frame import (
    TOOL,
    Adapter,
    Command,
    Output,
    ToolError,
    check_ending,
    last_words,
    numbers,
    version_by,
)
from nephoscope.catalog import ADAPTER as KIND
from nephoscope.catalog import BenchmarkSpec, MetricSpec, ParamSpec
from nephoscope.model import Sample

Params = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric, and the pattern of the line that states it.

    pattern: matches once, ends with the line's end, and has one group around the number. scale:
    factor into the metric's unit.
    """

    metric: MetricSpec
    pattern: str
    scale: float = 1.0


def read_figures(output: Output, figures: Sequence[Figure]) -> dict[str, float]:
    """Returns every figure by its metric. Raises ToolError where one is missing."""
    values = {}
    for figure in figures:
        (value,) = numbers(output, figure.pattern, f"'{figure.metric.id}'")
        values[figure.metric.id] = value * figure.scale
    return values


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A third-party program that one or several adapters call.

    version: pattern with one group, in whatever the program answers to the arguments `look`, or a
    function that reads it. paths: as for Command. on_stderr: whether it prints its report to
    standard error.
    """

    name: str
    minimum: str
    install: str
    source: str
    version: str | Callable[[Output], str]
    look: Sequence[str] = ("--version",)
    paths: Sequence[str] = ()
    on_stderr: bool = False

    def adapter(
        self,
        benchmark: str,
        summary: str,
        *,
        command: Callable[[Params], Command],
        figures: Sequence[Figure] | Callable[[Output], dict[str, float]],
        overhead: str,
        page: str,
        params: tuple[ParamSpec, ...] = (),
        metrics: tuple[MetricSpec, ...] = (),
    ) -> Adapter:
        """Returns the adapter of one benchmark.

        figures: the lines of its report, or a function that reads it. metrics: those of such a
        function.
        """
        if not callable(figures):
            metrics = tuple(figure.metric for figure in figures)
        spec = BenchmarkSpec(
            id=benchmark,
            summary=summary,
            params=params,
            metrics=(*metrics, TOOL),
            overhead=overhead,
            source=self.source,
            two_sided=False,
            kind=KIND,
            tool=self.name,
            minimum=self.minimum,
            install=self.install,
            page=page,
        )

        def parse(output: Output) -> list[Sample]:
            check_ending(output)
            if self.on_stderr:
                output = replace(output, stdout=output.stderr, stderr=output.stdout)
            values = figures(output) if callable(figures) else read_figures(output, figures)
            if not any(values.values()):
                raise ToolError("all its figures are 0.")
            return scalars(values)

        return Adapter(
            spec=spec,
            command=lambda params: replace(command(params), paths=tuple(self.paths)),
            look=Command(tuple(self.look), paths=tuple(self.paths)),
            version=version_by(self.version) if isinstance(self.version, str) else self.version,
            parse=parse,
        )
