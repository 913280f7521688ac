"""Compares emulated rows: what was set, measured and published, and the inferred scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.scheduler.inference.verdict import SchedulerVerdicts
from nephoscope.features.studies.catalogue import Number, ReferenceStudy
from nephoscope.features.studies.comparison import measured, rules
from nephoscope.features.studies.comparison.rules import Range
from nephoscope.features.studies.comparison.side_by_side import is_simulated, part_failure
from nephoscope.features.studies.definition.layouts import EmulatedRow, EmulatedShare
from nephoscope.features.studies.definition.study import Part

HOLDS, MISSED, UNSURE, ABSENT = "holds", "missed", "too wide", "not measured"
NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class LabelledValue:
    """A published number with its label in the table."""

    label: str
    number: Number


@dataclass(frozen=True, slots=True)
class ShareOutcome:
    """One share. status: holds (the whole interval lies within), missed, too wide, not measured,
    or not comparable: missed where a control does not hold.

    simulated: the measured share comes from a model.
    """

    name: str
    set_to: float
    status: str
    measured: Estimate | None
    published: tuple[LabelledValue, ...]
    absent: str = ""
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """One emulated row. verdict: of the scheduler inference; '' where it was not asked.

    obstacle: why a share that is missed proves nothing; '' where the controls hold.
    """

    part: str
    id: str
    title: str
    unit: str
    within: float
    shares: tuple[ShareOutcome, ...]
    expected: str
    verdict: str
    sentence: str
    why: str
    obstacle: str = ""

    @property
    def all_shares_hold(self) -> bool:
        """Returns whether every share holds."""
        return all(share.status == HOLDS for share in self.shares)


def compare_rows(study: ReferenceStudy, part: Part, result: RunResult) -> list[RowOutcome]:
    """Returns every emulated row of the part, from a run of its plan.

    Where a control of the whole part does not hold, no share counts as missed but a guaranteed one.
    """
    failure = part_failure(part, result) if part.emulated else None
    rows = []
    for row in part.emulated:
        obstacle = failure.reason if failure and not row.guaranteed else ""
        shares = tuple(_share(study, row, share, result, obstacle) for share in row.shares)
        verdict, sentence = _inferred(row, result)
        rows.append(
            RowOutcome(
                part.name,
                row.id,
                row.title,
                row.unit,
                row.within,
                shares,
                row.verdict,
                verdict,
                sentence,
                row.why,
                obstacle,
            )
        )
    return rows


def _share(
    study: ReferenceStudy,
    row: EmulatedRow,
    share: EmulatedShare,
    result: RunResult,
    obstacle: str,
) -> ShareOutcome:
    outcome = ShareOutcome(
        share.name,
        share.set_to,
        ABSENT,
        None,
        tuple(
            LabelledValue(entry.label, study.number(entry.table, entry.cell))
            for entry in share.published
        ),
        simulated=is_simulated(share.measured.benchmark),
    )
    try:
        estimate = measured.estimate(result, share.measured)
    except measured.Absent as error:
        return replace(outcome, absent=str(error))
    holds = rules.lies_within(estimate, Range(share.set_to - row.within, share.set_to + row.within))
    missed = NOT_COMPARABLE if obstacle else MISSED
    status = {True: HOLDS, False: missed, None: UNSURE}[holds]
    return replace(outcome, status=status, measured=estimate)


def _inferred(row: EmulatedRow, result: RunResult) -> tuple[str, str]:
    """Verdict and sentence of the inference on the row's target; '' where it is not asked."""
    if not row.verdict:
        return "", ""
    verdicts = result.part(SchedulerVerdicts)
    for scheduler in verdicts.targets if verdicts is not None else ():
        if scheduler.target == row.target:
            return str(scheduler.word), str(scheduler.sentence)
    return "nothing", "no trial shows what schedules it"


def summarise(rows: Sequence[RowOutcome]) -> str:
    """Returns how many rows hold, how many verdicts are right, and why a miss proves nothing."""
    good = sum(row.all_shares_hold for row in rows)
    expected = [row for row in rows if row.expected]
    right = sum(row.verdict == row.expected for row in expected)
    text = f"{good} of {len(rows)} rows have every share within the bound of what was set"
    named = (
        f"; the scheduler of {right} of {len(expected)} is inferred correctly" if expected else ""
    )
    reasons = {
        row.obstacle for row in rows if any(share.status == NOT_COMPARABLE for share in row.shares)
    }
    reason = "".join(f" {each[0].upper()}{each[1:]}." for each in sorted(reasons))
    return f"{text}{named}.{reason}"
