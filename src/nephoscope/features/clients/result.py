"""Where client and server of each result ran, and how much CPU time the client used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from nephoscope import catalog
from nephoscope.catalog import BenchmarkSpec
from nephoscope.core.errors import UnknownName
from nephoscope.core.model import Better, TrialRecord, TrialStatus, stored_ends
from nephoscope.core.naming import as_number
from nephoscope.core.records import dataclass
from nephoscope.measure.runs.trials.records import OF_CLIENT
from nephoscope.results.run_data import RunData
from nephoscope.stats import facts

BUSY = "own_busy_cpus"
"""Counter of a trial: CPUs that the client's programs used on average."""

BOTTLENECK_RATIO = 0.9
"""A client whose threads use more than this share of the CPUs that they can use sends no faster."""


@dataclass(frozen=True, slots=True)
class EndsOfResult:
    """Client and server of the trials of one benchmark on one target.

    server: the target whose running service was measured, where the benchmark starts none.
    client_cpus: CPUs that the client used, median over trials; usable_cpus: that its threads can
    use, on the machine's CPUs and under its quota; null where unknown. trials: valid ones.
    is_rate: the benchmark has a headline metric that a slow client lowers.
    """

    benchmark: str
    target: str
    client: str
    server: str
    trials: int
    client_cpus: float | None
    usable_cpus: float | None
    is_rate: bool

    @property
    def is_shared(self) -> bool:
        """Returns whether client and server ran on one target."""
        return self.client == self.server

    @property
    def is_client_bound(self) -> bool:
        """Returns whether the client, elsewhere, had no CPU time left."""
        if self.is_shared or self.target == self.client or not self.is_rate:
            return False
        if self.client_cpus is None or not self.usable_cpus:
            return False
        return self.client_cpus >= BOTTLENECK_RATIO * self.usable_cpus


@dataclass(frozen=True, slots=True)
class ClientsAndServers:
    """The ends of a run's results; only of benchmarks with two."""

    lines: tuple[EndsOfResult, ...]


def analyse(data: RunData) -> ClientsAndServers | None:
    """Returns the ends by benchmark and target; None where no benchmark has two."""
    ends = stored_ends(data.manifest.settings)
    groups: dict[tuple[str, str, str, str], list[TrialRecord]] = {}
    for record in data.records:
        client, server = ends(record.key.setting, record.key.target)
        if server and record.key.round > 0 and record.status is TrialStatus.VALID:
            key = (record.benchmark, record.key.target, client, server)
            groups.setdefault(key, []).append(record)
    place = {name: at for at, name in enumerate(data.manifest.target_names)}
    in_order = sorted(groups.items(), key=lambda group: place.get(group[0][1], len(place)))
    lines = tuple(_line(data, *key, own) for key, own in in_order)
    return ClientsAndServers(lines) if lines else None


def _line(
    data: RunData,
    benchmark: str,
    target: str,
    client: str,
    server: str,
    records: Sequence[TrialRecord],
) -> EndsOfResult:
    key = BUSY if client == target else f"{OF_CLIENT}{BUSY}"
    used = [
        value for record in records if (value := as_number(record.counters.get(key))) is not None
    ]
    try:
        spec = data.run.spec(benchmark)
    except UnknownName:
        spec = None
    usable = [
        _usable_cpus(spec, record.params, data.fingerprints.get(client)) for record in records
    ]
    known = [value for value in usable if value is not None]
    return EndsOfResult(
        benchmark,
        target,
        client,
        server,
        len(records),
        median(used) if used else None,
        median(known) if known else None,
        spec is not None
        and any(metric.headline and metric.better is Better.HIGHER for metric in spec.metrics),
    )


def _usable_cpus(
    spec: BenchmarkSpec | None, params: Mapping[str, Any], fingerprint: Any
) -> float | None:
    """Returns how many CPUs the client's threads can use at most; None where that is unknown."""
    allowed = facts.items(fingerprint, "topology.allowed_cpus")
    if spec is None or not allowed:
        return None
    name = (catalog.spec_of(spec.id) or spec).thread_param
    # A client without such a parameter has a single thread.
    default = next((param.default for param in spec.params if param.id == name), 1)
    threads = as_number(params.get(name, default)) or len(allowed)  # 0 takes every CPU
    quota = facts.number(fingerprint, "limits.cpu_quota_cpus")
    return min(threads, len(allowed), *([quota] if quota else ()))
