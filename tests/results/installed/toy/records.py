"""The record of the toy feature."""

from __future__ import annotations

from dataclasses import dataclass

from nephoscope.core.model import stated


@dataclass(frozen=True, slots=True)
class Extremes:
    """The smallest and the largest trial value."""

    smallest: float
    largest: float

    @stated
    def span(self) -> float:
        """Returns their difference."""
        return self.largest - self.smallest
