"""Load windows: small requests inside guests, from all of them or from the first alone.

Every guest has an HTTP server and a generator of its own, which meet over its loopback interface:
what is measured is the guest, and no network between guests.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from nephoscope.catalog import instruments
from nephoscope.core.errors import NephoscopeError
from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.platforms.density import CONFIDENCE, DOUBLED, is_decided
from nephoscope.features.platforms.guests import HOST
from nephoscope.features.platforms.records import DensityStep
from nephoscope.measure.targets import session
from nephoscope.measure.targets.base import TargetTrial
from nephoscope.measure.targets.lab import LabTarget
from nephoscope.measure.targets.session import Side
from nephoscope.results.names import UNANSWERED
from nephoscope.stats.interference import factor_of_percentile
from nephoscope.stats.statistics import histograms
from nephoscope.stats.statistics.histograms import Trial
from nephoscope.stats.statistics.means import mean_t
from nephoscope.stats.statistics.values import Refused

PORT = 8080
"""Of the server in each guest, whose network nothing else is in."""
BODY_BYTES = 4096
CONNECTIONS = 10
ROUNDS = 6
"""Fewest for an interval of the p99 ratio; so many are added while the interval contains 2."""
MAX_ANALYSES = 3
"""Times at which the interval decides whether rounds are added."""
WARMUP_NS, WINDOW_NS = 200_000_000, 1_000_000_000
LIMIT_S = 120.0
_HOUR_S = 36_000.0
_LEAD_NS = 100_000_000
QUANTILE = 0.99


@dataclass(slots=True)
class LoadedGuest:
    """A guest with its server. Use `open`, then `prepare` for each window, then `close`."""

    lab: str
    rate_per_s: float
    target: LabTarget = field(init=False)
    _server: Side | None = None

    def __post_init__(self) -> None:
        self.target = LabTarget(self.lab, self.lab, HOST)

    async def open(self) -> None:
        """Opens the guest and starts its server. Raises NephoscopeError where it cannot."""
        await self.target.open(LIMIT_S)
        params = {"port": PORT, "body_bytes": BODY_BYTES, "duration_ns": 0}
        self._server = await session.prepare(
            self.target, instruments.HTTP_SERVE, params, deadline_s=_HOUR_S, limit_s=LIMIT_S
        )
        await session.go([self._server])

    async def prepare(self, seed: int) -> Side:
        """Starts the generator of one window, which waits for its start."""
        params: dict[str, Any] = {
            "url": f"http://127.0.0.1:{PORT}/",
            "arrivals": "poisson",
            "rate_per_s": self.rate_per_s,
            "connections": CONNECTIONS,
            "warmup_ns": WARMUP_NS,
            "duration_ns": WINDOW_NS,
            "seed": seed,
        }
        return await session.prepare(self.target, instruments.HTTP_LOAD, params, deadline_s=LIMIT_S)

    async def close(self) -> None:
        """Ends the server and closes the guest."""
        if self._server is not None:
            await self._server.end()
        await self.target.close()


@dataclass(frozen=True, slots=True)
class GuestWindow:
    """Responses of one guest in a window. failure: why it counts as dead, '' for a live guest.

    unanswered: those of `latencies` that are lower bounds, of requests that were never sent.
    """

    latencies: Trial
    completed_per_s: float
    failure: str = ""
    unanswered: Trial = ((), ())


DEAD: Trial = ((), ())
NO_FAILURES = ("any", "unsent")
"""Kinds of errors that are no failure of the server: the sum of all, and requests that waited for a
free connection until the window ended: their latency is known as a lower bound only."""


def window_of(trial: TargetTrial) -> GuestWindow:
    """Returns the window of a trial of http.load."""
    if trial.failure is not None:
        return GuestWindow(DEAD, 0.0, trial.failure.message)
    latencies, unanswered = (
        ([s.value for s in own], [s.count for s in own])
        for own in (
            [s for s in trial.samples if s.metric == metric]
            for metric in ("latency_ns", UNANSWERED["latency_ns"])
        )
    )
    values = {s.metric: s.value for s in trial.samples if s.metric != "errors_count"}
    failed = [
        f"{s.value:.0f} {s.factors['kind']}"
        for s in trial.samples
        if s.metric == "errors_count" and s.value and s.factors["kind"] not in NO_FAILURES
    ]
    failure = f"failed requests: {', '.join(failed)}" if failed else ""
    return GuestWindow(latencies, values.get("requests_per_s", 0.0), failure, unanswered)


async def load(guests: Sequence[LoadedGuest], seed: int) -> list[GuestWindow]:
    """Loads guests at one moment; returns the window of each, also of one that is dead."""
    prepared = await asyncio.gather(
        *(guest.prepare(seed + number) for number, guest in enumerate(guests)),
        return_exceptions=True,
    )
    sides = [side for side in prepared if isinstance(side, Side)]
    try:
        failures = [
            failure for failure in prepared if not isinstance(failure, Side | NephoscopeError)
        ]
        if failures:
            raise next(iter(failures))
        await session.go(sides, _LEAD_NS)
        windows = []
        for side in prepared:
            if isinstance(side, Side):
                windows.append(window_of(await side.running.result(LIMIT_S)))
            else:
                windows.append(GuestWindow(DEAD, 0.0, str(side)))
        return windows
    finally:
        await asyncio.gather(*(side.end() for side in sides))


@dataclass(frozen=True, slots=True)
class Round:
    """Windows of one round: of the first guest while the others idle, and of all guests."""

    alone: GuestWindow
    loaded: tuple[GuestWindow, ...]


async def measure(guests: Sequence[LoadedGuest], seed: int) -> DensityStep:
    """Measures a step, with further rounds while it is undecided whether the p99 has doubled."""
    measured: list[Round] = []
    for extension in range(MAX_ANALYSES):
        measured += await rounds(guests, seed, extension)
        step = step_of(measured, seed)
        if step.p99_ratio is None or is_decided(step.p99_ratio):
            break
    return step


async def rounds(guests: Sequence[LoadedGuest], seed: int, extension: int = 0) -> list[Round]:
    """Measures rounds of a step, the two windows of each in random order."""
    draw = random.Random(f"{seed}/{len(guests)}/{extension}")
    measured = []
    for _ in range(ROUNDS):
        first = draw.random() < 0.5
        windows: dict[bool, list[GuestWindow]] = {}
        for alone in (first, not first):
            windows[alone] = await load(guests[:1] if alone else guests, draw.randrange(1, 1 << 60))
        measured.append(Round(windows[True][0], tuple(windows[False])))
    return measured


def _ratio_of(measured: Sequence[Round], seed: int) -> Estimate:
    """Returns the ratio of p99 of the first guest, loaded over alone; a lower bound where requests
    without an answer reach the p99 of the loaded guest.

    Raises Refused where they leave it open on which side of 2 it is.
    """
    pairs = [
        (measured_round.alone.latencies, measured_round.loaded[0].latencies)
        for measured_round in measured
    ]
    level = 1 - (1 - CONFIDENCE) / MAX_ANALYSES
    ratio = factor_of_percentile(pairs, QUANTILE, confidence=level, seed=seed)
    ratio = replace(ratio, confidence=CONFIDENCE)
    if _reached_by_unanswered([measured_round.alone for measured_round in measured]):
        raise Refused("Requests without an answer reach the p99 of the guest alone.")
    loaded = [measured_round.loaded[0] for measured_round in measured]
    if not _reached_by_unanswered(loaded):
        return ratio
    if ratio.value < DOUBLED:
        raise Refused(
            f"Requests without an answer reach the p99 of the loaded guest, which is at least "
            f"{ratio.value:.2f} times that of the guest alone."
        )
    count, total = (
        sum(int(sum(each[1])) for each in own)
        for own in (
            [guest_window.unanswered for guest_window in loaded],
            [guest_window.latencies for guest_window in loaded],
        )
    )
    note = histograms.CENSORED_NOTE.format(count=count, total=total)
    return replace(ratio, high=None, censored=True, note=note)


def _reached_by_unanswered(own: Sequence[GuestWindow]) -> bool:
    """States whether requests without an answer reach the quantile of all windows together."""
    latencies, unanswered = (
        histograms.merge([getattr(guest_window, name) for guest_window in own])
        for name in ("latencies", "unanswered")
    )
    return bool(len(unanswered[1])) and histograms.is_censored(latencies, unanswered, QUANTILE)


def step_of(measured: Sequence[Round], seed: int) -> DensityStep:
    """Returns what the rounds of a step show.

    The level of the interval allows for the looks at it (Bonferroni): those decide how many rounds
    there are.
    """
    number = len(measured[0].loaded)
    live = sum(
        not any(measured_round.loaded[guest].failure for measured_round in measured)
        for guest in range(number)
    )
    completed = [
        sum(window.completed_per_s for window in measured_round.loaded)
        for measured_round in measured
    ]
    failures = [
        w.failure
        for measured_round in measured
        for w in (measured_round.alone, *measured_round.loaded)
        if w.failure
    ]
    ratio = None
    try:
        ratio = _ratio_of(measured, seed)
    except Refused as error:
        failures.append(str(error))
    reason = "; ".join(dict.fromkeys(failures))
    total = mean_t(completed, unit="per_s", confidence=CONFIDENCE, least=0.0)
    return DensityStep(number, live, ratio, total, reason)
