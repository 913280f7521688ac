"""The network paths of a run: what its trials of net.* benchmarks show."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Any

import numpy as np

from nephoscope.catalog import instruments
from nephoscope.core.model import Factors, stored_ends
from nephoscope.core.records import dataclass
from nephoscope.features.network import distance, groups
from nephoscope.features.network.distance import DistanceFit
from nephoscope.features.network.groups import GOODPUT, ROUND_TRIP, NetworkGroups
from nephoscope.features.network.series import PathAnalysis, PathSeries, analyse_series
from nephoscope.results import names
from nephoscope.results.run_data import RunData
from nephoscope.stats import facts
from nephoscope.stats.statistics import histograms
from nephoscope.stats.statistics.values import Refused
from nephoscope.store import query

PROBES = (instruments.NET_RTT, instruments.NET_QUERY)
THROUGHPUT = instruments.NET_THROUGHPUT

_PARTS = frozenset({"stream", "hop", "address"})
"""Factors of samples that are parts of one path."""
_MOST_PACKETS = 200_000
"""Packets of a distribution that stand for all of a path."""
_LEAST_VALUES = 4


@dataclass(frozen=True, slots=True)
class MeasuredPath:
    """One path of a run: from a target to its peer, at one setting and in one direction.

    peer: '' where the run does not name it. is_served: the path is that from the peer to the
    target, which serves. trials: of the analysis; shaped_trials: those of them
    in which a token bucket showed. analysis: of round trips all trials together; of throughput the
    first trial with a token bucket, else the one in the middle.
    """

    target: str
    peer: str
    benchmark: str
    factors: Factors
    trials: int
    shaped_trials: int
    analysis: PathAnalysis
    is_served: bool = False


@dataclass(frozen=True, slots=True)
class NetworkPaths:
    """Paths of a run, and its instance types by similar network (null below two types).

    distances: throughput against round trip, for each peer of four targets or more.
    """

    paths: tuple[MeasuredPath, ...]
    distances: tuple[DistanceFit, ...] = ()
    groups: NetworkGroups | None = None


@dataclass
class _Path:
    """Samples of one path: metric -> trial -> values, in order of time.

    counts: of round trips, of all distributions together.
    """

    series: dict[str, dict[str, list[tuple[int, float]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    scalars: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    counts: list[tuple[float, int]] = field(default_factory=list)
    setting: int = -1


Place = tuple[str, str, str]
"""Target, benchmark and factors (canonical text) of a path."""


def analyse(data: RunData) -> NetworkPaths | None:
    """Returns the analyses of a run's paths; None where no trial of one counts."""
    paths = _paths(data)
    ends = stored_ends(data.manifest.settings)
    measured_paths = []
    for place, path in paths.items():
        client, server = ends(path.setting, place[0])
        is_served = client != place[0]
        measured_paths += [
            replace(measured, is_served=is_served)
            for measured in _measured(place, path, client if is_served else server, data.confidence)
        ]
    if not measured_paths:
        return None
    return NetworkPaths(tuple(measured_paths), tuple(_distances(data, ends)), _groups(data))


def _distances(data: RunData, ends: Callable[[int, str], tuple[str, str]]) -> Iterator[DistanceFit]:
    """Yields the fit of each peer whose targets differ in nothing but their paths."""
    settings = {record.key.name: record.key.setting for record in data.records}
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    rtts: dict[tuple[str, str], list[float]] = defaultdict(list)
    for metric, target, trial, value in _trial_values(data):
        client, server = ends(settings.get(trial, -1), target)
        peer = client if client != target else server
        (rates if metric == GOODPUT else rtts)[peer, target].append(value)
    for peer in dict.fromkeys(peer for peer, _ in rates):
        paths = {
            target: (float(np.median(rtts[peer, target])), float(np.median(values)))
            for (own, target), values in rates.items()
            if own == peer and rtts.get((peer, target)) and np.median(values) > 0
        }
        with suppress(Refused):
            yield distance.fit(peer, paths, confidence=data.confidence)


def _paths(data: RunData) -> dict[Place, _Path]:
    paths: dict[Place, _Path] = defaultdict(_Path)
    settings = {record.key.name: record.key.setting for record in data.records}

    def path_of(row: Any) -> _Path | None:
        factors = json.loads(row.factors)
        if row.benchmark not in (*PROBES, THROUGHPUT) or names.AUXILIARY_FACTORS & factors.keys():
            return None
        whole = {name: level for name, level in factors.items() if name not in _PARTS}
        if row.benchmark in PROBES:  # a round trip has both directions
            whole.pop("direction", None)
        path = paths[row.target, row.benchmark, json.dumps(whole, sort_keys=True)]
        path.setting = settings.get(row.trial, -1)
        return path

    for value in data.values:
        if (path := path_of(value)) is not None:
            known = path.scalars[value.metric]
            # Of several directions the worse one, which is the larger of loss and jitter.
            known[value.trial] = max(value.value, known.get(value.trial, value.value))
    for distribution in data.distributions:
        if distribution.metric in ("rtt_sent_ns", "query_rtt_ns") and (
            (path := path_of(distribution)) is not None
        ):
            path.counts += zip(distribution.values, distribution.counts, strict=True)
    for point in query.series(data.run):
        if (path := path_of(point)) is not None:
            path.series[point.metric][point.trial].append((point.at_ns, point.value))
    return paths


