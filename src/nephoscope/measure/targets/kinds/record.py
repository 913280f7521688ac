"""What every kind of target states about itself in a plan, before anything is opened."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import Field

from nephoscope.catalog import SIMULATION, BenchmarkSpec
from nephoscope.core.reading.fields import NAME, Record
from nephoscope.core.records import dataclass

if TYPE_CHECKING:
    from nephoscope.measure.targets.probe.target import Target

CONTROLLER = "this machine"
"""Key of the machine that the controller runs on, with whose CPUs it shares its own work."""

LOOPBACK = "the loopback of this machine"
ROUTED = "the network between machines"


@dataclass(frozen=True, slots=True)
class SideEffect:
    """One thing that a run makes, changes or logs in to, and why. kind: what sort of thing."""

    kind: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties and abilities of a target that are known before it is opened.

    Targets with the same `machine` run one after the other, unless they are the two sides of one
    trial: they would share its CPUs.
    """

    machine: str
    """Key of the machine: `CONTROLLER`, or one that no other machine has."""
    place: str
    """Key of the place on it where programs run; two names of one place measure the same thing."""
    listens_on: str
    """The network on which its servers are reached; empty when it serves nobody."""
    sends_to: frozenset[str]
    """The networks that its clients reach."""
    simulated: bool = False
    """No machine is measured: trials disturb nobody and take their random seed from the run."""
    provisioned: bool = False
    """It is made for an experiment, so a new boot may show another machine identity."""
    allows_colocation: bool = False
    """Several targets of one experiment may be this very place, as neighbours of one another."""
    is_service: bool = False
    """No program runs on it: a client measures it from outside."""
    is_recorded: bool = False
    """A recording answers: nothing is measured, and its results say so."""
    closed_network: str = ""
    """Why nothing from another network reaches it."""


Directory = Annotated[
    str,
    Field(
        description="Directory in which programs start and relative paths begin; the current one "
        "when absent, on another machine that of the login."
    ),
]


class TargetRecord(Record):
    """A machine that is measured, with the roles it plays.

    A subclass adds the keys of its kind, `kind` itself among them, and overrides what differs.
    """

    form: ClassVar[str]
    """How it is written for `--target`: `ssh:[user@]host[:port]`."""

    trial_overhead_s: ClassVar[float] = 0.15
    """Time to start and end a probe there, for estimates before any trial was measured."""

    name: str = Field(
        default="local",
        pattern=NAME,
        description="Name in results and reports; two names of one machine make an A/A plan.",
    )
    kind: str = Field(description="How the machine is reached.")
    roles: tuple[Annotated[str, Field(pattern=NAME)], ...] = Field(
        default=(),
        description="What it does in this experiment: victim, aggressor, client, server, "
        "balancer, generator, or a word of your own.",
    )
    per_hour: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="What an hour of it costs, in the currency of `money`."
    )

    @classmethod
    @abstractmethod
    def from_text(cls, rest: str) -> Self | None:
        """Returns the record that `--target KIND:rest` names; None when it names none."""

    def each(self) -> Iterator[TargetRecord]:
        """Yields the targets that the record stands for; itself unless it names several."""
        yield self

    @abstractmethod
    def traits(self) -> Traits:
        """Returns what this target is and can do."""

    @abstractmethod
    def make(self) -> Target:
        """Returns the target itself, not yet open. Raises UsageError."""

    def make_through(self, collector: Target) -> Target:
        """Returns the target itself, which is reached through another one that is open."""
        raise NotImplementedError(f"a target of kind {self.kind} has no collector")

    @abstractmethod
    def side_effects(self, lab: str) -> Iterator[SideEffect]:
        """Yields the side effects of a run on it. lab: name of the plan's own lab."""

    def require_programs(self) -> None:
        """Raises Lacking when a program that it needs on the controller's machine is missing."""

    @property
    def is_priced(self) -> bool:
        """Returns whether the plan says what it costs."""
        return self.per_hour is not None

    @property
    def costs(self) -> bool:
        """Returns whether it has a price above 0."""
        return bool(self.per_hour)

    @property
    def topology_host(self) -> str:
        """The host of a topology that stands behind it; empty for other targets."""
        return ""

    @property
    def boots_as(self) -> str:
        """The name under which what it stands on makes it anew; empty where nothing can."""
        return self.topology_host

    @property
    def collected_by(self) -> str:
        """The name of the target that starts its programs; empty where the controller does."""
        return ""

    @property
    def is_rented(self) -> bool:
        """Returns whether a run rents it first."""
        return False

    @property
    def in_plan_lab(self) -> bool:
        """Returns whether it is a host of the plan's own lab, which takes conditions and can be
        booted."""
        return False

    def placed_in(self, lab: str) -> Self:
        """Returns it with the name of the plan's own lab filled in."""
        return self

    def unanswered(self, spec: BenchmarkSpec) -> tuple[str, str] | None:
        """Returns why it cannot run a benchmark, and the next step; None when it can."""
        if spec.kind != SIMULATION:
            return None
        return (
            f"{spec.id} is simulated, and '{self.name}' is a machine.",
            "Give the plan a target of `kind: sim`.",
        )


def why_unreachable(client: TargetRecord, server: TargetRecord) -> str:
    """Returns why a client's programs cannot reach the server's; empty when they can."""
    if client.name == server.name:
        return ""
    sender, receiver = client.traits(), server.traits()
    if not receiver.listens_on:
        return f"'{server.name}' serves nobody"
    if receiver.listens_on in sender.sends_to:
        return ""
    closed = sender.closed_network or receiver.closed_network
    return closed or f"the server would listen on {receiver.listens_on}"


NAME_CHARACTERS = 40
"""Characters of a target's name, as `NAME` has it."""


def refuse_long_names(name: str, last: str) -> None:
    """Raises ValueError where a name with the last of its numbers is too long for a target."""
    if len(f"{name}-{last}") > NAME_CHARACTERS:
        raise ValueError(
            f"'{name}-{last}' is longer than {NAME_CHARACTERS} characters. Give it a shorter name"
        )


def as_name(text: str) -> str:
    """Returns a name for results out of another, which may have capitals, dots and colons."""
    name = re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-_")[:40].rstrip("-_")
    return name or "host"
