"""Limits, stabilisation windows and policies of the HorizontalPodAutoscaler, and its decisions.

`deviations` replays decisions from what the autoscaler saw, and names each that does not follow.
See `hpa` for sources and units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from nephoscope.autoscalers.hpa import PODS, HpaPolicy, HpaSettings, HpaSync, wanted_of

_LEAST_LIMIT, _LIMIT_FACTOR = 4, 2
"""Without `behavior`, the controller goes to twice the replicas in one step, or to 4."""


@dataclass(frozen=True, slots=True)
class HpaDecision:
    """wanted: by the metrics alone; None where they decide nothing. allowed: numbers that follow;
    several where a window or period ends at that time. reason: what changed `wanted`."""

    wanted: int | None
    allowed: frozenset[int]
    reason: str = ""


@dataclass(slots=True)
class HpaReplay:
    """The rules with their memory: recommendations and changes of the past.

    slack_s: a window or period that ends within this time of a decision may have ended or not.
    """

    settings: HpaSettings
    slack_s: float = 0.0
    wanted: list[tuple[float, int]] = field(default_factory=list)
    changes: list[tuple[float, int]] = field(default_factory=list)

    def begin(self, current: int, at_s: float) -> None:
        """Records the number at which the autoscaler began as its first recommendation."""
        self.wanted.append((at_s, current))

    def decide(self, sync: HpaSync) -> HpaDecision:
        """Returns what follows from the rules, and remembers the recommendation."""
        settings, current = self.settings, sync.current
        if not current and settings.minimum:
            return HpaDecision(None, frozenset({0}), "disabled")
        if not settings.minimum <= current <= settings.maximum:
            bound = min(max(current, settings.minimum), settings.maximum)
            return HpaDecision(
                None, frozenset({bound}), "maximum" if bound < current else "minimum"
            )
        wanted = wanted_of(settings, sync)
        if wanted is None:
            return HpaDecision(None, frozenset({current}), "no metric")
        times = {sync.at_s - self.slack_s, sync.at_s, sync.at_s + self.slack_s}
        results = {self._limited(self._stable(wanted, current, at_s), current, at_s)
                   for at_s in times}  # fmt: skip
        reason = ""
        if wanted not in {number for number, _ in results}:
            stable = self._stable(wanted, current, sync.at_s)
            reason = "stabilisation" if stable != wanted else next(iter(results))[1]
        self.wanted.append((sync.at_s, wanted))
        return HpaDecision(wanted, frozenset(number for number, _ in results), reason)

    def changed(self, at_s: float, size: int) -> None:
        """Remembers a change for the policies."""
        if size:
            self.changes.append((at_s, size))

    def _stable(self, wanted: int, current: int, now_s: float) -> int:
        """The number within the recommendations of both windows that is nearest to the present."""
        out, back = self.settings.out, self.settings.back
        least = min(
            [wanted, *(count for at_s, count in self.wanted if at_s > now_s - out.window_s)]
        )
        most = max(
            [wanted, *(count for at_s, count in self.wanted if at_s > now_s - back.window_s)]
        )
        if not out.policies:
            return most  # without `behavior`, the window is of scaling in alone
        return min(max(current, least), most)

    def _limited(self, number: int, current: int, now_s: float) -> tuple[int, str]:
        settings = self.settings
        if number > current:
            limit = self._out_limit(current, now_s)
            most = min(settings.maximum, max(limit, current))
            if number > most:
                return most, "maximum" if most == settings.maximum else "policy"
        elif number < current:
            limit = self._back_limit(current, now_s)
            least = max(settings.minimum, min(limit, current))
            if number < least:
                return least, "minimum" if least == settings.minimum else "policy"
        return number, ""

    def _at_begin(self, current: int, policy: HpaPolicy, now_s: float) -> int:
        """The number of replicas when the policy's period began."""
        recent = (size for at_s, size in self.changes if at_s > now_s - policy.period_s)
        return current - sum(recent)

    def _out_limit(self, current: int, now_s: float) -> int:
        direction = self.settings.out
        if not direction.policies:
            return max(_LIMIT_FACTOR * current, _LEAST_LIMIT)
        if direction.select == "Disabled":
            return current
        limits = []
        for policy in direction.policies:
            before = self._at_begin(current, policy, now_s)
            limits.append(
                before + policy.value
                if policy.kind == PODS
                else math.ceil(before * (1 + policy.value / 100))
            )
        return min(limits) if direction.select == "Min" else max(limits)

    def _back_limit(self, current: int, now_s: float) -> int:
        direction = self.settings.back
        if not direction.policies:
            return self.settings.minimum
        if direction.select == "Disabled":
            return current
        limits = []
        for policy in direction.policies:
            before = self._at_begin(current, policy, now_s)
            limits.append(
                before - policy.value
                if policy.kind == PODS
                else int(before * (1 - policy.value / 100))
            )
        return max(limits) if direction.select == "Min" else min(limits)


@dataclass(frozen=True, slots=True)
class HpaDeviation:
    """A decision that does not follow from the rules."""

    at_s: float
    current: int
    decided: int
    allowed: frozenset[int]

    def text(self) -> str:
        """Returns a sentence that names it."""
        allowed = " or ".join(map(str, sorted(self.allowed)))
        return (
            f"At {self.at_s:.1f} s the HPA went from {self.current} to {self.decided} replicas, "
            f"where its formula leads to {allowed}."
        )


def deviations(
    settings: HpaSettings, decisions: Sequence[tuple[Sequence[HpaSync], int]], slack_s: float
) -> list[HpaDeviation]:
    """Replays decisions in order, and returns those that do not follow from the rules.

    decisions: what may have been seen, of which one has to explain it, and the number decided. It
    is more than one where pods changed at that time.
    """
    replay = HpaReplay(settings, slack_s)
    results = []
    for place, (alternatives, decided) in enumerate(decisions):
        if not place:
            replay.begin(alternatives[0].current, alternatives[0].at_s)
        allowed: frozenset[int] = frozenset()
        before = list(replay.wanted)
        for sync in alternatives:
            replay.wanted = list(before)
            allowed |= replay.decide(sync).allowed
            if decided in allowed:
                break
        else:
            results.append(HpaDeviation(sync.at_s, sync.current, decided, allowed))
        replay.changed(sync.at_s, decided - sync.current)
    return results
