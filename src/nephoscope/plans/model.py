"""What a plan says, as records. The field texts become the JSON Schema that editors complete."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from nephoscope.reading.fields import NAME, Count, Ratio, Record, Seconds
from nephoscope.targets.kinds import AnyTarget
from nephoscope.targets.kinds.local import LocalRecord

Invalidity = Literal["throttled", "swapped", "clock_step", "load_identity", "late_sends"]
"""Reasons for which a trial is not counted; a plan may accept each of them."""

Names = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda v: (v,) if isinstance(v, str) else v),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "examples": ["victim", ["a", "b"]],
        }
    ),
]
"""Names or roles of targets: one text, or a list."""

_MAX_TARGETS = 64
_MAX_LEVELS = 1000
_FRACTION = r"^1(/([2-9]|[1-5][0-9]|6[0-4]))?$"
_CURRENCY = r"^[A-Z]{3}$"


def _written(pattern: str, what: str, example: str) -> BeforeValidator:
    """A text of that pattern; else a sentence with an example."""

    def read(value: Any) -> str:
        text = str(value)
        if isinstance(value, bool) or not re.fullmatch(pattern, text):
            raise ValueError(f"'{text}' is no {what}. Write {example}")
        return text

    return BeforeValidator(read)


class Repeat(Record):
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
    allocation: Literal["even", "widest"] = Field(
        default="even",
        description="Who gets the time that is left after `min` rounds: `even` measures every "
        "setting in every round, `widest` those whose intervals are widest relative to "
        "`relative_half_width`. Settings that are compared with each other need `even`.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Repeat:
        if self.max < self.min:
            raise ValueError(f"repeat.max ({self.max}) is less than repeat.min ({self.min})")
        return self


class RepeatChange(Record):
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


class Entry(Record):
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
    on: Names = Field(
        default=(),
        description="Names or roles of the targets that run it; by default every target that has "
        "no role, or the role victim or client.",
    )
    peer: str = Field(
        default="", description="Name or role of the target that serves a two-sided benchmark."
    )
    together: bool = Field(
        default=False, description="All targets of `on` at once, started at one moment."
    )


class Factor(Record):
    """Something outside one benchmark that is varied: a link, a CPU share, a load, a platform."""

    path: str = Field(
        description="What it sets: lab.links.NAME.delay, lab.hosts.NAME.cpu.cap, "
        "lab.hosts.NAME.platform, backgrounds.NAME.params.PARAM, backgrounds.NAME.active (false, "
        "true), backgrounds (which of them run: a name, a list of names, none), "
        "backgrounds.*.params.PARAM (of every load that runs and does not say it itself), "
        "backgrounds.*.count (on how many of its targets each runs), "
        "benchmarks.N.params.PARAM."
    )
    levels: Annotated[list[Any], Field(min_length=1, max_length=_MAX_LEVELS)] = Field(
        description="The values it takes."
    )
    blocked: bool | None = Field(
        default=None,
        description="Trials of one level follow one another within a round, because changing it "
        "is dear; the order of the levels stays random. By default so for platforms, memory and "
        "virtual CPUs of a host.",
    )


class Nest(Record):
    """Repetition in levels: new instances, boots of each, rounds in each boot.

    Round r belongs to boot (r - 1) // rounds; all alternatives are renewed between two boots.
    The rounds are as many as the product of the three; `repeat` has no say then.
    """

    instance: Annotated[Count, Field(ge=1, le=1000)] = Field(
        default=1, description="How many times each target is made anew."
    )
    boot: Annotated[Count, Field(ge=1, le=1000)] = Field(
        default=1, description="How many times each instance is booted."
    )
    rounds: Annotated[Count, Field(ge=1, le=1000)] = Field(
        default=5, description="Rounds in each boot."
    )

    @property
    def total(self) -> int:
        """Rounds of the whole run."""
        return self.instance * self.boot * self.rounds

    def place_of(self, cell: int) -> dict[str, int]:
        """The instance, and the boot of that instance, of the cell of that number, all from 0."""
        return {"instance": cell // self.boot, "boot": cell % self.boot}


class Design(Record):
    """How the levels are combined, and what every alternative is held against."""

    fraction: Annotated[str, _written(_FRACTION, "fraction", "1/2 or 1/4, at most 1/64")] = Field(
        default="1",
        json_schema_extra={"pattern": _FRACTION},
        description="The part of the full crossing that is run: 1, 1/2, 1/4, … Regular where all "
        "factors have two levels, else a balanced one; what is confounded is told.",
    )
    exclude: tuple[dict[str, Any], ...] = Field(
        default=(),
        description="Combinations that are left out: {factor: level, …}; `benchmark` may stand "
        "among the factors.",
    )
    baseline: dict[str, Any] = Field(
        default_factory=dict,
        description="Levels of the alternative that the others are paired with, round by round; "
        "`target` may stand among the factors.",
    )
    a_a: bool = Field(
        default=False,
        description="Every alternative twice in each round, as arms a and b: what differs between "
        "the arms is the experiment's own noise.",
    )
    around: bool = Field(
        default=False,
        description="Quiet, noisy, quiet: within a round every trial that has a baseline gets a "
        "trial of that baseline right before and right after it; needs `baseline`.",
    )
    nest: Nest | None = Field(default=None, description="Repetition in levels.")


class BackgroundEntry(Record):
    """A load that runs during whole trials; if it dies, the trial does not count.

    Or what is set during whole trials, so that a quota can stand beside loads in one factor.
    """

    name: str = Field(pattern=NAME, description="Name in factors, journal and report.")
    benchmark: str = Field(default="", description="A benchmark that runs until it is stopped.")
    conditions: dict[str, Any] = Field(
        default_factory=dict,
        description="Instead of a benchmark: conditions of the lab that hold while it is on: "
        "{lab.hosts.NAME.cpu.cap: 50%}.",
    )
    on: Names = Field(default=(), description="Names or roles of targets; default: aggressor.")
    peer: str = Field(default="", description="Name or role of the serving target.")
    params: dict[str, Any] = Field(default_factory=dict, description="Its parameters.")
    settle_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=0.2, description="Seconds that it runs before the trial starts."
    )


class HookEntry(Record):
    """A benchmark that runs before or after each trial; its samples are kept with the trial."""

    benchmark: str = Field(description="Id of a benchmark.")
    on: Names = Field(default=(), description="Names or roles; default: the trial's own target.")
    params: dict[str, Any] = Field(default_factory=dict, description="Its parameters.")
    timeout_s: Seconds = Field(default=60.0, alias="timeout", description="Its longest time.")


class Phases(Record):
    """Longest time of each phase of a trial, besides `timeout`, which bounds `measure`."""

    prepare_s: Seconds = Field(default=60.0, alias="prepare", description="Conditions, hooks.")
    start_s: Seconds = Field(default=10.0, alias="start", description="Until all sides are ready.")
    stop_s: Seconds = Field(default=10.0, alias="stop", description="Until loads have ended.")
    clean_s: Seconds = Field(default=60.0, alias="clean", description="Hooks after, files.")


class Observe(Record):
    """What is watched beside every trial, so that a slow one can be explained."""

    gap_meter: bool = Field(
        default=True,
        description="Scheduling gaps of a CPU that the benchmark leaves free, where there is one: "
        "a thread of the probe that wakes up a thousand times a second. The kernel's counters "
        "cost nothing and are always read.",
    )


class Retry(Record):
    """Which failed trials are tried again; nothing is retried silently."""

    times: Annotated[Count, Field(ge=0, le=10)] = Field(default=0, description="At most so often.")
    on: tuple[str, ...] = Field(
        default=("deadline", "probe_died"), description="Names of the failures."
    )


class Money(Record):
    """What the run may cost."""

    limit: Annotated[float, Field(gt=0)] = Field(description="At most this much.")
    currency: Annotated[str, _written(_CURRENCY, "currency", "USD or EUR")] = Field(
        default="USD", json_schema_extra={"pattern": _CURRENCY}, description="ISO 4217 code."
    )


class Plan(Record):
    """An experiment: targets, benchmarks, what is varied, and when it is enough."""

    version: Literal[1] = Field(default=1, description="Version of the plan format.")
    name: str = Field(pattern=NAME, description="Name of the plan; part of the run's id.")
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
    targets: tuple[AnyTarget, ...] = Field(
        default=(LocalRecord(),),
        min_length=1,
        max_length=_MAX_TARGETS,
        description="What is measured.",
    )
    benchmarks: tuple[Entry, ...] = Field(min_length=1, description="With what it is measured.")
    include: Names = Field(
        default=(),
        description="Plan files, relative to this one, whose keys stand where this one has none. "
        "Mappings are merged key by key, lists are replaced; a later file wins over an earlier.",
    )
    lab: str | dict[str, Any] | None = Field(
        default=None, description="Topology file of the lab, or the topology itself."
    )
    factors: dict[str, Factor] = Field(
        default_factory=dict, description="What is varied outside the benchmarks."
    )
    design: Design = Field(default_factory=Design, description="How levels are combined.")
    backgrounds: tuple[BackgroundEntry, ...] = Field(
        default=(), description="Loads that run during every trial."
    )
    before: tuple[HookEntry, ...] = Field(default=(), description="Before each trial.")
    after: tuple[HookEntry, ...] = Field(default=(), description="After each trial.")
    phases: Phases = Field(default_factory=Phases, description="Longest times of the phases.")
    observe: Observe = Field(
        default_factory=Observe, description="What is watched beside every trial."
    )
    retry: Retry = Field(default_factory=Retry, description="What is tried again.")
    money: Money | None = Field(default=None, description="What the run may cost.")
    concurrent: bool = Field(
        default=False,
        description="Trials on distinct machines may run at the same time. Hosts of one lab, and "
        "two names of one machine, are never distinct.",
    )
    accept: tuple[Invalidity, ...] = Field(
        default=(),
        description="Reasons that do not make a trial invalid here. Accept 'throttled' where the "
        "quota is part of what is measured.",
    )

    @property
    def simulated(self) -> bool:
        """Whether nothing is measured: trials disturb nobody, and their order is of no account."""
        return all(target.traits().simulated for target in self.targets)

    def repeat_of(self, entry: int) -> Repeat:
        """The repetition rule of one entry of `benchmarks`: the plan's, changed by the entry's.

        A nested design says itself how many rounds there are.
        """
        if self.design.nest is not None:
            rounds = self.design.nest.total
            width = self.repeat.relative_half_width
            return Repeat(min=rounds, max=rounds, relative_half_width=width)
        changes = self.benchmarks[entry].repeat.model_dump(exclude_none=True)
        merged = {**self.repeat.model_dump(), **changes}
        # An entry that only lowers `max` (or only raises `min`) means both.
        if "min" not in changes:
            merged["min"] = min(merged["min"], merged["max"])
        if "max" not in changes:
            merged["max"] = max(merged["max"], merged["min"])
        return Repeat(**merged)
