"""Trials with a load balancer: the generators of one trial merged, with the counters beside it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from nephoscope import catalog
from nephoscope.catalog import instruments
from nephoscope.catalog.adapters.http_nginx import ID as NGINX_SERVER
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Sample, TrialRecord
from nephoscope.core.records import dataclass
from nephoscope.features.balance.plan import BALANCER, BALANCERS, DIRECT, SERVERS
from nephoscope.results import names
from nephoscope.results.run_data import RunData
from nephoscope.stats.statistics import histograms
from nephoscope.stats.statistics.values import Array
from nephoscope.store import counts

GENERATOR = instruments.HTTP_LOAD
ANY = "any"
"""The kind of error that stands for all of them."""


@dataclass(frozen=True, slots=True)
class BackgroundSamples:
    """Samples of a background, with its name, benchmark and parameters."""

    name: str
    benchmark: str
    params: Mapping[str, Any]
    samples: Sequence[Sample]

    def sum(self, metric: str) -> float:
        """Returns the sum of a metric over its factors."""
        return sum(sample.value for sample in self.samples if sample.metric == metric)

    def times_ns(self, metric: str, **factors: str) -> list[int]:
        """Returns the moments of an event on the wall clock, ascending."""
        started_ns = int(self.sum("started_wall_ns"))
        return sorted(
            started_ns + sample.at_ns
            for sample in self.samples
            if sample.metric == metric
            and all(sample.factors.get(k) == v for k, v in factors.items())
        )

    @property
    def address(self) -> str:
        """Returns where it listens."""
        return f"{self.params['address']}:{self.params['port']}"

    @property
    def served(self) -> float:
        """Returns the responses that a server counted."""
        spec = catalog.load().benchmark(self.benchmark)
        return self.sum(spec.response_counter)


@dataclass(frozen=True)
class BalancedTrial:
    """One trial of all its generators. counters: of the backgrounds, by name."""

    round: int
    balancer: str
    records: Sequence[TrialRecord]
    samples: Sequence[Sequence[Sample]]
    counters: Mapping[str, BackgroundSamples] = field(default_factory=dict)

    @property
    def params(self) -> Mapping[str, Any]:
        """Parameters of a generator."""
        return self.records[0].params

    @property
    def generators(self) -> int:
        """Number of generators."""
        return len(self.records)

    @property
    def connections(self) -> int:
        """Connections of all generators together."""
        return int(self.params["connections"]) * self.generators

    @property
    def is_closed(self) -> bool:
        """Returns whether its generators wait for a response before they send again."""
        return bool(self.params.get("arrivals", "closed") == "closed")

    def sum(self, metric: str) -> float:
        """Returns the sum of a metric over the generators."""
        return sum(sample.value for sample in self._of(metric))

    def errors(self) -> dict[str, int]:
        """Returns the failed requests by kind."""
        kinds: dict[str, int] = defaultdict(int)
        for sample in self._of("errors_count"):
            if sample.factors["kind"] != ANY:
                kinds[str(sample.factors["kind"])] += int(sample.value)
        return dict(kinds)

    @cached_property
    def latency(self) -> tuple[Array, histograms.Counts]:
        """Returns the merged histogram of the response times of all generators, in ns."""
        return self._merged("latency_ns")

    @cached_property
    def unanswered(self) -> tuple[Array, histograms.Counts]:
        """Returns those of `latency` that are lower bounds: requests without an answer."""
        return self._merged(names.UNANSWERED["latency_ns"])

    def mean_ns(self) -> float:
        """Returns the mean response time."""
        values, numbers = self.latency
        return float(values @ numbers / numbers.sum())

    def mean_service_ns(self) -> float:
        """Returns the mean time from the moment at which a request left to its response."""
        values, numbers = self._merged("service_time_ns")
        return float(values @ numbers / numbers.sum())

    def _merged(self, metric: str) -> tuple[Array, histograms.Counts]:
        times = [[sample for sample in own if sample.metric == metric] for own in self.samples]
        return histograms.merge(
            [([sample.value for sample in own], [sample.count for sample in own]) for own in times]
        )

    @property
    def forwarder(self) -> BackgroundSamples | None:
        """The balancer; None where a server answers directly."""
        kinds = set(BALANCERS.values())
        return next(
            (background for background in self.counters.values() if background.benchmark in kinds),
            None,
        )

    @property
    def servers(self) -> dict[str, BackgroundSamples]:
        """The servers behind the balancer."""
        kinds = set(SERVERS.values())
        return {
            name: background
            for name, background in self.counters.items()
            if background.benchmark in kinds and name != DIRECT
        }

    @property
    def failing(self) -> BackgroundSamples | None:
        """The server that failed, if one did."""
        nginx = (
            background
            for background in self.servers.values()
            if background.benchmark == NGINX_SERVER
        )
        return next((background for background in nginx if background.sum("failure_wall_ns")), None)

    def _of(self, metric: str) -> Iterable[Sample]:
        return (sample for samples in self.samples for sample in samples if sample.metric == metric)


def balanced_trials(data: RunData) -> list[BalancedTrial]:
    """Returns the trials of which every generator's record counts, by round."""
    plan = data.manifest.plan
    loads = {load["name"]: load for load in plan.get("backgrounds") or ()}
    members = (
        (record, *_split(table, loads))
        for record, table in data.run.tables()
        if record.benchmark == GENERATOR and counts(record)
    )
    groups = group_by(members, lambda member: (member[0].key.round, member[0].key.setting))
    targets = {setting["index"]: len(setting["targets"]) for setting in data.manifest.settings}
    trials = []
    for (number, setting), own in sorted(groups.items(), key=lambda item: item[0]):
        records, samples, counters_of = zip(*own, strict=True)
        together = records[0].skew_ns is not None
        if together and len(own) < targets.get(setting, len(own)):
            continue
        counters = {
            name: background for by_name in counters_of for name, background in by_name.items()
        }
        name = _balancer_of(records[0], loads)
        if together:
            trials.append(BalancedTrial(number, name, records, samples, counters))
        else:
            trials += [
                BalancedTrial(number, name, [record], [values], counters)
                for record, values, _ in own
            ]
    return trials


def _balancer_of(record: TrialRecord, loads: Mapping[str, Mapping[str, Any]]) -> str:
    """The background that answered the generators; the host of the URL where none did."""
    running = str(record.factors.get(BALANCER, "")).split("+")
    for name in running:
        if name == DIRECT or (name in loads and loads[name]["benchmark"] in BALANCERS.values()):
            return name
    return urlsplit(str(record.params["url"])).netloc


def _split(
    table: Any, loads: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Sample], dict[str, BackgroundSamples]]:
    """The trial's own samples, and those of its backgrounds."""
    own: list[Sample] = []
    by_load: dict[str, list[Sample]] = defaultdict(list)
    names = ("metric", "value", "count", "at_ns", "factors")
    columns = (table.column(name).to_pylist() for name in names)
    for metric, value, count, at_ns, text in zip(*columns, strict=True):
        factors = json.loads(text)
        sample = Sample(metric, value, count, at_ns, factors)
        if "load" in factors:
            by_load[factors["load"]].append(sample)
        elif "hook" not in factors:
            own.append(sample)
    return own, {
        name: BackgroundSamples(name, loads[name]["benchmark"], loads[name]["params"], samples)
        for name, samples in by_load.items()
        if name in loads
    }
