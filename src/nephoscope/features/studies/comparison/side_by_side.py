"""Compares a run with a study: every comparison of a part, with its mark and one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nephoscope.catalog import SIMULATED
from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.studies.catalogue import ReferenceStudy
from nephoscope.features.studies.comparison import measured, rules
from nephoscope.features.studies.comparison.published import ReferenceFigure, compute_figure
from nephoscope.features.studies.comparison.rules import Mark
from nephoscope.features.studies.definition.selectors import Cell
from nephoscope.features.studies.definition.study import CIRCULAR, Control, Part, StudyComparison

DISTURBED = (
    "Nothing is concluded: other work ran on this machine, and no control covers this value."
)

Location = tuple[str, Cell]
"""Table, then row and column of a published number."""


@dataclass(frozen=True, slots=True)
class ComparisonOutcome:
    """One comparison. measured: in the study's unit, None where there is none.

    steps: of an order, the ratio of each name to the next. sentence: the mark's reason. location:
    of the published number, where the figure is one as it stands; margin: as in study.yaml.
    simulated: the measured figure comes from a model. control: what was measured of the control
    that does not hold and that the sentence names.
    """

    part: str
    id: str
    claim: str
    ground: str
    unit: str
    mark: Mark
    sentence: str
    published: ReferenceFigure
    measured: Estimate | None = None
    steps: tuple[Estimate, ...] = ()
    location: Location | None = None
    margin: float | None = None
    simulated: bool = False
    control: Estimate | None = None

    @property
    def name(self) -> str:
        """Part and id, by which conclusions refer to it."""
        return f"{self.part}/{self.id}"


@dataclass(frozen=True, slots=True)
class FailedControl:
    """A control that does not hold. measured: None where the run has no such figure."""

    reason: str
    measured: Estimate | None = None


def is_simulated(benchmark: str) -> bool:
    """Returns whether a measured figure comes from a model and not from a machine."""
    return benchmark.startswith(SIMULATED)


def compare(
    study: ReferenceStudy, part: Part, result: RunResult, warnings: Sequence[str] = ()
) -> list[ComparisonOutcome]:
    """Returns every comparison of the part with a run of its plan, in the order of study.yaml.

    Where a control of the part does not hold, nothing is concluded but what is guaranteed, and
    each sentence gives the reason. A value without a control is not contradicted by a run that has
    warnings about its machine; a ratio is, because both its sides ran beside the same other work.
    """
    failures = [(control, control_failure(control, result)) for control in part.controls]
    outcomes = []
    for entry in part.comparisons:
        concerned = (
            failure
            for control, failure in failures
            if failure and control in _controls(part, entry)
        )
        outcome = _outcome(study, part, entry, result, next(concerned, None))
        outcome = _distinct(outcome, part, entry, result)
        outcomes.append(_undisturbed(outcome, part, entry) if warnings else outcome)
    return outcomes


def _controls(part: Part, entry: StudyComparison) -> list[Control]:
    return [each for each in part.controls if not each.comparisons or entry.id in each.comparisons]


def _distinct(
    outcome: ComparisonOutcome, part: Part, entry: StudyComparison, result: RunResult
) -> ComparisonOutcome:
    """Returns the outcome without an effect that alike conditions may have by chance.

    Of a ratio that excludes 1, beside a control that is a ratio of the same metric.
    """
    figure, ratio, interval = entry.measured, outcome.measured, rules.range_of(outcome.measured)
    if figure is None or not figure.is_ratio or figure.spread or entry.guaranteed:
        return outcome
    if outcome.mark is Mark.NOT_COMPARABLE or ratio is None or not (interval and interval.side(1)):
        return outcome
    for control in _controls(part, entry):
        of_metric = (control.measured.benchmark, control.measured.metric)
        if control.within is None or of_metric != (figure.benchmark, figure.metric):
            continue
        alike = measured.estimate(result, control.measured)
        spread = rules.range_of(alike)
        if spread is not None and spread.holds(ratio.value):
            bounds = f"[{spread.low:.4g}, {spread.high:.4g}]"
            reason = f"Nothing is concluded: alike conditions may differ as much, {bounds} times."
            sentence = f"{reason} {outcome.sentence}"
            return replace(outcome, mark=Mark.NOT_COMPARABLE, sentence=sentence, control=alike)
    return outcome


def _undisturbed(
    outcome: ComparisonOutcome, part: Part, entry: StudyComparison
) -> ComparisonOutcome:
    """Returns the outcome without a contradiction that other work on the machine may have made."""
    is_sure = bool(_controls(part, entry)) or entry.guaranteed or outcome.simulated
    is_value = entry.measured is not None and entry.measured.is_single
    if outcome.mark is not Mark.CONTRADICTED or is_sure or not is_value:
        return outcome
    sentence = f"{DISTURBED} {outcome.sentence}"
    return replace(outcome, mark=Mark.NOT_COMPARABLE, sentence=sentence)


def control_failure(control: Control, result: RunResult) -> FailedControl | None:
    """Returns why the control does not hold; None when it does."""
    try:
        estimate = measured.estimate(result, control.measured)
    except measured.Absent as error:
        return FailedControl(f"the control is missing: {error}")
    reason = _missed(control, estimate)
    if not reason:
        return None
    head = f"the control does not hold, so nothing is concluded: {control.claim}"
    return FailedControl(f"{head} ({reason})", estimate)


def part_failure(part: Part, result: RunResult) -> FailedControl | None:
    """Returns the first control of the whole part that does not hold; None when all do."""
    failures = (control_failure(each, result) for each in part.controls if not each.comparisons)
    return next(filter(None, failures), None)


def _missed(control: Control, estimate: Estimate) -> str:
    """Returns what the control asks for and what was measured; '' where it holds."""
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return f"{estimate.n} repetitions give no interval"
    interval = f"{estimate.value:.4g} {control.unit}".rstrip() + f" [{low:.4g}, {high:.4g}]"
    interval += f", n = {estimate.n}"
    if control.at_least is not None:
        if low >= control.at_least:
            return ""
        return f"{f'at least {control.at_least:g} {control.unit}'.rstrip()}; measured {interval}"
    if control.at_most is not None:
        if high <= control.at_most:
            return ""
        return f"{f'at most {control.at_most:g} {control.unit}'.rstrip()}; measured {interval}"
    assert control.within is not None
    if low <= 1 + control.within and high >= 1 - control.within:
        return ""
    return f"expected 1 within {control.within:g}; measured {interval}"


def _outcome(
    study: ReferenceStudy,
    part: Part,
    entry: StudyComparison,
    result: RunResult,
    failure: FailedControl | None,
) -> ComparisonOutcome:
    figure = compute_figure(study, entry.published)
    estimate: Estimate | None = None
    steps: tuple[Estimate, ...] = ()
    failed = None if entry.guaranteed or entry.ground == "not comparable" else failure
    obstacle = failed.reason if failed else ""
    try:
        if entry.measured is not None and entry.measured.order:
            steps = tuple(measured.steps(result, entry.measured, entry.published.order))
        elif entry.measured is not None:
            estimate = measured.estimate(result, entry.measured)
    except measured.Absent as error:
        obstacle, failed = str(error), None
    mark, reason = _judge(entry, figure, estimate, steps, obstacle)
    cell = entry.published.unchanged_cell
    return ComparisonOutcome(
        part.name,
        entry.id,
        entry.claim,
        entry.ground,
        entry.unit,
        mark,
        f"{reason[0].upper()}{reason[1:].rstrip('.')}. {entry.why} {figure.missing}".strip(),
        figure,
        estimate,
        steps,
        (entry.published.table, cell) if cell else None,
        entry.margin,
        entry.measured is not None and is_simulated(entry.measured.benchmark),
        failed.measured if failed else None,
    )


def _judge(
    entry: StudyComparison,
    figure: ReferenceFigure,
    estimate: Estimate | None,
    steps: tuple[Estimate, ...],
    obstacle: str,
) -> rules.Judgement:
    if entry.ground == "not comparable":
        return Mark.NOT_COMPARABLE, "another quantity, another mechanism, or no result of the study"
    if obstacle:
        return Mark.NOT_COMPARABLE, obstacle
    if steps:
        ranges = [interval for step in steps if (interval := rules.range_of(step)) is not None]
        if len(ranges) < len(steps):
            return Mark.NOT_COMPARABLE, _too_few(steps[0])
        judged = rules.in_order(figure.order, ranges)
        return _by_ground(entry, judged)
    assert estimate is not None
    assert figure.value is not None
    interval, band = rules.range_of(estimate), rules.range_of(figure)
    if interval is None:
        return Mark.NOT_COMPARABLE, _too_few(estimate)
    if entry.published.bound:
        return rules.by_bound(figure.value, entry.published.bound, interval)
    if entry.ground == "in kind":
        assert entry.neutral is not None
        mark, reason = rules.in_kind(
            figure.value, interval, neutral=entry.neutral, negligible=entry.negligible
        )
        unsure = band is not None and band.holds(entry.neutral)
        return mark, reason + f"; the published interval contains {entry.neutral:g}" * unsure
    assert entry.margin is not None
    judged = rules.in_number(
        figure.value, band, interval, margin=entry.margin, neutral=entry.neutral
    )
    return _by_ground(entry, judged)


def _by_ground(entry: StudyComparison, judged: rules.Judgement) -> rules.Judgement:
    if entry.ground in CIRCULAR:
        return rules.circular(Mark.FITTED if entry.ground == "fitted" else Mark.SET, judged)
    return judged


def _too_few(estimate: Estimate) -> str:
    return f"{estimate.n} measured repetitions give no interval"
