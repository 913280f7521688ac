"""The closed form of pre-copy migration: rounds, total time and pause from four quantities.

Round 0 sends all memory; each further round sends the pages that became dirty during the one
before. The guest is paused as soon as the rest fits the bound of the pause. While the dirty memory
is less than the working set, the rounds are a geometric series with the ratio dirty rate ÷
bandwidth. Sources: Clark et al., Live Migration of Virtual Machines, NSDI 2005 (pre-copy, writable
working set); Liu et al., Performance and Energy Modeling for Live Migration of Virtual Machines,
HPDC 2011, section 3 (the series).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_MOST_ROUNDS = 10_000


@dataclass(frozen=True, slots=True)
class PrecopyPrediction:
    """Total and pause are in seconds; None where pre-copy does not converge.

    rounds: rounds while the guest runs, the first included. ratio: dirty rate ÷ bandwidth.
    """

    rounds: int | None
    total_s: float | None
    pause_s: float | None
    ratio: float

    @property
    def converges(self) -> bool:
        """States whether the rest ever fits the bound of the pause."""
        return self.rounds is not None


def predict(
    memory_bytes: float,
    bytes_per_s: float,
    dirty_bytes_per_s: float,
    working_set_bytes: float,
    downtime_limit_s: float,
) -> PrecopyPrediction:
    """Returns what pre-copy takes.

    memory_bytes: sent in the first round. bytes_per_s: bandwidth, > 0. working_set_bytes: memory
    that is rewritten, in order, so that a write makes another page dirty until all are.
    """
    ratio = dirty_bytes_per_s / bytes_per_s
    threshold_bytes = bytes_per_s * downtime_limit_s
    rest, total_s = memory_bytes, 0.0
    for rounds in range(1, _MOST_ROUNDS + 1):
        round_s = rest / bytes_per_s
        total_s += round_s
        following = min(working_set_bytes, dirty_bytes_per_s * round_s)
        if following <= threshold_bytes:
            pause_s = following / bytes_per_s
            return PrecopyPrediction(rounds, total_s + pause_s, pause_s, ratio)
        if rounds > 1 and following >= rest:
            break
        rest = following
    return PrecopyPrediction(None, None, None, ratio)


def series_total_s(memory_bytes: float, bytes_per_s: float, ratio: float, rounds: int) -> float:
    """Time of the first rounds and the pause as the sum of the geometric series.

    (memory ÷ bandwidth) (1 - ratio^(rounds + 1)) ÷ (1 - ratio); ratio is not 1.
    """
    first_s = memory_bytes / bytes_per_s
    return first_s * (1 - math.pow(ratio, rounds + 1)) / (1 - ratio)
