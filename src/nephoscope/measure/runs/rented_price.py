"""What rented machines of a plan cost at most, with their traffic and services beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from nephoscope import catalog
from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.spec import RentalSpec
from nephoscope.measure.plans import Plan, estimate, expand
from nephoscope.measure.provisioning import Quote
from nephoscope.measure.runs.rented_network import TrafficPrice
from nephoscope.measure.runs.rented_specs import renewals_of
from nephoscope.measure.targets.kinds.service import ServiceRecord


@dataclass(frozen=True, slots=True)
class RentPrice:
    """What a plan rents for at most: all together, None where nobody is paid; of it the traffic.

    hours: that are rented.
    """

    quote: Quote | None
    hours: float
    traffic: TrafficPrice


def total_of(quotes: Sequence[Quote | None]) -> Quote | None:
    """Returns the price of all together: each cloud alone may be below a limit that they exceed
    together. None where nothing is paid."""
    priced = [quote for quote in quotes if quote is not None]
    return reduce(Quote.plus, priced) if priced else None


def whole_price(
    plan: Plan, rented: Sequence[tuple[Rentals, RentalSpec]], traffic: Quote | None
) -> Quote | None:
    """Returns the price of rented machines, which may be made anew, of the traffic between their
    networks, and of services beside them; None where nothing of a cloud is paid. `Progress` alone
    bounds what services cost then."""
    quotes = [rentals.quote(spec) for rentals, spec in rented]
    machines = total_of([_with_renewals(quote, renewals_of(plan)) for quote in quotes])
    if machines is None and traffic is None:
        return None
    return total_of([machines, traffic, _of_services(plan)])


def _with_renewals(quote: Quote | None, renewals: int) -> Quote | None:
    """Returns the price with that of machines made anew, each of which is billed for itself."""
    if quote is None:
        return None
    least_h = max(quote.minimum_h, quote.step_h)
    return replace(quote, once=quote.once + renewals * least_h * quote.per_h)


def _of_services(plan: Plan) -> Quote | None:
    """Returns the price of the plan's services: by the hour, and of the least use; None where none
    has a price."""
    services = [
        service
        for service in plan.targets
        if isinstance(service, ServiceRecord) and service.is_priced
    ]
    if not services:
        return None
    known = catalog.load()
    used = estimate(plan, expand(plan, known), known).money_used_least
    per_h = sum(service.per_hour or 0.0 for service in services)
    currency = "USD" if plan.money is None else plan.money.currency
    return Quote(per_h, currency, once=used, machines=0)
