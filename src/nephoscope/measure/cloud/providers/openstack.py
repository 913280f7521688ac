"""OpenStack: nova, neutron, glance, and cinder where the cloud has it, by openstacksdk.

Credentials are those of OpenStack's own tools: an entry of clouds.yaml, else the variables OS_….
Nova knows no idempotency tokens: what an unanswered call has made carries
the token in its metadata.
"""

from __future__ import annotations

import base64
import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, TypeVar

import openstack
from openstack import exceptions
from openstack.connection import Connection
from openstack.utils import maximum_supported_microversion

from nephoscope.measure.cloud.model import (
    Account,
    Action,
    CloudResource,
    KeyPairRequest,
    Kind,
    Machine,
    MachinePrices,
    MachineRequest,
    MachineType,
    PlacementGroupRequest,
    Request,
    ResourceState,
    SecurityGroupRequest,
    SnapshotRequest,
    StoragePrices,
    Tags,
    VolumeRequest,
)
from nephoscope.measure.cloud.provider import (
    CONNECT_S,
    READ_S,
    Cause,
    CloudError,
    CloudSettings,
    CloudTraits,
)
from nephoscope.measure.cloud.providers import openstack_network as network
from nephoscope.measure.cloud.providers.openstack_errors import translated, unknown_region
from nephoscope.measure.cloud.providers.openstack_network import name_of, seconds_of, tags_of

_T = TypeVar("_T")
_GIB = 2**30

_MICROVERSION = "2.79"
"""Of nova (Train, 2019); older clouds are asked in the newest that they know."""

_STATES = {
    "ACTIVE": ResourceState.READY,
    # The new size runs; the old one is held until someone confirms.
    "VERIFY_RESIZE": ResourceState.READY,
    "SHUTOFF": ResourceState.STOPPED,
    "SUSPENDED": ResourceState.STOPPED,
    "PAUSED": ResourceState.STOPPED,
    "SHELVED": ResourceState.STOPPED,
    "SHELVED_OFFLOADED": ResourceState.STOPPED,
    "ERROR": ResourceState.FAILED,
    "SOFT_DELETED": ResourceState.LEAVING,
    "DELETED": ResourceState.GONE,
}
_TASKS = {
    "deleting": ResourceState.LEAVING,
    "soft-deleting": ResourceState.LEAVING,
    "powering-off": ResourceState.STOPPING,
}
_VOLUME_STATES = {
    "creating": ResourceState.PENDING,
    "downloading": ResourceState.PENDING,
    "deleting": ResourceState.LEAVING,
    "error": ResourceState.FAILED,
}
_IMAGE_STATES = {
    "queued": ResourceState.PENDING,
    "saving": ResourceState.PENDING,
    "deleted": ResourceState.GONE,
    "killed": ResourceState.FAILED,
}


