"""The file of `nephoscope size`: demand, objective, users, regions and server types."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import foreign, recordfile, textfile
from nephoscope.core.reading.fields import Count, Part, Ratio, Record
from nephoscope.core.reading.sentences import Place, did_you_mean, place_in
from nephoscope.features.cost.price_records import Currency
from nephoscope.features.cost.quantities import NotNegative, Quantity
from nephoscope.features.load.objective import LatencyObjective

WHAT = "description of an application"
HOURS = 24
_EPSILON = 1e-6


def _is_objective(text: str) -> str:
    try:
        LatencyObjective.of(text)
    except UsageError as error:
        raise ValueError(f"{error.message[:-1]}. {error.hint}") from None
    return text


ObjectiveText = Annotated[str, Field(max_length=60), AfterValidator(_is_objective)]
Name = Annotated[str, Field(min_length=1, max_length=100)]


def _below_1(quantity: Quantity) -> Quantity:
    estimate = quantity.estimate("none")
    ends = (estimate.low, estimate.value, estimate.high)
    if any(end is not None and not end <= 1 for end in ends):
        raise ValueError("a share is 1 (100%) at most. Write, for example, 99.9% or 4%.")
    return quantity


Share = Annotated[Quantity, AfterValidator(_below_1)]
"""A share with its interval, or of repetitions."""


class Demand(Record):
    """Requests per second that the deployment has to serve; a number is `rate_per_s`."""

    rate_per_s: Quantity | None = Field(
        default=None, description="Requests per second of the busiest hour."
    )
    hours: tuple[NotNegative, ...] | None = Field(
        default=None, description="Requests per second of each hour of a day, instead."
    )
    error: Ratio | None = Field(
        default=None, description="Relative half-width of the 95 % interval of `hours`."
    )

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, written: Any) -> Any:
        is_number = isinstance(written, int | float) and not isinstance(written, bool)
        return {"rate_per_s": written} if is_number else written

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.rate_per_s is None) == (self.hours is None):
            raise ValueError("a demand has rate_per_s or hours. Use one of them.")
        if self.hours is not None and (len(self.hours) != HOURS or max(self.hours) == 0):
            raise ValueError(f"hours are {HOURS} rates, of which one is above 0. Correct them.")
        if self.error is not None and self.hours is None:
            raise ValueError("error is that of hours. Give rate_per_s low and high instead.")
        return self

    def quantity(self) -> Quantity:
        """Returns the rate of the busiest hour."""
        if self.rate_per_s is not None:
            return self.rate_per_s
        assert self.hours is not None
        peak = max(self.hours)
        if self.error is None:
            return Quantity(value=peak)
        return Quantity(value=peak, low=peak * (1 - self.error), high=peak * (1 + self.error))


class _Instances(Record):
    """What is known of the instances of a type besides their capacity."""

    spread: Share | None = Field(
        default=None,
        description="Spread of performance between instances of a type: standard deviation over "
        "mean.",
    )
    instance_availability: Share | None = Field(
        default=None, description="Share of the time in which an instance works."
    )
    sla: Name | None = Field(
        default=None, description="Built-in contract that promises the availability, instead."
    )

    @model_validator(mode="after")
    def _single_availability(self) -> Self:
        if self.sla is not None and self.instance_availability is not None:
            raise ValueError("instance_availability and sla exclude each other. Use one of them.")
        return self


class SizeType(_Instances):
    """A server type: what is known of its capacity, spread, availability and price."""

    capacity_per_s: Quantity | None = Field(
        default=None,
        description="Requests per second under the objective; of a list, each value is of another "
        "instance.",
    )
    capacity_file: str | None = Field(
        default=None, description="JSON document of `nephoscope capacity`, instead."
    )
    capacity_runs: Annotated[tuple[Name, ...], Field(max_length=100)] = Field(
        default=(),
        description="A run of `nephoscope capacity`, which stands for its search, instead.",
    )
    capacity_objective: ObjectiveText | None = Field(
        default=None, description="Objective of capacity_per_s, if not that of the application."
    )
    machines: Annotated[Count, Field(gt=0, le=100_000)] = Field(
        default=1, description="Number of instances on which the capacity was measured."
    )
    workers: Annotated[Count, Field(gt=0, le=256)] = Field(
        default=1, description="Requests that an instance serves at one time (M/M/c)."
    )
    census: str | None = Field(
        default=None, description="CSV file of a census, instead of a spread."
    )
    instance_type: str | None = Field(default=None, description="Instance type of the census.")
    benchmark: str | None = Field(default=None, description="Benchmark of the census' speeds.")
    spot_availability: Share | None = Field(
        default=None, description="Share of the time in which a spot instance works."
    )
    price_per_h: Quantity | None = Field(default=None, description="Price on demand.")
    regional_price_per_h: dict[Name, Quantity] = Field(
        default={}, description="Price on demand by region, instead."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        sources = (self.capacity_per_s, self.capacity_file, self.capacity_runs or None)
        if sum(source is not None for source in sources) > 1:
            raise ValueError(
                "a type has capacity_per_s, capacity_file or capacity_runs. Use one of them."
            )
        if self.capacity_objective is not None and self.capacity_per_s is None:
            raise ValueError("capacity_objective is that of capacity_per_s. Leave it out.")
        if self.census is not None and self.spread is not None:
            raise ValueError("a type has a spread or a census. Use one of them.")
        if self.price_per_h is not None and self.regional_price_per_h:
            raise ValueError("a type has price_per_h or regional_price_per_h. Use one of them.")
        return self


class SizeRegion(Record):
    """A region: the network round trips from its users."""

    rtt_ms: dict[Name, Quantity] = Field(
        default={}, description="Round trip from each site of users, in milliseconds."
    )
    egress_price_per_gb: Quantity | None = Field(
        default=None, description="Price of a gigabyte that the region sends to users."
    )


class MarketChoice(Record):
    """Imported server types that are considered besides `types`."""

    providers: tuple[Name, ...] = Field(default=(), description="Providers; empty: all.")
    architectures: tuple[Name, ...] = Field(default=(), description="CPU architectures.")
    cpus: Annotated[Count, Field(ge=0, le=100_000)] = Field(
        default=0, description="Minimum number of CPUs."
    )
    most: Annotated[Count, Field(gt=0, le=100)] = Field(
        default=10, description="So many types, the cheapest for a unit of work."
    )


class MeasurementCosts(Record):
    """Costs of measurements, in the currency of the prices."""

    capacity: NotNegative | None = Field(default=None, description="Of the capacity of a type.")
    spread: NotNegative | None = Field(default=None, description="Of the spread of a type.")
    rtt: NotNegative | None = Field(default=None, description="Of the round trips to a region.")
    demand: NotNegative | None = Field(default=None, description="Of the demand.")


class SizeFile(_Instances):
    """An application, and where it could run."""

    version: Literal[1] = Field(default=1, description="Version of this format.")
    application: str = Field(default="application", max_length=100, description="Its name.")
    demand: Demand = Field(description="Requests per second.")
    objective: ObjectiveText = Field(description="Response time at the users, e.g. p99 < 50ms.")
    risk: Annotated[Ratio, Field(ge=0.001)] = Field(
        default=0.05, description="Allowed probability of missing the objective, 0.1% or more."
    )
    availability_goal: Ratio | None = Field(
        default=None,
        alias="availability",
        description="Share of the time in which the objective has to hold; absent: instances are "
        "taken to work always.",
    )
    region_availability: Share | None = Field(
        default=None,
        description="Share of the time in which a region works, independently of others; with it "
        "a deployment survives the failures of regions that the goal asks for.",
    )
    egress_gb_per_month: Quantity | None = Field(
        default=None, description="Gigabytes that all users together receive in a month."
    )
    users: Annotated[dict[Name, Part], Field(max_length=30)] = Field(
        default={}, description="Sites of users with their shares."
    )
    round_trips: Annotated[Count, Field(gt=0, le=100)] = Field(
        default=1, description="Round trips of a request."
    )
    balancing: Literal["equal", "dynamic"] = Field(
        default="equal",
        description="Requests are distributed equally, or in proportion to what instances can do.",
    )
    currency: Currency | None = Field(default=None, description="Currency of the prices.")
    purchase: Annotated[
        tuple[Literal["on_demand", "spot"], ...], Field(min_length=1, max_length=2)
    ] = Field(default=("on_demand",), description="Kinds of price that are considered.")
    prices: Annotated[tuple[str, ...], Field(max_length=20)] = Field(
        default=(), description="Price lists, instead of the imported prices."
    )
    work: str | None = Field(
        default=None,
        description="Imported work or metric in proportion to which types without a capacity have "
        "one.",
    )
    transfer: Ratio | None = Field(
        default=None,
        description="Relative half-width of the 95 % interval with which the work's rates carry "
        "over to the application; not needed with three measured types.",
    )
    spread_work: str | None = Field(
        default=None,
        description="Imported work, e.g. cpu-single, of which the spread behind a type's CPU model "
        "counts where no spread is stated.",
    )
    rtt_run: str | None = Field(
        default=None,
        description="Stored run of net.rtt whose targets have the names of sites and regions.",
    )
    most_regions: Annotated[Count, Field(gt=0, le=4)] = Field(
        default=3, description="Regions of a deployment, at most."
    )
    regions: Annotated[dict[Name, SizeRegion], Field(min_length=1, max_length=12)] = Field(
        description="Regions by name."
    )
    types: Annotated[dict[Name, SizeType], Field(max_length=100)] = Field(
        default={}, description="Server types, PROVIDER/TYPE."
    )
    market: MarketChoice | None = Field(default=None, description="Imported types to add.")
    measurement_costs: MeasurementCosts = Field(
        default=MeasurementCosts(),
        description="Of measurements, instead of an instance's price for the hours they take.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.types and self.market is None:
            raise ValueError("there is no server type. Add `types`, or `market`.")
        if len(set(self.purchase)) < len(self.purchase):
            raise ValueError("purchase has a kind twice. Name each once.")
        if self.users and abs(math.fsum(self.users.values()) - 1) > _EPSILON:
            raise ValueError("the shares of users do not sum to 100%. Correct them.")
        for name, region in self.regions.items():
            for site in region.rtt_ms:
                if site not in self.users:
                    raise ValueError(
                        f"regions.{name}.rtt_ms has the site '{site[:40]}'"
                        f"{did_you_mean(site, self.users)}, which users lacks. Add its share."
                    )
        for name, kind in self.types.items():
            for region_name in kind.regional_price_per_h:
                if region_name not in self.regions:
                    raise ValueError(
                        f"types.{name}.regional_price_per_h has the region '{region_name[:40]}'"
                        f"{did_you_mean(region_name, self.regions)}, which regions lacks. Add it."
                    )
        return self

    @model_validator(mode="after")
    def _complete_regions(self) -> Self:
        if self.region_availability is not None and (
            self.availability_goal is None or not self.users
        ):
            raise ValueError(
                "region_availability counts for the goal `availability` of sites of `users`. Add "
                "both, or leave it out."
            )
        for name, region in self.regions.items():
            if (region.egress_price_per_gb is None) != (self.egress_gb_per_month is None):
                raise ValueError(
                    "egress_gb_per_month needs the egress_price_per_gb of every region, which "
                    f"needs it; regions.{name} has only one of them. Add the other one."
                )
        return self


@dataclass(frozen=True, slots=True)
class ApplicationSource:
    """The file of an application: its record, the places of its keys, its folder, the store."""

    file: SizeFile
    place: Place
    folder: Path
    store: Path | None

    def at(self, *loc: str | int) -> str:
        """Returns file, line and column of a key."""
        return self.place(loc).rstrip(": ")


def load(file: Path, store: Path | None) -> ApplicationSource:
    """Returns the application. Raises PlanError with file, line and column."""
    text = textfile.read(file, WHAT, pipe=True)
    place = place_in(text, str(file))
    values = foreign.mapping_in(text, str(file), WHAT, SizeFile)
    return ApplicationSource(
        recordfile.validated(values, SizeFile, place), place, file.parent, store
    )
