"""How a simulated scheduler shares its CPUs: who ran when, shares, runs, waits, responses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from nephoscope.catalog import instruments
from nephoscope.core.model import RunResult
from nephoscope.features.simulation import tables
from nephoscope.features.simulation.records import SimulatedScheduler, Simulation, Track
from nephoscope.report import charts, selection, timeline, wording
from nephoscope.report.blocks import Block, Chart, Section, Sentence
from nephoscope.report.timeline import Lane

BENCHMARKS = (instruments.SIM_SCHEDULER,)

_LENGTHS = {
    "run_ns": ("Run length", "run length"),
    "wait_ns": ("Wait length", "wait length"),
    "period_ns": ("Period length", "period length"),
    "response_time_ns": ("Response time of web requests", "response time"),
}
_LEAST_WAITS_SHOWN = 8
_WIDE = 20
"""The longest over the median: beyond, lengths are drawn on a logarithmic axis."""


def build(result: RunResult) -> Section | None:
    """Every simulated host: a strip, a table of its machines, and distributions."""
    tracks = result.part(Simulation)
    if tracks is None or not tracks.schedulers:
        return None
    blocks: list[Block] = [
        Sentence(
            "Virtual machines on the processors of one host. Shares are fractions of one CPU; "
            "runs, waits and periods are those of a virtual CPU as seen by the host."
        )
    ]
    blocks += tables.blocks_of(
        tracks,
        "schedulers",
        lambda track, name, number: [
            *_strip(track, name, number),
            *tables.guests(track),
            *_distributions(result, track, name, number),
        ],
    )
    return Section("simulated-scheduler", "Simulated CPU scheduler", tuple(blocks))


def _strip(scheduler: SimulatedScheduler, name: str, number: int) -> list[Chart]:
    if not scheduler.tracks or scheduler.window_ns <= 0:
        return []
    span = min(scheduler.window_ns, _span(scheduler.tracks))
    drawn = [_lane(track, span) for track in scheduler.tracks[: timeline.MAX_LANES]]
    more = len(scheduler.tracks) - len(drawn)
    caption = (
        "Bars show when a virtual CPU was running, marks when it was not; the beginning of one "
        "replication."
    )
    if more > 0:
        caption += f" {more} more virtual CPUs are not shown."
    names = ("virtual machine", "virtual CPU")
    title = f"Timeline of CPU use: {name}"
    return [timeline.strip(drawn, f"simulated-strip-{number}", title, caption, names)]


def _span(tracks: tuple[Track, ...]) -> float:
    """Until the busiest to change has waited some times: to see that it repeats, and each turn."""
    ends = [
        track.runs[min(len(track.runs), _LEAST_WAITS_SHOWN) - 1][1]
        for track in tracks
        if len(track.runs) > 1
    ]
    return max(ends, default=float("inf"))


def _lane(track: Track, span_ns: float) -> Lane:
    edges = [(0.0, 0.0), *track.runs, (span_ns, span_ns)]
    gaps = [(before[1], after[0], "waiting or idle") for before, after in pairwise(edges)]
    return Lane(
        wording.clean(track.vm), f"CPU {track.vcpu}", timeline.clipped(gaps, span_ns), span_ns
    )


def _is_wide(result: RunResult, keys: Sequence[selection.HistogramKey]) -> bool:
    """Returns whether the longest would push what is usual against the axis."""
    values, counts = selection.merge_histograms(result.histograms[key] for key in keys)
    drawn = [pair for pair in zip(values, counts, strict=True) if min(pair) > 0]
    if not drawn:
        return False
    steps = selection.cumulative(*zip(*drawn, strict=True))
    return steps[-1][0] > _WIDE * selection.nearest_rank(steps, 0.5)


def _distributions(
    result: RunResult, scheduler: SimulatedScheduler, name: str, number: int
) -> list[Chart]:
    out: list[Chart] = []
    for metric, (title, axis) in _LENGTHS.items():
        keys = tables.keys_of(result, BENCHMARKS[0], scheduler, ("vm", "vcpu"), metric)
        out += charts.cdf(
            result,
            keys,
            id=f"simulated-{wording.slug(metric)}-{number}",
            title=f"{title}: {name}",
            axis=axis,
            unit="ns",
            log=_is_wide(result, keys),
        )
    return out
