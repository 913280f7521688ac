"""What series of rates show of burst credits."""

from __future__ import annotations

from dataclasses import field

from nephoscope.core.model import INTERNAL, stated
from nephoscope.core.records import dataclass
from nephoscope.stats.token_bucket.records import BurstCredit


@dataclass(frozen=True, slots=True)
class CreditSeries:
    """A series of rates and its analysis.

    source: target, or series of a file. metric: what was counted; '' in a file. unit: of the rates.
    left_out: points that were not used, by reason. at_s, rates: for the chart.
    """

    source: str
    metric: str
    unit: str
    analysis: BurstCredit
    left_out: dict[str, int] = field(default_factory=dict)
    at_s: tuple[float, ...] = field(default=(), metadata=INTERNAL)
    rates: tuple[float, ...] = field(default=(), metadata=INTERNAL)


@dataclass(frozen=True, slots=True)
class BurstCredits:
    """Series of rates, each with the token bucket behind it or the reason why there is none."""

    series: tuple[CreditSeries, ...]
    notes: tuple[str, ...] = ()

    @stated
    def on_credit(self) -> tuple[str, ...]:
        """The sources of the series behind which there is a token bucket."""
        return tuple(
            dict.fromkeys(each.source for each in self.series if each.analysis.is_on_credit)
        )
