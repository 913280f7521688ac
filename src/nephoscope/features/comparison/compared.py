"""One line of a comparison."""

from __future__ import annotations

from nephoscope.core.model import Estimate, Factors, stated
from nephoscope.core.naming import line_name
from nephoscope.core.records import dataclass
from nephoscope.stats.compare import TwoSampleComparison


@dataclass(frozen=True, slots=True)
class Compared:
    """One line of a comparison: what, of which two, by which design, with which outcome.

    title: name for people. estimate_a, estimate_b: value of each side with its own interval.
    is_headline: whether it is one of the results that carry the comparison.
    """

    benchmark: str
    metric: str
    factors: Factors
    a: str
    b: str
    design: str
    comparison: TwoSampleComparison
    title: str
    estimate_a: Estimate
    estimate_b: Estimate
    is_headline: bool

    @property
    def ratio(self) -> Estimate | None:
        """Returns the ratio B / A whose interval carries the verdict."""
        (ratio,) = self.comparison.verdict.estimates or (self.comparison.ratio,)
        return ratio

    @property
    def has_interval(self) -> bool:
        """Returns whether there are enough repetitions for an interval of the ratio."""
        fewest = min(self.comparison.n_a, self.comparison.n_b)
        is_known = self.ratio is not None and self.ratio.low is not None
        return is_known and fewest >= self.comparison.least

    @stated
    def label(self) -> str:
        """Name of the line in sentences; empty for plain numbers."""
        if not self.benchmark:
            return ""
        return line_name(self.benchmark, self.metric, self.factors)
