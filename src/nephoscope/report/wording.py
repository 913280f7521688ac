"""Formats names of metrics and settings, and values with their intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nephoscope.core import units
from nephoscope.core.estimate_text import digits_for as digits_for
from nephoscope.core.estimate_text import estimate_cells as estimate_cells
from nephoscope.core.estimate_text import estimate_text as estimate_text
from nephoscope.core.estimate_text import interval_text as interval_text
from nephoscope.core.estimate_text import value_text as value_text
from nephoscope.core.grouping import group_by
from nephoscope.core.model import (
    Consistency,
    Estimate,
    MetricResult,
    Precision,
    RunResult,
    RunSummary,
)
from nephoscope.core.naming import bytes_text as bytes_text
from nephoscope.core.naming import clean as clean
from nephoscope.core.naming import factors_text as factors_text
from nephoscope.core.naming import full_name as full_name
from nephoscope.core.naming import level_text as level_text
from nephoscope.core.naming import line_name as line_name
from nephoscope.core.naming import metric_name as metric_name
from nephoscope.core.naming import plural as plural
from nephoscope.results.excluded import excluded_settings

_PADDING = re.compile(r"(?:^|(?<= )) ")
_FIGURES = re.compile(r"[0-9][0-9.,]*")

MAX_NAMES = 4
"""Targets that a sentence names."""

GROUPS: Mapping[str, str] = {
    "cpu": "CPU",
    "mem": "Memory",
    "disk": "Disk",
    "storage": "Storage",
    "net": "Network",
    "sys": "System",
    "app": "Applications",
    "http": "Web servers",
    "kv": "Key-value stores",
    "db": "Databases",
    "command": "Commands",
    "load": "Loads",
    "sim": "Simulation",
}
"""Title of each group of benchmarks, in the report's order; other groups follow by name."""


def group_of(benchmark: str) -> str:
    """Title of the group of a benchmark: 'cpu.pi' is of 'CPU', 'iperf3' of 'Other'."""
    head, dot, _ = benchmark.partition(".")
    return GROUPS.get(head, head) if dot else "Other"


def group_rank(benchmark: str) -> tuple[int, str]:
    """Sort key of a benchmark's group: the order of GROUPS, then by name."""
    titles = list(GROUPS.values())
    title = group_of(benchmark)
    return (titles.index(title) if title in titles else len(titles), title)


def target_text(target: str, conditions: Mapping[str, Any]) -> str:
    """A target, and the conditions under which something holds of it."""
    own = factors_text(conditions)
    return f"{clean(target)}, {own}" if own else clean(target)


def setting_text(metric: MetricResult, targets: int, leave_out: Iterable[str] = ()) -> str:
    """The setting of a metric in words, with its target where there are several."""
    target = clean(metric.target) if targets > 1 else ""
    return ", ".join(filter(None, (target, factors_text(metric.factors, leave_out))))


def aligned(text: str) -> str:
    """Returns a label with an indent and padding that a page keeps, as wide as digits."""
    return _PADDING.sub("\N{FIGURE SPACE}", text)


def plain(estimate: Estimate) -> Estimate:
    """A ratio as a number: 1.05, not 105 %."""
    return replace(estimate, unit="none")


def ratio_cells(estimate: Estimate | None, n: int | None = None) -> tuple[str, str, str]:
    """Value, interval and n of a ratio for a table's row; n: of what has no estimate."""
    if estimate is None:
        return "–", "none", "–" if n is None else str(n)
    return estimate_cells(plain(estimate))


def percent(ratio: float | None, digits: int = 2) -> str:
    """A ratio as per cent; '' where there is none."""
    return "" if ratio is None else units.format_value(ratio, "ratio", digits)


def consistency_text(consistency: Consistency) -> str:
    """Returns the coefficient of variation, '1.2 %'; '14 % ▲' where it is certainly above 10 %; '–'
    without one."""
    if consistency.robust_cv is None:
        return "–"
    is_erratic = consistency.certain and consistency.word == "erratic"
    return f"{percent(consistency.robust_cv)}{' ▲' if is_erratic else ''}"


