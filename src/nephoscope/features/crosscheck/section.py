"""Native and third-party figures as a table of the report."""

from __future__ import annotations

from nephoscope.core.estimate_text import unbounded_text
from nephoscope.core.model import Estimate, Factors, RunResult
from nephoscope.features.crosscheck.result import CrossCheck, ToolComparison
from nephoscope.report import wording
from nephoscope.report.blocks import Section, Sentence
from nephoscope.report.columns import number, table, text


def build(result: RunResult) -> Section | None:
    """Returns a row for each metric that a native benchmark and a tool have in common."""
    check = result.part(CrossCheck)
    if check is None:
        return None
    targets = len({line.target for line in check.lines})
    rows = table(
        check.lines,
        text("metric", lambda line: _metric(line, targets)),
        text("native", lambda line: _side(line.native, line.native_factors)),
        text("tool", lambda line: _side(line.tool, line.tool_factors)),
        number("native value", lambda line: _value(line.native_estimate)),
        number("tool's value", lambda line: _value(line.tool_estimate)),
        number("difference", lambda line: _difference_text(line.ratio)),
        number("n", lambda line: line.ratio and line.ratio.n),
        text("different parameters", lambda line: "; ".join(line.different_parameters), roomy=True),
    )
    lead = Sentence(
        "The difference is that of the tool from the native benchmark, from rounds that have both. "
        "It is one of the tools only where they did the same work: where no parameters differ."
    )
    return Section("cross-check", "Native benchmarks and third-party tools", (lead, rows))


def _metric(line: ToolComparison, targets: int) -> str:
    metric = wording.metric_name(line.metric)
    return f"{metric}, {wording.clean(line.target)}" if targets > 1 else metric


def _side(benchmark: str, factors: Factors) -> str:
    return ", ".join(filter(None, (benchmark, wording.factors_text(factors))))


def _value(estimate: Estimate) -> str:
    return f"{wording.value_text(estimate)} {wording.interval_text(estimate)}"


def _difference_text(ratio: Estimate | None) -> str:
    if ratio is None:
        return "–"
    change = f"{100 * (ratio.value - 1):+.2g} %"
    if ratio.low is None or ratio.high is None:
        return f"{change} ({unbounded_text(ratio.n)})"
    return f"{change} [{100 * (ratio.low - 1):+.2g}, {100 * (ratio.high - 1):+.2g}]"
