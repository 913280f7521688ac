"""`nephoscope list`: benchmarks, their parameters and metrics, read from the contracts."""

from __future__ import annotations

import dataclasses
import shutil
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.documents import Rows
from nephoscope.cli.kit.named import BENCHMARK
from nephoscope.cli.kit.options import argument
from nephoscope.core import units

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
    benchmark: str | None = argument(BENCHMARK, required=False)
    as_json: bool = options.JSON


@command(
    prints={"": Document("benchmarks", Benchmarks), "BENCHMARK": Document("benchmark", Benchmark)},
    requests=Query(),
    examples=(
        "cpu",
        "--search latency",
        "cpu.gaps",
    ),
)
def list_(args: _ListArguments) -> None:
    """List benchmarks, or describe one: parameters and metrics."""
    from nephoscope import catalog

    contracts = catalog.load()
    if args.benchmark is None:
        specs = list(contracts.benchmarks.values())
        if args.as_json:
            output.document({"benchmarks": [_as_json(spec) for spec in specs]})
        else:
            output.say("\n\n".join(_summary(spec) for spec in specs))
            output.say("\nRun `nephoscope list BENCHMARK` for its parameters, metrics and method.")
        return
    spec = contracts.benchmark(args.benchmark)
    if args.as_json:
        output.document(_as_json(spec))
    else:
        output.say(_page(spec))


def _as_json(spec: BenchmarkSpec) -> dict[str, Any]:
    here = shutil.which(spec.tool) if spec.tool else None
    return {**dataclasses.asdict(spec), "here": here}


def _wrap(text: str, indent: str = "    ", first: str | None = None) -> str:
    return textwrap.fill(
        text,
        output.width(),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def _summary(spec: BenchmarkSpec) -> str:
    lines = [_wrap(spec.summary, " " * 18, f"{spec.id:<18}")]
    params = ", ".join(f"{param.id}={_value(param, param.default)}" for param in spec.params)
    if params:
        lines.append(_wrap(params, " " * 18, "    parameters    "))
    lines.append(_wrap(", ".join(m.id for m in spec.metrics), " " * 18, "    metrics       "))
    if spec.tool:
        lines.append(_wrap(_tool(spec), " " * 18, "    tool          "))
    return "\n".join(lines)


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