def slug(name: str) -> str:
    """A name as a word that may be an anchor: 'cpu.pi' is 'cpu-pi'."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "x"


def excluded_rows(result: RunResult) -> list[str]:
    """Returns a sentence for each setting that is in no table, as all its trials were excluded."""
    several = len(result.run.targets) > 1
    return [
        clean(
            f"{setting.benchmark} ({factors_text(setting.factors) or 'no factors'})"
            f"{f' on {setting.target}' if several else ''}: no result, "
            f"{plural(setting.trials, 'trial')} excluded: {setting.reason.rstrip('.')}."
        )
        for setting in excluded_settings(result)
    ]


def exclusions_by_reason(result: RunResult) -> list[str]:
    """Returns how many trials of a benchmark were excluded, by the reason.

    Reasons that differ in figures only are one, told by its first trial.
    """
    groups = group_by(
        (trial for trial in result.invalid if trial.reasons),
        lambda trial: (trial.benchmark, _FIGURES.sub("#", trial.reasons[0])),
    )
    return [
        clean(
            f"{plural(len(own), 'trial')} of {benchmark} excluded, for example: "
            f"{own[0].reasons[0].rstrip('.')}."
        )
        for (benchmark, _), own in groups.items()
    ]


def by_kind(warnings: Sequence[tuple[str, str]]) -> list[str]:
    """Returns one line for warnings that differ in their numbers only, with an example."""
    kinds = group_by(warnings, lambda pair: re.sub(r"\d[\d.,]*", "#", pair[1]))
    lines = []
    for own in kinds.values():
        name, warning = own[0]
        more = f", and {len(own) - 1} more of this kind" if len(own) > 1 else ""
        lines.append(f"{warning} ({name}{more})")
    return lines


def partial_text(run: RunSummary) -> str:
    """Returns that results are partial, and why: 'Partial results: …'; '' for a whole run."""
    return clean(f"Partial results: {'; '.join(run.partial)}.") if run.partial else ""


def caveats(run: RunSummary) -> list[str]:
    """Returns what a reader has to know before any result of a run: replayed, partial."""
    return [text for text in (clean(run.recorded), partial_text(run)) if text]


def run_line(result: RunResult) -> str:
    """Returns numbers of trials, confidence, seed and identifier of a run, below its results.

    Above them stands why a run is partial, and that it is a replay.
    """
    trials = result.run.trials
    noun = "imported figure" if result.run.targets == ("imported",) else "valid trial"
    counts = (
        f"{plural(trials.valid, noun)}, {trials.invalid + trials.failed} excluded; confidence "
        f"{100 * result.run.confidence:g} %; seed {result.run.seed}; run {result.run.id}"
    )
    return "\n".join((*caveats(result.run), counts))


def amount(value: float, currency: str) -> str:
    """An amount of money: '40,657.04 USD'; a small one with three significant digits."""
    number = f"{value:,.2f}" if abs(value) >= 1 or value == 0 else units.format_number(value)
    return f"{number} {currency}"


def amount_interval(estimate: Estimate) -> str:
    """The interval of an amount; 'none' without one."""
    if estimate.low is None and estimate.high is None:
        return "none"
    ends = (
        "?" if end is None else amount(end, "").strip() for end in (estimate.low, estimate.high)
    )
    return f"[{', '.join(ends)}]"


def joined(words: Iterable[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    items = [word for word in words if word]
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def named(names: Iterable[str]) -> str:
    """Returns names of targets as part of a sentence; of many the first, and how many more."""
    every = [clean(name) for name in names]
    more = len(every) - MAX_NAMES
    return joined([*every[:MAX_NAMES], f"{more} others"] if more > 1 else every)


def precision_text(reached: Precision) -> str:
    """Returns how many of the headline results are known to 10 % or better."""
    if not reached.metrics:
        return ""
    if reached.metrics == 1:
        known = "is known" if reached.within_10_percent else "is not known"
        return f"The headline result {known} to ±10 % or better."
    return (
        f"{reached.within_10_percent} of {reached.metrics} headline results are known to ±10 % or "
        "better."
    )
