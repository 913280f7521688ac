"""How many interleaved runs would decide what two separate runs leave open, and how long they take.

Interleaved, both sides share what changes with time, so that only the noise inside the runs is
left: the interval narrows with the square root of the repetitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nephoscope.core.model import Estimate
from nephoscope.core.naming import plural
from nephoscope.core.units import format_duration
from nephoscope.features.comparison.compared import Compared
from nephoscope.features.comparison.deciding import GAP_MIN, REPEATED
from nephoscope.stats.statistics.distributions import normal_quantile
from nephoscope.stats.verdicts import equivalence_confidence

MOST_RUNS = 20
"""More are not proposed: the difference is then so close to the margin that chance decides."""


def effort(lines: Sequence[Compared], margin: float, run_s: float) -> str:
    """Returns the sentence on the undecided headline results; empty where none can be told.

    run_s: seconds that one run with both sides takes; 0 where it is not known.
    """
    needs = [
        runs_needed(line.comparison.verdict.estimates, line.comparison.ratio_t, margin)
        for line in lines
        if line.is_headline and line.comparison.verdict.word == "inconclusive"
    ]
    known = [need for need in needs if need is not None]
    if not known:
        return ""
    decided = [need for need in known if need <= MOST_RUNS]
    which = "it" if len(needs) == 1 else f"{len(decided)} of the {len(needs)} undecided results"
    if not decided:
        return (
            f"Not even {_runs(MOST_RUNS, run_s)} would decide {which}: the difference seen is too "
            "close to the margin for the noise inside the runs."
        ).replace("decide 0 of", "decide one of")
    return (
        f"About {_runs(max(decided), run_s)} would decide {which}, if the differences are as "
        "large as they look."
    )


def repeats_effort(run_s: float) -> str:
    """Returns how long the runs take that show one machine's variation; empty where unknown.

    run_s: seconds that one run takes; 0 where they are not known.
    """
    if run_s <= 0:
        return ""
    seconds = REPEATED * run_s + (REPEATED - 1) * GAP_MIN * 60
    return f"These {REPEATED} runs take about {format_duration(_rounded(seconds))} with the pauses."


def _runs(count: int, run_s: float) -> str:
    lasting = f" ({format_duration(_rounded(count * run_s))})" if run_s > 0 else ""
    return f"{plural(count, 'interleaved run')} of both sides{lasting}"


def _rounded(seconds: float) -> float:
    """Whole minutes from one minute on: the number of runs is no better known."""
    return seconds if seconds < 60 else 60 * math.ceil(seconds / 60)


def runs_needed(verdict: Sequence[Estimate], inside: Estimate | None, margin: float) -> int | None:
    """Returns how many interleaved runs decide a ratio; None without an interval inside the runs.

    verdict: the estimate that was judged. inside: the ratio with the noise inside the runs alone.
    """
    if not verdict or inside is None or not inside.low or not inside.high:
        return None
    (judged, *_), limit = verdict, math.log1p(margin)
    if judged.value <= 0:
        return None
    half = (math.log(inside.high) - math.log(inside.low)) / 2
    shift = abs(math.log(judged.value))
    if shift <= limit:
        narrower = normal_quantile((1 + equivalence_confidence(inside.confidence)) / 2)
        half *= narrower / normal_quantile((1 + inside.confidence) / 2)
    distance = abs(shift - limit)
    if half >= distance * math.sqrt(MOST_RUNS):
        return MOST_RUNS + 1
    return max(1, math.ceil((half / distance) ** 2))
