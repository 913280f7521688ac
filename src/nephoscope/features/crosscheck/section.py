"""Native and third-party figures as a table of the report."""

from __future__ import annotations

from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.crosscheck.result import CrossCheck, ToolComparison
from nephoscope.report import wording
from nephoscope.report.blocks import Cell, Column, Section, Sentence, Table


def build(result: RunResult) -> Section | None:
    """Returns a row for each metric that a native benchmark and a tool have in common."""
    check = result.part(CrossCheck)
    if check is None:
        return None
    targets = len({line.target for line in check.lines})
    table = Table(
        (
            *Column.texts("metric", "native", "tool"),
            *Column.numbers("native value", "tool's value", "difference", "n"),
            Column("different parameters", roomy=True),
        ),
        tuple(_row(line, targets) for line in check.lines),
    )
    lead = Sentence(
        "The difference is that of the tool from the native benchmark, from rounds that have both. "
        "It is one of the tools only where they did the same work: where no parameters differ."
    )
    return Section("cross-check", "Native benchmarks and third-party tools", (lead, table))


def _row(line: ToolComparison, targets: int) -> tuple[Cell, ...]:
    metric = wording.metric_name(line.metric)
    return (
        f"{metric}, {wording.clean(line.target)}" if targets > 1 else metric,
        ", ".join(filter(None, (line.native, wording.factors_text(line.native_factors)))),
        ", ".join(filter(None, (line.tool, wording.factors_text(line.tool_factors)))),
        *(
            f"{wording.value_text(estimate)} {wording.interval_text(estimate)}"
            for estimate in (line.native_estimate, line.tool_estimate)
        ),
        _difference_text(line.ratio),
        "–" if line.ratio is None else str(line.ratio.n),
        wording.clean("; ".join(line.different_parameters)),
    )


def _difference_text(ratio: Estimate | None) -> str:
    if ratio is None:
        return "–"
    text = f"{100 * (ratio.value - 1):+.2g} %"
    if ratio.low is None or ratio.high is None:
        return f"{text} (n = {ratio.n}: no interval)"
    return f"{text} [{100 * (ratio.low - 1):+.2g}, {100 * (ratio.high - 1):+.2g}]"
