"""The credit that a contract grants for what an experiment on elasticity violated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.grouping import group_by
from nephoscope.core.naming import plural
from nephoscope.features.elastic.records import ElasticCredit, Elasticity, ElasticTrial
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.sla import credit, files
from nephoscope.features.sla.events import FAILED, OK, UNKNOWN, Stream
from nephoscope.features.sla.objectives import event_target, sentence
from nephoscope.features.sla.slots import states_of
from nephoscope.features.sla.terms import Agreement, Objective, nanoseconds
from nephoscope.report import wording

_MEASURES = ("scaling_time", "response_time")
_TOLERANCE_NS = 1.0
"""Between the limits of a contract and of `--objective`, which are read from texts."""


@dataclass(frozen=True, slots=True)
class DemandStep:
    """A rise of the demand, at_s after the begin of its trial.

    served_s: until so many instances were in rotation; None where they never were while they were
    demanded. seen_s: for which the demand was seen to last.
    """

    at_s: float
    served_s: float | None
    seen_s: float


def check(agreement: Agreement, objective: LatencyObjective) -> None:
    """Raises UsageError for a contract that an experiment with this objective cannot judge."""
    own = judged_objectives(agreement)
    if not own:
        raise UsageError(
            f"'{agreement.title}' promises neither a time to scale nor a response time.",
            "Use a contract with an objective of scaling_time or response_time.",
        )
    for each in own:
        limit = _limit_ns(each)
        if each.measure == "response_time" and abs(limit - objective.limit_ns) > _TOLERANCE_NS:
            raise UsageError(
                f"The contract limits response times to {units.format_value(limit, 'ns')}, and "
                f"--objective to {units.format_value(objective.limit_ns, 'ns')}.",
                "State the contract's limit in --objective.",
            )


def judged_objectives(agreement: Agreement) -> list[Objective]:
    """Returns the objectives of an agreement whose events an experiment has."""
    return [
        each
        for each in agreement.objectives
        if each.measure in _MEASURES and each.target is not None
    ]


def credits_of(
    elastic: Elasticity, contract_text: str, bill_text: str
) -> tuple[ElasticCredit, ...]:
    """Returns the credit of each autoscaler that is judged and each objective of a contract."""
    agreement = files.from_text(contract_text, "contract")
    bill = credit.amount_of(bill_text, "bill") if bill_text else None
    counted = [trial for trial in elastic.trials if not trial.is_left_out]
    trials = group_by(counted, lambda trial: trial.autoscaler)
    return tuple(
        _credit(summary.autoscaler, trials[summary.autoscaler], objective, agreement, bill)
        for summary in elastic.autoscalers
        if not summary.problems
        for objective in judged_objectives(agreement)
    )


def demand_steps(trial: ElasticTrial) -> list[DemandStep]:
    """Returns the rises of the demand within a trial."""
    steps = []
    for place in range(1, len(trial.demand)):
        at_s, level = trial.demand[place]
        if level <= trial.demand[place - 1][1]:
            continue
        falls = [time_s for time_s, count in trial.demand[place:] if count < level]
        end_s = min([*falls, trial.duration_s])
        served = [
            max(at_s, begin_s)
            for (begin_s, count), until_s in _with_ends(trial.supply, trial.duration_s)
            if count >= level and until_s > at_s and begin_s < end_s
        ]
        steps.append(DemandStep(at_s, min(served) - at_s if served else None, end_s - at_s))
    return steps


def _with_ends(
    levels: Sequence[tuple[float, float]], end_s: float
) -> Iterable[tuple[tuple[float, float], float]]:
    ends = [at_s for at_s, _ in levels[1:]]
    return zip(levels, [*ends, end_s], strict=True)


def _limit_ns(objective: Objective) -> float:
    limit = objective.under if objective.within is None else objective.within
    assert limit is not None
    return float(nanoseconds(limit))


def _counts(trial: ElasticTrial, objective: Objective) -> tuple[int, int, int]:
    """Returns the good, all known and the unknown events of a trial."""
    if objective.measure == "response_time":
        return trial.due - trial.slow - trial.failed, trial.due, 0
    steps, limit_s = demand_steps(trial), _limit_ns(objective) / 1e9
    # A demand that ends before the limit does not tell whether it would have been served in time.
    states = [
        OK if step.served_s is not None else UNKNOWN if step.seen_s < limit_s else FAILED
        for step in steps
    ]
    stream = Stream(
        np.arange(len(steps), dtype=np.int64),
        np.array(states, dtype=np.int8),
        np.array([np.nan if step.served_s is None else 1e3 * step.served_s for step in steps]),
    )
    judged = states_of(objective, stream)
    unknown = int((judged == UNKNOWN).sum())
    return int((judged == OK).sum()), len(steps) - unknown, unknown


def _credit(
    name: str,
    trials: Sequence[ElasticTrial],
    objective: Objective,
    agreement: Agreement,
    bill: Decimal | None,
) -> ElasticCredit:
    counts = [_counts(trial, objective) for trial in trials]
    good, known, unknown = (sum(column) for column in zip(*counts, strict=True))
    unbilled = ElasticCredit(name, objective.measure, sentence(objective), good, known, unknown)
    if not known:
        return unbilled
    share = Fraction(good, known)
    rounds = [
        float(_owed(agreement, objective, Fraction(own, every)))
        for own, every, _ in counts
        if every
    ]
    owed = _owed(agreement, objective, share)
    made = replace(
        unbilled,
        is_met=share >= event_target(objective),
        credit_ratio=float(owed),
        lowest_ratio=min(rounds),
        highest_ratio=max(rounds),
    )
    if bill is None:
        return made
    return replace(
        made,
        currency=agreement.currency,
        bill=credit.money(bill),
        credit=credit.money(credit.amount(agreement, bill, owed)),
    )


def credit_sentence(made: ElasticCredit) -> str:
    """Returns a credit in words."""
    head, promise = wording.clean(made.autoscaler), wording.clean(made.promise)
    what = "steps of the demand" if made.measure == "scaling_time" else "requests"
    left = (
        f" {plural(made.unknown, 'step')} of the demand ended before the limit, and tell nothing."
        if made.unknown
        else ""
    )
    if made.credit_ratio is None or made.lowest_ratio is None or made.highest_ratio is None:
        return f"With {head}, no {what} tell whether {promise} holds.{left}"
    word = "met" if made.is_met else "violated"
    money = "" if made.bill is None else f", {made.credit} {made.currency} of {made.bill}"
    return (
        f"With {head}, {made.good:,} of {made.known:,} {what} are within the promise ({promise}): "
        f"{word}. A period like this run has a credit of {wording.percent(made.credit_ratio)} of "
        f"the bill{money}; its rounds alone {wording.percent(made.lowest_ratio)} to "
        f"{wording.percent(made.highest_ratio)}.{left}"
    )


def _owed(agreement: Agreement, objective: Objective, share: Fraction) -> Decimal:
    return credit.capped(agreement, [credit.share_of_tiers(objective, share)])
