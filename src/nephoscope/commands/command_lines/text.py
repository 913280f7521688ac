"""Prints the results of command lines: the times of each, and how each compares with the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nephoscope import units
from nephoscope.analysis.statistics.values import percent
from nephoscope.commands import output
from nephoscope.commands.command_lines.executions import Executions
from nephoscope.commands.command_lines.plan import LABEL, CommandLine
from nephoscope.experiments.records import Against, Experiment
from nephoscope.model import Estimate, MetricResult, RunResult
from nephoscope.report import wording

WALL = "wall_ns"
FIGURE = "figure"
"""The factor with the name of a figure that the commands print."""
_EQUIVALENT = ("equivalent", "different but negligible")
# Said of the faster one of both.
WORDS = {
    "better": "faster",
    "worse": "faster",
    "equivalent": "equivalent",
    "different but negligible": "equivalent",
    "inconclusive": "undecided",
}
_MIN_SPLIT_NS = 20e6
"""Two of the longest clock ticks (100 a second): shorter executions may have none."""


def text(
    result: RunResult,
    lines: Sequence[CommandLine],
    executions: Mapping[str, Executions],
    shell: str,
) -> str:
    """Returns a block for each command, the comparison, and the warnings."""
    by_label: dict[str, dict[str, MetricResult]] = {}
    for line in result.metrics:
        label = str(line.factors.get(LABEL, lines[0].label))
        name = f"{line.metric} {line.factors[FIGURE]}" if FIGURE in line.factors else line.metric
        by_label.setdefault(label, {})[name] = line
    blocks = [
        _block(line, by_label.get(line.label, {}), executions.get(line.label, Executions()))
        for line in lines
    ]
    compared = result.part(Experiment)
    if compared is not None:
        blocks.append(comparison(compared.comparisons, lines))
    blocks.append(_notes(lines, by_label, executions, shell))
    blocks.append(wording.run_line(result))
    return "\n\n".join(block for block in blocks if block)


def _block(line: CommandLine, metrics: Mapping[str, MetricResult], executions: Executions) -> str:
    if WALL not in metrics:
        reason = executions.failed_trials[0] if executions.failed_trials else "it was not measured"
        return f"{line.label}\n{output.wrapped(f'! No result: {reason}.'.replace('..', '.'))}"
    wall = _measured(metrics[WALL])
    rows = [("median", wall)]
    if "wall_mean_ns" in metrics:
        rows.append(("mean", _measured(metrics["wall_mean_ns"])))
    low, high = (units.format_value(end(executions.wall_ns), "ns") for end in (min, max))
    rows.append(("range", f"{low} … {high}   {len(executions.wall_ns)} executions"))
    rows += _cpu_times(metrics)
    if "max_rss_bytes" in metrics:
        rows.append(("memory", _measured(metrics["max_rss_bytes"])))
    else:
        floor = units.format_value(max(executions.max_rss_bytes), "bytes")
        rows.append(("memory", f"at most {floor}, the probe's own"))
    figures = [metric for metric in metrics.values() if FIGURE in metric.factors]
    rows += [(str(metric.factors[FIGURE]), _measured(metric)) for metric in figures]
    codes = Counter(executions.exit_codes)
    if set(codes) != {0}:
        texts = [f"{code} ({count} times)" for code, count in sorted(codes.items())]
        rows.append(("exit codes", ", ".join(texts)))
    width = max(10, *(len(name) for name, _ in rows))
    return "\n".join([line.label, *(f"  {name:<{width}} {value}" for name, value in rows)])


def _cpu_times(metrics: Mapping[str, MetricResult]) -> list[tuple[str, str]]:
    """The CPU time; its parts where the kernel's clock tick, which splits it, is fine enough."""
    rows = [("CPU time", _measured(metrics["cpu_ns"]))]
    if metrics["cpu_ns"].estimate.value >= _MIN_SPLIT_NS:
        rows += [
            ("user", _measured(metrics["user_ns"])),
            ("system", _measured(metrics["system_ns"])),
        ]
    return rows


