"""Ranks rows of alternatives, and assembles the record of the whole ranking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations

from nephoscope.analysis.statistics import variation
from nephoscope.analysis.statistics.values import Refused
from nephoscope.errors import UsageError
from nephoscope.naming import level_name
from nephoscope.rank.domains import advise
from nephoscope.rank.overall import overall
from nephoscope.rank.pairs import Names, Place, places, told_apart
from nephoscope.rank.records import MARGIN, RankedCell, RankedRow, Ranking, Settings
from nephoscope.rank.rows import NOT_MEASURED, Alternatives, Measurement, Row, rows_of
from nephoscope.rank.stored import labelled_lines
from nephoscope.results.run_data import RunData

PLATFORM = "platform"
"""Factor whose levels every report ranks."""
METHOD = "ratio of costs; Student t on logarithms"


def rank(alternatives: Alternatives, settings: Settings) -> Ranking:
    """Ranks alternatives by row, overall and by domain.

    Raises UsageError for fewer than two alternatives, for a metric that one has twice, and for an
    unknown weight.
    """
    names = alternatives.names
    if len(names) < 2:
        held = f"'{names[0]}' is the only alternative" if names else "There is no alternative"
        raise UsageError(
            f"{held}, and a ranking needs two.",
            "Name several runs as A=RUN B=RUN, or a factor of the plan with --by.",
        )
    rows, excluded = rows_of(alternatives)
    ranked_names = [name for name in names if any(name in row.lines for row in rows)]
    excluded += [
        f"'{name}' is left out: it has no metric in common with another alternative"
        f"{_because(rows, name)}."
        for name in names
        if name not in ranked_names
    ]
    if not rows:
        raise UsageError(
            "The alternatives have no metric in common.",
            excluded[0] if excluded else "Measure the same plan on all of them.",
        )
    rows = [
        replace(row, gaps={name: row.gaps[name] for name in ranked_names if name in row.gaps})
        for row in rows
    ]
    reference = settings.reference or ranked_names[0]
    if reference not in ranked_names:
        raise UsageError(
            f"There is no alternative '{reference}'.", f"Alternatives: {', '.join(ranked_names)}."
        )
    settings = replace(settings, reference=reference)
    ranked = [_ranked(row, ranked_names, settings) for row in rows]
    return Ranking(
        tuple(ranked_names),
        reference,
        settings.confidence,
        settings.margin,
        settings.seed,
        tuple(ranked),
        overall(rows, ranked, ranked_names, settings),
        advise(rows, ranked_names, settings),
        tuple(excluded),
        tuple(alternatives.warnings),
    )


def _because(rows: Iterable[Row], name: str) -> str:
    known = [row.gaps[name] for row in rows if row.gaps[name] != NOT_MEASURED]
    return f" ({known[0]})" if known else ""


def _ranked(row: Row, alternatives: Sequence[str], settings: Settings) -> RankedRow:
    present = list(row.lines)
    first = present[0]
    costs = {name: row.pair(first, name).log_ratio for name in present}
    p = {names: pair.p for names, pair in row.pairs.items() if pair.p is not None}
    apart = told_apart(p, settings.confidence)
    if not row.tested:
        apart = {names for names, pair in row.pairs.items() if abs(pair.log_ratio) > 1e-12}
    shared = places(costs, apart)
    varied = _consistency_ranks(row, present, settings)
    return RankedRow(
        row.parameter,
        row.benchmark,
        row.metric,
        row.factors,
        row.kind,
        row.resource,
        row.better,
        row.unit,
        row.tested,
        tuple(_cell(row, name, shared, varied, settings) for name in alternatives),
        row.note,
    )


def _cell(
    row: Row,
    name: str,
    shared: Mapping[str, Place],
    varied: Mapping[str, Place],
    settings: Settings,
) -> RankedCell:
    line = row.lines.get(name)
    if line is None:
        return RankedCell(name, reason=row.gaps.get(name, NOT_MEASURED))
    ratio, reference = None, settings.reference
    if row.has_ratio and reference in row.lines and name != reference:
        pair = row.pair(reference, name)
        n = min(line.estimate.n, row.lines[reference].estimate.n)
        ratio = pair.estimate(settings.confidence, n, METHOD)
    place = shared[name]
    return RankedCell(
        name,
        place.rank,
        place.low,
        place.high,
        line.estimate,
        ratio,
        line.consistency,
        varied[name].rank if name in varied else None,
    )


def _consistency_ranks(row: Row, names: Sequence[str], settings: Settings) -> dict[str, Place]:
    """Ranks by robust variation; those with too few repetitions have none."""
    variations = {
        name: row.lines[name].consistency.robust_cv
        for name in names
        if len(row.lines[name].trial_values) >= variation.LEAST_N
    }
    known = {name: value for name, value in variations.items() if value is not None}
    if len(known) < 2:
        return {}
    pairs = list(combinations(known, 2))
    level = 1 - (1 - settings.confidence) / len(pairs)
    apart: set[Names] = set()
    for a, b in pairs:
        values = (row.lines[a].trial_values, row.lines[b].trial_values)
        with suppress(Refused):  # a side that does not vary at all has no ratio
            ratio = variation.ratio_of_robust_cv(*values, confidence=level, seed=settings.seed)
            if (ratio.low or 0.0) > 1 or (ratio.high is not None and ratio.high < 1):
                apart.add((a, b))
    return places(known, apart)


def analyse(data: RunData) -> Ranking | None:
    """Returns the ranking of the levels of the factor `platform` in a run."""
    labelled = list(labelled_lines(data.metrics, PLATFORM, ()))
    reasons: dict[tuple[str, str, str], str] = {}
    for record in data.records:
        if record.reasons and PLATFORM in record.factors:
            key = (level_name(record.factors[PLATFORM]), record.benchmark, "")
            reasons.setdefault(key, "; ".join(record.reasons))
    failed = [name for name, _, _ in reasons]
    names = list(dict.fromkeys([*(name for name, _ in labelled), *failed]))
    measurements = [Measurement(name, 0, line) for name, line in labelled]
    alternatives = Alternatives(data.confidence, names, measurements, reasons)
    margin = float(data.manifest.get("margin") or MARGIN)
    try:
        return rank(alternatives, Settings(margin=margin, confidence=data.confidence))
    except UsageError:  # one level, or levels without a common metric: there is no order to state
        return None