class OpenStack:
    """See `Provider`."""

    traits: ClassVar[CloudTraits] = CloudTraits(
        kinds=frozenset(
            {
                Kind.MACHINE,
                Kind.KEY_PAIR,
                Kind.SECURITY_GROUP,
                Kind.PLACEMENT_GROUP,
                Kind.PORT,
                Kind.IMAGE,
                Kind.VOLUME,
                Kind.SNAPSHOT,
            }
        ),
        actions=frozenset(Action),
        placements=tuple(network.POLICIES),
        is_public=False,
        # A request whose client has gone may still wait for a worker of nova's API.
        settle_s=20.0,
        # Seen on a loaded cloud: servers of a client that was gone, after 20 s without any.
        late_s=120.0,
    )

    def __init__(self, settings: CloudSettings) -> None:
        self._settings = settings
        # The library's connections are not made for several threads.
        self._local = threading.local()

    def _connection(self, region: str = "") -> Connection:
        connections: dict[str, Connection] = self._local.__dict__.setdefault("connections", {})
        if region not in connections:
            connections[region] = self._connected(region)
        return connections[region]

    def _connected(self, region: str) -> Connection:
        more: dict[str, Any] = {"region_name": region} if region else {}
        if self._settings.endpoint:
            more["auth"] = {"auth_url": self._settings.endpoint}
        made: Connection = openstack.connect(cloud=self._settings.profile or None, **more)
        # Its type says one number; it is handed to requests, which takes both.
        session: Any = made.session
        session.timeout = (CONNECT_S, READ_S)
        if region and region not in (known := self._catalogue_regions(made)):
            raise unknown_region(region, known)
        made.compute.default_microversion = maximum_supported_microversion(
            made.compute, _MICROVERSION
        )
        return made

    def _catalogue_regions(self, connection: Connection) -> Sequence[str]:
        auth: Any = connection.session.auth
        access = auth.get_access(connection.session)
        endpoints = chain.from_iterable(
            service["endpoints"]
            for service in access.service_catalog.catalog
            if service["type"] == "compute"
        )
        return sorted({str(entry.get("region_id") or entry.get("region")) for entry in endpoints})

    def _call(self, what: str, region: str, call: Callable[[Connection], _T]) -> _T:
        with translated(what, region):
            return call(self._connection(region))

    def account(self) -> Account:
        """See `Provider.account`: the project; quotas are those of nova in the first region."""

        def read(connection: Connection) -> Account:
            limits = connection.compute.get_limits().absolute
            pairs = {
                "instances": (limits.instances_used, limits.instances),
                "vCPUs": (limits.total_cores_used, limits.total_cores),
                "memory (MiB)": (limits.total_ram_used, limits.total_ram),
                "key pairs": (None, limits.keypairs),
                "server groups": (limits.server_groups_used, limits.server_groups),
            }
            quotas = {name: (_number(used), _limit(most)) for name, (used, most) in pairs.items()}
            quotas |= _network_quotas(connection)
            project = connection.current_project
            return Account(str(project.id), str(project.name or ""), quotas)

        return self._call("reading the quotas", "", read)

    def regions(self) -> Sequence[str]:
        """See `Provider.regions`: those in which the catalogue has a compute service."""
        return self._call("listing the regions", "", self._catalogue_regions)

    def zones(self, region: str) -> Sequence[str]:
        """See `Provider.zones`."""
        return self._call(
            "listing the availability zones",
            region,
            lambda connection: [
                str(zone.name)
                for zone in connection.compute.availability_zones()
                if zone.state.get("available", False)
            ],
        )

    def types(self, region: str) -> Sequence[MachineType]:
        """See `Provider.types`: the flavours."""
        return self._call(
            "listing the flavours",
            region,
            lambda connection: [
                MachineType(str(entry.name), float(entry.vcpus), int(entry.ram) << 20)
                for entry in connection.compute.flavors()
            ],
        )

    def image(self, region: str, name: str) -> str:
        """See `Provider.image`."""

        def find(connection: Connection) -> str:
            named = list(connection.image.images(name=name, status="active"))
            if named:
                return str(max(named, key=lambda entry: str(entry.created_at)).id)
            try:
                return str(connection.image.get_image(name).id)
            except exceptions.NotFoundException:
                raise CloudError(
                    Cause.UNKNOWN,
                    f"OpenStack: no active image '{name}' in {region}.",
                    "List them with `openstack image list`.",
                ) from None

        return self._call(f"reading image {name}", region, find)

    def prices(self, request: MachineRequest) -> MachinePrices | None:
        """See `Provider.prices`: OpenStack's interfaces say none."""
        return None

    def storage_prices(self, region: str, type: str) -> StoragePrices | None:
        """See `Provider.storage_prices`."""
        return None

    def create(self, request: Request) -> Sequence[CloudResource]:
        """See `Provider.create`."""
        if isinstance(request, MachineRequest):
            return self._call("starting machines", request.region, lambda c: _servers(c, request))
        if isinstance(request, KeyPairRequest):
            return self._call("adding a key pair", request.region, lambda c: _key_pair(c, request))
        if isinstance(request, SecurityGroupRequest):
            return self._call(
                "making a security group",
                request.region,
                lambda c: network.security_group(c, request),
            )
        if isinstance(request, PlacementGroupRequest):
            return self._call(
                "making a server group", request.region, lambda c: network.server_group(c, request)
            )
        if isinstance(request, VolumeRequest):
            return self._call("making a volume", request.region, lambda c: _volume(c, request))
        return self._call("making a snapshot", request.region, lambda c: _snapshot(c, request))

    def resources(
        self, region: str, run: str | None = None, kinds: Collection[Kind] | None = None
    ) -> Sequence[CloudResource]:
        """See `Provider.resources`."""
        result = self._call("listing resources", region, lambda c: list(_listed(c, region)))
        return [entry for entry in result if run in (None, entry.tags.run)]

    def delete(self, resource: CloudResource) -> None:
        """See `Provider.delete`."""

        def remove(connection: Connection) -> None:
            compute, networks = connection.compute, connection.network
            calls: Mapping[Kind, Callable[..., Any]] = {
                Kind.MACHINE: lambda: compute.delete_server(resource.id),
                Kind.KEY_PAIR: lambda: compute.delete_keypair(resource.id),
                Kind.PLACEMENT_GROUP: lambda: compute.delete_server_group(resource.id),
                Kind.SECURITY_GROUP: lambda: networks.delete_security_group(resource.id),
                Kind.PORT: lambda: networks.delete_port(resource.id),
                Kind.IMAGE: lambda: connection.image.delete_image(resource.id),
                Kind.VOLUME: lambda: connection.block_storage.delete_volume(resource.id),
                Kind.SNAPSHOT: lambda: connection.block_storage.delete_snapshot(resource.id),
            }
            calls[resource.kind]()

        self._call(f"removing {resource}", resource.region, remove)

    def admit(self, group: CloudResource, sources: Collection[str]) -> None:
        """See `Provider.admit`."""
        self._call(
            f"opening {group}", group.region, lambda c: network.admit(c, group, frozenset(sources))
        )

    def act(self, machine: Machine, action: Action, value: str = "") -> None:
        """See `Provider.act`; the first action after a RESIZE confirms it, as nova wants it, and
        is possible when that is done: IN_USE until then."""

        def act(connection: Connection) -> None:
            compute = connection.compute
            status = str(compute.get_server(machine.id).status)
            if status == "VERIFY_RESIZE":
                # Refused while an earlier confirmation is under way.
                with contextlib.suppress(
                    exceptions.BadRequestException, exceptions.ConflictException
                ):
                    compute.confirm_server_resize(machine.id)
                raise CloudError(Cause.IN_USE, f"OpenStack: {machine} is being resized.")
            if (action, _STATES.get(status)) in (
                (Action.STOP, ResourceState.STOPPED),
                (Action.START, ResourceState.READY),
            ):
                return
            if action is Action.STOP:
                compute.stop_server(machine.id)
            elif action is Action.START:
                compute.start_server(machine.id)
            elif action is Action.REBOOT:
                compute.reboot_server(machine.id, "HARD")
            else:
                compute.resize_server(machine.id, _flavour(connection, value))

        self._call(f"{action} of {machine}", machine.region, act)

    def attach(self, machine: Machine, volume: CloudResource) -> None:
        """See `Provider.attach`."""
        self._call(
            f"attaching {volume}",
            machine.region,
            lambda c: c.compute.create_volume_attachment(machine.id, volume_id=volume.id),
        )

    def detach(self, volume: CloudResource) -> None:
        """See `Provider.detach`."""

        def detach(connection: Connection) -> None:
            for entry in connection.block_storage.get_volume(volume.id).attachments or ():
                connection.compute.delete_volume_attachment(entry["server_id"], volume.id)

        self._call(f"detaching {volume}", volume.region, detach)

    def console(self, machine: Machine) -> str:
        """See `Provider.console`."""

        def read(connection: Connection) -> str:
            try:
                answer = connection.compute.get_server_console_output(machine.id, length=1000)
            except (exceptions.NotFoundException, exceptions.ConflictException):
                return ""
            return str(answer.get("output") or "")

        return self._call(f"reading the console of {machine}", machine.region, read)

    def extend(self, resource: CloudResource, expires_s: int) -> None:
        """See `Provider.extend`. Key pairs and ports have no tags to write to."""
        tags = replace(resource.tags, expires_s=expires_s)
        values = tags.as_mapping()

        def extend(connection: Connection) -> None:
            storage = connection.block_storage
            calls: Mapping[Kind, Callable[..., Any]] = {
                Kind.MACHINE: lambda: connection.compute.set_server_metadata(resource.id, **values),
                Kind.SECURITY_GROUP: lambda: connection.network.update_security_group(
                    resource.id, name=name_of(tags)
                ),
                Kind.IMAGE: lambda: connection.image.update_image(resource.id, **values),
                Kind.VOLUME: lambda: storage.set_volume_metadata(resource.id, **values),
                Kind.SNAPSHOT: lambda: storage.set_snapshot_metadata(resource.id, **values),
            }
            if resource.kind in calls:
                calls[resource.kind]()

        self._call(f"extending {resource}", resource.region, extend)


