"""Ranks rows of alternatives, and assembles the record of the whole ranking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.naming import level_name
from nephoscope.core.reading.sentences import did_you_mean, listed
from nephoscope.features.rank.domains import advise
from nephoscope.features.rank.front import pareto_front
from nephoscope.features.rank.overall import overall, scope_of
from nephoscope.features.rank.records import MARGIN, RankedCell, RankedRow, Ranking, RankSettings
from nephoscope.features.rank.rows import (
    FEW,
    NOT_MEASURED,
    Alternatives,
    Measurement,
    RankRow,
    rows_of,
)
from nephoscope.features.rank.stored import labelled_lines
from nephoscope.results.run_data import RunData
from nephoscope.stats import exclusions
from nephoscope.stats.statistics import variation
from nephoscope.stats.statistics.values import Refused

MOST_NAMED = 20
"""Alternatives that are left out of the ranking and named."""

PLATFORM = "platform"
"""Factor whose levels every report ranks."""
METHOD = "ratio of costs; Student t on logarithms, over all pairs together"


def rank(alternatives: Alternatives, settings: RankSettings) -> Ranking:
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
    having = {name for row in rows for name in row.lines}
    ranked_names = [name for name in names if name in having]
    alone = [name for name in names if name not in having]
    excluded += [
        f"'{name}' is left out: it has no metric in common with another alternative"
        f"{_because(rows, name)}."
        for name in alone[:MOST_NAMED]
    ]
    if len(alone) > MOST_NAMED:
        excluded.append(f"{len(alone) - MOST_NAMED} more are left out for the same reason.")
    if not rows:
        raise UsageError(
            "The alternatives have no metric in common.",
            excluded[0] if excluded else "Measure the same plan on all of them.",
        )
    if alone:
        rows = [
            replace(row, gaps={n: reason for n, reason in row.gaps.items() if n in having})
            for row in rows
        ]
    reference = settings.reference or ranked_names[0]
    if reference not in ranked_names:
        raise UsageError(
            f"There is no alternative '{reference}'{did_you_mean(reference, ranked_names)}.",
            f"Alternatives: {listed(ranked_names)}.",
        )
    settings = replace(settings, reference=reference)
    scope = scope_of(rows, ranked_names)
    front = pareto_front(scope.rows, scope.names, settings.confidence)
    return Ranking(
        tuple(ranked_names),
        reference,
        settings.confidence,
        settings.margin,
        settings.seed,
        tuple(_ranked(row, ranked_names, settings) for row in rows),
        overall(scope, front, ranked_names, settings),
        advise(rows, scope.names, settings),
        tuple(excluded),
        (*alternatives.warnings, *exclusions.warnings(alternatives.excluded)),
        alternatives.hidden_settings,
    )


def _because(rows: Iterable[RankRow], name: str) -> str:
    known = [row.gaps[name] for row in rows if row.gaps[name] != NOT_MEASURED]
    return f" ({known[0]})" if known else ""


def _ranked(row: RankRow, alternatives: Sequence[str], settings: RankSettings) -> RankedRow:
    present = list(row.lines)
    standing = row.standing(settings.confidence)
    ratios: Sequence[Estimate | None] = [None] * len(present)
    if row.has_ratio and settings.reference in row.lines:
        ratios = standing.ratios(present.index(settings.reference), METHOD)
    varied = _consistency_ranks(row, present, settings)
    columns = zip(
        present,
        standing.ranks.tolist(),
        standing.low.tolist(),
        standing.high.tolist(),
        ratios,
        row.lines.values(),
        strict=True,
    )
    cells = {
        name: RankedCell(
            name,
            rank,
            low if row.tested else None,
            high if row.tested else None,
            line.estimate,
            ratio if name != settings.reference else None,
            line.consistency if line.consistency != variation.UNKNOWN else None,
            *varied.get(name, ()),
        )
        for name, rank, low, high, ratio, line in columns
    }
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
        tuple(
            cells.get(name) or RankedCell(name, reason=row.gaps.get(name, NOT_MEASURED))
            for name in alternatives
        ),
        row.note,
    )


def _consistency_ranks(
    row: RankRow, names: Sequence[str], settings: RankSettings
) -> dict[str, tuple[int, int, int]]:
    """Rank by robust variation with its interval; none for few repetitions, many alternatives."""
    variations = {
        name: row.lines[name].consistency.robust_cv
        for name in names
        if len(row.lines[name].trial_values) >= variation.LEAST_N
    }
    known = {name: value for name, value in variations.items() if value is not None}
    if not 2 <= len(known) <= FEW:
        return {}
    pairs = list(combinations(known, 2))
    level = 1 - (1 - settings.confidence) / len(pairs)
    steadier = dict.fromkeys(known, 0)
    less_steady = dict.fromkeys(known, 0)
    for a, b in pairs:
        values = (row.lines[a].trial_values, row.lines[b].trial_values)
        with suppress(Refused):  # a side that does not vary at all has no ratio
            ratio = variation.ratio_of_robust_cv(*values, confidence=level, seed=settings.seed)
            if (ratio.low or 0.0) > 1:
                steadier[b] += 1
                less_steady[a] += 1
            elif ratio.high is not None and ratio.high < 1:
                steadier[a] += 1
                less_steady[b] += 1
    return {
        name: (
            1 + sum(rival < value for rival in known.values()),
            1 + steadier[name],
            len(known) - less_steady[name],
        )
        for name, value in known.items()
    }


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
    margin = float(data.manifest.margin or MARGIN)
    try:
        return rank(alternatives, RankSettings(margin=margin, confidence=data.confidence))
    except UsageError:  # one level, or levels without a common metric: there is no order to state
        return None
