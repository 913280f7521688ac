"""Several files of one tool: parallel parts of one run, or repetitions of it.

Where the files state their times, those tell. Else the user has to, for tools that are often run
on several machines at the same time: summing repetitions and repeating parts are both wrong.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from nephoscope.core.errors import UsageError
from nephoscope.store.imports.parts import merge_parts
from nephoscope.store.imports.rows import ImportedFigures, ImportedRow

_PARALLEL_SHARE = 0.5
"""Of the shorter of two runs, how much has to overlap to call them parallel."""
_ROUNDING_S = 2.0
"""Runs one after the other may seem to overlap by so much, because tools state whole seconds."""


class Arrangement(enum.Enum):
    """How several files belong together."""

    PARALLEL = "parallel"
    REPETITIONS = "repetitions"


def combine(
    parts: Sequence[ImportedFigures], stated: Arrangement | None, *, may_be_parallel: bool
) -> ImportedFigures:
    """Returns the figures of all files. UsageError where it has to be asked how they belong.

    stated: what the user stated. may_be_parallel: of a tool that is often run in parallel.
    """
    whole = ImportedFigures(parts[0].tool)
    for part in parts:
        whole.missing += [name for name in part.missing if name not in whole.missing]
        whole.left_out += part.left_out
    filled = [part for part in parts if part.rows]
    if len(filled) == 1 and (conserved := filled[0].conservation("the generator")):
        whole.missing.append(conserved)
    if len(filled) == 1 and (conserved := filled[0].conservation("the generator")):
        whole.missing.append(conserved)
    if not _share_a_group(filled):
        whole.rows = [row for part in filled for row in part.rows]
        whole.span = parts[0].span if len(parts) == 1 else None
        return whole
    if stated is Arrangement.PARALLEL:
        clusters = [list(filled)]
    elif stated is Arrangement.REPETITIONS:
        clusters = [[part] for part in filled]
    else:
        clusters = _clusters_by_time(filled, may_be_parallel=may_be_parallel)
        if any(part.span is None for part in filled):
            whole.missing.append(
                f"The {len(filled)} files are taken as repetitions, one after the other, because "
                f"they do not state their times; --parallel sums parts that ran at the same time."
            )
    for cluster in clusters:
        whole.rows += _rows_of(cluster, whole)
    return whole


def _share_a_group(parts: Sequence[ImportedFigures]) -> bool:
    """States whether two files have figures of one setting."""
    seen: set[tuple[str, ...]] = set()
    for part in parts:
        groups = {row.group for row in part.rows}
        if groups & seen:
            return True
        seen |= groups
    return False


def _rows_of(cluster: Sequence[ImportedFigures], whole: ImportedFigures) -> list[ImportedRow]:
    """Returns the figures of files that ran at the same time, as those of one run."""
    if len(cluster) == 1:
        return cluster[0].rows
    whole.is_sum = True
    _require_same_settings(cluster, whole.tool)
    merged = merge_parts([part.rows for part in cluster])
    whole.missing.append(
        f"{len(cluster)} files are parallel parts of one run: their rates and counts are summed, "
        f"and count as one repetition.{merged.sentence}"
    )
    for part in cluster:
        for name, count in part.counts.items():
            whole.counts[name] = whole.counts.get(name, 0) + count
    if all(part.counts for part in cluster):
        conserved = whole.conservation(f"{len(cluster)} generators")
        whole.missing += [conserved] if conserved else []
    whole.missing += _precision_sentence(cluster, merged.rows)
    return merged.rows


def _require_same_settings(cluster: Sequence[ImportedFigures], tool: str) -> None:
    """Raises UsageError for parts of one run that were not asked for the same."""
    first = cluster[0].settings
    for number, part in enumerate(cluster[1:], start=2):
        names = [
            name
            for name in dict.fromkeys((*first, *part.settings))
            if first.get(name) != part.settings.get(name)
        ]
        if names:
            pairs = [
                (name, *(own.get(name, "not stated") for own in (first, part.settings)))
                for name in names
            ]
            differing = "; ".join(f"{name} {left} and {right}" for name, left, right in pairs)
            raise UsageError(
                f"Files 1 and {number} of {tool} are not parts of one run: they differ in "
                f"{differing}.",
                "Import them apart, or with --repetitions.",
            )


def _precision_sentence(
    cluster: Sequence[ImportedFigures], merged: Sequence[ImportedRow]
) -> list[str]:
    """Returns that histograms were added at the precision of the coarsest, where they differ."""
    digits = sorted(
        {
            row.histogram.precision.digits
            for part in cluster
            for row in part.rows
            if row.histogram is not None and row.histogram.precision is not None
        }
    )
    if len(digits) < 2:
        return []
    names = " and ".join(map(str, digits))
    widths = [
        row.histogram.precision.relative
        for row in merged
        if row.histogram is not None and row.histogram.precision is not None
    ]
    return [
        f"Histograms of {names} significant digits were added in the buckets of {digits[0]}: "
        f"percentiles are exact to {100 * max(widths):.2g} % of their value."
    ]


def _clusters_by_time(
    parts: Sequence[ImportedFigures], *, may_be_parallel: bool
) -> list[list[ImportedFigures]]:
    """Returns the files that ran at the same time, together; UsageError where it is unknown."""
    tool = parts[0].tool
    timed = [(part.span, part) for part in parts if part.span is not None]
    if len(timed) < len(parts):
        if may_be_parallel:
            raise UsageError(
                f"The {len(parts)} files of {tool} do not state when they ran: parallel generators "
                "of one run (whose rates add up) and repetitions of it look the same.",
                "Add --parallel if they ran at the same time, or --repetitions if they ran one "
                "after the other.",
            )
        return [[part] for part in parts]
    clusters: list[tuple[tuple[float, float], list[ImportedFigures]]] = []
    for span, part in sorted(timed, key=lambda pair: pair[0]):
        if clusters:
            (began, ended), members = clusters[-1]
            overlap_s = min(ended, span[1]) - span[0]
            shorter_s = max(min(ended - began, span[1] - span[0]), 1e-9)
            if overlap_s >= _PARALLEL_SHARE * shorter_s:
                members.append(part)
                clusters[-1] = ((began, max(ended, span[1])), members)
                continue
            if overlap_s > _ROUNDING_S:
                raise UsageError(
                    f"Files of {tool} ran at the same time for {overlap_s:.0f} s of "
                    f"{shorter_s:.0f} s: they are neither parallel parts of one run nor "
                    "repetitions of it.",
                    "Add --parallel to sum them, or --repetitions to count each one.",
                )
        clusters.append((span, [part]))
    return [members for _, members in clusters]
