"""Drawn contracts and streams of events: the credit has a cap, rises with downtime, and depends on
nothing but the events."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.features.sla.events import Events, Stream
from nephoscope.features.sla.result import PeriodVerdict, VerdictSettings, judge
from nephoscope.features.sla.terms import Agreement

DAY_S = 86_400
SLOTS = 48
STATES = st.lists(st.sampled_from([1, 0, -1, None]), min_size=SLOTS, max_size=SLOTS)


@st.composite
def agreements(draw: st.DrawFn) -> Agreement:
    """A contract over days of 30-minute slots with drawn tiers, or credits for downtime."""
    bounds = sorted(draw(st.sets(st.integers(1, 99), min_size=1, max_size=4)), reverse=True)
    credits = sorted(draw(st.lists(st.integers(0, 100), min_size=4, max_size=4)))
    objective: dict[str, Any] = {
        "measure": "availability",
        "target": f"{bounds[0]}%",
        "slot": "30min",
    }
    if draw(st.booleans()):
        objective["credits"] = [
            {"below": f"{below}%", "credit": f"{share}%"}
            for below, share in zip(bounds, credits, strict=False)
        ]
    else:
        share = f"{credits[0]}%"
        objective["credit_per_downtime"] = {
            "credit": share,
            "every": f"{draw(st.integers(600, 9000))}s",
        }
    if draw(st.booleans()):
        objective["min_outage"] = f"{draw(st.integers(1, 4)) * 30}min"
    return Agreement.model_validate(
        {
            "sla": 1,
            "name": "drawn",
            "title": "drawn",
            "source": "drawn",
            "period": "day",
            "cap": f"{draw(st.integers(1, 100))}%",
            "objectives": [objective],
        }
    )


def judged(terms: Agreement, observers: list[list[Any]], order: list[int], bill: Decimal) -> Any:
    events = Events()
    for number, states in enumerate(observers):
        for at in [*order, *order[:3]]:  # some twice
            if states[at] is None:
                continue
            part = Stream(
                np.array([(DAY_S + 1800 * at) * 10**9], dtype=np.int64),
                np.array([states[at]], dtype=np.int8),
            )
            events.parts["web"][str(number)].append(part)
            events.rows += 1
    if not events.rows:
        return None
    verdict = judge(
        terms, events, VerdictSettings(now_ns=10 * DAY_S * 10**9, bills=(("", "", bill),))
    )
    return verdict.periods[0]


@given(
    agreements(),
    st.lists(STATES, min_size=1, max_size=3),
    st.permutations(range(SLOTS)),
    st.decimals(0, 10**6, places=2),
    st.integers(0, SLOTS - 1),
)
def test_credits(
    terms: Agreement, observers: list[list[Any]], order: list[int], bill: Decimal, worse: int
) -> None:
    period = judged(terms, observers, order, bill)
    if period is None:
        return
    assert isinstance(period, PeriodVerdict)
    assert judged(terms, observers, list(range(SLOTS)), bill) == period
    credit = period.credit
    assert credit.owed is not None
    assert credit.possible is not None
    limit = Fraction(bill) * Fraction(terms.cap)
    assert 0 <= Decimal(credit.owed) <= Decimal(credit.possible)
    assert Fraction(Decimal(credit.possible)) <= limit
    # More downtime, whatever was known of that slot before, never gives less.
    lower = [[0 if at == worse else state for at, state in enumerate(s)] for s in observers]
    after = judged(terms, lower, order, bill).credit
    assert Decimal(after.owed) >= Decimal(credit.owed)
    assert Decimal(after.possible) >= Decimal(credit.possible)
