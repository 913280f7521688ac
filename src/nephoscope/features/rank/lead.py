"""The sentence that states who is first in a ranking, by the intervals of its rows."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate
from nephoscope.core.reading.sentences import listed
from nephoscope.features.rank.records import OverallCell, Ranking
from nephoscope.report import wording
from nephoscope.stats.statistics.values import percent

NAMED = 5
"""Alternatives that a sentence names."""
GAP = "–"


def lead(ranking: Ranking) -> str:
    """Returns who is first overall, as far as the rank intervals decide it, in one sentence."""
    overall, cells = ranking.overall, in_order(ranking)
    if not cells:
        return "No overall order: there is no benchmark that every alternative has."
    best = cells[0]
    over = wording.plural(len(overall.benchmarks), "benchmark")
    if not overall.tested:
        return f"{_untested_order(ranking, cells)} {_without_one(best, over)}".rstrip()
    name = wording.clean(best.alternative)
    if best.rank_high == 1:
        after = overall.lead
        assert after is not None
        return (
            f"{name} is first over {over}: {wording.clean(cells[1].alternative)}, the next one, "
            f"costs {after.value:.3g} times as much ({_ends(after)}, n = {after.n})."
        )
    rivals = [wording.clean(cell.alternative) for cell in cells if cell.rank_low == 1]
    if len(rivals) == len(cells) and all(cell.rank_high == len(cells) for cell in cells):
        text = f"No alternative can be told apart over {over}: {listed(rivals)}."
    else:
        text = f"Rank 1 over {over} is open between {wording.joined(_few(rivals))}."
    likely = chance(best.first_probability, best, 1)
    return f"{text} {name} has the lowest geometric mean" + (
        f", and rank 1 with probability {likely}." if likely != GAP else "."
    )


def chance(probability: float | None, cell: OverallCell, top: int) -> str:
    """Returns a probability as text; 0 and 1 only where the rank interval decides."""
    if probability is None:
        return GAP
    if probability == 0 and (cell.rank_low or 1) <= top:
        return "< 0.1 %"
    if probability == 1 and (cell.rank_high or 1) > top:
        return "> 99.9 %"
    return percent(probability)


def _few(names: Sequence[str]) -> list[str]:
    """The first names, and how many more there are, to be joined."""
    return [*names[:NAMED], f"{len(names) - NAMED:,} more"] if len(names) > NAMED else [*names]


def _untested_order(ranking: Ranking, cells: Sequence[OverallCell]) -> str:
    n = max((cell.ratio.n for cell in cells if cell.ratio is not None), default=0)
    text = "one value each" if n == 1 else f"n = {n}" if n else "published ranks"
    groups = group_by(cells[:NAMED], lambda cell: cell.rank)
    order = ", then ".join(
        " = ".join(wording.clean(cell.alternative) for cell in group) for group in groups.values()
    )
    more = f", then {len(cells) - NAMED:,} more" if len(cells) > NAMED else ""
    return (
        f"Overall order of values without intervals ({text}), by the {ranking.overall.score}: "
        f"{order}{more}."
    )


def _without_one(best: OverallCell, over: str) -> str:
    if best.rank_without_low is None or best.rank_without_low == best.rank_without_high:
        return ""
    return (
        f"Without one of the {over} {wording.clean(best.alternative)} has a rank of "
        f"{best.rank_without_low} to {best.rank_without_high}."
    )


def in_order(ranking: Ranking) -> list[OverallCell]:
    """The alternatives with an overall rank, the best first."""
    ranked = [cell for cell in ranking.overall.cells if cell.rank is not None]
    return sorted(ranked, key=lambda cell: cell.rank or 0)


def _ends(estimate: Estimate) -> str:
    return f"{estimate.low:.3g} to {estimate.high:.3g}"