def open(settings: CloudSettings) -> OpenStack:
    """Returns a cloud. Nothing is asked of it yet."""
    return OpenStack(settings)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _limit(value: object) -> float | None:
    """A limit; -1 is none."""
    number = _number(value)
    return None if number is None or number < 0 else number


def _network_quotas(connection: Connection) -> dict[str, tuple[float | None, float | None]]:
    quota = connection.network.get_quota(connection.current_project_id or "", details=True)
    limits_by_name = {"ports": quota.ports, "security groups": quota.security_groups}
    return {
        name: (_number(entry.get("used")), _limit(entry.get("limit")))
        for name, entry in limits_by_name.items()
        if isinstance(entry, dict)
    }


def _flavour(connection: Connection, name: str) -> str:
    result = connection.compute.find_flavor(name, ignore_missing=True)
    if result is None:
        raise CloudError(
            Cause.UNKNOWN,
            f"OpenStack: no flavour '{name}'.",
            "List them with `openstack flavor list`.",
        )
    return str(result.id)


def _servers(connection: Connection, request: MachineRequest) -> Sequence[Machine]:
    flavour = connection.compute.get_flavor(_flavour(connection, request.type))
    if request.disk_bytes and request.disk_bytes > int(flavour.disk) * _GIB:
        # Nova would make a volume for it that carries no tag: nobody could find it again.
        raise CloudError(
            Cause.REFUSED,
            f"OpenStack: the root disk of {request.type} has {flavour.disk} GiB, and "
            f"{request.disk_bytes / _GIB:g} GiB are asked for.",
            "Take a flavour with a larger disk.",
        )
    server: dict[str, Any] = {
        "name": request.name or request.tags.run,
        "flavorRef": str(flavour.id),
        "imageRef": request.image,
        "min_count": request.at_least,
        "max_count": request.count,
        "return_reservation_id": True,
        "metadata": request.tags.as_mapping(),
        "networks": network.networks(connection, request.network),
        # Also where the cloud has no metadata service.
        "config_drive": True,
    }
    if request.user_data:
        server["user_data"] = base64.b64encode(request.user_data.encode()).decode()
    if request.zone:
        server["availability_zone"] = request.zone
    if request.key_pair:
        server["key_name"] = request.key_pair
    if request.security_group:
        group = connection.network.get_security_group(request.security_group)
        server["security_groups"] = [{"name": str(group.id)}]
    body: dict[str, Any] = {"server": server}
    if request.placement_group:
        body["os:scheduler_hints"] = {"group": request.placement_group}
    answer = connection.compute.post("/servers", json=body)
    exceptions.raise_from_response(answer)
    made = connection.compute.servers(reservation_id=answer.json()["reservation_id"])
    return [
        entry
        for server in made
        if (entry := _machine(server, request.region, request.tags)) is not None
    ]


