"""Figures of agreements that a study states, computed from the terms of the contracts."""

from __future__ import annotations

from fractions import Fraction

from nephoscope.core import units
from nephoscope.core.records import dataclass
from nephoscope.features.sla import credit, files
from nephoscope.features.sla.periods import Period, period_at
from nephoscope.features.sla.terms import Agreement, nanoseconds
from nephoscope.features.studies.catalogue import ReferenceStudy
from nephoscope.features.studies.definition.study import AgreementRow, Part

OUTAGE_S = 5 * 3600
"""Length of the outage whose credit is computed under every agreement."""
_AT_NS = 1_283_299_200 * 10**9  # 2010-09-01, the month of the studies' sources


@dataclass(frozen=True, slots=True)
class AgreementFigure:
    """A published figure of an agreement beside the computed one.

    allowed_slots, allowed_s: downtime of a period that still meets the objective. outage_credit:
    share of the bill for one outage of five hours; null where the source states no schedule.
    """

    part: str
    claim: str
    contract: str
    source: str
    published: str
    computed: float
    unit: str
    agrees: bool
    allowed_slots: int
    allowed_s: float
    outage_credit: float | None
    why: str


def figures(study: ReferenceStudy) -> tuple[AgreementFigure, ...]:
    """Returns the figures of all parts of a study that are computed from agreements."""
    return tuple(
        _figure(study, part, row) for part in study.definition.parts for row in part.agreements
    )


def _figure(study: ReferenceStudy, part: Part, row: AgreementRow) -> AgreementFigure:
    number = study.number(row.table, (row.row, row.column))
    terms = files.load(row.contract)
    period = period_at(terms, _AT_NS, nanoseconds(terms.objectives[0].slot))
    allowed, slot_s = allowed_slots(terms, period)
    target = terms.objectives[0].target
    assert target is not None
    value = float(100 * target) if row.figure == "objective" else allowed * slot_s / 3600
    return AgreementFigure(
        part.name,
        row.claim,
        terms.title,
        terms.source,
        f"{number.text} {number.unit}",
        value,
        number.unit,
        abs(value - number.value) <= row.margin * number.value,
        allowed,
        allowed * slot_s,
        _outage_credit(terms, period, slot_s),
        row.why,
    )


def allowed_slots(terms: Agreement, period: Period) -> tuple[int, float]:
    """Returns how many bad slots of a period still meet the objective, and a slot's seconds."""
    objective = terms.objectives[0]
    assert objective.target is not None
    slot_ns = nanoseconds(objective.slot)
    total = -(-(period.end_ns - period.start_ns) // slot_ns)
    return int(total * (1 - Fraction(objective.target))), slot_ns / 1e9


def _outage_credit(terms: Agreement, period: Period, slot_s: float) -> float | None:
    objective = terms.objectives[0]
    if objective.credit_per_downtime is not None:
        share = credit.share_of_downtime(objective, Fraction(OUTAGE_S))
    elif objective.credits:
        slots = Fraction(period.end_ns - period.start_ns, nanoseconds(objective.slot))
        good = 1 - Fraction(OUTAGE_S) / Fraction(round(slot_s)) / slots
        share = credit.share_of_tiers(objective, good)
    else:
        return None
    return float(credit.capped(terms, [share]))


def lines(figures_of_study: tuple[AgreementFigure, ...]) -> list[str]:
    """Returns the figures as lines of text."""
    texts = []
    for figure in figures_of_study:
        verdict = "agrees" if figure.agrees else "differs"
        texts.append(
            f"{figure.claim}: published {figure.published}, computed {figure.computed:.6g} "
            f"{figure.unit} ({verdict}). {figure.why}".strip()
        )
        paid = "not stated" if figure.outage_credit is None else f"{100 * figure.outage_credit:g} %"
        texts.append(
            f"  {figure.contract}: {figure.allowed_slots} bad slots a period are allowed "
            f"({units.format_duration(figure.allowed_s)}); credit for one outage of 5 h: {paid}."
        )
    return texts
