"""Results drawn at random, and the claim of every finding, checked against their figures.

Each check reads the printed sentence back and computes the claim again from the drawn values: a
sentence that does not agree with them is a contradiction on the page.
"""

from __future__ import annotations

import random
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.results.made import run_data

from nephoscope.core.model import Better, Finding, MetricResult, TrialKey, TrialRecord, TrialStatus
from nephoscope.features.machine.result import analyse, rates_of_all_threads
from nephoscope.results import findings, lines
from nephoscope.results.lines import Group, LineId, Wanted
from nephoscope.results.machine_figures import MachineFigures
from nephoscope.results.precision import relative_half_width
from stats.judging import changed

SCALED = dict(sorted(rates_of_all_threads()))
WANTED = Wanted(10, 100, 0.02, frozenset({"pi_digits_per_s", "hash_bytes_per_s"}))


@dataclass(frozen=True)
class Drawn:
    """A drawn result: its lines, trials and findings."""

    fingerprint: Any
    metrics: tuple[MetricResult, ...]
    records: tuple[TrialRecord, ...]
    figures: MachineFigures
    findings: tuple[Finding, ...]

    def values(self, metric: str, threads: int) -> tuple[float, ...]:
        (line,) = [
            one
            for one in self.metrics
            if (one.metric, one.factors.get("threads")) == (metric, threads)
        ]
        return line.trial_values

    def counted(self, key: str) -> list[tuple[float, float]]:
        """(duration, counter) of the trials that show the counter."""
        return [
            (float(one.counters["elapsed_ns"]), float(one.counters[key]))
            for one in self.records
            if one.key.round > 0 and one.counters.get(key) is not None
        ]


def draw(seed: int) -> Drawn:
    """Draws rates of one and two threads, shares of CPUs, and trials with their counters."""
    rng = random.Random(seed)
    n, noise = rng.choice((3, 6, 9, 10, 12, 25)), rng.choice((0.0, 0.002, 0.02, 0.15))
    ideal = rng.choice((1.0, 0.95, 0.85, 0.5))

    def noisy(value: float) -> float:
        return value * (1 + noise * rng.uniform(-1, 1))

    metrics: list[MetricResult] = []

    def add(benchmark: str, metric: str, unit: str, factors: str, values: list[float]) -> None:
        group = Group(unit, Better.HIGHER, "t", values, list(range(1, n + 1)))
        key = LineId(benchmark, metric, "local", factors)
        metrics.append(lines.scalar_line(key, group, confidence=0.95, wanted=WANTED))

    per_thread = {"cpu.hash": "hash_thread_bytes_per_s"}
    for benchmark, total in SCALED.items():
        for threads in (1, 2):
            factors = f'{{"threads":{threads}}}'
            share = 1.0 if threads == 1 else ideal
            values = [noisy(1e5 * threads * share) for _ in range(n)]
            add(benchmark, total, "per_s", factors, values)
            if benchmark in per_thread:
                own = [value / threads for value in values]
                add(benchmark, per_thread[benchmark], "per_s", factors, own)
    for cpu in (0, 1):
        shares = [min(1.0, noisy(rng.choice((1.0, 0.97, 0.6)))) for _ in range(n)]
        add("cpu.gaps", "cpu_share_ratio", "ratio", f'{{"cpu":{cpu}}}', shares)
    records = tuple(_record(rng, number) for number in range(rng.choice((0, 1, 8, 60))))
    boot = rng.choice((0.0, 0.2))
    fingerprint = changed(counters__steal_since_boot_ratio=boot)
    figures = analyse(run_data(records, metrics))
    found = findings.findings(
        {"local": fingerprint}, metrics, findings.summarise(records), (figures,)
    )
    return Drawn(fingerprint, tuple(metrics), records, figures, found)


