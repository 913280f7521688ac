"""The price of a unit of work at the objective, with its interval, for several options.

An hour of an instance costs its price, its licences and its storage. In it the instance does as
many units of work as its capacity *under the objective* allows, as far as it is used. Behind the
name of an instance type are several speeds: with equal parts of the work the cost per unit is
proportional to the mean of 1/x over the mix, with dynamic sharing to 1 over the mean of x. Data
that leave the provider are paid per unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date as Date  # noqa: N812
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, ValidationError, model_validator

from nephoscope.core.errors import UsageError
from nephoscope.core.format_versions import CAPACITY
from nephoscope.core.model import Estimate
from nephoscope.core.reading import jsontext, recordfile, textfile
from nephoscope.core.reading.fields import Count, Part, Record
from nephoscope.core.reading.named_files import hiding_content_elsewhere
from nephoscope.core.records import dataclass
from nephoscope.features.census.analysis import draw_mix
from nephoscope.features.census.result import of_files
from nephoscope.features.cost import price_records
from nephoscope.features.cost.mix import of_census
from nephoscope.features.cost.price_records import Currency, Egress, PriceBook, Purchase
from nephoscope.features.cost.quantities import NotNegative, Positive, Quantity
from nephoscope.features.cost.tiers import GB_BYTES, price_of
from nephoscope.results import names
from nephoscope.results.run_settings import HiddenSetting, hidden_settings
from nephoscope.stats.statistics import ratios
from nephoscope.stats.statistics.bootstrap import interval_of_draws
from nephoscope.stats.statistics.dominance import dominates

MONTH_H = 730.0
"""Hours of a month: 8,760 of a year over 12."""
MILLION = 1e6


class Speed(Record):
    """A model of the mix: how many machines had it, and its speed relative to the reference."""

    machines: Annotated[Count, Field(gt=0)] = Field(description="Number of machines.")
    speed: Quantity = Field(description="Speed; the capacity was measured at speed 1.")


class WorkOption(Record):
    """One way to have the work done: a price, a capacity, and what else is paid."""

    offer: str | None = Field(default=None, description="Offer of the price book.")
    purchase: Purchase = Field(default="on_demand", description="How the offer is bought.")
    price_per_h: Positive | None = Field(default=None, description="Price, instead of an offer.")
    currency: Currency = "USD"
    licence_per_h: NotNegative = Field(default=0.0, description="Further licences.")
    storage_gb: NotNegative = Field(default=0.0, description="Storage of an instance.")
    capacity_per_s: Quantity | None = Field(
        default=None, description="Units of work per second at the objective, of an instance."
    )
    capacity_file: str | None = Field(
        default=None, description="JSON document of `nephoscope capacity`, instead."
    )
    instances: Annotated[Count, Field(gt=0, le=1_000_000)] = Field(
        default=1, description="Number of instances, which decides the tier of egress."
    )
    used: Part = Field(default=1.0, description="Share of the capacity that is used.")
    mix: dict[str, Speed] = Field(default={}, description="Models behind the instance type.")
    census: str | None = Field(
        default=None,
        description="CSV file of a census, instead of a mix; see docs/how-to/census.md.",
    )
    instance_type: str | None = Field(default=None, description="Instance type of the census.")
    benchmark: str | None = Field(default=None, description="Benchmark that gives the speeds.")
    sharing: Literal["equal", "dynamic"] = Field(
        default="equal", description="Distribution of the work over instances of the mix."
    )
    egress: str | None = Field(default=None, description="Egress price of the price book.")
    egress_bytes_per_unit: NotNegative = Field(default=0.0, description="Bytes out per unit.")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.offer is None) == (self.price_per_h is None):
            raise ValueError("an option has an offer or a price_per_h. Use one of them.")
        if (self.capacity_per_s is None) == (self.capacity_file is None):
            raise ValueError("an option has capacity_per_s or capacity_file. Use one of them.")
        if self.census is not None and self.mix:
            raise ValueError("an option has a mix or a census. Use one of them.")
        if self.storage_gb and self.offer is None:
            raise ValueError("storage has no price. Name an offer that has storage_per_gb_month.")
        if (self.egress is None) != (self.egress_bytes_per_unit == 0):
            raise ValueError("egress needs both `egress` and `egress_bytes_per_unit`.")
        if self.used == 0:
            raise ValueError("used is 0: an idle instance does no work. Use a share above 0.")
        return self


class WorkFile(Record):
    """Options that are compared."""

    version: Literal[1] = Field(default=1, description="Version of this format.")
    unit: str = Field(default="unit of work", description="Name of a unit of work.")
    objective: str = Field(default="", description="Objective under which capacity is stated.")
    date: Date | None = Field(default=None, description="Day of the prices; the latest if absent.")
    options: Annotated[dict[str, WorkOption], Field(min_length=1, max_length=1000)] = Field(
        description="Options by name."
    )


@dataclass(frozen=True, slots=True)
class WorkCost:
    """Cost of an option. price_per_h: of an instance with licences and storage. speed_factor: of
    the mix, by which work costs more than at speed 1; null without a mix. cost_per_million: of a
    million units, with egress. on_frontier: no other option has at least its capacity for less.
    similar_to_cheapest: the interval of the ratio of costs includes 1. source: of the price."""

    option: str
    purchase: str
    source: str
    price_per_h: float
    capacity_per_s: Estimate
    speed_factor: Estimate | None
    cost_per_million: Estimate
    egress_per_million: float
    on_frontier: bool = False
    similar_to_cheapest: bool = False


@dataclass(frozen=True, slots=True)
class WorkCosts:
    """Options, the cheapest first. hidden_settings: what differs between them beside the offers."""

    unit: str
    objective: str
    currency: str
    costs: tuple[WorkCost, ...]
    notes: tuple[str, ...] = ()
    hidden_settings: tuple[HiddenSetting, ...] = ()


def read(file: Path, book: PriceBook) -> WorkCosts:
    """Returns the costs of the options in a file. Raises PlanError or UsageError."""
    values = recordfile.load(file, WorkFile, "list of options")
    currency = price_records.single_currency(
        (_currency(option, book, values.date) for option in values.options.values()),
        f"{file}: options",
    )
    costs = []
    for name, option in values.options.items():
        try:
            costs.append(_cost(name, option, book, values.date, file.parent, currency))
        except UsageError as error:
            raise UsageError(f"{file}: options.{name}: {error.message}", error.hint) from None
    hidden = hidden_settings(
        _settings(option, book, values.date, file.parent) for option in values.options.values()
    )
    return replace(_compared(costs, values, currency), hidden_settings=hidden)


def _settings(
    option: WorkOption, book: PriceBook, day: Date | None, folder: Path
) -> dict[str, str]:
    """Returns the date of the price, and how the capacity was measured."""
    settings = {}
    if option.offer is not None:
        settings["date of the price"] = str(book.offer(option.offer, day).date)
    if option.capacity_file is not None:
        document = _capacity_document(folder / option.capacity_file)
        for name in ("objective", "connections", "nephoscope"):
            if isinstance(value := document.get(name), str | int):
                settings[f"{name} of the capacity" if name != "nephoscope" else name] = str(value)
    return settings


def _currency(option: WorkOption, book: PriceBook, day: Date | None) -> str:
    parts = [option.currency if option.offer is None else book.offer(option.offer, day).currency]
    if option.egress is not None:
        parts.append(book.transfer(option.egress, day).currency)
    return price_records.single_currency(parts, "the parts of an option")


def _cost(
    name: str, option: WorkOption, book: PriceBook, day: Date | None, folder: Path, currency: str
) -> WorkCost:
    price, source = option.price_per_h, "as stated"
    if option.offer is not None:
        offer = book.offer(option.offer, day)
        price = offer.price(option.purchase) + offer.licence_per_h
        price += offer.storage_per_gb_month * option.storage_gb / MONTH_H
        source = f"{offer.name}, {offer.date}: {offer.source}"
    assert price is not None
    price += option.licence_per_h
    capacity = _capacity(option, folder)
    factor = _speed_factor(name, option, folder, capacity.confidence)
    slower = [] if factor is None else [factor]
    per_million = MILLION * price / (3600 * option.used)
    compute = ratios.quotient(slower, [capacity], factor=per_million, unit=currency)
    egress = 0.0
    if option.egress is not None:
        units_per_month = option.instances * MONTH_H * price * MILLION / compute.value
        egress = _egress_per_million(option, book.transfer(option.egress, day), units_per_month)
    total = replace(
        compute,
        value=compute.value + egress,
        low=None if compute.low is None else compute.low + egress,
        high=None if compute.high is None else compute.high + egress,
    )
    purchase = option.purchase if option.offer is not None else "stated"
    return WorkCost(name, purchase, source, price, capacity, factor, total, egress)


def _capacity(option: WorkOption, folder: Path) -> Estimate:
    if option.capacity_per_s is not None:
        return option.capacity_per_s.estimate("per_s")
    file = folder / str(option.capacity_file)
    with hiding_content_elsewhere(file, folder, "result of `nephoscope capacity`"):
        return _stated_capacity(_capacity_document(file), file)


def _capacity_document(file: Path) -> Any:
    """Returns a document of `nephoscope capacity --json`. Raises UsageError for no JSON."""
    try:
        return jsontext.parse(textfile.read(file, "result of `nephoscope capacity`", UsageError))
    except ValueError as error:
        raise UsageError(f"{file}: this is no JSON: {error}.", "Use `capacity --json`.") from None


def _stated_capacity(document: Any, file: Path) -> Estimate:
    """The estimate in a document of `nephoscope capacity --json`."""
    version = document.get("schema_version") if isinstance(document, dict) else None
    if CAPACITY.is_later(version):
        raise UsageError(*CAPACITY.refusal(file, version))
    stated = document.get("capacity_per_s") if isinstance(document, dict) else None
    if not isinstance(stated, Mapping):
        raise UsageError(
            f"{file}: it states no capacity.", "Use the output of `nephoscope capacity --json`."
        )
    keys = ("value", "low", "high", "confidence", "n")
    numbers = {key: stated[key] for key in keys if stated.get(key) is not None}
    if ("low" in numbers) != ("high" in numbers):
        numbers = {key: numbers[key] for key in numbers if key not in ("low", "high")}
    try:
        return Quantity.model_validate(numbers).estimate("per_s")
    except ValidationError:
        raise UsageError(
            f"{file}: capacity_per_s is no estimate above zero.", "Measure the capacity again."
        ) from None


def _models(option: WorkOption, folder: Path) -> tuple[list[float], list[Estimate]]:
    """Machines and speed of each model of the mix."""
    if option.census is None:
        own = list(option.mix.values())
        return [float(speed.machines) for speed in own], [
            speed.speed.estimate("none") for speed in own
        ]
    file = folder / option.census
    with hiding_content_elsewhere(file, folder, "list of counts"):
        mix = of_census(of_files([file]), kind=option.instance_type, benchmark=option.benchmark)
    if sum(model.share for model in mix.models) < 1 - 1e-6:
        raise UsageError(
            f"{option.census}: some counted models have no speed of this benchmark.",
            "Add their speeds, or write the mix into the option.",
        )
    return [float(model.machines or 0) for model in mix.models], [
        model.speed for model in mix.models
    ]


def _speed_factor(
    name: str, option: WorkOption, folder: Path, confidence: float
) -> Estimate | None:
    """Cost of work relative to speed 1: the mean of 1/x, or 1 over the mean of x."""
    if not option.mix and option.census is None:
        return None
    machines, speeds = _models(option, folder)
    counts = np.array(machines)
    seed = names.seed_of("cost work", name)
    share, speed = draw_mix(counts, speeds, seed=seed)
    fixed = np.array([estimate.value for estimate in speeds])
    if option.sharing == "dynamic":
        value, drawn = counts.sum() / (counts @ fixed), 1 / (share * speed).sum(axis=1)
        what = "1 over the mean speed of the mix"
    else:
        value, drawn = counts @ (1 / fixed) / counts.sum(), (share / speed).sum(axis=1)
        what = "mean of 1 over the speed"
    low, high = interval_of_draws(drawn, float(value), confidence)
    method = f"{what}; {len(drawn)} draws of shares (Dirichlet) and speeds, seed {seed}"
    return Estimate(float(value), low, high, confidence, int(counts.sum()), "none", method)


def _egress_per_million(option: WorkOption, prices: Egress, units_per_month: float) -> float:
    """Price of what a million units send, at the volume of a month of all instances."""
    volume_gb = units_per_month * option.egress_bytes_per_unit / GB_BYTES[prices.unit]
    return price_of(volume_gb, prices.tiers) / units_per_month * MILLION


def _compared(costs: Sequence[WorkCost], values: WorkFile, currency: str) -> WorkCosts:
    ordered = sorted(costs, key=lambda cost: cost.cost_per_million.value)
    cheapest = ordered[0]
    sides = [(cost.cost_per_million.value, -cost.capacity_per_s.value) for cost in ordered]
    marked = [
        replace(
            cost,
            on_frontier=not any(dominates(side, own) for side in sides),
            similar_to_cheapest=_similar(cost, cheapest),
        )
        for cost, own in zip(ordered, sides, strict=True)
    ]
    notes = [
        f"{cost.option}: the capacity has no interval, so its cost has none."
        for cost in ordered
        if cost.capacity_per_s.low is None
    ]
    if any(cost.speed_factor is None for cost in ordered):
        notes.append("Options without a mix are taken to give instances of equal speed.")
    return WorkCosts(values.unit, values.objective, currency, tuple(marked), tuple(notes))


def _similar(cost: WorkCost, cheapest: WorkCost) -> bool:
    """Returns whether the interval of the ratio of costs includes 1."""
    if cost is cheapest:
        return False
    ratio = ratios.quotient([cost.cost_per_million], [cheapest.cost_per_million], unit="ratio")
    return ratio.low is not None and ratio.low <= 1
