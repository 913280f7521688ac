"""What-if: availability of composed systems, error budgets, objectives a service could promise."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from statistics import fmean

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.sla import prometheus
from nephoscope.features.sla.result import PeriodVerdict, SlaVerdict
from nephoscope.features.sla.terms import exact_share
from nephoscope.stats.statistics.proportions import exact_bounds

YEAR_S, MONTH_S = 365 * 86_400, 30 * 86_400
INDEPENDENCE = "Parts are taken to fail independently of each other."
CANDIDATES = ("100%", "99.999%", "99.99%", "99.95%", "99.9%", "99.5%", "99%", "95%", "90%")
_TOKEN = re.compile(r"\s*([0-9.]+\s*%?|[a-z]+|[(),])")
_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Composition:
    """Availability of a composed system.

    availability: if its parts fail independently. low, high: whatever the dependence of the parts.
    """

    expression: str
    assumption: str
    availability: float
    low: float
    high: float
    downtime_per_month_s: float
    downtime_per_year_s: float


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """The error budget of an objective over a window.

    exhausted_after_s: at the stated burn rate. least_n: successes without a failure that prove the
    objective at this confidence. alert_factors: burn rates that use 2 % of the budget in 1 h, 5 %
    in 6 h and 10 % in 3 d. over_years: the objective as a yearly share over so many years.
    """

    objective: float
    window_s: float
    allowed_s: float
    burn_rate: float
    exhausted_after_s: float | None
    budget_used_in_1h: float
    alert_factors: tuple[float, ...]
    least_n: int | None
    confidence: float
    years: float
    over_years: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """An objective, the finished periods that met it for certain, and the share of such periods.

    next_period: probability that a further period meets it, if periods are exchangeable: exact
    one-sided bounds.
    """

    objective: float
    met: int
    next_period: Estimate


@dataclass(frozen=True, slots=True)
class Promise:
    """Objectives that a service could have promised, from its own finished periods.

    worst: lowest availability of a period, slots of which nothing is known counted as bad. best:
    highest candidate that every period met, null where none was. expected_credit_share: mean
    credit of a period under the contract.
    """

    service: str
    periods: int
    worst: float | None
    best: float | None
    candidates: tuple[Candidate, ...]
    expected_credit_share: float | None
    expected_credit: float | None


@dataclass(frozen=True, slots=True)
class Promises:
    """Objectives that each service could have promised. notes: how periods were counted."""

    agreement: str
    services: tuple[Promise, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    independent: float
    low: float
    high: float


def compose(expression: str) -> Composition:
    """Returns the availability of an expression of series, parallel and of(k, …).

    Raises UsageError for anything else.
    """
    tokens = _tokens(expression)
    part = _parsed(tokens, 0)
    if tokens:
        raise _bad(expression, f"'{tokens[0]}' follows its end")
    down = 1 - part.independent
    return Composition(
        expression,
        INDEPENDENCE,
        part.independent,
        part.low,
        part.high,
        down * MONTH_S,
        down * YEAR_S,
    )


def _bad(text: str, why: str) -> UsageError:
    return UsageError(
        f"'{text[:80]}' is no composition: {why}.",
        "Write, for example, series(99.9%, parallel(99.5%, 99.5%), of(2, 99%, 99%, 99%)).",
    )


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _bad(text, f"'{text[at : at + 10].strip()}' is not understood")
        tokens.append(match[1].strip())
        at = match.end()
    return tokens


def _parsed(tokens: list[str], depth: int) -> _Part:
    if not tokens or depth > _DEPTH:
        raise _bad(" ".join(tokens), "it ends too early or is nested too deeply")
    head = tokens.pop(0)
    if head not in ("series", "parallel", "of"):
        try:
            share = float(exact_share(head))
        except ValueError as error:
            raise _bad(head, str(error)) from None
        return _Part(share, share, share)
    if not tokens or tokens.pop(0) != "(":
        raise _bad(head, f"'(' has to follow '{head}'")
    least = None
    if head == "of":
        number = tokens.pop(0) if tokens else ""
        if not number.isdecimal() or len(number) > 9 or not tokens or tokens.pop(0) != ",":
            raise _bad(head, "of() begins with the number of parts that suffice")
        least = int(number)
    parts = [_parsed(tokens, depth + 1)]
    while tokens and tokens[0] == ",":
        tokens.pop(0)
        parts.append(_parsed(tokens, depth + 1))
    if not tokens or tokens.pop(0) != ")":
        raise _bad(head, "a ')' is missing")
    least = len(parts) if head == "series" else 1 if least is None else least
    if not 1 <= least <= len(parts):
        raise _bad(head, f"{least} of {len(parts)} parts cannot be")
    return _at_least(least, parts)


def _at_least(least: int, parts: Sequence[_Part]) -> _Part:
    """Availability where at least so many parts have to work.

    The bounds hold for every dependence: they follow from the mean number of working parts.
    """
    law = np.ones(1)
    for part in parts:
        law = np.convolve(law, [1 - part.independent, part.independent])
    count = len(parts)
    lows, highs = [part.low for part in parts], [part.high for part in parts]
    low = max(0.0, (sum(lows) - least + 1) / (count - least + 1))
    high = min(1.0, sum(highs) / least)
    if least == count:
        high = min(high, *highs)
    if least == 1:
        low = max(low, *lows)
    independent = 1 - float(law[:least].sum()) if least * 2 <= count else float(law[least:].sum())
    return _Part(independent, low, high)


def budget(
    objective: Decimal, window_s: float, burn_rate: float, confidence: float, years: float
) -> BudgetPlan:
    """Returns the error budget of an objective over a window."""
    bad = float(1 - objective)
    least = None
    if 0 < objective < 1:
        least = math.ceil(math.log(1 - confidence) / math.log(float(objective)) - 1e-9)
    factors = tuple(
        prometheus.factor(share, window_s, 3600 * hours)
        for _, share, (_, hours), _ in prometheus.ALERTS
    )
    return BudgetPlan(
        float(objective),
        window_s,
        bad * window_s,
        burn_rate,
        window_s / burn_rate if burn_rate and bad else None,
        burn_rate * 3600 / window_s,
        factors,
        least,
        confidence,
        years,
        float(objective) ** years,
    )


def promises(judged: SlaVerdict, bill: Decimal | None) -> Promises:
    """Returns what each service could have promised, from the first objective by slots."""
    services = [
        _promise(
            service,
            [p for p in judged.periods if p.service == service and p.finished],
            judged.confidence,
            bill,
        )
        for service in judged.services
    ]
    notes = (
        "Slots of which nothing is known count as bad here: a promise has to be certain.",
        "The probability for a further period holds if periods are exchangeable.",
    )
    return Promises(judged.agreement, tuple(services), notes)


def _promise(
    service: str, periods: Sequence[PeriodVerdict], confidence: float, bill: Decimal | None
) -> Promise:
    exact = [
        Fraction(objective.total - objective.bad - objective.unknown, objective.total)
        for period in periods
        for objective in [o for o in period.objectives if o.unit == "slots"][:1]
        if objective.total
    ]
    candidates = []
    for text in CANDIDATES:
        share = exact_share(text)
        met = sum(value >= Fraction(share) for value in exact)
        if exact:
            low, high = exact_bounds(met, len(exact), confidence=confidence)
            method = "share of periods; exact one-sided binomial bounds"
            chance = Estimate(met / len(exact), low, high, confidence, len(exact), "ratio", method)
            candidates.append(Candidate(float(share), met, chance))
    best = [candidate.objective for candidate in candidates if candidate.met == len(exact)]
    shares = [p.credit.owed_share for p in periods if p.credit.owed_share is not None]
    # The mean over the periods is the sum over the tiers of P(tier) times its credit.
    expected = fmean(shares) if shares else None
    return Promise(
        service,
        len(exact),
        float(min(exact)) if exact else None,
        max(best) if best else None,
        tuple(candidates),
        expected,
        None if bill is None or expected is None else float(bill) * expected,
    )