def _record(rng: random.Random, number: int) -> TrialRecord:
    elapsed_ns = rng.choice((50_000_000, 100_000_000, 1_000_000_000))
    ticks = rng.choice((0, 0, 0, 0, 1, 1, rng.randrange(20)))
    status = rng.choice((*[TrialStatus.VALID] * 8, TrialStatus.INVALID, TrialStatus.FAILED))
    beside = {
        "elapsed_ns": elapsed_ns,
        "steal_ratio": rng.choice((None, min(1.0, ticks * 1e7 / elapsed_ns))),
        "throttled_ratio": rng.choice((None, 0.0, 0.0, 0.004, 0.3)),
        "swap_in_count": rng.choice((0, 0, 0, 3)),
    }
    key = TrialKey(rng.choice((0, 1, 2, 3)), number, "local")
    return TrialRecord(key, "null", {}, {}, status, ("drawn",), number, 0.0, elapsed_ns, beside)


def contradictions(drawn: Drawn) -> list[str]:
    """Returns every finding whose claim the drawn values do not bear, and every one missing."""
    found = {one.id: one for one in drawn.findings}
    wrong = [f"{name}: no claim is written for it" for name in found.keys() - CLAIMS.keys()]
    for name, claim in CLAIMS.items():
        for what, holds in claim(drawn, found.get(name)).items():
            if not holds:
                wrong.append(f"{name}: {what}: {found.get(name)}")
    return wrong


