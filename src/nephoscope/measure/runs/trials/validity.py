"""Which trials cannot be believed: the machine's counters and the laws that a load must obey.

Each rule gives a code (a plan may accept it) and a sentence with the figures. A counter that the
machine hides is no proof of anything, so it invalidates nothing; the report says what was hidden.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core import units
from nephoscope.core.model import Sample
from nephoscope.measure.runs.schedule.headline import histogram_median
from nephoscope.measure.runs.trials.controller_load import ControllerUse
from nephoscope.stats import facts

CLOCK_STEP_NS = 1e6
CLOCK_STEP_RATIO = 1e-3
"""The kernel slews a clock by at most 500 ppm; twice that is a step, and below 1 ms the two clock
readings themselves may lie that far apart on a busy machine."""

LITTLE_TOLERANCE = 0.10
"""A closed loop keeps N = X R within 10 %."""

LATE_SENDS = "late_sends_ratio"
LATE_SENDS_RATIO = 0.01
"""A generator that is behind its schedule more often than this may have measured itself."""

SENT, LATE_SENDS_COUNT = "sent_count", 2
"""Of fewer than 100, a single late one is above that ratio; it cannot tell one in a hundred from
one in a thousand. From two on, a trial counts as behind its schedule."""

LATE_EFFECT_RATIO = 0.01
"""Where the times from due and from sending are both known, late sends invalidate a trial only if
they move the median of the former by more than this: a few late datagrams do not."""


CONTROLLER_BUSY = "controller_busy"
CONTROLLER_SHARE = 0.05
"""Of the CPU time available to it: what else runs there may take as much from what is measured."""


class Reason(NamedTuple):
    """Why a trial is invalid: the code that a plan may accept, and a sentence for people."""

    code: str
    sentence: str


def reasons(
    spec: BenchmarkSpec,
    params: Mapping[str, Any],
    samples: Iterable[Sample],
    counters: Mapping[str, Any],
    elapsed_ns: int,
) -> list[Reason]:
    """All reasons why this trial does not count; empty when it does."""
    seen = list(samples)
    results = (
        _clock_step(counters, elapsed_ns),
        _throttled(counters),
        _swapped(counters),
        *_load_identity(spec, params, seen),
        _late_sends(seen),
    )
    return [reason for reason in results if reason is not None]


def reasons_of_server(counters: Mapping[str, Any]) -> list[Reason]:
    """Returns the reasons why what served a trial does not count. counters: its own counters."""
    return [reason for reason in (_throttled(counters), _swapped(counters)) if reason is not None]


def reasons_of_controller(use: ControllerUse | None, announced_late_ns: int) -> list[Reason]:
    """Returns the reasons why the controller's own load makes a trial not count.

    use: its load during the trial where both share a machine; None elsewhere, and where it is not
    known. announced_late_ns: as of `GroupResult`.
    """
    out = []
    if use is not None and use.share > CONTROLLER_SHARE:
        allowed = units.format_value(CONTROLLER_SHARE, "ratio")
        out.append(
            f"the controller used {units.format_value(use.share, 'ratio')} of the CPU time "
            f"available here during the trial ({allowed} is allowed)"
        )
    if announced_late_ns:
        out.append(
            f"the controller announced the common start "
            f"{units.format_value(announced_late_ns, 'ns')} after it"
        )
    return [Reason(CONTROLLER_BUSY, sentence) for sentence in out]


def _clock_step(counters: Mapping[str, Any], elapsed_ns: int) -> Reason | None:
    step = facts.number(counters, "clock_step_ns")
    if step is None or abs(step) <= max(CLOCK_STEP_NS, CLOCK_STEP_RATIO * elapsed_ns):
        return None
    return Reason(
        "clock_step",
        f"the wall clock was stepped by {units.format_value(step, 'ns')} during the trial",
    )


def _throttled(counters: Mapping[str, Any]) -> Reason | None:
    ratio = facts.number(counters, "throttled_ratio")
    if ratio is None or ratio <= 0:
        return None
    return Reason(
        "throttled",
        f"the CPU quota of the control group stopped the trial for "
        f"{units.format_value(ratio, 'ratio')} of its time",
    )


def _swapped(counters: Mapping[str, Any]) -> Reason | None:
    swapped = facts.number(counters, "swapped_bytes") or 0
    faults = facts.number(counters, "major_faults_count") or 0
    swap_in = facts.number(counters, "swap_in_count") or 0
    if swapped > 0:
        return Reason(
            "swapped", f"{units.format_value(swapped, 'bytes')} of the probe were in swap"
        )
    # Pages may come in for other processes; with major faults of our own they came for us.
    if faults > 0 and swap_in > 0:
        return Reason(
            "swapped",
            f"the trial waited {faults:.0f} times for a page while {swap_in:.0f} pages came in "
            "from swap",
        )
    return None


def _load_identity(
    spec: BenchmarkSpec, params: Mapping[str, Any], samples: Sequence[Sample]
) -> Iterator[Reason]:
    for law in spec.closed_loops:
        if not law.depth:
            continue  # one at a time: nothing is kept in flight that could fall short
        rates = [sample.value for sample in samples if sample.metric == law.rate]
        latencies = [sample for sample in samples if sample.metric == law.latency]
        seen = sum(sample.count for sample in latencies)
        if len(rates) != 1 or seen == 0:
            continue
        mean_s = sum(sample.value * sample.count for sample in latencies) / seen / 1e9
        depth = float(params.get(law.depth, spec.param(law.depth).default))
        in_flight = rates[0] * mean_s
        if abs(in_flight / depth - 1) > LITTLE_TOLERANCE + _at_the_ends(latencies, seen, rates[0]):
            yield Reason(
                "load_identity",
                f"rate times latency gives {units.format_number(in_flight)} operations in "
                f"flight, and {depth:g} were kept in flight (Little's law, 10 %): the load "
                "generator could not keep up",
            )


def _late_sends(samples: Sequence[Sample]) -> Reason | None:
    late = [sample.value for sample in samples if sample.metric == LATE_SENDS]
    if not late or max(late) <= LATE_SENDS_RATIO:
        return None
    counts = (sample.value for sample in samples if sample.metric == SENT)
    if max(late) * max(counts, default=math.inf) < LATE_SENDS_COUNT - 0.5:
        return None
    times = [
        [(sample.value, sample.count) for sample in samples if sample.metric == metric]
        for metric in ("rtt_ns", "rtt_sent_ns")
    ]
    if all(times):
        due, sent = map(histogram_median, times)
        if due <= sent * (1 + LATE_EFFECT_RATIO):
            return None
        return Reason(
            "late_sends",
            f"{units.format_value(max(late), 'ratio')} of the datagrams left more than 1 ms "
            f"late, which raises the median round trip from {units.format_value(sent, 'ns')} "
            f"to {units.format_value(due, 'ns')} (1 % is allowed)",
        )
    return Reason(
        "late_sends",
        f"{units.format_value(max(late), 'ratio')} of what was to be sent left more than 1 ms "
        "late (1 % is allowed): the sender, and not what it asked, was measured",
    )


def _at_the_ends(latencies: Sequence[Sample], seen: int, rate_per_s: float) -> float:
    """By how much the ends of the window may bend Little's law: the longest latency over its time.

    An operation that began before the window, or that fills up after its end, stands in the sum of
    latencies with time that the window does not have; it can be no longer than the longest one.
    """
    window_s = seen / rate_per_s
    return max(sample.value for sample in latencies) / 1e9 / window_s
