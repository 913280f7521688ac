"""Formats names of metrics and settings, and values with their intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nephoscope import units
from nephoscope.grouping import group_by
from nephoscope.model import (
    Consistency,
    Estimate,
    MetricResult,
    Precision,
    RunResult,
    as_number,
    level_name,
)
from nephoscope.reading.printable import printable
from nephoscope.results.excluded import excluded_settings
from nephoscope.results.precision import precision_sentence

# What a unit's ending of a name says as words: `hash_bytes_per_s` is 'hash throughput'.
_UNIT_ENDINGS = {
    "_bytes_per_s": " throughput",
    "_bits_per_s": " line rate",
    "_per_s": "",
    "_ratio": "",
    "_bytes": " size",
    "_cpus": " CPUs",
    "_ns": "",
}
_ACRONYMS = {
    "cpu": "CPU",
    "iops": "IOPS",
    "tcp": "TCP",
    "rtt": "round-trip time",
    "io": "I/O",
    "vcpu": "virtual CPU",
    "usd": "USD",
}
_FIGURES = re.compile(r"[0-9][0-9.,]*")

# Factors of a neighbour's load; at the baseline there is none.
_LOAD = frozenset({"intensity", "neighbours", "resource"})

MAX_NAMES = 4
"""Targets that a sentence names."""

GROUPS: Mapping[str, str] = {
    "cpu": "CPU",
    "mem": "Memory",
    "disk": "Disk",
    "storage": "Storage",
    "net": "Network",
    "sys": "System",
    "sim": "Simulation",
}
"""Title of each group of benchmarks, in the report's order; other groups follow by name."""


def clean(text: object) -> str:
    """Text from a machine, on one line and without control characters."""
    return " ".join(printable(str(text)).split())


def group_of(benchmark: str) -> str:
    """Title of the group of a benchmark: 'cpu.pi' is of 'CPU', 'iperf3' of 'Other'."""
    head, dot, _ = benchmark.partition(".")
    return GROUPS.get(head, head.upper()) if dot else "Other"


def group_rank(benchmark: str) -> tuple[int, str]:
    """Sort key of a benchmark's group: the order of GROUPS, then by name."""
    titles = list(GROUPS.values())
    title = group_of(benchmark)
    return (titles.index(title) if title in titles else len(titles), title)


def metric_name(metric: str) -> str:
    """A metric's name as words, without its unit: 'latency_p99_ns' is 'latency p99'."""
    stem, kind = metric, ""
    for ending, word in _UNIT_ENDINGS.items():
        if stem.endswith(ending) and stem != ending[1:]:
            stem, kind = stem.removesuffix(ending), word
            break
    words = re.sub(r"_p(\d\d)(\d+)$", r"_p\1.\2", stem).split("_")  # p999 is p99.9
    return clean(" ".join(_ACRONYMS.get(word, word) for word in words) + kind)


def full_name(benchmark: str, metric: str) -> str:
    """Benchmark and metric, without saying a word twice: 'mem.stream throughput'."""
    name = metric_name(metric)
    last = benchmark.rpartition(".")[2]
    first, _, rest = name.partition(" ")
    return clean(f"{benchmark} {rest if rest and first.lower() == last else name}")


def line_name(
    benchmark: str, metric: str, factors: Mapping[str, Any], leave_out: Iterable[str] = ()
) -> str:
    """A metric with its setting: 'mem.stream throughput (triad)'."""
    name, own = full_name(benchmark, metric), factors_text(factors, leave_out)
    return f"{name} ({own})" if own else name


def target_text(target: str, conditions: Mapping[str, Any]) -> str:
    """A target, and the conditions under which something holds of it."""
    own = factors_text(conditions)
    return f"{clean(target)}, {own}" if own else clean(target)


def level_text(name: str, level: Any) -> str:
    """One factor with its level: '2 threads', 'block 4 KiB', 'direct', 'triad', 'CPU 0'."""
    number = as_number(level)
    if isinstance(level, str) and level.lstrip().startswith("{"):
        return clean(level_name(level))
    if name in ("threads", "streams") and isinstance(level, int) and not isinstance(level, bool):
        return plural(level, name[:-1])
    if name == "pages":
        return f"{clean(level)} pages"
    if isinstance(level, bool):
        words = " ".join(_ACRONYMS.get(word, word) for word in name.split("_"))
        return clean(words if level else f"not {words}")
    stem, text = name, clean(level)
    if name.endswith("_bytes") and number is not None:
        stem, text = name.removesuffix("_bytes"), bytes_text(number)
    elif name.endswith("_ns") and number is not None:
        stem, text = name.removesuffix("_ns"), units.format_value(number, "ns")
    elif isinstance(level, str) and not (
        # A region may bear the name of a user base; 'a', 'none' and '50ms' alone say nothing.
        name in ("user_base", "arm") or level == "none" or level[:1].isdigit()
    ):
        return text
    words = " ".join(_ACRONYMS.get(word, word) for word in stem.split("_"))
    return f"{words} {text}"


