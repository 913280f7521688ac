"""What a plan says, as records. The field texts become the JSON Schema that editors complete."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from nephoscope import units
from nephoscope.errors import UsageError

Kind = Literal["local"]
"""Kinds of targets; `targets.TARGETS` has one factory for each (a test compares the two)."""

KINDS: tuple[str, ...] = get_args(Kind)

Invalidity = Literal["throttled", "swapped", "clock_step", "load_identity"]
"""Reasons for which a trial is not counted; a plan may accept each of them."""

_NAME = r"^[a-z0-9][a-z0-9_-]{0,39}$"
_MAX_TARGETS = 64
_MAX_LEVELS = 1000


def _seconds(value: Any) -> Any:
    """Seconds of a text with a unit; anything else is left to the field's own type."""
    if not isinstance(value, str):
        return value
    try:
        return units.parse_duration_ns(value) / 1e9
    except UsageError as error:
        raise ValueError(f"{error.message} {error.hint}") from error


def _ratio(value: Any) -> Any:
    """Ratio of a text such as '3%'; anything else is left to the field's own type."""
    if not isinstance(value, str):
        return value
    try:
        return units.parse_ratio(value)
    except UsageError as error:
        raise ValueError(f"{error.message} {error.hint}") from error


def _both(bounds: dict[str, float], unit: str, example: str) -> WithJsonSchema:
    """What editors accept: a number within bounds, or a text with a unit."""
    number = {"type": "number", **bounds}
    text = {"type": "string", "pattern": rf"^\s*[0-9.]+\s*({unit})\s*$"}
    return WithJsonSchema({"anyOf": [number, text], "examples": [example]})


_MAX_SECONDS = 30 * 86_400.0

Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    Field(gt=0, le=_MAX_SECONDS),
    _both({"exclusiveMinimum": 0, "maximum": _MAX_SECONDS}, "ns|us|µs|ms|s|m|min|h|d", "60s"),
]
Ratio = Annotated[
    float,
    BeforeValidator(_ratio),
    Field(gt=0, lt=1),
    _both({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, "%?", "3%"),
]
Count = Annotated[int, Field(strict=True)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Repeat(_Record):
    """How often a setting is repeated: until its interval is narrow enough."""

    min: Annotated[Count, Field(ge=1, le=100_000)] = Field(
        default=10,
        description="Rounds before the first look. Under 10 the stopping rule covers less than it "
        "says, under 6 a median has no interval.",
    )
    max: Annotated[Count, Field(ge=1, le=100_000)] = Field(
        default=100, description="Rounds after which a setting is 'not converged'."
    )
    look_every: Annotated[Count, Field(ge=1, le=1000)] = Field(
        default=5, description="Rounds between two looks at the interval."
    )
    relative_half_width: Ratio = Field(
        default=0.02, description="Narrow enough: half the interval's width over the estimate."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Repeat:
        if self.max < self.min:
            raise ValueError(f"repeat.max ({self.max}) is less than repeat.min ({self.min})")
        return self


class RepeatChange(_Record):
    """What one benchmark repeats differently from the plan; absent fields are the plan's."""

    min: Annotated[Count, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="As in the plan's `repeat`."
    )
    max: Annotated[Count, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="As in the plan's `repeat`."
    )
    look_every: Annotated[Count, Field(ge=1, le=1000)] | None = Field(
        default=None, description="As in the plan's `repeat`."
    )
    relative_half_width: Ratio | None = Field(
        default=None, description="As in the plan's `repeat`."
    )


class Target(_Record):
    """A machine that is measured."""

    name: str = Field(
        default="local",
        pattern=_NAME,
        description="Name in results and reports; two names of one machine make an A/A plan.",
    )
    kind: Kind = Field(default="local", description="How the machine is reached.")


class Entry(_Record):
    """One benchmark of a plan, with its parameters and what is varied."""

    benchmark: str = Field(description="Id of a benchmark; `nephoscope list` shows them.")
    params: dict[str, Any] = Field(
        default_factory=dict,
        description="Parameters that stay the same. Sizes and times may have units: 64MiB, 100ms.",
    )
    factors: dict[str, Annotated[list[Any], Field(min_length=1, max_length=_MAX_LEVELS)]] = Field(
        default_factory=dict,
        description="Parameters that are varied, each with its list of levels; all are crossed.",
    )
    timeout_s: Seconds = Field(
        default=120.0, alias="timeout", description="Longest time of one trial."
    )
    headline: tuple[str, ...] = Field(
        default=(), description="Metrics on which repetition stops; by default the benchmark's own."
    )
    repeat: RepeatChange = Field(
        default_factory=RepeatChange, description="What this benchmark repeats differently."
    )


class Plan(_Record):
    """An experiment: targets, benchmarks, what is varied, and when it is enough."""

    version: Literal[1] = Field(default=1, description="Version of the plan format.")
    name: str = Field(pattern=_NAME, description="Name of the plan; part of the run's id.")
    question: str = Field(
        default="", max_length=500, description="The question that this plan answers."
    )
    seed: Annotated[Count, Field(ge=0, le=2**63 - 1)] | None = Field(
        default=None, description="Seed of the order of trials; drawn and stored when absent."
    )
    budget_s: Seconds | None = Field(
        default=None,
        alias="budget",
        description="Time after which measuring ends; what is not converged by then is said.",
    )
    confidence: Ratio = Field(default=0.95, description="Confidence of every interval.")
    margin: Ratio = Field(
        default=0.03, description="Differences below this ratio do not matter in practice."
    )
    repeat: Repeat = Field(
        default_factory=Repeat, description="When a setting has been repeated enough."
    )
    warmup: Annotated[Count, Field(ge=0, le=100)] = Field(
        default=1, description="Rounds before the first that counts; kept, never analysed."
    )
    targets: tuple[Target, ...] = Field(
        default=(Target(),), min_length=1, max_length=_MAX_TARGETS, description="What is measured."
    )
    benchmarks: tuple[Entry, ...] = Field(min_length=1, description="With what it is measured.")
    accept: tuple[Invalidity, ...] = Field(
        default=(),
        description="Reasons that do not make a trial invalid here. Accept 'throttled' where the "
        "quota is part of what is measured.",
    )

    def repeat_of(self, entry: int) -> Repeat:
        """The repetition rule of one entry of `benchmarks`: the plan's, changed by the entry's."""
        changes = self.benchmarks[entry].repeat.model_dump(exclude_none=True)
        merged = {**self.repeat.model_dump(), **changes}
        # An entry that only lowers `max` (or only raises `min`) means both.
        if "min" not in changes:
            merged["min"] = min(merged["min"], merged["max"])
        if "max" not in changes:
            merged["max"] = max(merged["max"], merged["min"])
        return Repeat(**merged)
