"""Collects the figures of one server type, with checks of values and units."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from nephoscope.core import limits
from nephoscope.core.model import Better
from nephoscope.store.imports.rows import number
from nephoscope.store.imports.units import Unit
from nephoscope.store.market.records import MarketMetric, TypeReading

PER_S = Unit("per_s", 1.0, Better.HIGHER)
PER_MINUTE = Unit("per_s", 1 / 60, Better.HIGHER)
BYTES_PER_S = Unit("bytes_per_s", 1.0, Better.HIGHER)
MB_PER_S = Unit("bytes_per_s", 1e6, Better.HIGHER)
GB_PER_S = Unit("bytes_per_s", 1e9, Better.HIGHER)
NS = Unit("ns", 1.0, Better.LOWER)
MS = Unit("ns", 1e6, Better.LOWER)
SECONDS = Unit("ns", 1e9, Better.LOWER)
POINTS = Unit("points", 1.0, Better.HIGHER)
TOKENS_PER_S = Unit("tokens_per_s", 1.0, Better.HIGHER)
SIZE_SHARE = Unit("ratio", 0.01, Better.LOWER)
"""Compressed size, of which the files state the percentage of the size before."""
BUSY_S = Unit("s", 1.0, Better.NONE)

_UNSAFE = re.compile(r"[^A-Za-z0-9._:+/-]+")


@lru_cache(10_000)
def _word(text: str) -> str:
    return _UNSAFE.sub("_", text).strip("_")[:60]


def word(text: Any) -> str:
    """Returns a name as a part of a metric: letters, digits and a few marks, at most 60."""
    return _word(str(text)[:1000])


class FigureCollector:
    """Adds figures to a reading. cpus: of the machine, 0 where it is unknown."""

    def __init__(self, reading: TypeReading, cpus: int) -> None:
        self.reading = reading
        self.cpus = cpus
        self.file = ""
        self.at_s = 0
        self.values: dict[tuple[str, int], float] = {}

    def add(self, metric: str, value: Any, unit: Unit, **factors: Any) -> float | None:
        """Adds a figure and returns it in the unit of core.units.

        What is null or 0 was not measured and is no figure: nothing that was measured has a rate or
        a time of 0. What cannot be true is left out with its reason.
        """
        if value is None or value == 0:
            self.reading.count("without a value")
            return None
        try:
            figure = number(value, metric) * unit.factor
            if figure <= 0:
                raise ValueError(f"'{metric}' is {value!r:.40}, and cannot be below 0")
        except ValueError as error:
            self.leave_out(str(error))
            return None
        if len(self.reading.figures) >= limits.MARKET_FIGURES:
            raise OverflowError
        text = ",".join(f"{key}={word(factor)}" for key, factor in factors.items())
        name = f"{metric} {text}" if text else metric
        # A figure counts once; a series has one for each time.
        key = (name, self.at_s)
        if key in self.values:
            if self.values[key] != figure:
                self.leave_out(f"'{name}' is there twice, with {self.values[key]:g} and {figure:g}")
            return None
        self.values[key] = figure
        stated = MarketMetric(unit.unit, unit.better)
        if self.reading.metrics.setdefault(name, stated) != stated:
            self.leave_out(f"'{name}' has two units")
            return None
        self.reading.figures.append((name, figure, self.at_s))
        return figure

    def add_text(self, metric: str, text: Any, unit: Unit, **factors: Any) -> float | None:
        """Adds a figure that is written as text."""
        try:
            value = float(text)
        except (TypeError, ValueError):
            self.leave_out(f"'{metric}' is no number: {text!r:.40}")
            return None
        return self.add(metric, value, unit, **factors)

    def add_best(self, metric: str, values: dict[str, float], unit: Unit, factor: str) -> None:
        """Adds the largest of several rates as the one with `factor`=best, by further factors."""
        for factors, value in values.items():
            pairs = dict(pair.split("=", 1) for pair in factors.split(",")) if factors else {}
            self.add(metric, value / unit.factor, unit, **pairs, **{factor: "best"})

    def leave_out(self, reason: str) -> None:
        """Notes that something of the file cannot be used."""
        server = self.reading.type
        self.reading.left_out.append(f"{server.provider}/{server.name}/{self.file}: {reason}")

    def workers(self, count: int) -> list[str]:
        """Returns the names of a number of workers: 1, all, or the number itself."""
        names = [name for name, value in (("1", 1), ("all", self.cpus)) if value == count]
        return names or [str(count)]
