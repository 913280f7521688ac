"""Records of a plan. Their descriptions become the JSON Schema and the reference page of plans."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from nephoscope.core import limits
from nephoscope.core.reading.fields import NAME, Count, Ratio, Record, Seconds
from nephoscope.measure.targets.kinds import AnyTarget
from nephoscope.measure.targets.kinds.local import LocalRecord
from nephoscope.measure.targets.kinds.record import TargetRecord

Invalidity = Literal[
    "throttled", "swapped", "clock_step", "load_identity", "late_sends", "controller_busy"
]
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

_FRACTION = r"^1(/([2-9]|[1-5][0-9]|6[0-4]))?$"
_CURRENCY = r"^[A-Z]{3}$"


def _written(pattern: str, what: str, example: str) -> BeforeValidator:
    """Returns a validator that requires a pattern, and gives an example otherwise."""

    def read(value: Any) -> str:
        text = str(value)
        if isinstance(value, bool) or not re.fullmatch(pattern, text):
            raise ValueError(f"'{text}' is not a {what}. Write {example}")
        return text

    return BeforeValidator(read)


Rounds = Annotated[Count, Field(ge=1, le=limits.ROUNDS)]
UpTo1000 = Annotated[Count, Field(ge=1, le=1000)]


MOST_AT_ONCE = 64
"""Trials on distinct machines that run at one time unless the plan says otherwise: each holds a
connection, and what it printed until it is stored."""

ROUNDS_TO_DECIDE = 1000
"""Most rounds of a comparison that goes on until it is decided, unless the plan says otherwise."""


class Repeat(Record):
    """Number of repetitions: until the interval is narrow enough."""

    min: Rounds = Field(
        default=10,
        description="Rounds before the stopping rule is first applied. Below 10 the intervals "
        "cover less than stated; below 6 a median has no interval.",
    )
    max: Rounds = Field(
        default=100, description="Rounds after which a setting counts as not converged."
    )
    look_every: UpTo1000 = Field(
        default=5, description="Rounds between two applications of the stopping rule."
    )
    relative_half_width: Ratio = Field(
        default=0.02,
        description="Target precision: half the interval's width divided by the estimate.",
    )
    until: Literal["narrow", "decided"] = Field(
        default="narrow",
        description="When a setting has enough rounds: `narrow` as soon as its interval is as "
        "narrow as `relative_half_width`, `decided` as soon as its comparison with the baseline, "
        "or of two targets, has a verdict. Comparisons of such a run have intervals that hold "
        "however often one looks at them.",
    )
    allocation: Literal["even", "widest"] = Field(
        default="even",
        description="Which settings get the time after `min` rounds: `even` measures every "
        "setting in every round, `widest` those whose intervals are widest relative to "
        "`relative_half_width`. Settings that are compared with each other need `even`.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Repeat:
        if self.max < self.min:
            raise ValueError(f"repeat.max ({self.max}) is less than repeat.min ({self.min})")
        return self


_OF_PLAN: Any = Field(default=None, description="As in the plan's `repeat`.")


class RepeatChange(Record):
    """Repetition of one benchmark where it differs from the plan; absent fields are the plan's."""

    min: Rounds | None = _OF_PLAN
    max: Rounds | None = _OF_PLAN
    look_every: UpTo1000 | None = _OF_PLAN
    relative_half_width: Ratio | None = _OF_PLAN


class Entry(Record):
    """One benchmark of a plan, with its parameters and factors."""

    benchmark: str = Field(description="Id of a benchmark; `nephoscope list` shows them.")
    params: dict[str, Any] = Field(
        default_factory=dict,
        description="Fixed parameters. Sizes and times may have units: 64MiB, 100ms.",
    )
    factors: dict[str, Annotated[list[Any], Field(min_length=1, max_length=limits.LEVELS)]] = Field(
        default_factory=dict,
        description="Varied parameters, each with its list of levels; all levels are crossed.",
    )
    timeout_s: Seconds = Field(
        default=120.0, alias="timeout", description="Time limit of one trial."
    )
    headline: tuple[str, ...] = Field(
        default=(),
        description="Metrics to which the stopping rule applies; by default the benchmark's own.",
    )
    repeat: RepeatChange = Field(
        default_factory=RepeatChange,
        description="Repetition of this benchmark where it differs from the plan.",
    )
    on: Names = Field(
        default=(),
        description="Names or roles of the targets that run it; by default every target that has "
        "no role, or the role victim or client. With `client`, the servers that are compared; by "
        "default every target that has no role, or the role server.",
    )
    peer: str = Field(
        default="",
        description="Name or role of the target that serves a two-sided benchmark; `self`: each "
        "target of `on` serves its own client.",
    )
    client: str = Field(
        default="",
        description="Name or role of the target that runs the client, while each target of `on` "
        "serves in its turn and is what the results are of. Of a benchmark that loads a running "
        "service, `{server}` in a text parameter stands for the address of that target, and "
        "`{url}` for the URL of a target of kind service.",
    )
    served_by: Names = Field(
        default=(),
        description="Names of the backgrounds that answer its requests. A trial is invalid unless "
        "those that run served all valid responses, and no more than the requests that were sent.",
    )
    together: bool = Field(
        default=False,
        description="Run on all targets of `on` at the same time, with a common start.",
    )


