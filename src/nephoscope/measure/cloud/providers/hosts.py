"""Hosts that exist already: taken from a list, given back, never made and never deleted.

A file for each host that is taken, made at once and whole, keeps two runs of this user from sharing
a machine. Runs of other users or controllers are not seen.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural
from nephoscope.core.reading import regular
from nephoscope.measure.cloud.intents import rentals_root
from nephoscope.measure.cloud.inventory import EVERY, InventoryHost, read_hosts
from nephoscope.measure.cloud.model import (
    Account,
    Action,
    CloudResource,
    Kind,
    Machine,
    MachinePrices,
    MachineRequest,
    MachineType,
    Request,
    StoragePrices,
    Tags,
)
from nephoscope.measure.cloud.provider import (
    Cause,
    CloudError,
    CloudSettings,
    CloudTraits,
    WithoutFirewalls,
)

REGION = "hosts"
"""Region of hosts for which the inventory names none (`nephoscope_region`)."""

IMAGE = "installed"
"""The only image: what the host runs."""


def reservations() -> Path:
    """Returns the folder with a file for each host that is taken."""
    return rentals_root().with_name("hosts")


def open(settings: CloudSettings) -> ExistingHosts:
    """Returns the hosts of the list `endpoint`; `profile` names an output of OpenTofu or Pulumi."""
    return ExistingHosts(settings)


class ExistingHosts(WithoutFirewalls):
    """See `Provider`. A group of the inventory is a type; every host is of type `all`."""

    traits: ClassVar[CloudTraits] = CloudTraits(
        kinds=frozenset({Kind.MACHINE}),
        tokens=True,
        per_second=1000.0,
        user_data=False,
        rents=False,
    )

    def __init__(self, settings: CloudSettings) -> None:
        self._settings = settings

    def account(self) -> Account:
        """See `Provider.account`."""
        hosts = self._hosts()
        reserved = {entry["key"] for entry in _read_reservations()}
        used = len([entry for entry in hosts if entry.key in reserved])
        return Account(self._settings.endpoint, quotas={"hosts": (used, len(hosts))})

    def regions(self) -> Sequence[str]:
        """See `Provider.regions`."""
        return sorted({entry.region or REGION for entry in self._hosts()})

    def zones(self, region: str) -> Sequence[str]:
        """See `Provider.zones`."""
        return sorted({entry.zone for entry in self._in(region)} - {""})

    def types(self, region: str) -> Sequence[MachineType]:
        """See `Provider.types`: the groups. A size that no fact tells is not a number, or 0."""
        results: dict[str, MachineType] = {}
        for host in self._in(region):
            for group in sorted(host.groups):
                size = (host.vcpus or math.nan, host.memory_bytes or 0)
                results.setdefault(group, MachineType(group, *size))
        return [
            results[name] for name in sorted(results, key=lambda entry: (entry != EVERY, entry))
        ]

    def image(self, region: str, name: str) -> str:
        """See `Provider.image`."""
        if name == IMAGE:
            return name
        raise CloudError(
            Cause.UNKNOWN,
            f"Existing hosts: '{name}' is not installed on demand, hosts keep their system.",
            f"Write `image: {IMAGE}`.",
        )

    def prices(self, request: MachineRequest) -> MachinePrices | None:
        """See `Provider.prices`: they are paid for already."""
        return None

    def storage_prices(self, region: str, type: str) -> StoragePrices | None:
        """See `Provider.storage_prices`."""
        return None

    def create(self, request: Request) -> Sequence[CloudResource]:
        """See `Provider.create`: takes hosts that nobody has taken, in the order of the list."""
        if not isinstance(request, MachineRequest):
            raise CloudError(Cause.REFUSED, "Existing hosts: only machines can be taken.")
        suitable = [
            entry
            for entry in self._in(request.region)
            if request.type in entry.groups and request.zone in ("", entry.zone)
        ]
        if not suitable:
            groups = ", ".join(entry.name for entry in self.types(request.region))
            raise CloudError(
                Cause.UNKNOWN,
                f"Existing hosts: none is of type '{request.type}'"
                f"{f' in {request.zone}' if request.zone else ''}.",
                f"Types are the groups: {groups}.",
            )
        with _locked():
            everyone = {entry["key"]: entry for entry in _read_reservations()}
            machines = [_machine(entry) for entry in everyone.values()]
            own = [entry for entry in machines if entry.tags.token == request.tags.token]
            if own and request.tags.token:
                return own
            free = list(
                {entry.key: entry for entry in suitable if entry.key not in everyone}.values()
            )
            if len(free) < request.at_least:
                raise CloudError(
                    Cause.CAPACITY,
                    f"Existing hosts: {len(free)} of {plural(len(suitable), 'host')} of type "
                    f"'{request.type}' {'is' if len(free) == 1 else 'are'} free, and "
                    f"{request.at_least} are needed.",
                    "See `nephoscope cloud list`; `nephoscope cloud sweep` frees what was left.",
                )
            reserved = [_document(entry, request) for entry in free[: request.count]]
            for entry in reserved:
                _write(entry)
        return [_machine(entry) for entry in reserved]

    def resources(
        self, region: str, run: str | None = None, kinds: Collection[Kind] | None = None
    ) -> Sequence[CloudResource]:
        """See `Provider.resources`: also of hosts that have left the list."""
        results = [_machine(entry) for entry in _read_reservations() if entry["region"] == region]
        return [entry for entry in results if run in (None, entry.tags.run)]

    def delete(self, resource: CloudResource) -> None:
        """See `Provider.delete`: gives a host back, unless somebody else has it by now."""
        with _locked():
            for entry in _read_reservations():
                if entry["id"] == resource.id and _machine(entry).tags.run == resource.tags.run:
                    _path(entry["key"]).unlink(missing_ok=True)

    def act(self, machine: Machine, action: Action, value: str = "") -> None:
        """See `Provider.act`: hosts of others are left as they are."""
        raise CloudError(Cause.REFUSED, f"Existing hosts: {action} is not done to them.")

    def attach(self, machine: Machine, volume: CloudResource) -> None:
        """See `Provider.attach`."""
        raise CloudError(Cause.REFUSED, "Existing hosts: no volume is attached to them.")

    def detach(self, volume: CloudResource) -> None:
        """See `Provider.detach`."""
        raise CloudError(Cause.REFUSED, "Existing hosts: no volume is attached to them.")

    def console(self, machine: Machine) -> str:
        """See `Provider.console`: nobody shows it."""
        return ""

    def extend(self, resource: CloudResource, expires_s: int) -> None:
        """See `Provider.extend`."""
        with _locked():
            for entry in _read_reservations():
                machine = _machine(entry)
                if entry["id"] == resource.id and machine.tags.run == resource.tags.run:
                    tags = replace(machine.tags, expires_s=expires_s)
                    _write({**entry, "tags": tags.as_mapping()})

    def _hosts(self) -> list[InventoryHost]:
        try:
            return read_hosts(self._settings.endpoint, self._settings.profile)
        except UsageError as error:
            is_command = self._settings.endpoint.lstrip().startswith("[")
            cause = Cause.UNREACHABLE if is_command else Cause.UNKNOWN
            raise CloudError(cause, error.message, error.hint) from error

    def _in(self, region: str) -> list[InventoryHost]:
        return [entry for entry in self._hosts() if (entry.region or REGION) == region]


@contextmanager
def _locked() -> Iterator[None]:
    folder = reservations()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read_reservations() -> list[dict[str, Any]]:
    """The reservations; one that is damaged is still one, but of nobody."""
    results = []
    for path in sorted(reservations().glob("*.json")):
        try:
            entry = json.loads(regular.read_text(path))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no JSON'}.",
                "Remove it if no machine is reserved by it.",
            ) from None
        if Tags.from_mapping(entry["tags"]) is not None:
            results.append(entry)
    return results


def _document(host: InventoryHost, request: MachineRequest) -> dict[str, Any]:
    return {
        "key": host.key,
        "id": host.name,
        "region": request.region,
        "zone": host.zone,
        "type": request.type,
        "target": host.target,
        "tags": request.tags.as_mapping(),
    }


def _write(entry: Mapping[str, Any]) -> None:
    """Writes a reservation, whole or not at all, and synced."""
    path = _path(entry["key"])
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False) as file:
        json.dump(entry, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)


def _path(key: str) -> Path:
    return reservations() / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


def _machine(entry: Mapping[str, Any]) -> Machine:
    tags = Tags.from_mapping(entry["tags"])
    assert tags is not None
    target = dict(entry["target"])
    return Machine(
        Kind.MACHINE,
        str(entry["id"]),
        str(entry["region"]),
        tags,
        zone=str(entry["zone"]),
        name=str(entry["id"]),
        type=str(entry["type"]),
        image=IMAGE,
        address=str(target["address"]),
        host=str(target["address"]),
        target=target,
    )