def _key_pair(connection: Connection, request: KeyPairRequest) -> Sequence[CloudResource]:
    name = name_of(request.tags)
    try:
        connection.compute.create_keypair(name=name, public_key=request.public_key)
    except exceptions.ConflictException:
        # The token is in the name: this call has made it before.
        connection.compute.get_keypair(name)
    return [CloudResource(Kind.KEY_PAIR, name, request.region, request.tags, name=name)]


def _volume(connection: Connection, request: VolumeRequest) -> Sequence[CloudResource]:
    made = connection.block_storage.create_volume(
        name=request.tags.run,
        size=-(-request.size_bytes // _GIB),
        metadata=request.tags.as_mapping(),
        **{
            name: value
            for name, value in (
                ("availability_zone", request.zone),
                ("volume_type", request.type),
                ("snapshot_id", request.snapshot),
            )
            if value
        },
    )
    return [_stored(Kind.VOLUME, made, request.region, request.tags)]


def _snapshot(connection: Connection, request: SnapshotRequest) -> Sequence[CloudResource]:
    """Of a machine an image, of a volume a snapshot."""
    values = request.tags.as_mapping()
    try:
        server = connection.compute.get_server(request.source)
    except exceptions.NotFoundException:
        made = connection.block_storage.create_snapshot(
            volume_id=request.source, name=request.tags.run, metadata=values, force=True
        )
        return [_stored(Kind.SNAPSHOT, made, request.region, request.tags)]
    name = name_of(request.tags)
    image = connection.compute.create_server_image(server, name, metadata=values)
    return [
        CloudResource(
            Kind.IMAGE, image.id, request.region, request.tags, ResourceState.PENDING, name=name
        )
    ]


def _listed(connection: Connection, region: str) -> Iterator[CloudResource]:
    servers = list(connection.compute.servers(details=True))
    for server in servers:
        if machine := _machine(server, region):
            yield machine
    for pair in connection.compute.keypairs():
        if tags := tags_of(pair.name):
            yield CloudResource(Kind.KEY_PAIR, str(pair.name), region, tags, name=str(pair.name))
    yield from network.groups(connection, region)
    yield from network.listed(connection, region, {str(server.id) for server in servers})
    owner = connection.current_project_id
    for image in connection.image.images(owner=owner):
        if tags := Tags.from_mapping(_texts(image.properties or {})):
            state = _IMAGE_STATES.get(str(image.status), ResourceState.READY)
            name = str(image.name or "")
            made = seconds_of(image.created_at)
            yield CloudResource(Kind.IMAGE, str(image.id), region, tags, state, "", name, made)
    if connection.has_service("block-storage"):
        storage = connection.block_storage
        yield from _of_storage(Kind.VOLUME, storage.volumes(details=True), region)
        yield from _of_storage(Kind.SNAPSHOT, storage.snapshots(details=True), region)


def _of_storage(kind: Kind, listed: Iterable[Any], region: str) -> Iterator[CloudResource]:
    for entry in listed:
        if tags := Tags.from_mapping(_texts(entry.metadata or {})):
            yield _stored(kind, entry, region, tags)


def _stored(kind: Kind, entry: Any, region: str, tags: Tags) -> CloudResource:
    return CloudResource(
        kind,
        str(entry.id),
        region,
        tags,
        _VOLUME_STATES.get(str(entry.status), ResourceState.READY),
        str(getattr(entry, "availability_zone", "") or ""),
        str(entry.name or ""),
        seconds_of(entry.created_at),
    )


def _machine(server: Any, region: str, tags: Tags | None = None) -> Machine | None:
    """A server of ours; None of another's. tags: where it is known to be ours."""
    tags = Tags.from_mapping(_texts(server.metadata or {})) or tags
    if tags is None:
        return None
    state = _TASKS.get(str(server.task_state)) or _STATES.get(
        str(server.status), ResourceState.PENDING
    )
    addresses = [
        entry
        for network in (server.addresses or {}).values()
        for entry in network
        if entry["version"] == 4
    ]
    floating = [entry["addr"] for entry in addresses if entry.get("OS-EXT-IPS:type") == "floating"]
    fixed = [entry["addr"] for entry in addresses if entry.get("OS-EXT-IPS:type") != "floating"]
    flavour, image = server.flavor or {}, server.image or {}
    return Machine(
        Kind.MACHINE,
        str(server.id),
        region,
        tags,
        state,
        str(server.availability_zone or ""),
        str(server.name or ""),
        seconds_of(server.created_at),
        type=str(flavour.get("original_name") or flavour.get("id") or ""),
        image=str(image.get("id") or ""),
        address=next(iter(floating + fixed), ""),
        private_address=next(iter(fixed), ""),
        host=str(server.host_id or ""),
        problem=str((server.fault or {}).get("message", ""))
        if state is ResourceState.FAILED
        else "",
    )


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in values.items()}
