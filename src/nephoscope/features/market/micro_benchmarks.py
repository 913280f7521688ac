"""Features of a server type: what a minute of small benchmarks shows of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.sentences import listed
from nephoscope.stats.statistics.values import Array
from nephoscope.store.market.records import ServerType

ARM = "aarch64"
_LEAST_SPREAD = 1e-6
_COVERED = 0.95
"""Share of the best covered metric's types that a metric has to have, to be a feature."""


@dataclass(frozen=True, slots=True)
class _MicroBenchmark:
    """Metrics of one tool. pattern: their names; of those with equal groups one is used. per_cpu:
    whether the rate is that of all CPUs together."""

    name: str
    pattern: re.Pattern[str]
    per_cpu: bool = False


_SOURCES = (
    _MicroBenchmark("CPU on one thread", re.compile(r"stress-ng\.div16/ops_per_s workers=1")),
    _MicroBenchmark(
        "CPU on all threads", re.compile(r"stress-ng\.div16/ops_per_s workers=all"), True
    ),
    _MicroBenchmark("hashing", re.compile(r"openssl\.sha256/bytes_per_s block=16384"), True),
    _MicroBenchmark(
        "compression",
        re.compile(r"compression\.(zstd|brotli|lz4)/compress_bytes_per_s (?:.*,)?threads=1"),
    ),
    _MicroBenchmark(
        "memory bandwidth", re.compile(r"bw_mem\.(rd|wr|rdwr)/bytes_per_s mb=([0-9.]+)")
    ),
    _MicroBenchmark("PassMark on one thread", re.compile(r"passmark/cpu_singlethread")),
    _MicroBenchmark("PassMark on all threads", re.compile(r"passmark/summ_cpu"), True),
    _MicroBenchmark("PassMark memory", re.compile(r"passmark/(me_latency|summ_me)")),
)
_FACTS = "CPUs, threads per core, architecture"


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What is known of a machine besides its rates."""

    cpus: int
    threads_per_core: int
    architecture: str

    @classmethod
    def of(cls, server: ServerType) -> MachineFacts | None:
        """Returns those of a type; None where the number of CPUs is not known."""
        if not server.cpus:
            return None
        return cls(server.cpus, server.threads_per_core or 1, server.architecture)


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """The metrics that are features. blocks: source -> places of its columns."""

    metrics: Sequence[str]
    per_cpu: Sequence[bool]
    blocks: Mapping[str, Sequence[int]]

    def row(self, rates: Mapping[str, float], facts: MachineFacts) -> Array | None:
        """Returns the features of a machine; None where one is missing."""
        values = np.array([rates.get(name, np.nan) for name in self.metrics])
        if not (np.isfinite(values).all() and (values > 0).all()):
            return None
        cpus = float(np.log(facts.cpus))
        logs = np.log(values) - np.where(self.per_cpu, cpus, 0.0)
        known = [cpus, float(facts.threads_per_core > 1), float(facts.architecture == ARM)]
        return np.concatenate([logs, known])

    def beyond(self, row: Array, known: Array) -> str:
        """Returns the figure that lies farthest outside of those of known rows, in words; empty
        where each is inside, so that only their combination is unusual."""
        under, over = known.min(axis=0) - row, row - known.max(axis=0)
        spread = np.maximum(known.std(axis=0), _LEAST_SPREAD)
        place = int(np.argmax(np.maximum(under, over) / spread))
        distance = float(max(under[place], over[place]))
        if distance <= 0 or place > len(self.metrics):
            return ""
        end = "lowest" if under[place] > 0 else "highest"
        factor = float(np.exp(-distance if under[place] > 0 else distance))
        if place == len(self.metrics):
            return f"its number of CPUs is {factor:.2g} times the {end} of all measured types"
        per_cpu = " for each CPU" if self.per_cpu[place] else ""
        metric = self.metrics[place]
        name = next(source.name for source in _SOURCES if source.pattern.fullmatch(metric))
        return (
            f"its figure of {name}{per_cpu} is {factor:.2g} times the {end} of all measured types"
        )

    def missing(self, rates: Mapping[str, float]) -> list[str]:
        """Returns the metrics that a machine lacks."""
        return [name for name in self.metrics if not rates.get(name, 0) > 0]


def candidates(metrics: Iterable[str], work: str) -> list[str]:
    """Returns the metrics that may be features of a work's metric: none of the same tool."""
    tool = work.partition("/")[0].partition(".")[0]
    return sorted(
        name
        for name in metrics
        if name.partition("/")[0].partition(".")[0] != tool
        and any(source.pattern.fullmatch(name) for source in _SOURCES)
    )


def feature_set(counts: Mapping[str, int], least: int = 2) -> FeatureSet:
    """Returns the features. counts: types with each metric. least: sources that are needed;
    UsageError where there are fewer."""
    by_key: dict[tuple[str, ...], list[tuple[int, str]]] = defaultdict(list)
    for name, number in counts.items():
        for source in _SOURCES:
            match = source.pattern.fullmatch(name)
            if match:
                by_key[(source.name, *match.groups())].append((-number, name))
    chosen = {key: min(own) for key, own in by_key.items()}
    most = max((-number for number, _ in chosen.values()), default=0)
    names: list[str] = []
    per_cpu: list[bool] = []
    blocks: dict[str, list[int]] = defaultdict(list)
    for source in _SOURCES:
        for key in sorted(key for key in chosen if key[0] == source.name):
            number, name = chosen[key]
            if -number >= _COVERED * most:
                blocks[source.name].append(len(names))
                names.append(name)
                per_cpu.append(source.per_cpu)
    if len(blocks) < least:
        raise UsageError(
            "The imported figures have too few small benchmarks to predict others from: "
            f"{listed(sorted(blocks)) or 'none'}.",
            f"Import some of: {listed([source.name for source in _SOURCES])}.",
        )
    blocks[_FACTS] = [*range(len(names), len(names) + 3)]
    return FeatureSet(names, per_cpu, dict(blocks))
