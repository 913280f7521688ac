"""Parallel parts of one workload: their figures together are one repetition of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nephoscope.core.records import dataclass
from nephoscope.store.imports.rows import ImportedHistogram, ImportedRow, Merge

_NAMED = 60


@dataclass(frozen=True, slots=True)
class Merged:
    """Figures of all parts together. left_out: the metrics that cannot be told from the parts."""

    rows: list[ImportedRow]
    left_out: list[str]

    @property
    def sentence(self) -> str:
        """' Left out …' with the names of what cannot be merged; '' for nothing."""
        if not self.left_out:
            return ""
        names = ", ".join(self.left_out[:_NAMED])
        more = len(self.left_out) - _NAMED
        rest = f" and {more} more" if more > 0 else ""
        return f" Left out, because parts do not tell those of the whole: {names}{rest}."


def merge_parts(parts: Sequence[Sequence[ImportedRow]]) -> Merged:
    """Sums rates and counts, takes maxima and minima, weights means by their counts.

    Each part has the rows of one generator or clone; the first row of a group in one part belongs
    to the first in each other one. What a part lacks has no sum and is left out.
    """
    groups: dict[tuple[str, ...], list[list[ImportedRow]]] = {}
    for number, part in enumerate(parts):
        for row in part:
            groups.setdefault(row.group, [[] for _ in parts])[number].append(row)
    rows: list[ImportedRow] = []
    left_out: list[str] = []
    for columns in groups.values():
        whole = len({len(column) for column in columns}) == 1
        merged = [_merge(aligned) for aligned in zip(*columns, strict=True)] if whole else [None]
        rows += [row for row in merged if row is not None]
        if None in merged:
            left_out.append(next(row.metric for column in columns for row in column))
    return Merged(rows, list(dict.fromkeys(left_out)))


def _merge(rows: Sequence[ImportedRow]) -> ImportedRow | None:
    """Returns the row of all; None where parts do not tell it."""
    values = [row.value for row in rows]
    weights = [row.weight for row in rows]
    merging = rows[0].merging
    histogram = None
    if merging is Merge.HISTOGRAM:
        histogram = ImportedHistogram.added([row.histogram for row in rows if row.histogram])
        value = max(histogram.counts)
    elif merging is Merge.SUM:
        value = sum(values)
    elif merging is Merge.MAXIMUM:
        value = max(values)
    elif merging is Merge.MINIMUM:
        value = min(values)
    elif merging is Merge.WEIGHTED_MEAN and all(weights):
        pairs = zip(values, weights, strict=True)
        value = sum(pair * weight for pair, weight in pairs) / sum(weights)
    else:
        return None
    times = [row.at_s for row in rows if row.at_s is not None]
    return replace(
        rows[0],
        value=value,
        weight=sum(weights),
        at_s=min(times, default=None),
        identity="",
        histogram=histogram,
    )
