"""Rates of a stored run under the names of the published figures that were measured alike.

The published ones come from `openssl speed -elapsed -multi CPUS -evp ALGORITHM`, `stress-ng --cpu
WORKERS --cpu-method div16` and `bw_mem -P CPUS SIZE OPERATION`, as the scripts of their publisher
state (SpareCores/sc-images, sc-inspector). The adapters of these tools run the same commands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nephoscope.core.model import MetricResult
from nephoscope.results.run_data import RunData
from nephoscope.stats import facts

_SHA = frozenset({"sha_ni", "sha2"})
_BLOCK_BYTES = 16_384
_SIZES_ALIKE = 0.1
_OPERATIONS = {"read": "rd", "write": "wr", "read-write": "rdwr"}
_ARRAY = re.compile(r"bw_mem\.(rd|wr|rdwr)/bytes_per_s mb=([0-9.]+)")


@dataclass(frozen=True, slots=True)
class MeasurementRelation:
    """How a rate measured here relates to the published one. low, high: what it is multiplied by
    to have bounds of the published one. text: the relation in words."""

    text: str
    low: float = 1.0
    high: float = 1.0


SAME_TOOL = MeasurementRelation("same program and settings")
SAME_INSTRUCTIONS = MeasurementRelation(
    "same SHA instructions; rates of both programs differed by 1 % on one CPU model, 3 % are "
    "allowed for",
    0.97,
    1.03,
)


@dataclass(frozen=True, slots=True)
class ComparableRate:
    """A line of a run, which has an interval. metric: of the published figures."""

    line: MetricResult
    metric: str
    relation: MeasurementRelation

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval of the published figure that the line stands for."""
        estimate = self.line.estimate
        assert estimate.low is not None
        assert estimate.high is not None
        return estimate.low * self.relation.low, estimate.high * self.relation.high


class IncomparableError(Exception):
    """Says why a line has no published counterpart."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """What a line was measured with. features: of the CPU. published: names of metrics."""

    params: Mapping[str, Any]
    cpus: int
    features: Collection[str]
    published: Collection[str]

    def require_all_cpus(self) -> None:
        if self.params.get("threads") != self.cpus:
            raise IncomparableError(
                f"the published rate is that of all CPUs together, here {self.cpus}"
            )


_Match = Callable[[_Setting], tuple[Sequence[str], MeasurementRelation]]


def comparable_rates(
    data: RunData, target: str, published: Collection[str]
) -> tuple[list[ComparableRate], dict[str, str]]:
    """Returns the lines of a target that compare with published metrics, and why headline lines of
    other benchmarks do not: label -> reason."""
    fingerprint = data.fingerprints.get(target)
    cpus, features = cpus_of(fingerprint), facts.items(fingerprint, "cpu.features") or ()
    rates: dict[str, ComparableRate] = {}
    left_out: dict[str, str] = {}
    for line in data.metrics:
        if line.target != target:
            continue
        match = _MATCHES.get((line.benchmark, line.metric))
        if match is None:
            if line.headline and line.benchmark in _REASONS:
                left_out[line.benchmark] = _REASONS[line.benchmark]
            continue
        try:
            metrics, relation = match(_Setting(_params_of(data, line), cpus, features, published))
        except IncomparableError as why:
            left_out[line.benchmark] = str(why)
            continue
        for metric in metrics:
            if line.estimate.low is None or line.estimate.high is None:
                left_out[line.benchmark] = "it has too few trials for an interval"
            elif metric not in published:
                left_out[line.benchmark] = f"no imported type has {metric}"
            elif metric not in rates or relation is SAME_TOOL:
                rates[metric] = ComparableRate(line, metric, relation)
    compared = {rate.line.benchmark for rate in rates.values()}
    return [*rates.values()], {name: why for name, why in left_out.items() if name not in compared}


def cpus_of(fingerprint: Any) -> int:
    """Returns how many CPUs the processes of a machine may use; 0 where it is not known."""
    return len(facts.items(fingerprint, "topology.allowed_cpus") or ())


def _params_of(data: RunData, line: MetricResult) -> Mapping[str, Any]:
    """Returns all parameters of a line: defaults, the plan's, and the levels of its factors."""
    defaults = {param.id: param.default for param in data.run.spec(line.benchmark).params}
    for record in data.records:
        if (record.benchmark, record.key.target) == (line.benchmark, line.target) and all(
            line.factors.get(name) == level for name, level in record.factors.items()
        ):
            return {**defaults, **record.params, **record.factors}
    return defaults


def _cpu_hash(setting: _Setting) -> tuple[Sequence[str], MeasurementRelation]:
    setting.require_all_cpus()
    if setting.params.get("block_bytes") != _BLOCK_BYTES:
        raise IncomparableError("the published rate is that of blocks of 16 KiB")
    if _SHA.isdisjoint(setting.features):
        raise IncomparableError(
            "this CPU shows no SHA instructions, without which OpenSSL has other code"
        )
    return [f"openssl.sha256/bytes_per_s block={_BLOCK_BYTES}"], SAME_INSTRUCTIONS


def _openssl(setting: _Setting) -> tuple[Sequence[str], MeasurementRelation]:
    setting.require_all_cpus()
    name = (
        f"openssl.{setting.params['algorithm']}/bytes_per_s block={setting.params['block_bytes']}"
    )
    return [name], SAME_TOOL


def _stress_ng(setting: _Setting) -> tuple[Sequence[str], MeasurementRelation]:
    if setting.params.get("method") != "div16":
        raise IncomparableError("the published rate is that of the method div16")
    threads = setting.params.get("threads")
    if threads != 1:
        setting.require_all_cpus()
    workers = ["1"] * (threads == 1) + ["all"] * (threads == setting.cpus)
    return [f"stress-ng.div16/ops_per_s workers={each}" for each in workers], SAME_TOOL


def _memory(setting: _Setting) -> tuple[Sequence[str], MeasurementRelation]:
    operation = _OPERATIONS.get(str(setting.params.get("operation")))
    if operation is None:
        raise IncomparableError("the published rates are of read, write and read-write")
    setting.require_all_cpus()
    for name in setting.published:
        size = _ARRAY.fullmatch(name)
        if size and size[1] == operation:
            ratio = setting.params["array_bytes"] / (float(size[2]) * 1e6)
            if abs(ratio - 1) <= _SIZES_ALIKE:
                return [name], SAME_TOOL
    raise IncomparableError("no imported type has a bandwidth of such an array")


_MATCHES: Mapping[tuple[str, str], _Match] = {
    ("openssl", "hash_bytes_per_s"): _openssl,
    ("stress-ng.cpu", "operations_per_s"): _stress_ng,
    ("lmbench.memory", "memory_bytes_per_s"): _memory,
    ("cpu.hash", "hash_bytes_per_s"): _cpu_hash,
}
"""Benchmark and metric -> what finds the published metrics; raises IncomparableError."""
_NO_RELATION = "the published ones count bytes in another way, and no relation was measured"
_REASONS: Mapping[str, str] = {
    "cpu.pi": "no published benchmark computes digits of π",
    "cpu.gaps": "no pauses were published",
    "mem.stream": _NO_RELATION,
    "mem.cache": _NO_RELATION,
    "mem.latency": "the pages and the order of loads of the published latency are not stated",
    "disk.io": "no rates of disks were published",
    "disk.sync": "no rates of disks were published",
    "net.loopback": "no rates of networks were published",
}
"""Benchmark of the survey -> why it compares with no published figure."""
BENCHMARKS = frozenset(benchmark for benchmark, _ in _MATCHES)
