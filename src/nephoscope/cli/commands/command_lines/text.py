"""Prints the results of command lines: the times of each, and how each compares with the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nephoscope.cli.commands.command_lines.executions import Executions
from nephoscope.cli.commands.command_lines.plan import LABEL, CommandLine
from nephoscope.cli.kit import output
from nephoscope.core import units
from nephoscope.core.estimate_text import unbounded_text
from nephoscope.core.model import Estimate, MetricResult, RunResult
from nephoscope.core.naming import failure_text
from nephoscope.features.duet.result import Duets
from nephoscope.features.experiments.records import Against, Experiment
from nephoscope.report import wording
from nephoscope.stats.compare import TwoSampleComparison
from nephoscope.stats.statistics.values import percent

WALL = "wall_ns"
SHELL = "shell_ns"
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
    if (duets := result.part(Duets)) is not None:
        blocks.append(_of_duet(duets, lines))
        own = (finding for finding in result.findings if finding.id.startswith("duet_"))
        blocks += [output.wrapped(f"! {finding.sentence} {finding.next_step}") for finding in own]
    elif (compared := result.part(Experiment)) is not None:
        blocks.append(comparison(compared.comparisons, lines, by_label))
    blocks.append(_notes(lines, by_label, executions, shell))
    blocks.append(wording.run_line(result))
    return "\n\n".join(block for block in blocks if block)


def _block(line: CommandLine, metrics: Mapping[str, MetricResult], executions: Executions) -> str:
    if WALL not in metrics:
        reason = executions.failed_trials[0] if executions.failed_trials else "it was not measured."
        first, stop, _ = failure_text(reason).partition(". ")
        return f"{line.label}\n{output.wrapped(f'! No result: {first}{stop.strip()}')}"
    start = metrics.get(SHELL)
    rows = [("median", _time(metrics[WALL], start))]
    if "wall_mean_ns" in metrics:
        rows.append(("mean", _time(metrics["wall_mean_ns"], start)))
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
    start = metrics.get(SHELL)
    rows = [("CPU time", _time(metrics["cpu_ns"], start))]
    if metrics["cpu_ns"].estimate.value >= _MIN_SPLIT_NS:
        rows += [
            ("user", _time(metrics["user_ns"], start)),
            ("system", _time(metrics["system_ns"], start)),
        ]
    return rows


def _hidden(line: MetricResult, start: MetricResult | None) -> bool:
    """Returns whether a time may be 0 for all that is known: the shell's start varies by more."""
    low = line.estimate.low
    return start is not None and (line.estimate.value <= 0 or (low is not None and low <= 0))


def _bound(line: MetricResult, start: MetricResult) -> float | None:
    """The most that a hidden time may be; None without an interval.

    A difference is not known better than the start of the shell, which is subtracted.
    """
    if line.estimate.high is None:
        return None
    low, high = start.estimate.low or start.estimate.value, start.estimate.high
    return max(line.estimate.high, (high or start.estimate.value) - low)


def _time(line: MetricResult, start: MetricResult | None) -> str:
    """A time with its interval; where the start of the shell hides it, what it is less than."""
    if start is None or not _hidden(line, start):
        return _measured(line)
    bound = _bound(line, start)
    if bound is None:
        return f"not above the start of the shell ({unbounded_text(line.estimate.n)})"
    return f"less than {units.format_value(bound, 'ns')}"


def _measured(line: MetricResult) -> str:
    estimate = line.estimate
    if estimate.low is None and estimate.high is None:
        value = units.format_value(estimate.value, estimate.unit)
        return f"{value} ({unbounded_text(estimate.n)})"
    return units.format_interval(estimate.value, estimate.low, estimate.high, estimate.unit)


