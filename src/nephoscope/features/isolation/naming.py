"""Names the resource that a neighbour takes, from what a victim's canaries lose.

A canary is a short benchmark that misses one resource. What all of them lose together is the
signature of an aggressor. It is compared with reference signatures, which were measured beside
known aggressors (`naming_references.py`; benchmarks/naming.py measures them and holds the namer
to other, unknown ones). Pure: effects in, a name out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from nephoscope.core.grouping import group_by
from nephoscope.core.records import dataclass
from nephoscope.report.wording import joined

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
    "kernel_flushes",
    "kernel_packets",
    "kernel_switches",
)
"""What may be lost. Each is the victim of the resource of that name
(measure/plans/resources.py); `gaps` is the rate of scheduling gaps of a busy loop.

The last five are counters of a kernel that the victim shares with its neighbours (containers,
hosts of a lab), while it does nothing of the kind itself: bytes read and written a second,
flushes of a disk's cache, packets, context switches. A victim with a kernel of its own has none
of these."""

KERNEL_FLOORS: Mapping[str, float] = {
    "kernel_reads": 1e6,
    "kernel_writes": 1e6,
    "kernel_flushes": 20.0,
    "kernel_packets": 1e5,
    "kernel_switches": 2e3,
}
"""What an idle kernel does a second (bytes, flushes, packets, switches); added to its counters, so
that nothing is compared with nothing. Of packets so many as a shaped link of large ones has: only
small ones make many more."""

SHARPNESS = 1.0
"""Effects below this count by their size, those far beyond by their order of magnitude: how much is
lost depends on the intensity, but a queue that is full and one that is not lie magnitudes apart."""

MIN_Z = 2.0
"""An effect counts as lost from so many errors on."""

MIN_EFFECT = 0.05
"""And from a twentieth on: that much the canaries of one machine differ from run to run."""

SD_FLOOR = 0.2
"""Added to the spread of every canary, so that one which never varied does not decide alone."""

MAX_Z = 6.0
"""Most that one canary may say, in its own spreads: it may be out of order by itself."""

ALIKE = 0.9
"""Resources of which two references differ in no measured canary by more than this, in its spreads,
are not told apart. With all canaries every two differ by more (0.92: a network's directions)."""

NEAR = 0.5
"""A signature that is nearer to one of two such resources by less than this could be of either."""

FAR = 3.0
"""Beyond this distance (root mean square over the canaries) a signature is like none known."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Loss of a canary: ln(time noisy / time quiet), above 0 is worse, and its standard error."""

    value: float
    error: float

    @property
    def sure(self) -> bool:
        """Returns whether something was lost beyond noise."""
        return self.value > max(MIN_EFFECT, MIN_Z * self.error)

    @property
    def shrunk(self) -> float:
        """The value, drawn toward 0 by its noise (the positive part of James and Stein's)."""
        if self.error >= abs(self.value):
            return 0.0
        return self.value * (1 - (self.error / self.value) ** 2)


@dataclass(frozen=True, slots=True)
class Reference:
    """The effects of one known aggressor, by canary."""

    resource: str
    effects: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class NamedResource:
    """A resource, `none` or `unclear`; the canaries that lost something; the next best name.

    distance: to the nearest reference of that name; None where nothing was compared.
    """

    word: str
    sentence: str
    lost: tuple[str, ...] = ()
    distance: float | None = None
    second: str = ""


def effect(baseline: Sequence[float], noisy: Sequence[float]) -> Effect | None:
    """The effect on one canary; values are times (of a rate, give its inverse), all above 0.

    None with fewer than two values on a side: then noise cannot be told from loss.
    """
    if min(len(baseline), len(noisy)) < 2:
        return None
    before, during = (sorted(math.log(value) for value in side) for side in (baseline, noisy))
    # The quickest of each side: what disturbs from outside comes and goes, the neighbour is there
    # in every noisy value. Two quickest that lie apart say how much is chance.
    error = math.hypot(*((side[1] - side[0]) / 2 for side in (before, during)))
    return Effect(during[0] - before[0], error)


def name(
    effects: Mapping[str, Effect],
    references: Sequence[Reference],
    spread: Mapping[str, float] | None = None,
) -> NamedResource:
    """Names what was taken. Canaries that were not measured are left out of the comparison.

    spread: by canary, how much its scaled effect differs among references of one resource
    (`spread_of`, from these references when not given).
    """
    known = {
        canary: measured_effect for canary, measured_effect in effects.items() if canary in CANARIES
    }
    if not known or not references:
        return NamedResource(UNCLEAR, "No victim was measured that has a reference signature.")
    lost = tuple(canary for canary in CANARIES if canary in known and known[canary].sure)
    widths = spread_of(references) if spread is None else spread
    ranked = sorted(
        ((_distance(known, reference, widths), reference.resource) for reference in references),
        key=lambda pair: pair[0],
    )
    what = f"{joined(lost)} lost" if lost else f"None of {len(known)} victims lost significantly"
    if not lost:
        return NamedResource(
            NONE, f"{what}; other resources may be contended that no victim uses.", lost
        )
    if ranked[0][0] > FAR:
        return NamedResource(
            UNCLEAR, f"{what}, which matches no known signature.", lost, ranked[0][0]
        )
    # The nearest alone: one resource is taken in several ways (a stream, datagrams), of each of
    # which a single reference may be known.
    distance, best = ranked[0]
    rival, second = next(((d, word) for d, word in ranked if word != best), (math.inf, ""))
    alike = _alike(best, ranked, references, tuple(known), widths)
    if NONE in (best, *alike) and all(canary.startswith("kernel_") for canary in lost):
        # The kernel worked for somebody, and no victim felt it.
        return NamedResource(NONE, f"{what}, and no victim lost anything.", lost, distance)
    if alike:
        sentence = (
            f"{what}, which {joined((best, *alike))} explain equally well; these {len(known)} "
            "victims do not distinguish them."
        )
        return NamedResource(UNCLEAR, sentence, lost, distance, second)
    if math.isclose(rival, distance, abs_tol=1e-9):
        sentence = f"{what}, which {best} and {second} explain equally well."
        return NamedResource(UNCLEAR, sentence, lost, distance, second)
    if best == NONE:
        return NamedResource(NONE, f"{what}, as with an idle neighbour.", lost, distance)
    sentence = f"{what}, as with a neighbour that loads {best}."
    return NamedResource(best, sentence, lost, distance, second)


def _alike(
    best: str,
    ranked: Sequence[tuple[float, str]],
    references: Sequence[Reference],
    measured: Sequence[str],
    spread: Mapping[str, float],
) -> list[str]:
    """The other resources that could as well be meant, as far as these canaries tell."""
    nearest = ranked[0][0]
    near_words = {word for distance, word in ranked if word != best and distance < nearest + NEAR}
    own = [reference for reference in references if reference.resource == best]

    def apart(a: Reference, b: Reference) -> float:
        shared = (c for c in measured if c in a.effects and c in b.effects)
        gaps = (abs(_scale(a.effects[c]) - _scale(b.effects[c])) / _unit(spread, c) for c in shared)
        return max(gaps, default=0.0)

    return sorted(
        word
        for word in near_words
        if min(apart(reference, x) for reference in own for x in references if x.resource == word)
        < ALIKE
    )


def spread_of(references: Sequence[Reference]) -> dict[str, float]:
    """Returns how much each canary's scaled effect differs among references of one resource
    (pooled)."""
    out = {}
    for canary in CANARIES:
        known = (reference for reference in references if canary in reference.effects)
        squares, degrees = 0.0, 0
        for own in group_by(known, lambda reference: reference.resource).values():
            values = [_scale(reference.effects[canary]) for reference in own]
            mean = sum(values) / len(values)
            squares += sum((value - mean) ** 2 for value in values)
            degrees += len(values) - 1
        out[canary] = math.sqrt(squares / degrees) if degrees else 0.0
    return out


def _distance(
    effects: Mapping[str, Effect], reference: Reference, spread: Mapping[str, float]
) -> float:
    """Root mean square over the shared canaries, each in units of its own spread."""
    shared = [canary for canary in effects if canary in reference.effects]
    if not shared:
        return math.inf
    parts = []
    for canary in shared:
        apart = _scale(effects[canary].shrunk) - _scale(reference.effects[canary])
        parts.append(min(MAX_Z, abs(apart) / _unit(spread, canary)) ** 2)
    return math.sqrt(sum(parts) / len(parts))


def _unit(spread: Mapping[str, float], canary: str) -> float:
    return spread.get(canary, 0.0) + SD_FLOOR


def _scale(value: float) -> float:
    """From an effect to what is compared: like it around 0, like its logarithm far from there."""
    return math.asinh(value / SHARPNESS)
