"""The file of `nephoscope cost utility`: parameters of service, offers, budget, price functions."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from nephoscope.core.reading.fields import Part, Record
from nephoscope.features.cost.price_records import Currency
from nephoscope.features.cost.quantities import Level, NotNegative, Positive, Quantity
from nephoscope.stats.statistics.values import Array


def _is_availability(value: float) -> bool:
    """Returns whether the nines of a value can be counted."""
    return 0.1 <= value <= 1 - 1e-12


class PriceFunction(Record):
    """Price of the levels of a parameter.

    response_time: alpha e^(-beta R). throughput: alpha X. availability: e^(beta A) - e^(0.9 beta)
    for A of 0.9 and more.
    """

    kind: Literal["response_time", "throughput", "availability"] = Field(
        description="Function: response_time, throughput or availability."
    )
    alpha: Positive = Field(default=1.0, description="Price scale.")
    beta: Annotated[float, Field(gt=0, le=100)] = Field(default=1.0, description="Steepness.")
    levels: tuple[NotNegative, NotNegative] = Field(description="Lowest and highest level sold.")

    @model_validator(mode="after")
    def _sold(self) -> Self:
        low, high = self.levels
        if low >= high:
            raise ValueError("the levels do not ascend. Write `levels: [low, high]`.")
        if self.kind == "availability" and not 0.9 <= low < high < 1:
            raise ValueError("an availability has a price from 0.9 to below 1. Correct `levels`.")
        return self

    def price(self, levels: Array) -> Array:
        """Prices of levels; infinite for an availability below 0.9, which has none."""
        if self.kind == "response_time":
            return np.asarray(self.alpha * np.exp(-self.beta * levels))
        if self.kind == "throughput":
            return np.asarray(self.alpha * levels)
        above = np.exp(self.beta * levels) - math.exp(0.9 * self.beta)
        return np.where(levels >= 0.9, above, math.inf)


class OfferParameter(Record):
    """A parameter of service, and how useful its values are."""

    half: Level = Field(description="Value with a utility of 0.5.")
    good: Level = Field(description="Value with a utility of 0.9.")
    weight: NotNegative | None = Field(default=None, description="Weight; all sum to 1.")
    scale: Literal["linear", "nines"] = Field(
        default="linear", description="`nines` counts those of an availability."
    )
    minimum: Level | None = Field(default=None, description="Hard lower limit.")
    maximum: Level | None = Field(default=None, description="Hard upper limit.")
    provider: PriceFunction | None = Field(default=None, description="Price of its levels.")

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if math.isclose(self.half, self.good):
            raise ValueError("half and good are equal. Give two points of the utility.")
        if self.scale == "nines" and not all(_is_availability(v) for v in (self.half, self.good)):
            raise ValueError("an availability is between 0.1 and below 1. Write, e.g., 99.9%.")
        return self

    @property
    def rises(self) -> bool:
        """Returns whether higher values are better."""
        return self.good > self.half

    def levels(self, count: int) -> Array:
        """Levels that the provider sells, evenly spaced (of nines: by nines)."""
        assert self.provider is not None
        low, high = self.provider.levels
        if self.scale == "nines":
            return np.asarray(1 - np.geomspace(1 - low, 1 - high, count))
        return np.linspace(low, high, count)


class UtilityOffer(Record):
    """An offer: a price, and a value of each parameter."""

    price: Quantity = Field(description="Price, of the same period for all offers.")
    values: dict[str, Quantity] = Field(description="Value of each parameter.")
    currency: Currency | None = Field(default=None, description="Currency, if not the file's.")


class OfferFile(Record):
    """Parameters and offers that are compared."""

    version: Literal[1] = Field(default=1, description="Version of this format.")
    currency: Currency = "USD"
    budget: Positive | None = Field(default=None, description="Highest price.")
    normalise: bool = Field(default=False, description="Divide weights by their sum.")
    comparisons: tuple[tuple[Positive, ...], ...] | None = Field(
        default=None, description="Pairwise importance of the parameters, instead of weights."
    )
    weight_certainty: Annotated[float, Field(ge=1, le=1e6)] | None = Field(
        default=None, description="Sum of the Dirichlet parameters of the weights; absent: exact."
    )
    price_weight: Part = Field(default=0.2, description="Weight of the price in TOPSIS.")
    parameters: Annotated[dict[str, OfferParameter], Field(min_length=1, max_length=10)] = Field(
        description="Parameters of service by name."
    )
    offers: Annotated[dict[str, UtilityOffer], Field(min_length=1, max_length=1000)] = Field(
        description="Offers by name."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name, offer in self.offers.items():
            if offer.currency not in (None, self.currency):
                raise ValueError(
                    f"offer {name} has a price in {offer.currency}, the others in "
                    f"{self.currency}. Convert it."
                )
            if set(offer.values) != set(self.parameters):
                missing = sorted(set(self.parameters) ^ set(offer.values))
                raise ValueError(
                    f"offer {name} and the parameters differ in {', '.join(missing)}. "
                    "Give each offer a value of each parameter."
                )
            for key, quantity in offer.values.items():
                estimate = quantity.estimate("none")
                ends = (estimate.low, estimate.value, estimate.high)
                if self.parameters[key].scale == "nines" and not all(
                    _is_availability(end) for end in ends if end is not None
                ):
                    raise ValueError(
                        f"offer {name}: {key} is not between 0.1 and below 1. An availability of 1 "
                        "has no nines."
                    )
        return self