def comparison(
    comparisons: Sequence[Against],
    lines: Sequence[CommandLine],
    by_label: Mapping[str, Mapping[str, MetricResult]],
) -> str:
    """Returns a sentence for each command but the first, which it is compared with."""
    of_label = {
        against.factors[LABEL]: against for against in comparisons if against.metric == WALL
    }
    first = lines[0].label
    texts = []
    for line in lines[1:]:
        against = of_label.get(line.label)
        pair = [(label, by_label.get(label, {})) for label in (first, line.label)]
        if any(WALL in own and _hidden(own[WALL], own.get(SHELL)) for _, own in pair):
            texts.append(_hidden_comparison(*pair))
            continue
        if against is None or against.comparison.ratio is None:
            texts.append(f"{line.label} cannot be compared with {first}.")
            continue
        texts.append(_verdict(first, line.label, against.comparison))
    texts += [_figure_comparison(against, first) for against in comparisons if _has_ratio(against)]
    return "\n".join(output.wrapped(text) for text in texts)


def _verdict(first: str, second: str, result: TwoSampleComparison) -> str:
    """Returns the sentence on a command against the first one, which have a ratio."""
    assert result.ratio is not None
    # The interval that decided: that of the equivalence test is narrower.
    ratio = (result.equivalence if result.verdict.word in _EQUIVALENT else None) or result.ratio
    # Of both the one that looks faster is the subject, so that the factor is above 1.
    faster, slower = (second, first) if ratio.value < 1 else (first, second)
    times = _inverse(ratio) if ratio.value < 1 else ratio
    digits = units.interval_digits(times.value, times.low, times.high)
    span = units.format_interval(times.value, times.low, times.high, "none", digits)
    word = WORDS[result.verdict.word].upper()
    return f"{faster} is {span} times as fast as {slower}: {word}{_why(result, ratio)}"


def _of_duet(duets: Duets, lines: Sequence[CommandLine]) -> str:
    """Returns the verdict on a duet, and what the commands did to each other."""
    texts = list(duets.notes)
    for duet in duets.duets:
        if duet.comparison.ratio is None:
            texts.append(f"{duet.second} cannot be compared with {duet.first}.")
            continue
        texts.append(_verdict(lines[0].label, lines[1].label, duet.comparison))
    return "\n".join(output.wrapped(text) for text in texts)


def _hidden_comparison(
    *pair: tuple[str, Mapping[str, MetricResult]],
) -> str:
    """Compares two commands of which the start of the shell hides one, or both."""
    for (fast, of_fast), (slow, of_slow) in (pair, pair[::-1]):
        if not (WALL in of_fast and WALL in of_slow) or _hidden(of_slow[WALL], of_slow[SHELL]):
            continue
        bound, low = _bound(of_fast[WALL], of_fast[SHELL]), of_slow[WALL].estimate.low
        if bound is not None and low is not None and low > bound:
            return (
                f"{fast} is at least {units.format_number(low / bound, 2)} times as fast as "
                f"{slow}: FASTER."
            )
    (first, _), (second, _) = pair
    return f"{second} against {first}: UNDECIDED (the start of the shell hides the difference)."


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


def _why(result: TwoSampleComparison, decided: Estimate) -> str:
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
            hidden = _hidden(wall, metrics.get(SHELL))
            about = () if hidden else (*wall.warnings, wall.estimate.note)
            notes += [f"{line.label}: {note}" for note in about if note]
        of_line = executions.get(line.label, Executions())
        if of_line.left_behind:
            noun = "process" if of_line.left_behind == 1 else "processes"
            notes.append(
                f"{line.label}: left {of_line.left_behind} {noun} behind, killed at the end of "
                "their trials (--keep-children leaves them)."
            )
        excluded = of_line.failed_trials
        if excluded and WALL in metrics:
            notes.append(f"{line.label}: {len(excluded)} trials do not count: {excluded[0]}")
        if WALL in metrics and SHELL in metrics:
            start = units.format_value(metrics[SHELL].estimate.value, "ns")
            notes.append(
                f"{line.label}: the start of {shell}, {start}, is measured and subtracted"
                + (
                    ". The rest is too short to be told from it: omit --shell, or repeat the "
                    "command within one execution."
                    if hidden
                    else "."
                )
            )
    return "\n".join(output.wrapped(f"! {note}") for note in dict.fromkeys(notes))