def numbers(text: str) -> list[float]:
    """The numbers of a sentence, in order."""
    return [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", text)]


def agrees(printed: float, value: float) -> bool:
    """Whether a printed percentage is this ratio, to the digits of its interval."""
    return abs(printed / 100 - value) <= 0.005 * max(abs(value), 0.01) + 5e-4


def _repetitions(n: int) -> str:
    return "(1 trial)" if n == 1 else f"n = {n})"


Claim = Callable[[Drawn, Finding | None], dict[str, bool]]


def _scaling(drawn: Drawn, finding: Finding | None) -> dict[str, bool]:
    shares = {
        name: [
            two / (2 * one)
            for one, two in zip(drawn.values(total, 1), drawn.values(total, 2), strict=True)
        ]
        for name, total in SCALED.items()
    }
    if finding is None:
        # The value decides where there is no interval.
        known = [one for curve in drawn.figures.scaling for one in curve.efficiency.values()]
        low = [one for one in known if (one.value if one.high is None else one.high) < 0.9]
        return {"is missing": not low}
    name = next(one for one in SCALED if one in finding.sentence)
    evidence = " ".join(finding.evidence)
    value = numbers(finding.sentence.partition(" reach ")[2])[0]
    return {
        "value": agrees(value, statistics.median(shares[name])),
        "direction": value < 90,
        # Of those whose interval shows it: a wide one may hide a still lower value.
        "the worst comes first": statistics.median(shares[name])
        <= min(statistics.median(of) for one, of in shares.items() if one in evidence) + 1e-9,
    }


def _cpu_share(drawn: Drawn, finding: Finding | None) -> dict[str, bool]:
    shares = [one.estimate for one in drawn.metrics if one.metric == "cpu_share_ratio"]
    low = [one for one in shares if (one.value if one.high is None else one.high) < 0.99]
    if finding is None:
        return {"is missing": not low}
    value = numbers(finding.sentence)[0]
    return {
        "value": agrees(value, min(one.value for one in low)),
        "n": _repetitions(shares[0].n) in finding.sentence,
        "lines": len([one for one in finding.evidence if one.startswith("CPU ")]) == len(low),
    }


def _steal(drawn: Drawn, finding: Finding | None) -> dict[str, bool]:
    readings = drawn.counted("steal_ratio")
    whole = sum(duration for duration, _ in readings)
    pooled = sum(duration * ratio for duration, ratio in readings) / whole if whole else None
    if finding is None or pooled is None:
        # Of few trials the interval reaches below 1 %, however much was stolen in one of them.
        missing = pooled is not None and pooled > 0.2 and len(readings) > 20
        return {"is missing": not missing}
    during = finding.sentence.partition("during the run: ")[2] or finding.sentence
    value, low = [*numbers(during), 0.0][:2]
    since_boot = "since boot" in finding.sentence
    return {
        "value": agrees(value, pooled),
        "direction": since_boot or (low > 1 and pooled > 0.01),
        "n": _repetitions(len(readings)) in during,
    }


def _throttled(drawn: Drawn, finding: Finding | None) -> dict[str, bool]:
    readings = [ratio for _, ratio in drawn.counted("throttled_ratio")]
    stopped = sum(ratio > 0 for ratio in readings)
    if finding is None:
        return {"is missing": stopped == 0}
    return {"counts": numbers(finding.sentence) == [stopped, len(readings)]}


def _swapping(drawn: Drawn, finding: Finding | None) -> dict[str, bool]:
    moved = sum(one.counters["swap_in_count"] > 0 for one in drawn.records if one.key.round > 0)
    total = sum(one.key.round > 0 for one in drawn.records)
    if finding is None:
        return {"is missing": moved == 0}
    return {"counts": numbers(finding.sentence) == [moved, total]}


def _many_invalid(drawn: Drawn, finding: Finding | None) -> dict[str, bool]:
    real = [one for one in drawn.records if one.key.round > 0]
    lost = [one for one in real if one.status is not TrialStatus.VALID]
    if finding is None:
        return {"is missing": not real or len(lost) / len(real) <= 0.05}
    return {
        "counts": numbers(finding.sentence) == [len(lost), len(real)],
        "evidence adds up": sum(numbers(finding.evidence[0])) == len(lost),
    }


def _not_converged(drawn: Drawn, finding: Finding | None) -> dict[str, bool]:
    headline = [one for one in drawn.metrics if one.headline]
    wide = []
    for one in headline:
        width = relative_half_width(one.estimate)
        if width is None or width > WANTED.relative_half_width or one.estimate.n < WANTED.n_min:
            wide.append(one)
    consistent = {
        "a warning for each": [one for one in headline if one.warnings] == wide,
        "widths": all(
            numbers(text)[0] > 100 * WANTED.relative_half_width
            for one in headline
            for text in one.warnings
            if "±2 %" in text and "no interval" not in text
        ),
    }
    if finding is None:
        return {**consistent, "is missing": not wide}
    return {**consistent, "counts": numbers(finding.sentence)[:2] == [len(wide), len(headline)]}


def _erratic(drawn: Drawn, finding: Finding | None) -> dict[str, bool]:
    headline = [one for one in drawn.metrics if one.headline]
    wild = [
        one for one in headline if one.consistency.word == "erratic" and one.consistency.certain
    ]
    if finding is None:
        return {"is missing": not wild}
    return {"counts": numbers(finding.sentence)[:2] == [len(wild), len(headline)]}


def _two_modes(drawn: Drawn, finding: Finding | None) -> dict[str, bool]:
    if finding is None:
        return {}
    by_name = [re.findall(r"(\d+) trials around|, (\d+) around", one) for one in finding.evidence]
    counts = [sum(int(a or b) for a, b in found) for found in by_name]
    n = {one.estimate.n for one in drawn.metrics}
    return {"counts": set(counts) <= n, "number": numbers(finding.sentence)[0] == len(counts)}


def _slow_trials(drawn: Drawn, finding: Finding | None) -> dict[str, bool]:
    if finding is None:
        return {}
    value, low, high = numbers(finding.sentence.partition(" was ")[2] or finding.sentence)[-3:]
    told = re.search(r"(\d+\.\d+) \[(\d+\.\d+), (\d+\.\d+)\] times as slow", finding.sentence)
    assert told is not None
    value, low, high = map(float, told.groups())
    return {"direction": low >= 1, "inside": low <= value <= high}


CLAIMS: dict[str, Claim] = {
    "scaling": _scaling,
    "cpu_share": _cpu_share,
    "steal": _steal,
    "throttled": _throttled,
    "swapping": _swapping,
    "many_invalid": _many_invalid,
    "not_converged": _not_converged,
    "erratic": _erratic,
    "two_modes": _two_modes,
    "slow_trials": _slow_trials,
}
