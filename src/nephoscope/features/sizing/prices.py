"""Prices of server types by region: stated, of price lists, or imported."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.reading.named_files import hiding_content_elsewhere
from nephoscope.core.reading.sentences import listed
from nephoscope.features.cost.price_records import single_currency
from nephoscope.features.market import prices as price_lists
from nephoscope.features.market.records import PricedOffer
from nephoscope.features.sizing.application import SizeFile, SizeType
from nephoscope.features.sizing.knowledge import (
    Ledger,
    MissingQuantity,
    Purchase,
    TypeKnowledge,
    bought,
)
from nephoscope.store import Store

_DEFAULT_CURRENCY = "USD"


@dataclass(frozen=True, slots=True)
class KnownPrices:
    """Offers of price lists in one currency, by PROVIDER/TYPE in lower case."""

    offers: Mapping[str, list[PricedOffer]]
    currency: str
    notes: tuple[str, ...]

    @classmethod
    def of(cls, file: SizeFile, folder: Path, store: Path | None) -> KnownPrices:
        """Returns the prices of the lists that the file names, else the imported ones.

        Raises UsageError for a list that cannot be used, and where the currency is not clear.
        """
        every: list[PricedOffer] = []
        notes: list[str] = []
        for name in file.prices:
            with hiding_content_elsewhere(folder / name, folder, "price list"):
                part = price_lists.read_files([folder / name])
            every += part.offers
            notes += part.notes
        if not file.prices:
            every = price_lists.stored_prices(Store(store).path).offers
        counts = Counter(offer.currency for offer in every)
        currency = file.currency or _only_currency(file, counts)
        offers: dict[str, list[PricedOffer]] = defaultdict(list)
        for offer in every:
            if offer.currency == currency:
                name = f"{offer.provider}/{offer.type}" if offer.provider else offer.type
                offers[name.lower()].append(offer)
        return cls(offers, currency, tuple(notes))

    def of_type(self, name: str, region: str) -> PricedOffer | None:
        """Returns the latest offer of a type in a region; None without any."""
        own = self.offers.get(name.lower(), ())
        fitting = [offer for offer in own if offer.region in (region, "")]
        return max(fitting, key=lambda offer: offer.date, default=None)


def _only_currency(file: SizeFile, counts: Mapping[str, int]) -> str:
    """Returns the most frequent currency. UsageError where stated prices may be in another one."""
    states_prices = any(
        kind.price_per_h or kind.regional_price_per_h for kind in file.types.values()
    )
    if not counts:
        return _DEFAULT_CURRENCY
    if states_prices:
        return single_currency(
            [*counts, _DEFAULT_CURRENCY], "Price lists, and stated prices without `currency`,"
        )
    return max(counts, key=lambda name: counts[name])


def add_prices(
    known: TypeKnowledge,
    file: SizeFile,
    prices: KnownPrices,
    at: Callable[..., str],
    ledger: Ledger,
) -> None:
    """Adds the prices of a type in all regions, or the gap that there is none."""
    kind = file.types.get(known.name, SizeType())
    for region, estimate, where in _stated(known.name, kind, file, at):
        name = f"price of {known.name} in {region}"
        known.prices[region, "on_demand"] = ledger.add(name, estimate, "stated", where)
    for region in file.regions:
        offer = prices.of_type(known.name, region)
        for purchase in file.purchase:
            if offer is None or (region, purchase) in known.prices:
                continue
            value = offer.on_demand_per_h if purchase == "on_demand" else offer.spot_per_h
            if value is None:
                continue
            words = bought("price", purchase)
            estimate = Estimate(value, None, None, 0.95, 0, "none", f"price of {offer.date}")
            origin = f"{offer.source}, {offer.date}"
            entry = ledger.add(f"{words} of {known.name} in {region}", estimate, "imported", origin)
            known.prices[region, purchase] = entry
    for purchase in file.purchase:
        if not any(own == purchase for _, own in known.prices):
            words = bought("price", purchase)
            reason = f"the {words} of {known.name} in {listed(file.regions, 3)} is not known"
            known.gaps.append(MissingQuantity(words, reason))


def _stated(
    name: str, kind: SizeType, file: SizeFile, at: Callable[..., str]
) -> Iterator[tuple[str, Estimate, str]]:
    if "on_demand" not in file.purchase:
        if kind.price_per_h is not None or kind.regional_price_per_h:
            raise UsageError(
                f"{at('types', name)}: its price is one on demand, which `purchase` leaves out.",
                "Add on_demand to `purchase`, or name a price list with spot prices.",
            )
        return
    for region in file.regions:
        if kind.price_per_h is not None:
            where = at("types", name, "price_per_h")
            yield region, kind.price_per_h.estimate("none"), where
        elif region in kind.regional_price_per_h:
            where = at("types", name, "regional_price_per_h", region)
            yield region, kind.regional_price_per_h[region].estimate("none"), where


def least_price(known: TypeKnowledge, purchase: Purchase) -> float | None:
    """Returns the lowest price of an hour; None without any."""
    own = [entry.estimate.value for (_, kind), entry in known.prices.items() if kind == purchase]
    return min(own, default=None)