def factors_text(factors: Mapping[str, Any], leave_out: Iterable[str] = ()) -> str:
    """A setting in words; the order is that of the factors' names."""
    hidden = set(leave_out)
    if factors.get("process") == 0:  # the only loop of its CPU
        hidden.add("process")
    is_baseline = factors.get("resource") == "none" and not hidden & _LOAD
    hidden |= _LOAD if is_baseline else set()
    texts = [level_text(k, v) for k, v in sorted(factors.items()) if k not in hidden]
    return ", ".join(["baseline", *texts] if is_baseline else texts)


def bytes_text(value: float) -> str:
    """A size: '4 KiB', '1.5 MiB'."""
    divisor, label = units.scale_of("bytes", value)
    return f"{value / divisor:.4g} {label}"


def setting_text(metric: MetricResult, targets: int, leave_out: Iterable[str] = ()) -> str:
    """The setting of a metric in words, with its target where there are several."""
    target = clean(metric.target) if targets > 1 else ""
    return ", ".join(filter(None, (target, factors_text(metric.factors, leave_out))))


def digits_for(estimate: Estimate) -> int:
    """Significant digits that show the interval's width, from 3 to 6."""
    return units.interval_digits(estimate.value, estimate.low, estimate.high)


def value_text(estimate: Estimate) -> str:
    """The value with its unit: '11.2 GB/s'."""
    if _is_large_count(estimate):
        return _count(estimate.value, estimate)
    return units.format_value(estimate.value, estimate.unit, digits_for(estimate))


def interval_text(estimate: Estimate) -> str:
    """The interval in the value's unit, '[11.0, 11.4]', or that there is none."""
    if estimate.low is None and estimate.high is None:
        return f"none (n = {estimate.n})"  # the note says why, among the warnings
    divisor, _ = units.scale_of(estimate.unit, estimate.value)
    digits = digits_for(estimate)
    sides = [
        "?"
        if side is None
        else _count(side, estimate)
        if _is_large_count(estimate)
        else units.format_number(side / divisor, digits)
        for side in (estimate.low, estimate.high)
    ]
    missing = f" ({clean(estimate.note)})" if "?" in sides and estimate.note else ""
    return f"[{sides[0]}, {sides[1]}]{missing}"


def _is_large_count(estimate: Estimate) -> bool:
    return estimate.unit == "count" and abs(estimate.value) >= 10_000


def _count(value: float, estimate: Estimate) -> str:
    """'65,000,000': digits beyond what the interval tells are noughts; an exact count is whole."""
    if estimate.low is not None and estimate.high is not None and estimate.low < estimate.high:
        value = float(f"{value:.{digits_for(estimate) - 1}e}")
    return f"{value:,.0f}"


def estimate_text(estimate: Estimate) -> str:
    """The whole estimate in a sentence: '11.2 GB/s [11.0, 11.4] (n = 12)'."""
    interval = interval_text(estimate)
    if not interval.startswith("["):
        return f"{value_text(estimate)} (interval: {interval}; n = {estimate.n})"
    return f"{value_text(estimate)} {interval} (n = {estimate.n})"


def estimate_cells(estimate: Estimate) -> tuple[str, str, str]:
    """Value, interval and n of an estimate, for a table's row."""
    return value_text(estimate), interval_text(estimate), str(estimate.n)


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
    """Returns the consistency: 'steady, 1.2 % [0.8, 2.0]' (robust coefficient of variation)."""
    if consistency.robust_cv is None:
        return clean(consistency.word) or "unknown"
    return f"{clean(consistency.word)}, {percent(consistency.robust_cv)}"


def slug(name: str) -> str:
    """A name as a word that may be an anchor: 'cpu.pi' is 'cpu-pi'."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "x"


def excluded_rows(result: RunResult) -> list[str]:
    """Returns a sentence for each setting that is in no table, as all its trials were excluded."""
    several = len(result.run.targets) > 1
    return [
        clean(
            f"{one.benchmark} ({factors_text(one.factors) or 'no factors'})"
            f"{f' on {one.target}' if several else ''}: no result, {plural(one.trials, 'trial')} "
            f"excluded: {one.reason}."
        )
        for one in excluded_settings(result)
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


def run_line(result: RunResult) -> str:
    """Returns numbers of trials, confidence, seed and identifier of a run, below its results."""
    trials = result.run.trials
    return (
        f"{trials.valid} valid trials, {trials.invalid + trials.failed} excluded; confidence "
        f"{100 * result.run.confidence:g} %; seed {result.run.seed}; run {result.run.id}"
    )


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


def plural(count: int, noun: str) -> str:
    """'1 finding', '3 findings'."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


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
    """Returns the distribution of precision: the shares of metrics within 2, 5 and 10 %."""
    if not reached.metrics:
        return ""
    what = plural(reached.metrics, "headline metric")
    return f"Precision of {what}: {precision_sentence(reached)}."
