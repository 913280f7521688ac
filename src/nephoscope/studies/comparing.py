"""Ours beside theirs: every comparison of a part, with its mark and one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nephoscope.analysis.compare import estimate_json
from nephoscope.model import Estimate, RunResult
from nephoscope.studies import ours, rules, theirs
from nephoscope.studies.records import Control, Mapping, Part
from nephoscope.studies.rules import Mark, Range
from nephoscope.studies.shelf import Shelf
from nephoscope.studies.theirs import Figure
from nephoscope.studies.together import Where, is_simulated

__all__ = ["Mark", "Outcome", "compare"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One comparison. estimate: ours, in their unit, None where there is none.

    steps: of an order, the ratio of each name to the next. sentence: the mark's reason. where: the
    published number, where the figure is one and nothing else; margin: as in study.yaml.
    simulated: ours comes from a model.
    """

    part: str
    id: str
    claim: str
    ground: str
    unit: str
    mark: Mark
    sentence: str
    figure: Figure
    estimate: Estimate | None = None
    steps: tuple[Estimate, ...] = ()
    where: Where | None = None
    margin: float | None = None
    simulated: bool = False

    def to_json(self) -> dict[str, Any]:
        """The object of `study show --json` and of the report's study.json."""
        figure = self.figure
        return {
            "part": self.part,
            "id": self.id,
            "claim": self.claim,
            "ground": self.ground,
            "mark": self.mark.value,
            "sentence": self.sentence,
            "unit": self.unit,
            "theirs": {
                "value": figure.value,
                "low": figure.low,
                "high": figure.high,
                "n": figure.n,
                "order": list(figure.order),
                "source": figure.source,
                "lacks": figure.lacks,
                "notes": list(figure.notes),
            },
            "ours": estimate_json(self.estimate) if self.estimate else None,
            "steps": [estimate_json(step) for step in self.steps],
        }


def compare(shelf: Shelf, part: Part, result: RunResult) -> list[Outcome]:
    """Every comparison of the part with a run of its plan, in the order of study.yaml.

    Where a control of the part does not hold, nothing is concluded but what is guaranteed, and
    each sentence says why.
    """
    broken = [(one, told) for one in part.controls if (told := _broken(one, result))]

    def stopped(mapping: Mapping) -> str:
        return next((told for one, told in broken if not one.of or mapping.id in one.of), "")

    return [_outcome(shelf, part, one, result, stopped(one)) for one in part.comparisons]


def _broken(control: Control, result: RunResult) -> str:
    """Why the control does not hold; empty when it does."""
    try:
        found = ours.estimate(result, control.ours)
    except ours.Absent as error:
        return f"the control is missing: {error}"
    told = f"the control does not hold, so nothing is concluded: {control.claim}"
    low = "no interval" if found.low is None else f"from {found.low:.4g} {control.unit}".rstrip()
    if control.at_least is not None:
        if found.low is not None and found.low >= control.at_least:
            return ""
        least = f"{control.at_least:g} {control.unit}".rstrip()
        return f"{told} (at least {least}; ours {found.value:.4g}, {low})"
    assert control.within is not None
    if found.low is None or found.high is None:
        return f"{told} ({found.n} repetitions give no interval)"
    if found.low <= 1 + control.within and found.high >= 1 - control.within:
        return ""
    between = f"{found.value:.4g} [{found.low:.4g}, {found.high:.4g}]"
    return f"{told} (1 within {control.within:g} was to be in it; ours {between})"


def _outcome(shelf: Shelf, part: Part, mapping: Mapping, result: RunResult, broken: str) -> Outcome:
    figure = theirs.figure(shelf, mapping.theirs)
    estimate: Estimate | None = None
    steps: tuple[Estimate, ...] = ()
    absent = ""
    try:
        if mapping.ours is not None and mapping.ours.order:
            steps = tuple(ours.steps(result, mapping.ours, mapping.theirs.order))
        elif mapping.ours is not None:
            estimate = ours.estimate(result, mapping.ours)
    except ours.Absent as error:
        absent = str(error)
    stopped = absent or ("" if mapping.guaranteed else broken)
    mark, reason = _judged(mapping, figure, estimate, steps, stopped)
    sentence = f"{reason[0].upper()}{reason[1:]}. {mapping.why} {figure.lacks}".strip()
    plain = mapping.theirs.plain
    return Outcome(
        part.name,
        mapping.id,
        mapping.claim,
        mapping.ground,
        mapping.unit,
        mark,
        sentence,
        figure,
        estimate,
        steps,
        (mapping.theirs.table, plain) if plain else None,
        mapping.margin,
        mapping.ours is not None and is_simulated(mapping.ours.benchmark),
    )


def _judged(
    mapping: Mapping,
    figure: Figure,
    estimate: Estimate | None,
    steps: tuple[Estimate, ...],
    stopped: str,
) -> rules.Judgement:
    if mapping.ground == "not comparable":
        return Mark.NOT_COMPARABLE, "another quantity, or another mechanism"
    if stopped:
        return Mark.NOT_COMPARABLE, stopped
    if steps:
        ranges = [_range(step) for step in steps]
        if any(one is None for one in ranges):
            return Mark.NOT_COMPARABLE, _too_few(steps[0])
        return rules.in_order(figure.order, [one for one in ranges if one is not None])
    assert estimate is not None
    assert figure.value is not None
    mine, theirs_range = _range(estimate), _range(figure)
    if mine is None:
        return Mark.NOT_COMPARABLE, _too_few(estimate)
    if mapping.ground == "in kind":
        assert mapping.neutral is not None
        mark, reason = rules.in_kind(
            figure.value, mine, neutral=mapping.neutral, negligible=mapping.negligible
        )
        unsure = theirs_range is not None and theirs_range.holds(mapping.neutral)
        return mark, reason + (f"; their own interval contains {mapping.neutral:g}" * unsure)
    assert mapping.margin is not None
    return rules.in_number(
        figure.value, theirs_range, mine, margin=mapping.margin, neutral=mapping.neutral
    )


def _range(estimate: Estimate | Figure) -> Range | None:
    if estimate.low is None or estimate.high is None:
        return None
    return Range(estimate.low, estimate.high)


def _too_few(estimate: Estimate) -> str:
    return f"{estimate.n} repetitions of ours give no interval"
