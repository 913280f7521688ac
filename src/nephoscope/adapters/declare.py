"""Declarations of adapters: the program, its report and its manual page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

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
from nephoscope.adapters.quantities import Params
from nephoscope.adapters.reports import Figures, scalars, values_at
from nephoscope.catalog import ADAPTER, BenchmarkSpec, MetricSpec, ParamSpec
from nephoscope.model import Sample


def page(
    *, measures: str, how: str, truth: str, cross_check: str, overhead: str, caveats: str
) -> str:
    """Returns a manual page of its six sections, in the order in which all pages have them."""
    sections = {
        "What it measures": measures,
        "How": how,
        "Known truth": truth,
        "Cross-check": cross_check,
        "Overhead": overhead,
        "Caveats": caveats,
    }
    return "\n\n".join(f"# {heading}\n{text.strip()}" for heading, text in sections.items())


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
        """Returns where a report has it."""
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


def adapter(
    benchmark: str,
    summary: str,
    *,
    minimum: str,
    install: str,
    source: str,
    version: str | Callable[[Output], str],
    command: Callable[[Params], Command],
    overhead: str,
    page: str,
    tool: str = "",
    look: Sequence[str] | Command = ("--version",),
    paths: Sequence[str] = (),
    params: tuple[ParamSpec, ...] = (),
    metrics: tuple[MetricSpec, ...] = (),
    figures: Sequence[Figure] | Callable[[Output], dict[str, float]] = (),
    parse: Callable[[Output], list[Sample]] | None = None,
    on_stderr: bool = False,
    server: Server | None = None,
    load: str = "",
) -> Adapter:
    """Returns the adapter of one benchmark of a third-party program.

    tool: the program, where its name is not that of the benchmark. version: pattern with one group,
    in whatever the program answers to the arguments `look` (or to that command), or a function that
    reads it. paths: as for Command. figures: the lines of its report, or a function that reads it.
    parse: the parser, where neither is enough. metrics: those that such a function returns.
    on_stderr: as of `parser_of`. load: the program that its command starts, of a benchmark that is
    itself a server (a background load).
    """
    if not callable(figures):
        metrics = (*(figure.metric for figure in figures), *metrics)
    spec = BenchmarkSpec(
        id=benchmark,
        summary=summary,
        params=params,
        metrics=(*metrics, TOOL),
        overhead=overhead,
        source=source,
        two_sided=server is not None,
        load=bool(load),
        kind=ADAPTER,
        tool=tool or benchmark,
        minimum=minimum,
        install=install,
        page=page,
    )

    def called(params: Params) -> Command:
        made = command(params)
        return replace(made, paths=(*made.paths, *paths))

    return Adapter(
        spec=spec,
        command=called,
        look=look if isinstance(look, Command) else Command(tuple(look), paths=tuple(paths)),
        version=version_by(version) if isinstance(version, str) else version,
        parse=parse or parser_of(figures, on_stderr=on_stderr),
        server=Server(load, command, install) if load else server,
    )