class Factor(Record):
    """Something outside one benchmark that is varied: a link, a CPU share, a load, a platform."""

    path: str = Field(
        description="What it sets: lab.links.NAME.delay, lab.hosts.NAME.cpu.cap, "
        "lab.hosts.NAME.platform, backgrounds.NAME.params.PARAM, backgrounds.NAME.active (false, "
        "true), backgrounds (which of them run: a name, a list of names, none), "
        "backgrounds.*.params.PARAM (of every load that runs and does not set it itself), "
        "backgrounds.*.count (on how many of its targets each runs), "
        "benchmarks.N.params.PARAM."
    )
    levels: Annotated[list[Any], Field(min_length=1, max_length=limits.LEVELS)] = Field(
        description="Its levels."
    )
    blocked: bool | None = Field(
        default=None,
        description="Run the trials of one level one after another within a round, because "
        "changing it is expensive; the order of the levels stays random. By default true for "
        "platforms, memory and virtual CPUs of a host.",
    )


class Nest(Record):
    """Nested repetition: new instances, boots of each, rounds in each boot.

    Round r belongs to boot (r - 1) // rounds; all alternatives are renewed between two boots.
    Where the platform of a host is a factor, every boot makes each platform anew, in random order.
    The number of rounds is the product of the three; `repeat` has no effect. Intervals have boots
    as units.
    """

    instance: UpTo1000 = Field(
        default=1, description="Instances of each target, each created separately."
    )
    boot: UpTo1000 = Field(default=1, description="Boots of each instance.")
    rounds: UpTo1000 = Field(default=5, description="Rounds in each boot.")

    @property
    def boots(self) -> int:
        """Boots of the whole run, those of all instances."""
        return self.instance * self.boot

    @property
    def total(self) -> int:
        """Rounds of the whole run."""
        return self.boots * self.rounds

    def place_of(self, cell: int) -> dict[str, int]:
        """The instance, and the boot of that instance, of the cell of that number, all from 0."""
        return {"instance": cell // self.boot, "boot": cell % self.boot}


class Design(Record):
    """Combination of the levels, and the baseline of every alternative."""

    fraction: Annotated[str, _written(_FRACTION, "fraction", "1/2 or 1/4, at most 1/64")] = Field(
        default="1",
        json_schema_extra={"pattern": _FRACTION},
        description="The part of the full crossing that is run: 1, 1/2, 1/4, … Regular where all "
        "factors have two levels, else a balanced one; the report lists what is confounded.",
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
        description="Run every alternative twice in each round, as arms a and b: differences "
        "between the arms are the experiment's own noise.",
    )
    around: bool = Field(
        default=False,
        description="ABA design: within a round every trial that has a baseline gets a trial of "
        "that baseline right before and right after it; needs `baseline`.",
    )
    nest: Nest | None = Field(
        default=None, description="Nested repetition: instances, boots, rounds."
    )


class BackgroundEntry(Record):
    """A load that runs during whole trials; if it fails, the trial does not count.

    Or conditions that hold during whole trials, so that a quota can be a level beside loads.
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
        default=0.2, description="Seconds for which it runs before the trial starts."
    )


class HookEntry(Record):
    """A benchmark that runs before or after each trial; its samples are kept with the trial."""

    benchmark: str = Field(description="Id of a benchmark.")
    on: Names = Field(default=(), description="Names or roles; default: the trial's own target.")
    params: dict[str, Any] = Field(default_factory=dict, description="Its parameters.")
    timeout_s: Seconds = Field(default=60.0, alias="timeout", description="Its time limit.")


class Phases(Record):
    """Time limit of each phase of a trial, besides `timeout`, which bounds `measure`."""

    prepare_s: Seconds = Field(default=60.0, alias="prepare", description="Conditions, hooks.")
    start_s: Seconds = Field(default=10.0, alias="start", description="Until all sides are ready.")
    stop_s: Seconds = Field(default=10.0, alias="stop", description="Until loads have ended.")
    clean_s: Seconds = Field(default=60.0, alias="clean", description="Hooks after, files.")


class Observe(Record):
    """System counters during every trial, so that a slow one can be explained."""

    gap_meter: bool = Field(
        default=True,
        description="Scheduling gaps of a CPU that the benchmark leaves free, where there is one: "
        "a thread of the probe that wakes up a thousand times a second. The kernel's counters "
        "cost nothing and are always read.",
    )


class Retry(Record):
    """Failures after which a trial is repeated; nothing is retried silently."""

    times: Annotated[Count, Field(ge=0, le=10)] = Field(
        default=0, description="Maximum number of retries of one trial."
    )
    on: tuple[str, ...] = Field(
        default=("deadline", "probe_died"), description="Names of the failures."
    )


class Money(Record):
    """Limit of the run's cost."""

    limit: Annotated[float, Field(gt=0)] = Field(description="Maximum cost.")
    currency: Annotated[str, _written(_CURRENCY, "currency", "USD or EUR")] = Field(
        default="USD", json_schema_extra={"pattern": _CURRENCY}, description="ISO 4217 code."
    )
    machine_hours: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="Maximum of the machines that are rented times their hours."
    )