def _measured(place: Place, path: _Path, peer: str, confidence: float) -> Iterator[MeasuredPath]:
    target, benchmark, factors = place
    series = list(_throughput(path) if benchmark == THROUGHPUT else _probes(path))
    trials = len(series)
    if benchmark != THROUGHPUT and trials > 1:
        arrays = [series.delays_ns for series in series if series.delays_ns is not None]
        series = [replace(series[0], delays_ns=np.concatenate(arrays))]
    analyses = [analyse_series(series, confidence=confidence) for series in series]
    if not analyses:
        return
    shaped = [analysis for analysis in analyses if analysis.token_bucket is not None]
    by_rate = sorted(analyses, key=lambda analysis: analysis.goodput_bytes_per_s or 0)
    chosen = shaped[0] if shaped else by_rate[len(by_rate) // 2]
    if chosen.delay is not None:
        # The single values are in the store; a result has one such list for each setting.
        brief = replace(chosen.delay, jitters_ns=(), pdvs_ns=())
        chosen = replace(chosen, delay=brief)
    yield MeasuredPath(target, peer, benchmark, json.loads(factors), trials, len(shaped), chosen)


def _throughput(path: _Path) -> Iterator[PathSeries]:
    """A series for each trial with rates by interval."""
    is_udp = bool(path.scalars["received_count"])
    for trial, points in path.series["interval_goodput_bytes_per_s"].items():
        ends, rates = np.array(sorted(points), dtype=float).T
        lengths = np.diff(ends, prepend=0.0) / 1e9
        if lengths.size > 1:  # the first interval begins with the first byte
            lengths[0] = lengths[1]
        usable = lengths > 0
        if not usable.any():
            continue
        sent = path.scalars["sent_bytes"].get(trial)
        again = path.scalars["retransmitted_ratio"].get(trial)
        rtts = path.series["interval_tcp_rtt_ns"].get(trial, [])
        packets = path.scalars["sent_count"].get(trial) if is_udp else None
        ratio = path.scalars["loss_ratio"].get(trial)
        yield PathSeries(
            bytes_per_s=rates[usable],
            interval_s=lengths[usable],
            protocol="udp" if is_udp else "tcp",
            sent=None if packets is None or ratio is None else round(packets),
            lost=None if packets is None or ratio is None else round(ratio * packets),
            sent_bytes=sent,
            retransmitted_bytes=None if sent is None or again is None else again * sent,
            bulk_rtts_ns=np.array([value for _, value in sorted(rtts)]) if rtts else None,
            base_rtt_ns=path.scalars["tcp_rtt_min_ns"].get(trial),
        )


def _probes(path: _Path) -> Iterator[PathSeries]:
    """A series for each trial whose single probes are stored, else one of the distribution."""
    stored = path.series["probe_rtt_ns"]
    for trial, points in stored.items():
        runs = path.series["lost_run_count"].get(trial, [])
        yield _with_losses(sorted(points), sorted(runs))
    if stored:
        return
    total = sum(count for _, count in path.counts)
    sent, back = (sum(path.scalars[name].values()) for name in ("sent_count", "returned_count"))
    if not total:
        return
    drawn = min(total, _MOST_PACKETS)
    ordered = np.array(sorted(path.counts))
    places = (np.arange(drawn) + 0.5) / drawn * total
    delays = ordered[:, 0][np.searchsorted(np.cumsum(ordered[:, 1]), places)]
    missing = round(drawn * max(0.0, sent - back) / back) if back else 0
    # The order is not known: any order without dependence gives the same calls.
    mixed = np.random.default_rng(1).permutation(np.append(delays, np.full(missing, np.nan)))
    jitters = list(path.scalars["jitter_ns"].values())
    yield PathSeries(
        delays_ns=mixed,
        unordered=True,
        jitter_ns=float(np.median(jitters)) if jitters else None,
        sent=round(sent) if sent else None,
        lost=round(sent - back) if sent else None,
    )


def _with_losses(
    points: Sequence[tuple[int, float]], runs: Sequence[tuple[int, float]]
) -> PathSeries:
    """The round trips of one trial in order of sending, not a number for each lost probe."""
    times = np.array([at for at, _ in points], dtype=float)
    values = [(float(at), value) for at, value in points]
    spacing = float(np.median(np.diff(times))) if times.size > 1 else None
    for at, length in runs:
        values += [(at + step * (spacing or 0), float("nan")) for step in range(round(length))]
    values.sort(key=lambda pair: pair[0])
    delays = np.array([value for _, value in values])
    return PathSeries(delays_ns=delays, spacing_s=spacing / 1e9 if spacing else None)


def _groups(data: RunData) -> NetworkGroups | None:
    """The instance types of the run's targets by their trials, where there are two or more."""
    kinds = {
        target: facts.text(document, "cloud.instance_type")
        for target, document in data.fingerprints.items()
    }
    values: dict[str, dict[str, list[float]]] = {}
    for metric, target, _, value in _trial_values(data):
        if kind := kinds.get(target):
            bits = 8 if metric == GOODPUT else 1
            values.setdefault(metric, {}).setdefault(kind, []).append(bits * value)
    enough = {
        metric: {kind: own for kind, own in by_kind.items() if len(own) >= _LEAST_VALUES}
        for metric, by_kind in values.items()
    }
    enough = {metric: by_kind for metric, by_kind in enough.items() if len(by_kind) > 1}
    with suppress(Refused):
        return groups.group(enough, confidence=data.confidence) if enough else None
    return None


def _trial_values(data: RunData) -> Iterator[tuple[str, str, str, float]]:
    """Yields metric, target, trial and value: goodput in bytes/s, median round trip in ns."""
    for value in data.values:
        if (value.benchmark, value.metric) == (THROUGHPUT, "goodput_bytes_per_s"):
            yield GOODPUT, value.target, value.trial, value.value
    for row in data.distributions:
        if (row.benchmark, row.metric) == (instruments.NET_RTT, "rtt_ns"):
            median = histograms.quantile([(row.values, row.counts)], 0.5)
            yield ROUND_TRIP, row.target, row.trial, median
