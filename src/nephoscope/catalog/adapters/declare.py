"""Declarations of adapters: the program, its report and its manual page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from nephoscope.catalog import ADAPTER, BenchmarkSpec, MetricSpec, ParamSpec
from nephoscope.catalog.adapters.frame import (
    TOOL,
    Adapter,
    Output,
    ToolCommand,
    ToolError,
    ToolServer,
    check_ending,
    last_words,
    version_by,
)
from nephoscope.catalog.adapters.quantities import Params
from nephoscope.catalog.adapters.reports import Figures, scalars, values_at
from nephoscope.catalog.meaning import Domain, RequestLoop, Resource
from nephoscope.core.model import Sample
from nephoscope.core.records import dataclass


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


Reader = Callable[[Output], dict[str, float]]
"""Returns the figures of a report by the names of their metrics. Raises ToolError."""


def adapter(
    benchmark: str,
    summary: str,
    *,
    resource: Resource,
    minimum: str,
    source: str,
    version: str | Callable[[Output], str],
    command: Callable[[Params], ToolCommand],
    overhead: str,
    measures: str,
    how: str,
    truth: str,
    cross_check: str,
    caveats: str,
    overhead_page: str = "",
    tool: str = "",
    install: str = "",
    version_command: Sequence[str] | ToolCommand = ("--version",),
    paths: Sequence[str] = (),
    params: tuple[ParamSpec, ...] = (),
    metrics: tuple[MetricSpec, ...] = (),
    figures: Sequence[Figure | Figures] | Reader = (),
    factors: Mapping[str, str] | None = None,
    on_stderr: bool = False,
    parse: Callable[[Output], list[Sample]] | None = None,
    server: ToolServer | None = None,
    load: str = "",
    domain: Domain = Domain.NONE,
    request_loop: RequestLoop = RequestLoop.NONE,
    response_counter: str = "",
    thread_param: str = "threads",
) -> Adapter:
    """Returns the adapter of one benchmark of a third-party program.

    measures, how, truth, cross_check, caveats: texts of its manual page. overhead_page: that on its
    overhead, by default `overhead` as a sentence. tool: the program, where its name is not that of
    the benchmark. install: the command that installs it, by default of Debian's package of that
    name. version_command: arguments that print the version. version: pattern with one group in what
    they print, or a function that reads it. paths: as for Command. figures: places in its report,
    or a function that reads it. metrics: those that are not in `figures`. factors: of every figure.
    on_stderr: whether the report is on standard error. parse: the parser, where these are not
    enough. load: the program that its command starts, of a benchmark that is itself a server (a
    background load).
    resource, domain, request_loop, response_counter, thread_param: as for BenchmarkSpec.
    """
    tool = tool or benchmark
    install = install or f"apt-get install {tool}"
    reader: Reader
    if callable(figures):
        reader = figures
    else:
        places = [figure.place if isinstance(figure, Figure) else figure for figure in figures]
        metrics = (*(figure.metric for figure in figures if isinstance(figure, Figure)), *metrics)
        reader = partial(values_at, places=places)
    order = {metric.id: number for number, metric in enumerate(metrics)}

    def build_command(params: Params) -> ToolCommand:
        made = command(params)
        return replace(made, paths=(*made.paths, *paths))

    def parse_figures(output: Output) -> list[Sample]:
        check_ending(output)
        if on_stderr:
            output = replace(output, stdout=output.stderr, stderr=output.stdout)
        values = reader(output)
        if not any(values.values()):
            raise ToolError("all its figures are 0.")
        samples = scalars(values, **(factors or {}))
        return sorted(samples, key=lambda sample: order.get(sample.metric, len(order)))

    sections = {
        "What it measures": measures,
        "How": how,
        "Known truth": truth,
        "Cross-check": cross_check,
        "Overhead": overhead_page or f"{overhead[0].upper()}{overhead[1:]}.",
        "Caveats": caveats,
    }
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
        tool=tool,
        minimum=minimum,
        install=install,
        resource=resource,
        domain=domain,
        request_loop=request_loop,
        response_counter=response_counter,
        thread_param=thread_param,
        page="\n\n".join(f"# {title}\n{text.strip()}" for title, text in sections.items()),
    )
    if server is not None:
        server = replace(server, install=server.install or install)
    return Adapter(
        spec=spec,
        command=build_command,
        version_command=version_command
        if isinstance(version_command, ToolCommand)
        else ToolCommand(tuple(version_command), paths=tuple(paths)),
        version=version_by(version) if isinstance(version, str) else version,
        parse=parse or parse_figures,
        server=ToolServer(load, command, install) if load else server,
    )
