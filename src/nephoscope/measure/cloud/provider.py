"""What a cloud has to be able to do, one call at a time; the files of `providers` do it.

A provider is thin. It translates calls and errors, tags what it makes, and lists to the end. It
retries nothing, remembers nothing and waits for nothing but one answer, for at most `READ_S`: what
has to survive a lost answer, a kill or a lag of the listings is in `rental` and `sweep`, once for
all. Methods block; they are called in threads, several at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from nephoscope.core.errors import RunFailed
from nephoscope.measure.cloud.model import (
    Account,
    Action,
    CloudResource,
    Kind,
    Machine,
    MachinePrices,
    MachineRequest,
    MachineType,
    Market,
    Placement,
    Request,
    StoragePrices,
)

CONNECT_S, READ_S = 5.0, 30.0
"""Longest waits for a connection to a cloud, and for an answer."""


class Cause(StrEnum):
    """Why a call failed, as far as what follows depends on it."""

    CREDENTIALS = "credentials"
    """Missing, wrong, expired, or without the permission."""
    CLOCK = "clock"
    """The time of this machine is wrong for the cloud."""
    UNKNOWN = "unknown name"
    """No such region, zone, type, image, network."""
    QUOTA = "quota"
    CAPACITY = "capacity"
    """The cloud has no such machine free there now; another zone may."""
    THROTTLED = "throttled"
    """Too many calls: the same call later may pass. Nothing was done."""
    UNANSWERED = "unanswered"
    """No answer, a broken one, or an error of the cloud's own: it may have been done or not."""
    UNREACHABLE = "unreachable"
    """No connection came about: nothing was done."""
    IN_USE = "in use"
    """Another resource still uses it: the same call later may pass."""
    REFUSED = "refused"
    """Anything else that the cloud does not do; its words are in the message."""


class CloudError(RunFailed):
    """A call to a cloud failed. The message is one sentence: the cloud, what, its words."""

    def __init__(self, cause: Cause, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.cause = cause

    @property
    def passes(self) -> bool:
        """Returns whether the same call may succeed a little later."""
        return self.cause in (Cause.THROTTLED, Cause.UNANSWERED, Cause.UNREACHABLE, Cause.IN_USE)


@dataclass(frozen=True, slots=True)
class CloudTraits:
    """What is known of a cloud before it is asked.

    kinds: of resources that it makes. actions: on machines. markets: of machines. placements: of
    its placement groups. tokens: a call with a token that was used before returns what that one
    made; without it, as for kinds that are tokenless, a call that was not answered is looked for in
    the listing. settle_s: after which the listing shows whatever was made. late_s: how long after
    it was sent a call may still be carried out whose answer is missing, because the service was
    overloaded or restarted. forgets: the listing may never show what such a call made. per_second:
    calls that may be made a second. user_data: it runs a script when a machine starts. shutdown:
    what becomes of a machine that powers itself off.
    """

    kinds: frozenset[Kind]
    actions: frozenset[Action] = frozenset()
    markets: tuple[Market, ...] = ("on demand",)
    placements: tuple[Placement, ...] = ()
    tokens: bool = False
    tokenless: frozenset[Kind] = frozenset()
    settle_s: float = 0.0
    late_s: float = 0.0
    forgets: bool = False
    per_second: float = 5.0
    user_data: bool = True
    shutdown: str = "stopped"
    is_public: bool = True
    """It sees the address that this machine has on the Internet, not its own behind a router."""
    rents: bool = True
    """Somebody has to pay; else an unknown price is no reason to refuse."""


@dataclass(frozen=True, slots=True)
class CloudSettings:
    """Which cloud of a provider, and as whom. Secrets are never in it: they stay where the
    provider's own tools keep them, under `profile`.

    endpoint: address of the API; '' for the provider's own. profile: name of the credentials
    (AWS profile, entry of clouds.yaml, context of a kubeconfig, libvirt's URI, …).
    """

    provider: str
    endpoint: str = ""
    profile: str = ""


class WithoutFirewalls:
    """Part of a provider in front of whose machines it makes no firewall."""

    def admit(self, group: CloudResource, sources: Collection[str]) -> None:
        """See `Provider.admit`: nothing is closed here, or nothing of it is ours."""


class Provider(Protocol):
    """One cloud under one set of credentials. Every method raises CloudError."""

    @property
    def traits(self) -> CloudTraits:
        """Returns what is known of the cloud before it is asked; may change with its answers."""

    def account(self) -> Account:
        """Returns whose credentials these are: the first call of `cloud doctor`."""

    def regions(self) -> Sequence[str]:
        """Returns the regions that this account may use; clouds without regions have one."""

    def zones(self, region: str) -> Sequence[str]:
        """Returns the zones of a region; may be empty."""

    def types(self, region: str) -> Sequence[MachineType]:
        """Returns the types of machines of a region; none where the cloud does not list them."""

    def image(self, region: str, name: str) -> str:
        """Returns the id of an image, given by id or name; the newest of several of one name."""

    def prices(self, request: MachineRequest) -> MachinePrices | None:
        """Returns the prices of one machine of a request; None where they are unknown."""

    def storage_prices(self, region: str, type: str) -> StoragePrices | None:
        """Returns the prices of volumes of a type and of their snapshots; None where the cloud has
        no list of them."""

    def create(self, request: Request) -> Sequence[CloudResource]:
        """Makes what is asked for, with `request.tags`, under the token `request.tags.token`.

        Machines: at least `at_least` and at most `count`, else none. What is made carries its
        tags from the first moment, or has a name that holds them.
        """

    def resources(
        self, region: str, run: str | None = None, kinds: Collection[Kind] | None = None
    ) -> Sequence[CloudResource]:
        """Returns every resource with our tags, of every kind in `traits.kinds`, in a region; of
        one rental only, where `run` names one. kinds: others may be left out, where that spares
        calls; None for all.

        Those that are GONE may be in it. What outlives its machine (its volumes, addresses and
        network ports) is in it as a resource of its own.
        """

    def delete(self, resource: CloudResource) -> None:
        """Asks for the removal of a resource; one that is gone is no error."""

    def admit(self, group: CloudResource, sources: Collection[str]) -> None:
        """Lets exactly these addresses in to the members of a security group, besides its logins
        and its members: TCP and UDP on `PEER_PORTS`, and ICMP. An earlier address that is not
        among them is let in no more; rules go with their group.

        sources: addresses of single machines, without a length of a network.
        """

    def act(self, machine: Machine, action: Action, value: str = "") -> None:
        """Does something to a machine; `value` is the new type of a RESIZE."""

    def attach(self, machine: Machine, volume: CloudResource) -> None:
        """Attaches a volume to a machine of its zone."""

    def detach(self, volume: CloudResource) -> None:
        """Detaches a volume from its machine."""

    def console(self, machine: Machine) -> str:
        """Returns the last of what the machine wrote to its console; '' before it wrote."""

    def extend(self, resource: CloudResource, expires_s: int) -> None:
        """Writes a later expiry into the tags of a resource; no error where its kind has none."""
