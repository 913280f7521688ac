"""An objective of response time: a share of the requests below a limit."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample
from nephoscope.core.records import dataclass
from nephoscope.results.names import UNANSWERED

_TEXT = re.compile(r"\s*p(\d{1,2}(?:\.\d+)?)\s*<\s*(\S.*?)\s*")
_EXPECTED_BEYOND = 10
"""Requests beyond the percentile that a trial just at the limit has: fewer say little."""


@dataclass(frozen=True, slots=True)
class LatencyObjective:
    """At least `share_ratio` of all requests are answered within `limit_ns`."""

    share_ratio: float
    limit_ns: int

    @classmethod
    def of(cls, text: str) -> LatencyObjective:
        """Reads 'p99 < 20ms'. Raises UsageError for anything else."""
        hint = "Write, for example, 'p99 < 20ms'."
        match = _TEXT.fullmatch(text)
        if match is None or not 0 < float(match[1]) < 100:
            raise UsageError(f"'{text}' is no objective of response time.", hint)
        try:
            limit_ns = units.parse_duration_ns(match[2], likely=("ms", "s"))
        except UsageError as error:
            raise UsageError(f"'{text}' is no objective: {error.message}", hint) from None
        if limit_ns <= 0:
            raise UsageError(f"'{text}' is no objective: its limit is 0.", hint)
        return cls(round(float(match[1]) / 100, 9), limit_ns)

    @property
    def least_requests(self) -> int:
        """Requests that a trial needs."""
        return round(_EXPECTED_BEYOND / (1 - self.share_ratio))

    def latency_of(self, samples: Sequence[Sample]) -> float:
        """Returns the percentile of a trial in ns; infinite where it reaches requests that failed
        or had no answer."""
        latency: Counter[float] = Counter()
        unanswered: Counter[float] = Counter()
        failed = 0
        for sample in samples:
            if sample.metric == "latency_ns":
                latency[sample.value] += sample.count
            elif sample.metric == UNANSWERED["latency_ns"]:
                unanswered[sample.value] += sample.count
            elif sample.metric == "errors_count" and sample.factors["kind"] not in _TIMED:
                failed += round(sample.value)
        rank = math.ceil(self.share_ratio * (latency.total() + failed))
        for value, count in sorted((latency - unanswered).items()):
            rank -= count
            if rank <= 0:
                return value
        return math.inf

    def met_by(self, samples: Sequence[Sample]) -> bool:
        """Returns whether the requests of a trial meet it; those that failed, and those that had no
        answer when the trial ended, are beyond the limit."""
        return self.latency_of(samples) < self.limit_ns

    def __str__(self) -> str:
        limit = units.format_value(float(self.limit_ns), "ns")
        return f"p{100 * self.share_ratio:g} < {limit}"


_TIMED = frozenset({"any", "timeout", "unsent", "unasked_bytes"})
"""Kinds of errors that are among the latencies, those that are no request, and the sum of all."""
