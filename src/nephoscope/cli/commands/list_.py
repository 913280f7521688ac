"""`nephoscope list`: benchmarks, their parameters and metrics, read from the contracts."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.catalog.instruments import CPU_GAPS
from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.documents import Rows
from nephoscope.cli.kit.named import Named, benchmarks_of
from nephoscope.cli.kit.options import argument
from nephoscope.core import units
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.catalog import MetricSpec, ParamSpec

_WORTH_SCALING = {"ns", "bytes"}


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """All benchmarks."""

    benchmarks: Rows


@dataclass(frozen=True, slots=True)
class Benchmark(BenchmarkSpec):
    """A benchmark's declaration. here: path of an adapter's tool on this host, or null."""

    here: str | None = None


@dataclass(frozen=True, slots=True)
class _ListArguments:
    name: str | None = argument(
        Named("[AREA|BENCHMARK]", names=lambda context: [*_areas(), *benchmarks_of(context)]),
        required=False,
    )
    search: str = options.option(
        "--search",
        "WORD",
        "List benchmarks whose name, summary or metrics contain WORD.",
        default="",
    )
    as_json: bool = options.JSON


@command(
    prints={"": Document("benchmarks", Benchmarks), "BENCHMARK": Document("benchmark", Benchmark)},
    requests=Query(),
    examples=("cpu", "--search latency", CPU_GAPS),
)
def list_(args: _ListArguments) -> None:
    """List benchmarks by area, or describe one: parameters and metrics.

    AREA is the first part of a name, such as cpu, mem, disk, net or http.
    """
    from nephoscope import catalog

    contracts = catalog.load()
    areas = _areas()
    if args.name in contracts.benchmarks or args.name not in (None, *areas):
        if args.search:
            raise UsageError("--search looks through a list.", "Omit BENCHMARK, or name an AREA.")
        spec = contracts.benchmark(str(args.name))
        if args.as_json:
            output.document(_as_json(spec))
        else:
            output.say(_page(spec))
        return
    specs = list(contracts.benchmarks.values()) if args.name is None else areas[args.name]
    if args.search:
        specs = [spec for spec in specs if args.search.lower() in _words(spec)]
        if not specs:
            raise UsageError(
                f"No benchmark has '{args.search}' in its name, summary or metrics.",
                "Run `nephoscope list` for all of them.",
            )
    if args.as_json:
        output.document({"benchmarks": [_as_json(spec) for spec in specs]})
    elif args.name is None and not args.search:
        output.say("\n".join(_area_lines(areas)))
        output.say()
        output.paragraph(
            "`nephoscope list AREA` describes the benchmarks of an area, `nephoscope list "
            "BENCHMARK` one; `nephoscope list --search WORD` finds some."
        )
    else:
        output.say("\n".join(_line(spec, max(len(each.id) for each in specs)) for spec in specs))
        output.say("\nRun `nephoscope list BENCHMARK` for its parameters, metrics and method.")


TOOLS_AREA, OTHER_AREA = "tools", "other"


def _areas() -> dict[str, list[BenchmarkSpec]]:
    """Returns the benchmarks by the first part of their names, third-party tools apart; areas of
    one benchmark are one area."""
    from nephoscope import catalog

    areas: dict[str, list[BenchmarkSpec]] = {}
    for spec in catalog.load().benchmarks.values():
        areas.setdefault(TOOLS_AREA if spec.tool else spec.id.partition(".")[0], []).append(spec)
    tools = areas.pop(TOOLS_AREA, [])
    single = [specs[0] for specs in areas.values() if len(specs) == 1]
    return {
        **{area: specs for area, specs in areas.items() if len(specs) > 1},
        OTHER_AREA: single,
        TOOLS_AREA: tools,
    }


def _words(spec: BenchmarkSpec) -> str:
    """Returns the text that is searched."""
    texts = (spec.id, spec.summary, spec.tool or "", *(metric.id for metric in spec.metrics))
    return " ".join(texts).lower()


def _area_lines(areas: Mapping[str, Sequence[BenchmarkSpec]]) -> Iterator[str]:
    width = max(map(len, areas))
    for area, specs in areas.items():
        prefix = f"{area}."
        names = " ".join(spec.id.removeprefix(prefix) for spec in specs)
        yield _wrap(names, " " * (width + 2), f"{area:<{width}}  ")


def _line(spec: BenchmarkSpec, width: int) -> str:
    return _wrap(spec.summary, " " * (width + 2), f"{spec.id:<{width}}  ")


def _as_json(spec: BenchmarkSpec) -> dict[str, Any]:
    here = shutil.which(spec.tool) if spec.tool else None
    return {**dataclasses.asdict(spec), "here": here}


def _wrap(text: str, indent: str = "    ", first: str | None = None) -> str:
    return output.wrapped(text, indent if first is None else first, indent)


def _tool(spec: BenchmarkSpec) -> str:
    """The program that an adapter drives, and whether this machine has it."""
    here = shutil.which(spec.tool)
    where = here if here else f"missing; install with {spec.install}"
    return f"{spec.tool} {spec.minimum} or newer ({where})"


def _page(spec: BenchmarkSpec) -> str:
    blocks = [f"{spec.id}: {spec.summary}"]
    if spec.tool:
        blocks.append("TOOL\n" + _wrap(_tool(spec)))
    if spec.params:
        blocks.append("PARAMETERS\n" + "\n".join(_param(param) for param in spec.params))
    blocks.append("METRICS\n" + "\n".join(_metric(metric) for metric in spec.metrics))
    blocks.append("OVERHEAD\n" + _wrap(spec.overhead))
    blocks.append("SOURCE\n" + _wrap(spec.source))
    if spec.page.strip():
        blocks.append(spec.page.strip())
    return "\n\n".join(blocks)


def _value(param: ParamSpec, value: Any) -> str:
    if value == "" or value == []:
        return "(chosen)"
    if isinstance(value, list):
        return ",".join(_value(param, item) for item in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if param.unit in _WORTH_SCALING and isinstance(value, int | float) and value:
        divisor, label = units.scale_of(param.unit, value)
        # The rounded text stands only where it says the same number.
        text = f"{value / divisor:g}"
        return f"{text}{label}" if float(text) * divisor == value else f"{value}"
    return str(value)


def _param(param: ParamSpec) -> str:
    allowed = ""
    if param.choices:
        allowed = f", one of {', '.join(param.choices)}"
    elif param.min is not None and param.max is not None:
        allowed = f", {_value(param, param.min)} to {_value(param, param.max)}"
    unit = "" if param.unit == "none" else f" in {param.unit}"
    head = f"  {param.id} ({param.type}{unit}{allowed}; default {_value(param, param.default)})"
    return _wrap(head.strip(), "      ", "  ") + "\n" + _wrap(param.doc, "      ")


def _metric(metric: MetricSpec) -> str:
    better = {"higher": "higher is better", "lower": "lower is better", "none": "descriptive"}
    direction = better[metric.better.value]
    head = f"{metric.id} ({metric.unit_and_limits}, {direction}, {metric.shape.value})"
    if metric.headline:
        head += " *headline*"
    return _wrap(head, "      ", "  ") + "\n" + _wrap(metric.doc, "      ")
