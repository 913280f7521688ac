"""Findings on network paths: shaping, queues under load, calls, loss and congestion."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.core.model import Finding, Severity
from nephoscope.features.network.result import MeasuredPath, NetworkPaths
from nephoscope.report import wording
from nephoscope.stats.target_evidence import Answers, TargetEvidence

_BAD_GRADES = ("C", "D", "F")
_POOR_CALLS = 70.0


def _paths(case: TargetEvidence) -> Iterator[MeasuredPath]:
    network = case.part(NetworkPaths)
    for path in network.paths if network is not None else ():
        if path.target == case.target:
            yield path


def _to(path: MeasuredPath) -> str:
    """Returns the peer and the setting as part of a sentence."""
    setting = wording.factors_text(path.factors)
    word = "from" if path.is_served else "to"
    peer = f" {word} {wording.clean(path.peer)}" if path.peer else ""
    return f"{peer} ({setting})" if setting else peer


def token_bucket(case: TargetEvidence) -> Answers:
    """Paths that let a burst pass and then hold a lower rate."""
    for path in _paths(case):
        bucket = path.analysis.token_bucket
        if bucket is not None:
            yield Finding(
                "token_bucket",
                Severity.NOTICE,
                f"The path{_to(path)} is shaped by a token bucket: "
                f"{units.format_value(8 * bucket.burst_bytes_per_s, 'bits_per_s')} for "
                f"{bucket.burst_s:.3g} s, then "
                f"{units.format_value(8 * bucket.sustained_bytes_per_s, 'bits_per_s')}.",
                (
                    f"bucket: {units.format_value(bucket.bucket_bytes, 'bytes')} of payload",
                    f"seen in {path.shaped_trials} of {wording.plural(path.trials, 'trial')}",
                ),
                "Measure longer than the burst for the sustained rate.",
            )


def queues_under_load(case: TargetEvidence) -> Answers:
    """Paths whose round trip rises by 60 ms or more under load."""
    for path in _paths(case):
        load = path.analysis.latency_under_load
        if load is not None and load.grade in _BAD_GRADES:
            yield Finding(
                "latency_under_load",
                Severity.WARNING,
                f"The round trip{_to(path)} rises from "
                f"{units.format_value(load.idle_median_ns, 'ns')} to "
                f"{units.format_value(load.loaded_median_ns, 'ns')} under load (grade "
                f"{load.grade}).",
                ()
                if load.round_trips_per_minute is None
                else (f"{load.round_trips_per_minute:,.0f} round trips per minute under load",),
                "Use active queue management (fq_codel, CAKE) at the bottleneck.",
            )


def poor_calls(case: TargetEvidence) -> Answers:
    """Paths over which calls leave users dissatisfied."""
    for path in _paths(case):
        voice = path.analysis.voice
        if voice is not None and voice.rating < _POOR_CALLS:
            yield Finding(
                "poor_calls",
                Severity.NOTICE,
                f"Calls over the path{_to(path)} have R {voice.rating:.0f}, MOS {voice.mos:.1f}: "
                f"{voice.verdict}.",
                tuple(
                    f"{limit.quantity}: {units.format_value(limit.value, limit.unit)}, "
                    f"{limit.verdict}"
                    for limit in voice.limits
                ),
                "Use a nearer site, or a path with less loss.",
            )


def congestion(case: TargetEvidence) -> Answers:
    """Paths with several signs of congestion."""
    for path in _paths(case):
        sign_of_queue = path.analysis.congestion
        if sign_of_queue is not None and sign_of_queue.verdict == "likely":
            yield Finding(
                "congestion",
                Severity.NOTICE,
                f"The path{_to(path)} shows several signs of congestion.",
                tuple(sign.evidence for sign in sign_of_queue.signs if sign.present),
                "Measure at other times of day, and hop by hop.",
            )


RULES = (token_bucket, queues_under_load, poor_calls, congestion)
