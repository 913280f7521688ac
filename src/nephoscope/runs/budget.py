"""What a run may spend: time, or money, which is time at a price."""

from __future__ import annotations

from nephoscope import units
from nephoscope.plans import Plan
from nephoscope.plans.estimate import money_spent


def price_per_hour(plan: Plan) -> float:
    """What an hour of all targets costs, in the currency of the plan's `money`."""
    return money_spent(plan, 3600)


def budget_s(plan: Plan) -> float | None:
    """Seconds after which measuring ends: the smaller of the two budgets; None without one."""
    limits = [plan.budget_s] if plan.budget_s is not None else []
    if plan.money is not None and price_per_hour(plan) > 0:
        limits.append(plan.money.limit / price_per_hour(plan) * 3600)
    return min(limits) if limits else None


def budget_text(plan: Plan) -> str:
    """The budget that ends first, for sentences: '10 min', '5.00 USD (30 min)'."""
    seconds = budget_s(plan)
    if seconds is None:
        return ""
    text = units.format_duration(seconds)
    if seconds != plan.budget_s and plan.money is not None:
        return f"{plan.money.limit:.2f} {plan.money.currency} ({text})"
    return text
