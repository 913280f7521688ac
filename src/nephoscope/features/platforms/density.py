"""Density: the number of guests until the p99 of one doubles, and the search for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from itertools import takewhile

from nephoscope.core.model import Estimate
from nephoscope.features.platforms.records import Density, DensityStep

DOUBLED = 2.0
"""Ratio of p99 at which a platform carries no more guests."""
CONFIDENCE = 0.95
METHOD = "search by doubling and halving; p99 ratio of each step by bootstrap of whole rounds"


class NoFurtherGuest(Exception):
    """No more guests than `possible` can run here; the text is the reason."""

    def __init__(self, possible: int, reason: str) -> None:
        super().__init__(reason)
        self.possible = possible
        self.reason = reason


Measure = Callable[[int], Awaitable[DensityStep]]
"""Loads so many guests at once. Raises NoFurtherGuest."""


async def search(measure: Measure, most: int) -> tuple[list[DensityStep], str]:
    """Returns the measured steps, and why the search ended.

    Doubles the number of guests until the p99 has doubled, then halves the gap. The ratio of one
    guest to itself is 1, so that it is not measured.
    """
    steps: list[DensityStep] = []
    below, above, doubt = 1, 0, ""
    limit = f"the limit of {most} guests (--max-guests) was reached"
    while True:
        if above:
            number = (below + above) // 2
            if number == below:
                return steps, f"the p99 doubled at {above} guests{doubt}"
        else:
            number = min(2 * below, most)
            if number <= below:
                return steps, limit
        try:
            step = await measure(number)
        except NoFurtherGuest as error:
            most, limit = min(most, error.possible), error.reason
            continue
        steps.append(step)
        if step.p99_ratio is None:
            return steps, f"the p99 of {number} guests has no figure: {step.reason}"
        if step.p99_ratio.value >= DOUBLED:
            above = number
            low = step.p99_ratio.low
            proven = low is not None and low >= DOUBLED
            doubt = "" if proven else ", which its interval does not prove"
        else:
            below = number


def steps_at_most(most: int) -> int:
    """Returns how many steps a search takes at most."""
    return 2 * max(0, most - 1).bit_length()


def conclude(
    platform: str,
    steps: Iterable[DensityStep],
    stopped: str,
    memory: Estimate | None,
) -> Density:
    """Returns the density that steps of a search show; see `Density`."""
    steps = tuple(sorted(steps, key=lambda step: step.guests))
    ratios = [(step.guests, step.p99_ratio) for step in steps if step.p99_ratio is not None]
    if not ratios:
        return Density(platform, None, stopped, steps, memory)
    value = max((number for number, ratio in ratios if ratio.value < DOUBLED), default=1)
    surely_below = takewhile(
        lambda numbered: numbered[1].high is not None and numbered[1].high < DOUBLED, ratios
    )
    surely_doubled = [number for number, ratio in ratios if (ratio.low or 0.0) >= DOUBLED]
    estimate = Estimate(
        float(value),
        float(max((number for number, _ in surely_below), default=1)),
        float(max(value, min(surely_doubled) - 1)) if surely_doubled else None,
        CONFIDENCE,
        min(ratio.n for _, ratio in ratios),
        "count",
        METHOD,
        "" if any(ratio.value >= DOUBLED for _, ratio in ratios) else "The p99 did not double.",
    )
    known = tuple(step for step in steps if step.p99_ratio is not None)
    return Density(platform, estimate, stopped, known, memory)


def is_decided(ratio: Estimate) -> bool:
    """States whether the interval of a p99 ratio lies on one side of 2."""
    low, high = ratio.low, ratio.high
    return bool((low is not None and low >= DOUBLED) or (high is not None and high < DOUBLED))
