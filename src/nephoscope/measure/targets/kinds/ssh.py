"""Kind `ssh`: a machine of its own that is reached over ssh."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from nephoscope.core import limits
from nephoscope.core.reading.fields import Count
from nephoscope.measure.targets.kinds.record import (
    ROUTED,
    Directory,
    SideEffect,
    TargetRecord,
    Traits,
    as_name,
    refuse_long_names,
)
from nephoscope.measure.targets.ssh.route import Hop, SshRoute, parse_hop, ssh_name

if TYPE_CHECKING:
    from nephoscope.measure.targets.probe.target import Target

REMOTE_FOLDER = "~/.cache/nephoscope"
"""Where the probe and the work folder of a trial are on an ssh host."""


def _jump_host(text: str) -> str:
    if parse_hop(text) is None:
        raise ValueError(f"{text!a} is no jump host. Write [user@]host[:port]")
    return text


_RANGE = re.compile(r"([^\[\]]*)\[([0-9]{1,9})-([0-9]{1,9})\]([^\[\]]*)")
"""Hosts whose names differ by a number, as pdsh and ClusterShell write them: node[01-20]."""

SshName = Annotated[str, AfterValidator(ssh_name)]


class SshRecord(TargetRecord):
    """A host that is reached by ssh; ~/.ssh/config is respected."""

    model_config = ConfigDict(title="SshTarget")

    form: ClassVar[str] = "ssh:[user@]host[:port]"

    kind: Literal["ssh"] = Field(default="ssh", description="How the machine is reached.")
    address: SshName = Field(
        default="",
        description="Host name, address or alias of ~/.ssh/config; required. node[01-20] names a "
        "target for each number: NAME-01, NAME-02, ….",
    )
    port: Annotated[Count, Field(ge=1, le=65535)] | None = Field(
        default=None, description="Port, else that of ~/.ssh/config, else 22."
    )
    user: SshName = Field(default="", description="Login name.")
    identity: str = Field(default="", description="File of the private key.")
    known_hosts: str = Field(
        default="", description="File of host keys instead of ~/.ssh/known_hosts."
    )
    jump: tuple[Annotated[str, AfterValidator(_jump_host)], ...] = Field(
        default=(), description="Hosts to go through, in order: user@host:port."
    )
    via: str = Field(
        default="",
        description="Name of another ssh target of the plan, the collector, that starts the probe "
        "here and forwards what it prints. It logs in with its own ssh: `identity` and "
        "`known_hosts` are files there.",
    )
    inner_network: str = Field(
        default="",
        description="Word for a network whose hosts reach each other at their own addresses; "
        "hosts without it, or with another word, are reached at the address used from here.",
    )
    directory: Directory = ""

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if not self.address:
            raise ValueError(
                f"'{self.name}' is of kind ssh and has no address. Add `address:`, a host name or "
                "an alias of ~/.ssh/config"
            )
        if numbers := self._numbers():
            if len(numbers) > limits.TARGETS:
                raise ValueError(
                    f"{self.address} are more than {limits.TARGETS} targets, the most that a plan "
                    "has. Make two plans"
                )
            refuse_long_names(self.name, numbers[-1])
        return self

    def _numbers(self) -> list[str]:
        """Returns the numbers of a range in the address, as they are written; empty without one.

        Raises ValueError for a range that has none.
        """
        match = _RANGE.fullmatch(self.address)
        if match is None:
            return []
        first, last = match[2], match[3]
        if int(last) < int(first):
            raise ValueError(f"{self.address} ends before it begins. Write the lower number first")
        stop = min(int(last), int(first) + limits.TARGETS) + 1
        return [f"{number:0{len(first)}d}" for number in range(int(first), stop)]

    def each(self) -> Iterator[Self]:
        """See `TargetRecord.each`: one for each number of a range in the address."""
        numbers, match = self._numbers(), _RANGE.fullmatch(self.address)
        if not numbers or match is None:
            yield self
            return
        for number in numbers:
            address = f"{match[1]}{number}{match[4]}"
            yield self.model_copy(update={"name": f"{self.name}-{number}", "address": address})

    @property
    def collected_by(self) -> str:
        """See `TargetRecord.collected_by`."""
        return self.via

    @classmethod
    def from_text(cls, rest: str) -> Self | None:
        """See `TargetRecord.from_text`."""
        hop = parse_hop(rest)
        if hop is None:
            return None
        match = _RANGE.fullmatch(hop.host)
        name = as_name(f"{match[1]}{match[4]}" if match else hop.host)
        return cls(name=name, address=hop.host, port=hop.port, user=hop.user)

    def traits(self) -> Traits:
        """See `TargetRecord.traits`."""
        return Traits(
            machine=f"ssh:{self.address}",
            place=f"ssh:{self._login()}",
            listens_on="" if self.via else ROUTED,
            sends_to=frozenset() if self.via else frozenset({ROUTED}),
            closed_network=f"'{self.name}' is reached through '{self.via}' only" * bool(self.via),
        )

    def make(self) -> Target:
        """See `TargetRecord.make`."""
        # asyncssh takes longer to import than a whole `nephoscope --help`.
        from nephoscope.measure.targets.ssh.target import SshTarget

        return SshTarget(
            self.name, self.route(), directory=self.directory, inner_network=self.inner_network
        )

    def make_through(self, collector: Target) -> Target:
        """See `TargetRecord.make_through`."""
        from nephoscope.measure.targets.ssh.collected import CollectedTarget
        from nephoscope.measure.targets.ssh.target import SshTarget

        assert isinstance(collector, SshTarget)  # the plan was checked
        return CollectedTarget(
            self.name, collector.collector(), self.route(), directory=self.directory
        )

    def side_effects(self, lab: str) -> Iterator[SideEffect]:
        """See `TargetRecord.side_effects`."""
        through = f" through {', '.join(self.jump)}" if self.jump else ""
        through += f" by ssh from target {self.via}" if self.via else ""
        login = self._login()
        yield SideEffect("ssh host", login, f"target {self.name}{through}; no root is needed")
        yield SideEffect(
            "far file", f"{login}:{REMOTE_FOLDER}", "the probe by its hash, work of a trial"
        )

    def route(self) -> SshRoute:
        """Returns how the host is reached."""
        jump = tuple(hop for text in self.jump if (hop := parse_hop(text)) is not None)
        host = Hop(self.address, self.port, self.user)
        return SshRoute(host, jump, self.identity, self.known_hosts)

    def _login(self) -> str:
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"{user}{self.address}{port}"
