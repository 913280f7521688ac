"""Native and third-party figures of one quantity: both estimates, and their ratio by round."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from nephoscope import catalog
from nephoscope.core.model import Better, Estimate, Factors, MetricResult
from nephoscope.core.records import dataclass
from nephoscope.results.names import AUXILIARY_FACTORS
from nephoscope.results.run_data import RunData
from nephoscope.stats import compare
from nephoscope.stats.statistics.values import Refused


@dataclass(frozen=True, slots=True)
class ToolComparison:
    """One metric as a native benchmark and a third-party tool measured it on one target.

    ratio: the tool's value over the native one, from rounds that have both; null without any.
    different_parameters: those that both have, with other values, as text.
    """

    target: str
    metric: str
    native: str
    native_factors: Factors
    native_estimate: Estimate
    tool: str
    tool_factors: Factors
    tool_estimate: Estimate
    ratio: Estimate | None
    different_parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """Metrics of a run that native benchmarks and third-party tools have in common."""

    lines: tuple[ToolComparison, ...]


def analyse(data: RunData) -> CrossCheck | None:
    """Returns the comparison; None where no metric is common.

    Load generators are compared in their own section, because rates of open and closed loops do not
    measure one quantity.
    """
    parameters = _parameters(data)
    lines = [line for line in data.metrics if _is_comparable(line)]
    tools = [line for line in lines if _kind(line.benchmark) == catalog.ADAPTER]
    own_lines = [line for line in lines if _kind(line.benchmark) == catalog.NATIVE]
    pairs = tuple(
        ToolComparison(
            native.target,
            native.metric,
            native.benchmark,
            native.factors,
            native.estimate,
            tool.benchmark,
            tool.factors,
            tool.estimate,
            _ratio(native, tool, data.confidence),
            tuple(_differences(parameters, native, tool)),
        )
        for native in own_lines
        for tool in tools
        if (native.metric, native.target) == (tool.metric, tool.target)
        and all(tool.factors[name] == native.factors[name] for name in _common(native, tool))
    )
    return CrossCheck(pairs) if pairs else None


def _kind(benchmark: str) -> str:
    spec = catalog.load().benchmarks.get(benchmark)
    return spec.kind if spec else ""


def _is_comparable(line: MetricResult) -> bool:
    return (
        line.better is not Better.NONE
        and not AUXILIARY_FACTORS & line.factors.keys()
        and not line.benchmark.endswith(".load")
    )


def _common(native: MetricResult, tool: MetricResult) -> set[str]:
    return set(native.factors.keys() & tool.factors.keys())


def _ratio(native: MetricResult, tool: MetricResult, confidence: float) -> Estimate | None:
    """Returns the tool's value over the native one, paired by round."""
    try:
        return compare.paired(
            *compare.shared_rounds(native, tool),
            better=native.better,
            unit=native.estimate.unit,
            confidence=confidence,
        ).ratio
    except Refused:
        return None


Parameters = Mapping[tuple[str, str], Mapping[str, set[str]]]
"""Benchmark and target -> the texts of the values of each parameter in a run."""


def _parameters(data: RunData) -> Parameters:
    texts: dict[tuple[str, str], dict[str, set[str]]] = {}
    for record in data.records:
        own = texts.setdefault((record.benchmark, record.key.target), {})
        spec = catalog.load().benchmarks.get(record.benchmark)
        for param in spec.params if spec else ():
            value = record.params.get(param.id, param.default)
            is_text = not isinstance(value, list | dict | bool)
            own.setdefault(param.id, set()).add(str(value) if is_text else json.dumps(value))
    return texts


def _differences(parameters: Parameters, native: MetricResult, tool: MetricResult) -> Iterator[str]:
    """Yields each parameter of both, but a factor of both, that has other values there."""
    sides = [parameters.get((metric.benchmark, metric.target), {}) for metric in (native, tool)]
    left, right = sides
    for name in sorted(left.keys() & right.keys() - _common(native, tool)):
        if left[name] != right[name]:
            yield f"{name}: " + " and ".join(
                " or ".join(sorted(own[name])) or "''" for own in sides
            )