def _measured(line: MetricResult) -> str:
    estimate = line.estimate
    if estimate.low is None and estimate.high is None:
        value = units.format_value(estimate.value, estimate.unit)
        return f"{value} (no interval: {estimate.n} trials)"
    return units.format_interval(estimate.value, estimate.low, estimate.high, estimate.unit)


def comparison(comparisons: Sequence[Against], lines: Sequence[CommandLine]) -> str:
    """Returns a sentence for each command but the first, which it is compared with."""
    of_label = {
        against.factors[LABEL]: against for against in comparisons if against.metric == WALL
    }
    first = lines[0].label
    texts = []
    for line in lines[1:]:
        against = of_label.get(line.label)
        if against is None or against.comparison.ratio is None:
            texts.append(f"{line.label} cannot be compared with {first}.")
            continue
        verdict = against.comparison.verdict
        # The interval that decided: that of the equivalence test is narrower.
        equivalence = against.comparison.equivalence if verdict.word in _EQUIVALENT else None
        ratio = equivalence or against.comparison.ratio
        # Of both the one that looks faster is the subject, so that the factor is above 1.
        faster, slower = (line.label, first) if ratio.value < 1 else (first, line.label)
        times = _inverse(ratio) if ratio.value < 1 else ratio
        digits = units.interval_digits(times.value, times.low, times.high)
        span = units.format_interval(times.value, times.low, times.high, "none", digits)
        texts.append(
            f"{faster} is {span} times as fast as {slower}: "
            f"{WORDS[verdict.word].upper()}{_why(against, ratio)}"
        )
    texts += [_figure_comparison(against, first) for against in comparisons if _has_ratio(against)]
    return "\n".join(output.wrapped(text) for text in texts)


def _has_ratio(against: Against) -> bool:
    return FIGURE in against.factors and against.comparison.ratio is not None


def _figure_comparison(against: Against, first: str) -> str:
    ratio = against.comparison.ratio
    assert ratio is not None
    span = units.format_interval(ratio.value, ratio.low, ratio.high, "none")
    verdict = against.comparison.verdict.word.upper()
    return (
        f"{against.factors[FIGURE]} of {against.factors[LABEL]} is {span} times that of {first}: "
        f"{verdict}."
    )


def _why(against: Against, decided: Estimate) -> str:
    result = against.comparison
    margin = f"±{percent(result.margin)}"
    if result.verdict.word in _EQUIVALENT:
        return f" (within {margin} at {percent(decided.confidence)})."
    if result.verdict.word != "inconclusive":
        return "."
    if decided.low is None or decided.high is None:
        return f" ({result.n_b} rounds are too few for an interval)."
    return f" (margin {margin}; more executions would narrow the interval)."


def _inverse(ratio: Estimate) -> Estimate:
    """The ratio of B to A from that of A to B."""
    low, high = (None if not end else 1 / end for end in (ratio.high, ratio.low))
    return replace(ratio, value=1 / ratio.value, low=low, high=high)


def _notes(
    lines: Sequence[CommandLine],
    by_label: Mapping[str, Mapping[str, MetricResult]],
    executions: Mapping[str, Executions],
    shell: str,
) -> str:
    notes = []
    for line in lines:
        metrics = by_label.get(line.label, {})
        if WALL in metrics:
            wall = metrics[WALL]
            notes += [
                f"{line.label}: {note}" for note in (*wall.warnings, wall.estimate.note) if note
            ]
        excluded = executions[line.label].failed_trials if line.label in executions else []
        if excluded and WALL in metrics:
            notes.append(f"{line.label}: {len(excluded)} trials do not count: {excluded[0]}")
        if shell and WALL in metrics:
            start = units.format_value(metrics["shell_ns"].estimate.value, "ns")
            notes.append(
                f"{line.label}: the start of {shell}, {start}, is measured and subtracted."
            )
    return "\n".join(output.wrapped(f"! {note}") for note in dict.fromkeys(notes))
