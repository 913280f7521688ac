"""Boots, windows and system calls whose figures the test sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nephoscope.core.model import Better, Consistency, Estimate, Factors, MetricResult
from nephoscope.features.platforms import boot_figures, density
from nephoscope.features.platforms.records import (
    Boot,
    DensityStep,
    PlatformReport,
    UnavailablePlatform,
)

MEANS_NS = {
    "bare": {"reachable": 20e6},
    "container": {"userland": 100e6, "reachable": 160e6},
    "uml": {"output": 200e6, "kernel": 900e6, "userland": 1300e6, "reachable": 1900e6},
}
MEMORY = {"container": 2 << 20, "uml": 60 << 20}
MERGED = "the first output and its init's first line were seen at once"


def drawn_boots(platform: str, number: int = 6, noise: float = 0.02) -> list[Boot]:
    """Boots whose marks vary by so much around the platform's true means."""
    draw = np.random.default_rng(len(platform))
    boots = []
    for at in range(1, number + 1):
        factor = 1 + noise * float(draw.standard_normal())
        marks = {mark: round(mean * factor) for mark, mean in MEANS_NS[platform].items()}
        memory = MEMORY.get(platform)
        own = None if memory is None else round(memory * (1 + noise * draw.standard_normal()))
        boots.append(Boot(platform, at, marks, own, 5_000_000))
    return boots


def step(guests: int, ratio: float, low: float, high: float | None) -> DensityStep:
    """A step with this ratio of the p99."""
    estimate = Estimate(ratio, low, high, 0.95, 6, "ratio", "drawn")
    total = Estimate(100.0 * guests, 99.0 * guests, 101.0 * guests, 0.95, 6, "per_s", "drawn")
    return DensityStep(guests, guests, estimate, total)


def report() -> PlatformReport:
    """Three platforms measured, one that cannot run."""
    boots = {name: drawn_boots(name) for name in MEANS_NS}
    steps = [step(2, 1.1, 1.0, 1.3), step(4, 2.6, 2.2, 3.1), step(3, 1.6, 1.3, 2.1)]
    memory = Estimate(70e6, 65e6, 75e6, 0.95, 4, "bytes", "drawn")
    return PlatformReport(
        7,
        256 << 20,
        100.0,
        8,
        False,
        {},
        tuple(
            boot_figures.figures(name, made, {"output": MERGED} if name == "container" else {})
            for name, made in boots.items()
        ),
        (
            density.conclude("uml", steps, "the p99 doubled at 4 guests", memory),
            density.conclude("bare", [], "no guest", None),
        ),
        (UnavailablePlatform("qemu", "It needs qemu-img.", "Run `apt-get install qemu-utils`."),),
        tuple(boot for made in boots.values() for boot in made),
    )


def call_lines(
    times_ns: Mapping[str, Mapping[str, float]],
    *,
    rounds: int = 8,
    noise: float = 0.01,
    target: str = "guest",
    factors: Factors | None = None,
) -> list[MetricResult]:
    """Lines of sys.calls by platform and class, each round with its own disturbance."""
    lines = []
    shared = 1 + 0.05 * np.random.default_rng(1).standard_normal(rounds)
    for platform, calls in times_ns.items():
        for call, mean in calls.items():
            draw = np.random.default_rng(sum(map(ord, platform + call)))
            values = mean * shared * (1 + noise * draw.standard_normal(rounds))
            level = {"platform": platform, "call": call, **(factors or {})}
            lines.append(line("sys.calls", "call_ns", target, level, values.tolist()))
    return lines


def line(
    benchmark: str, metric: str, target: str, factors: Factors, values: Sequence[float]
) -> MetricResult:
    """A metric line with these values in rounds 1, 2, …"""
    median = float(np.median(values))
    return MetricResult(
        benchmark=benchmark,
        metric=metric,
        target=target,
        factors=factors,
        better=Better.LOWER,
        estimate=Estimate(median, min(values), max(values), 0.95, len(values), "ns", "median"),
        consistency=Consistency(None, None, None, None, None, "unknown"),
        headline=True,
        warnings=(),
        trial_values=tuple(values),
        rounds=tuple(range(1, len(values) + 1)),
    )
