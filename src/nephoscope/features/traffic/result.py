"""Shape and radio energy of the traffic of a capture, or of the transfers of a stored run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.features.traffic import energy
from nephoscope.features.traffic.captures import Packets
from nephoscope.features.traffic.energy import PlaybackPhase, Radio, RadioEnergy
from nephoscope.features.traffic.power import PowerComparison, PowerTrace, compare
from nephoscope.features.traffic.shape import GAP_S, TrafficShape, bursts_of, shape_of
from nephoscope.store import StoredRun, query

_METRICS = ("timed_block_goodput_bytes_per_s", "interval_goodput_bytes_per_s")
"""Series of transfers, the one at higher resolution first."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """One capture, or one trial of a run. phases: of a video's playback, where they are asked for.

    energies: of each radio. power: each trace of a power meter beside the model of each radio.
    """

    source: str
    shape: TrafficShape
    energies: tuple[RadioEnergy, ...]
    phases: tuple[PlaybackPhase, ...] = ()
    power: tuple[PowerComparison, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrafficAnalysis:
    """Traffic of one or several sources."""

    traffic: tuple[Traffic, ...]


def of_run(run: StoredRun) -> Iterator[tuple[str, Packets]]:
    """Yields the transfers of the first trial of each setting as packets, one for each interval.

    Raises UsageError for a run without them.
    """
    series: dict[str, dict[tuple[str, str], dict[str, list[tuple[int, float]]]]] = {
        metric: defaultdict(lambda: defaultdict(list)) for metric in _METRICS
    }
    for point in query.series(run):
        if point.metric in series:
            by_trial = series[point.metric][point.target, point.factors]
            by_trial[point.trial].append((point.at_ns, point.value))
    chosen = next((series[metric] for metric in _METRICS if series[metric]), {})
    if not chosen:
        raise UsageError(
            f"Run {run.id} has no transfers over time.",
            "Measure net.throughput first, or use a capture.",
        )
    for (target, factors), trials in chosen.items():
        trial, points = min(trials.items())
        yield f"{target} {factors} ({trial})", _as_packets(points)


def _as_packets(points: Iterable[tuple[int, float]]) -> Packets:
    """One packet for each interval, at its end, with all bytes of it."""
    ends, rates = np.array(sorted(points), dtype=float).T
    sizes = rates * np.diff(ends, prepend=0.0) / 1e9
    has_bytes = sizes > 0
    return Packets((ends[has_bytes] - ends[0]) / 1e9, sizes[has_bytes])


def analyse(
    sources: Iterable[tuple[str, Packets]],
    radios: Sequence[Radio],
    *,
    gap_s: float = GAP_S,
    playback: bool = False,
    traces: Sequence[PowerTrace] = (),
    trace_start_s: float | None = None,
) -> TrafficAnalysis:
    """Returns shape and energy of each source. playback: whether it is the download of a video.

    traces: of a power meter, beside the model. trace_start_s: their time at the first packet; None:
    their clock is that of the capture. UsageError where they do not belong to one source.
    """
    sources = list(sources)
    if traces and len(sources) > 1:
        raise UsageError(
            f"A power trace belongs to one transfer, and there are {len(sources)} here.",
            "Use a capture, or a run with one setting.",
        )
    analysed = []
    for source, packets in sources:
        bursts = bursts_of(packets.times_s, packets.sizes, gap_s)
        analysed.append(
            Traffic(
                source,
                shape_of(packets.times_s, packets.sizes, gap_s),
                tuple(energy.energy_of(bursts, radio) for radio in radios),
                tuple(energy.playback_phases(bursts, radios[0])) if playback else (),
                tuple(
                    compare(trace, bursts, radio, start_s=_trace_start(packets, trace_start_s))
                    for trace in traces
                    for radio in radios
                ),
                packets.notes,
            )
        )
    return TrafficAnalysis(tuple(analysed))


def _trace_start(packets: Packets, stated_s: float | None) -> float:
    start_s = packets.start_s if stated_s is None else stated_s
    if start_s is None:
        raise UsageError(
            "The transfers of a run have no clock in common with a power trace.",
            "State by --power-start at which time of the trace the first packet came.",
        )
    return start_s
