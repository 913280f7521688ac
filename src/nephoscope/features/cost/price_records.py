"""Records of prices: offers, transfers, and the book that holds them.

Prices of the same name and different dates may stand side by side: the latest one up to a day
holds. Prices of different currencies are never added or compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date as Date  # noqa: N812
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, model_validator

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import recordfile
from nephoscope.core.reading.fields import Record
from nephoscope.core.reading.sentences import choices, did_you_mean
from nephoscope.features.cost.quantities import NotNegative, Positive
from nephoscope.features.cost.tiers import Gigabyte, Tiers

Purchase = Literal["on_demand", "committed", "spot"]
PURCHASES: tuple[Purchase, ...] = ("on_demand", "committed", "spot")


def _is_currency(text: str) -> str:
    if len(text) != 3 or not (text.isascii() and text.isupper()):
        raise ValueError(f"'{text[:20]}' is no currency. Write its ISO 4217 code, e.g. USD.")
    return text


Currency = Annotated[str, AfterValidator(_is_currency), Field(description="ISO 4217 code.")]


class _Priced(Record):
    """Fields that every price needs to be believed."""

    name: str = Field(min_length=1, max_length=100, description="Name, e.g. aws/m1.large.")
    currency: Currency
    date: Date = Field(description="Day on which the price was valid.")
    source: str = Field(min_length=1, description="Where the price was published.")


class Offer(_Priced):
    """An instance type with its prices per hour, billing and recurring costs."""

    region: str = Field(default="", description="Region.")
    on_demand_per_h: Positive | None = Field(default=None, description="Price on demand.")
    committed_per_h: NotNegative | None = Field(
        default=None, description="Price under a commitment, besides what is paid upfront."
    )
    committed_upfront: NotNegative = Field(default=0.0, description="Payment for the whole term.")
    committed_term_h: Positive = Field(default=8760.0, description="Hours of the term.")
    spot_per_h: Positive | None = Field(default=None, description="Price of spare capacity.")
    interruptions_per_h: NotNegative = Field(
        default=0.0, description="Mean interruptions of a spot instance in an hour."
    )
    restart_h: NotNegative = Field(
        default=0.0, description="Hours that an interruption costs: lost work and restart."
    )
    billing_step_s: Positive = Field(default=1.0, description="Billing increment in seconds.")
    billing_minimum_s: NotNegative = Field(default=0.0, description="Minimum billed seconds.")
    licence_per_h: NotNegative = Field(default=0.0, description="Licences.")
    storage_per_gb_month: NotNegative = Field(default=0.0, description="Attached storage.")

    @model_validator(mode="after")
    def _priced(self) -> Self:
        if self.committed_per_h == 0 and self.committed_upfront == 0:
            raise ValueError("a commitment that costs nothing. State committed_upfront.")
        if self.interruptions_per_h * self.restart_h >= 1:
            raise ValueError(
                "the instance is interrupted before it has done anything: interruptions_per_h "
                "times restart_h is 1 or more. Correct one of them."
            )
        if all(self.price_or_none(purchase) is None for purchase in PURCHASES):
            raise ValueError("there is no price. Add on_demand_per_h.")
        return self

    def price_or_none(self, purchase: Purchase) -> float | None:
        """Price of an hour of useful work, without licences; None if it is not sold so.

        Of a commitment the upfront payment is spread over its term. Of a spot instance the hours
        that interruptions waste are paid too: price / (1 - interruptions x restart).
        """
        if purchase == "on_demand":
            return self.on_demand_per_h
        if purchase == "committed":
            hourly = self.committed_per_h
            upfront_per_h = self.committed_upfront / self.committed_term_h
            return None if hourly is None else hourly + upfront_per_h
        wasted = self.interruptions_per_h * self.restart_h
        return None if self.spot_per_h is None else self.spot_per_h / (1 - wasted)

    def price(self, purchase: Purchase) -> float:
        """As `price_or_none`. Raises UsageError where the offer is not sold so."""
        hourly = self.price_or_none(purchase)
        if hourly is None:
            sold = [purchase for purchase in PURCHASES if self.price_or_none(purchase) is not None]
            raise UsageError(
                f"The price book has no {purchase} price of {self.name}.",
                f"It has: {', '.join(sold)}.",
            )
        return hourly

    def billed_h(self, hours: float) -> float:
        """Returns the hours that are billed for so many hours of use, as the simulator does."""
        step_h = self.billing_step_s / 3600
        used = max(hours, self.billing_minimum_s / 3600)
        # A whole number of steps stays one when its hours are no exact binary fraction.
        # No use at all gives 0 and not -0, which would be printed.
        return max(0.0, -(-(used / step_h - 1e-9) // 1) * step_h)


class Egress(_Priced):
    """Prices of data that leave a provider, by volume of a month."""

    unit: Gigabyte = Field(description="Meaning of a gigabyte: GB (10^9 bytes) or GiB (2^30).")
    tiers: Tiers = Field(description="Prices by volume of a month.")


class PriceBook(Record):
    """Prices with their dates and sources."""

    version: Literal[1] = Field(default=1, description="Version of this format.")
    offers: Annotated[tuple[Offer, ...], Field(max_length=100_000)] = Field(
        default=(), description="Instance types."
    )
    egress: Annotated[tuple[Egress, ...], Field(max_length=10_000)] = Field(
        default=(), description="Data that leave."
    )

    @model_validator(mode="after")
    def _unambiguous(self) -> Self:
        for entries in (self.offers, self.egress):
            seen = set()
            for entry in entries:
                if (entry.name, entry.date) in seen:
                    raise ValueError(
                        f"{entry.name} of {entry.date} is there twice. Give each a date of its own."
                    )
                seen.add((entry.name, entry.date))
        return self

    def offer(self, name: str, day: Date | None = None) -> Offer:
        """Returns the latest prices of an offer up to a day. Raises UsageError without any."""
        return _latest(self.offers, name, day, "offer")

    def transfer(self, name: str, day: Date | None = None) -> Egress:
        """Returns the latest prices of transfers up to a day. Raises UsageError without any."""
        return _latest(self.egress, name, day, "egress price")


PricedType = TypeVar("PricedType", bound=_Priced)


def _latest(entries: Sequence[PricedType], name: str, day: Date | None, what: str) -> PricedType:
    named = [entry for entry in entries if entry.name == name]
    if not named:
        known = sorted({entry.name for entry in entries})
        raise UsageError(
            f"The price book has no {what} '{name[:60]}'{did_you_mean(name, known)}.",
            choices("It has", known[:10], "It is empty of those; add one, or use another --book."),
        )
    valid = [entry for entry in named if day is None or entry.date <= day]
    if not valid:
        first = min(entry.date for entry in named)
        raise UsageError(
            f"The price book has no {what} '{name}' of {day} or before; the first is of {first}.",
            "Use a later date, or add a price.",
        )
    return max(valid, key=lambda entry: entry.date)


def single_currency(currencies: Iterable[str], what: str) -> str:
    """Returns the currency that all have. Raises UsageError for more than one."""
    distinct = sorted(set(currencies))
    if len(distinct) > 1:
        raise UsageError(
            f"{what} have prices in {' and '.join(distinct)}, which cannot be compared.",
            "Convert them to one currency, with the rate and its date in `source`.",
        )
    return distinct[0]


def offer_of(values: Mapping[str, Any], where: str) -> Offer:
    """Returns the offer of plain values. Raises PlanError that begins with `where`."""
    return recordfile.validated(values, Offer, lambda loc: where)
