"""Names the resource that a neighbour takes, from what a victim's canaries lose.

A canary is a short benchmark that misses one resource. What all of them lose together is the
signature of an aggressor. It is compared with reference signatures, which were measured beside
known aggressors (`naming_references.py`; benchmarks/naming.py measures them and holds the namer
to other, unknown ones). Pure: effects in, a name out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NONE = "none"
UNCLEAR = "unclear"

CANARIES: tuple[str, ...] = (
    "cpu",
    "memory",
    "cache",
    "disk_read",
    "disk_write",
    "fsync",
    "net_send",
    "net_receive",
    "packets",
    "switches",
    "gaps",
    "kernel_reads",
    "kernel_writes",
    "kernel_switches",
)
"""What may be lost. Each is the victim of the resource of that name (plans/resources.py); `gaps`
is the rate of scheduling gaps of a busy loop. The last three are counters of a kernel that the
victim shares with its neighbours (containers, hosts of a lab), while it does nothing of the kind
itself: bytes read and written a second, context switches. A victim with a kernel of its own has
none of these."""

SHARPNESS = 0.12
"""Effects far below this are noise and far above it all the same: how much is lost depends on the
intensity, which canaries lose anything does not."""

SURE = 2.0
"""An effect counts from so many errors on."""

MATERIAL = 0.05
"""And from a twentieth on: that much the canaries of one machine differ from run to run."""

NEAREST = 3
"""References that vote."""

FAR = 1.3
"""Beyond this distance a signature is like none that is known. (Two canaries that are lost fully
in one and not in the other lie 1.4 apart.)"""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a canary lost: ln(time noisy / time quiet), above 0 is worse, and its standard error."""

    value: float
    error: float

    @property
    def sure(self) -> bool:
        """Whether something was lost beyond noise."""
        return self.value > max(MATERIAL, SURE * self.error)

    @property
    def shrunk(self) -> float:
        """The value, drawn toward 0 by its noise (the positive part of James and Stein's)."""
        if self.value == 0:
            return 0.0
        return self.value * max(0.0, 1 - (self.error / self.value) ** 2)


@dataclass(frozen=True, slots=True)
class Reference:
    """The effects of one known aggressor, by canary."""

    resource: str
    effects: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Named:
    """A resource, `none` or `unclear`; the canaries that lost something; the next best name.

    distance: to the nearest reference of that name; None where nothing was compared.
    """

    word: str
    sentence: str
    lost: tuple[str, ...] = ()
    distance: float | None = None
    second: str = ""

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "word": self.word,
            "sentence": self.sentence,
            "lost": list(self.lost),
            "distance": self.distance,
            "second": self.second or None,
        }


def effect(quiet: Sequence[float], noisy: Sequence[float]) -> Effect | None:
    """The effect on one canary; values are times (of a rate, give its inverse), all above 0.

    None with fewer than two values on a side: then noise cannot be told from loss.
    """
    if min(len(quiet), len(noisy)) < 2:
        return None
    before, during = (sorted(math.log(value) for value in side) for side in (quiet, noisy))
    # The quickest of each side: what disturbs from outside comes and goes, the neighbour is there
    # in every noisy value. Two quickest that lie apart say how much is chance.
    error = math.hypot(*((side[1] - side[0]) / 2 for side in (before, during)))
    return Effect(during[0] - before[0], error)


def name(effects: Mapping[str, Effect], references: Sequence[Reference]) -> Named:
    """Names what was taken. Canaries that were not measured are left out of the comparison."""
    known = {canary: one for canary, one in effects.items() if canary in CANARIES}
    lost = tuple(canary for canary in CANARIES if canary in known and known[canary].sure)
    if not known:
        return Named(UNCLEAR, "No canary was measured.")
    if not lost:
        return Named(NONE, f"None of {len(known)} canaries lost anything that could be told.")
    ranked = sorted(
        ((_distance(known, reference), reference.resource) for reference in references),
        key=lambda pair: pair[0],
    )
    votes: dict[str, float] = {}
    for distance, resource in ranked[:NEAREST]:
        votes[resource] = votes.get(resource, 0.0) + 1 / (0.05 + distance)
    if not votes or ranked[0][0] > FAR:
        return Named(
            UNCLEAR,
            f"{_listed(lost)} lost, which is like nothing that is known.",
            lost,
            ranked[0][0] if ranked else None,
        )
    order = sorted(votes, key=lambda resource: -votes[resource])
    best = order[0]
    distance = min(d for d, resource in ranked if resource == best)
    second = next((resource for _, resource in ranked if resource != best), "")
    rival = next((d for d, resource in ranked if resource != best), math.inf)
    if math.isclose(rival, distance, abs_tol=1e-9):
        sentence = f"{_listed(lost)} lost, which {best} and {second} explain alike."
        return Named(UNCLEAR, sentence, lost, distance, second)
    sentence = f"{_listed(lost)} lost, as beside a neighbour that takes {best}."
    return Named(best, sentence, lost, distance, second)


def _distance(effects: Mapping[str, Effect], reference: Reference) -> float:
    """Euclidean, between what each canary lost on a scale from 0 (nothing) to 1 (very much)."""
    shared = [canary for canary in effects if canary in reference.effects]
    if not shared:
        return math.inf
    parts = (
        (_scale(effects[canary].shrunk) - _scale(reference.effects[canary])) ** 2
        for canary in shared
    )
    return math.sqrt(sum(parts))


def _scale(value: float) -> float:
    """From an effect to -1 … 1, steepest around 0."""
    return math.tanh(value / SHARPNESS / 4) if value < 0 else 1 - math.exp(-value / SHARPNESS / 4)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