class Plan(Record):
    """An experiment: targets, benchmarks, factors, and the stopping rule."""

    version: Literal[1] = Field(default=1, description="Version of the plan format.")
    name: str = Field(pattern=NAME, description="Name of the plan; part of the run's id.")
    question: str = Field(
        default="", max_length=500, description="The question that this plan answers."
    )
    seed: Annotated[Count, Field(ge=0, le=2**63 - 1)] | None = Field(
        default=None,
        description="Random seed of the order of trials and of the numbers that benchmarks draw, "
        "such as offsets and arrival times; drawn and stored when absent.",
    )
    budget_s: Seconds | None = Field(
        default=None,
        alias="budget",
        description="Time after which measuring ends; the report names what has not converged.",
    )
    confidence: Ratio = Field(default=0.95, description="Confidence of every interval.")
    margin: Ratio = Field(
        default=0.03,
        description="Largest ratio by which two results may differ and still count as equivalent.",
    )
    repeat: Repeat = Field(default_factory=Repeat, description="Stopping rule.")
    warmup: Annotated[Count, Field(ge=0, le=100)] = Field(
        default=1, description="Warm-up rounds; stored, never analysed."
    )
    targets: tuple[AnyTarget, ...] = Field(
        default=(LocalRecord(),),
        min_length=1,
        max_length=limits.TARGETS,
        description="Machines to measure.",
    )
    benchmarks: tuple[Entry, ...] = Field(min_length=1, description="Benchmarks to run.")
    include: Names = Field(
        default=(),
        description="Plan files, relative to this one, whose keys stand where this one has none. "
        "Mappings are merged key by key, lists are replaced; a later file wins over an earlier.",
    )
    lab: str | dict[str, Any] | None = Field(
        default=None, description="Topology file of the lab, or the topology itself."
    )
    factors: dict[str, Factor] = Field(
        default_factory=dict, description="Factors outside the benchmarks."
    )
    design: Design = Field(default_factory=Design, description="How levels are combined.")
    backgrounds: tuple[BackgroundEntry, ...] = Field(
        default=(), description="Loads that run during every trial."
    )
    before: tuple[HookEntry, ...] = Field(default=(), description="Before each trial.")
    after: tuple[HookEntry, ...] = Field(default=(), description="After each trial.")
    phases: Phases = Field(
        default_factory=Phases, description="Time limits of the phases of a trial."
    )
    observe: Observe = Field(
        default_factory=Observe, description="System counters during every trial."
    )
    retry: Retry = Field(
        default_factory=Retry, description="Failures after which a trial is repeated."
    )
    money: Money | None = Field(default=None, description="Limit of the run's cost.")
    concurrent: bool = Field(
        default=False,
        description="Trials on distinct machines may run at the same time. Hosts of one lab, and "
        "two names of one machine, are never distinct.",
    )
    max_concurrent: Annotated[Count, Field(ge=1, le=limits.TARGETS)] | None = Field(
        default=None,
        description="Most trials at one time where `concurrent` is true [default: 64]. Lower it "
        "where trials are excluded because the controller was busy.",
    )
    accept: tuple[Invalidity, ...] = Field(
        default=(),
        description="Reasons that do not make a trial invalid here. Accept 'throttled' where the "
        "quota is part of what is measured; of a lab's hosts with a `cap` it is accepted without "
        "this.",
    )

    @field_validator("targets", mode="after")
    @classmethod
    def _each_machine(cls, targets: tuple[TargetRecord, ...]) -> tuple[TargetRecord, ...]:
        """Returns one record for each machine: an entry may stand for several."""
        every = tuple(machine for target in targets for machine in target.each())
        if len(every) > limits.TARGETS:
            raise ValueError(
                f"these are {len(every)} targets, and a plan has at most {limits.TARGETS}. Lower "
                "a `count`, or make two plans"
            )
        return every

    @property
    def simulated(self) -> bool:
        """Returns whether nothing is measured: trials disturb nobody, and their order is of no
        account."""
        return all(target.traits().simulated for target in self.targets)

    @property
    def most_at_once(self) -> int:
        """Returns how many trials run at one time at most."""
        return (self.max_concurrent or MOST_AT_ONCE) if self.concurrent else 1

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
