"""LXD and Incus over REST: an instance is a machine, its limits are its type.

A project is a region, a member of the cluster a zone. Programs are started by the API's exec, so
that an instance needs no address that the controller reaches.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from nephoscope.measure.cloud.machine_sizes import parse_size, size_name, sizes_up_to
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
    ResourceState,
    SnapshotRequest,
    StoragePrices,
    Tags,
    VolumeRequest,
)
from nephoscope.measure.cloud.provider import Cause, CloudError, CloudSettings, CloudTraits
from nephoscope.measure.targets.exec.lxd import Lxd, global_address, server_of
from nephoscope.measure.targets.exec.rest import (
    READ_S,
    Answer,
    NotReached,
    RestServer,
    words_of_failure,
)

_USER = "user."
_WAIT_S = READ_S - 5
"""Time that an operation is waited for; one that takes longer shows in the listing."""

_STATES = {
    "Running": ResourceState.READY,
    "Ready": ResourceState.READY,
    "Stopped": ResourceState.STOPPED,
    "Stopping": ResourceState.STOPPING,
    "Starting": ResourceState.PENDING,
    "Frozen": ResourceState.STOPPED,
    "Error": ResourceState.FAILED,
}
_ACTIONS = {Action.STOP: "stop", Action.START: "start", Action.REBOOT: "restart"}

_START = r"""
[ -z "$2" ] || command -v cloud-init >/dev/null 2>&1 && exit 0
mkdir /run/nephoscope-started 2>/dev/null || exit 0
umask 077
printf '%s\n' "$1" >/run/nephoscope-started/script
chmod 700 /run/nephoscope-started/script
setsid /run/nephoscope-started/script </dev/null >/dev/null 2>&1 &
"""
"""Runs the script $1 once a start, unless cloud-init does: $2 is empty on a second start, at which
cloud-init runs no script again."""


def open(settings: CloudSettings) -> LxdCloud:
    """Returns the server at `endpoint` or of the remote `profile`; by default this machine's."""
    return LxdCloud(settings)


class LxdCloud:
    """See `Provider`."""

    traits: ClassVar[CloudTraits] = CloudTraits(
        kinds=frozenset({Kind.MACHINE, Kind.VOLUME, Kind.SNAPSHOT}),
        actions=frozenset(Action),
        tokens=True,
        per_second=50.0,
        rents=False,
    )

    def __init__(self, settings: CloudSettings) -> None:
        self._settings = settings
        self._server: RestServer = server_of(settings.endpoint, settings.profile)

    def account(self) -> Account:
        """See `Provider.account`."""
        results = self._ask("default", "GET", "")
        if results.get("auth") != "trusted":
            raise CloudError(
                Cause.CREDENTIALS,
                "LXD: this client's certificate is not trusted by the server.",
                "Run `lxc remote add NAME ADDRESS` with a token of the server.",
            )
        environment = results.get("environment") or {}
        names = [str(environment.get(key, "")) for key in ("server_name", "server")]
        return Account(names[0] or "lxd", names[1] or "lxd")

    def regions(self) -> Sequence[str]:
        """See `Provider.regions`: the projects."""
        results = self._ask("default", "GET", "/projects", query={"recursion": "1"})
        return [str(entry["name"]) for entry in results]

    def zones(self, region: str) -> Sequence[str]:
        """See `Provider.zones`: members of the cluster; none where there is no cluster."""
        self._known(region)
        server = self._ask("default", "GET", "")
        if not (server.get("environment") or {}).get("server_clustered"):
            return []
        members = self._ask("default", "GET", "/cluster/members", query={"recursion": "1"})
        return [str(entry["server_name"]) for entry in members]

    def types(self, region: str) -> Sequence[MachineType]:
        """See `Provider.types`: the usual sizes that fit into the server."""
        self._known(region)
        results = self._ask("default", "GET", "/resources")
        cpus, memory = int(results["cpu"]["total"]), int(results["memory"]["total"])
        return sizes_up_to(cpus, memory, whole_cpus=True)

    def image(self, region: str, name: str) -> str:
        """See `Provider.image`: by alias, or by (the beginning of) its fingerprint."""
        for path in (f"/images/aliases/{name}", f"/images/{name}"):
            with contextlib.suppress(_NoSuchInstance):
                results = self._ask(region, "GET", path)
                return str(results.get("target") or results["fingerprint"])
        raise CloudError(
            Cause.UNKNOWN,
            f"LXD: there is no image '{name}' in project {region}.",
            "See `lxc image list`; copy one with `lxc image copy`.",
        )

    def prices(self, request: MachineRequest) -> MachinePrices | None:
        """See `Provider.prices`: nobody is paid."""
        return None

    def storage_prices(self, region: str, type: str) -> StoragePrices | None:
        """See `Provider.storage_prices`."""
        return None

    def create(self, request: Request) -> Sequence[CloudResource]:
        """See `Provider.create`. A name holds the token, so that a repeated call makes nothing."""
        if isinstance(request, MachineRequest):
            return self._create_machines(request)
        if isinstance(request, VolumeRequest):
            return [self._create_volume(request)]
        if isinstance(request, SnapshotRequest):
            return [self._create_snapshot(request)]
        raise CloudError(Cause.REFUSED, f"LXD makes no {type(request).__name__}.")

    def resources(
        self, region: str, run: str | None = None, kinds: Collection[Kind] | None = None
    ) -> Sequence[CloudResource]:
        """See `Provider.resources`."""
        every = {"recursion": "2"}
        machines = self._ask(region, "GET", "/instances", query=every)
        results: list[CloudResource] = []
        for entry in machines:
            machine = self._machine(region, entry)
            results += [machine] if machine is not None else []
            for snapshot in entry.get("snapshots") or ():
                results += self._snapshot(region, str(entry["name"]), snapshot)
        for pool in self._pools():
            path = f"/storage-pools/{pool}/volumes/custom"
            for volume in self._ask(region, "GET", path, query={"recursion": "1"}):
                results += self._volume(region, pool, volume)
        return [entry for entry in results if run in (None, entry.tags.run)]

    def delete(self, resource: CloudResource) -> None:
        """See `Provider.delete`."""
        path = self._path(resource)
        with contextlib.suppress(_NoSuchInstance):
            if resource.kind is Kind.MACHINE:
                with contextlib.suppress(CloudError):  # it is stopped already
                    self._set_state(resource, "stop")
            self._ask(resource.region, "DELETE", path)

    def act(self, machine: Machine, action: Action, value: str = "") -> None:
        """See `Provider.act`."""
        if action is Action.RESIZE:
            config = _limits(parse_size("LXD", value))
            self._ask(machine.region, "PATCH", self._path(machine), {"config": config})
            return
        self._set_state(machine, _ACTIONS[action])
        if action is not Action.STOP:
            results = self._ask(machine.region, "GET", self._path(machine))
            script = (results.get("config") or {}).get("cloud-init.user-data", "")
            self._run(machine.region, machine.id, script, first=False)

    def attach(self, machine: Machine, volume: CloudResource) -> None:
        """See `Provider.attach`: as a folder, for volumes are file systems here."""
        pool, _, name = volume.id.partition("/")
        device = {"type": "disk", "pool": pool, "source": name, "path": f"/mnt/{name}"}
        body = {"devices": {f"vol-{name}"[:60]: device}}
        self._ask(machine.region, "PATCH", self._path(machine), body)

    def detach(self, volume: CloudResource) -> None:
        """See `Provider.detach`."""
        _, _, name = volume.id.partition("/")
        for entry in self._ask(volume.region, "GET", "/instances", query={"recursion": "1"}):
            own = entry.get("devices") or {}
            left = {key: value for key, value in own.items() if value.get("source") != name}
            if left != own:
                body = {key: entry[key] for key in ("config", "profiles", "architecture")}
                path = f"/instances/{entry['name']}"
                self._ask(volume.region, "PUT", path, {**body, "devices": left})

    def console(self, machine: Machine) -> str:
        """See `Provider.console`."""
        path = Lxd(self._server, machine.region).path(f"{self._path(machine)}/console")
        with _translated():
            answer = self._server.request("GET", path)
        return answer.text if answer.good else ""

    def extend(self, resource: CloudResource, expires_s: int) -> None:
        """See `Provider.extend`."""
        tags = Tags(resource.tags.run, resource.tags.owner, expires_s, resource.tags.token)
        path = self._path(resource)
        if resource.kind is Kind.SNAPSHOT:
            return
        self._ask(resource.region, "PATCH", path, {"config": _user(tags)})

    def _create_machines(self, request: MachineRequest) -> Sequence[CloudResource]:
        size = parse_size("LXD", request.type)
        made: list[CloudResource] = []
        try:
            for number in range(request.count):
                made.append(self._create_machine(request, size, number))
        except CloudError as error:
            certain = error.cause in (Cause.QUOTA, Cause.CAPACITY)
            if not certain or len(made) < request.at_least:
                for entry in made if not error.passes else ():
                    self.delete(entry)
                raise
        return made

    def _create_machine(self, request: MachineRequest, size: MachineType, number: int) -> Machine:
        name = f"nephoscope-{request.tags.token[:32]}-{number}"
        config = {**_user(request.tags), **_limits(size), f"{_USER}nephoscope-type": request.type}
        if request.user_data:
            config["cloud-init.user-data"] = request.user_data
        body: dict[str, Any] = {
            "name": name,
            "description": request.name,
            "source": {"type": "image", "fingerprint": request.image},
            "config": config,
        }
        if request.disk_bytes or request.network:
            body["devices"] = self._devices(request)
        where = {"target": request.zone} if request.zone else {}
        try:
            self._ask(request.region, "POST", "/instances", body, query=where)
        except CloudError as error:
            if "already exists" not in error.message:
                raise
        # A call that was repeated may find it stopped: it starts, and its script runs once.
        results = self._ask(request.region, "GET", f"/instances/{name}", query={"recursion": "1"})
        machine = self._machine(request.region, results)
        if machine is None:
            raise CloudError(Cause.REFUSED, f"LXD: {name} belongs to somebody else.")
        if machine.state is not ResourceState.READY:
            try:
                self._set_state(machine, "start")
            except CloudError:
                self.delete(machine)
                raise
        self._run(request.region, name, request.user_data, first=True)
        results = self._ask(request.region, "GET", f"/instances/{name}", query={"recursion": "1"})
        return self._machine(request.region, results) or machine

    def _devices(self, request: MachineRequest) -> Mapping[str, Any]:
        profile = self._ask(request.region, "GET", "/profiles/default").get("devices") or {}
        devices = {}
        for name, device in profile.items():
            if request.disk_bytes and device.get("path") == "/":
                devices[name] = {**device, "size": str(request.disk_bytes)}
            if request.network and device.get("type") == "nic":
                devices[name] = {"type": "nic", "name": name, "network": request.network}
        return devices

    def _run(self, region: str, name: str, script: str, *, first: bool) -> None:
        """Runs the user data where no cloud-init does; an image without a shell runs none."""
        if script:
            words = ["/bin/sh", "-c", _START, "nephoscope", script, "first" if first else ""]
            body = {"command": words, "wait-for-websocket": False, "interactive": False}
            self._ask(region, "POST", f"/instances/{name}/exec", body)

    def _create_volume(self, request: VolumeRequest) -> CloudResource:
        pool = request.type or self._pools()[0]
        name = f"nephoscope-{request.tags.token[:32]}"
        source: dict[str, Any] = {"type": "none"}
        if request.snapshot:
            _, _, origin = request.snapshot.partition("/")
            source = {"type": "copy", "pool": pool, "name": origin, "volume_only": True}
        config = {**_user(request.tags), "size": str(request.size_bytes)}
        body = {"name": name, "type": "custom", "config": config}
        if request.snapshot:
            body["source"] = source
        try:
            self._ask(request.region, "POST", f"/storage-pools/{pool}/volumes/custom", body)
        except CloudError as error:
            if "already exists" not in error.message:
                raise
        return CloudResource(Kind.VOLUME, f"{pool}/{name}", request.region, request.tags)

    def _create_snapshot(self, request: SnapshotRequest) -> CloudResource:
        """A snapshot of a machine goes with the machine; one of a volume with the volume."""
        name = request.tags.as_name(request.tags.token[:8])
        path = self._path_of_source(request.source)
        try:
            self._ask(request.region, "POST", f"{path}/snapshots", {"name": name})
        except CloudError as error:
            if "already exists" not in error.message:
                raise
        id_ = f"{request.source}/{name}"
        return CloudResource(Kind.SNAPSHOT, id_, request.region, request.tags, name=name)

    def _machine(self, region: str, entry: Mapping[str, Any]) -> Machine | None:
        config = entry.get("config") or {}
        tags = _tags(config)
        if tags is None:
            return None
        state = entry.get("state") or {}
        address = global_address(state.get("network") or {})
        return Machine(
            Kind.MACHINE,
            str(entry["name"]),
            region,
            tags,
            _STATES.get(str(entry.get("status")), ResourceState.PENDING),
            zone="" if entry.get("location") in (None, "none") else str(entry["location"]),
            name=str(entry.get("description") or ""),
            created_s=_seconds(entry.get("created_at")),
            type=config.get(f"{_USER}nephoscope-type") or _type(config),
            image=str(config.get("volatile.base_image", "")),
            private_address=address,
            host="" if entry.get("location") in (None, "none") else str(entry["location"]),
            target=self._target(region, str(entry["name"])),
        )

    def _target(self, region: str, name: str) -> Mapping[str, Any]:
        values = {"kind": "instance", "instance": name, "project": region}
        if self._settings.endpoint:
            values["server"] = self._settings.endpoint
        if self._settings.profile:
            values["remote"] = self._settings.profile
        return values

    def _volume(self, region: str, pool: str, entry: Mapping[str, Any]) -> Iterator[CloudResource]:
        name, _, snapshot = str(entry["name"]).partition("/")
        created = _seconds(entry.get("created_at"))
        tags = _tags(entry.get("config") or {})
        if not snapshot and tags is not None:
            yield CloudResource(Kind.VOLUME, f"{pool}/{name}", region, tags, created_s=created)
        yield from self._snapshot(region, f"{pool}/{name}", {**entry, "name": snapshot})

    def _snapshot(
        self, region: str, source: str, entry: Mapping[str, Any]
    ) -> Iterator[CloudResource]:
        name, created = str(entry["name"]), _seconds(entry.get("created_at"))
        tags = Tags.from_name(name)
        if tags is not None:
            id_ = f"{source}/{name}"
            yield CloudResource(Kind.SNAPSHOT, id_, region, tags, name=name, created_s=created)

    def _set_state(self, machine: CloudResource, action: str) -> None:
        body = {"action": action, "force": True, "timeout": int(_WAIT_S)}
        self._ask(machine.region, "PUT", f"{self._path(machine)}/state", body)

    def _path(self, resource: CloudResource) -> str:
        if resource.kind is Kind.SNAPSHOT:
            source, _, name = resource.id.rpartition("/")
            return f"{self._path_of_source(source)}/snapshots/{name}"
        return self._path_of_source(resource.id)

    def _path_of_source(self, id_: str) -> str:
        pool, slash, name = id_.partition("/")
        return f"/storage-pools/{pool}/volumes/custom/{name}" if slash else f"/instances/{id_}"

    def _pools(self) -> Sequence[str]:
        results = self._ask("default", "GET", "/storage-pools", query={"recursion": "1"})
        return [str(entry["name"]) for entry in results]

    def _known(self, region: str) -> None:
        if region not in self.regions():
            raise CloudError(Cause.UNKNOWN, f"LXD: there is no project '{region}'.")

    def _ask(
        self,
        region: str,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """Returns the `metadata` of an answer, of an operation when it has ended."""
        lxd = Lxd(self._server, region)
        with _translated():
            answer = lxd.ask(method, path, body, query)
            _check(answer)
            if answer.status != 202 or not answer.document.get("operation"):
                return answer.document.get("metadata") or {}
            waiting = f"{answer.document['operation']}/wait?timeout={_WAIT_S:.0f}"
            ended = self._server.request("GET", waiting)
            if ended.status == 404:  # it ended long ago, and is forgotten
                return {}
            _check(ended)
        operation = ended.document.get("metadata") or {}
        if operation.get("status_code", 200) >= 400:
            raise _error(int(operation["status_code"]), str(operation.get("err")))
        return operation


class _NoSuchInstance(CloudError):
    """What was asked for is not there."""


def _check(answer: Answer) -> None:
    if not answer.good:
        raise _error(answer.status, str(answer.document.get("error") or answer.text[:200]))


_WORDS: tuple[tuple[Cause, tuple[str, ...]], ...] = (
    (Cause.QUOTA, ("limit", "quota", "exceed", "maximum")),
    (Cause.CAPACITY, ("no space", "not enough", "insufficient")),
    (Cause.IN_USE, ("in use", "busy", "is running", "still attached")),
)


def _error(status: int, words: str) -> CloudError:
    message = f"LXD: {' '.join(words.split()).rstrip('.')[:300]}."
    if status == 404:
        return _NoSuchInstance(Cause.UNKNOWN, message, "See `lxc list` and `lxc project list`.")
    if status in (401, 403):
        return CloudError(Cause.CREDENTIALS, message, "Check the rights of this client.")
    lower = words.lower()
    cause = next((cause for cause, marks in _WORDS if any(m in lower for m in marks)), None)
    if cause is not None:
        return CloudError(cause, message)
    return CloudError(Cause.UNANSWERED if status >= 500 else Cause.REFUSED, message)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except NotReached as error:
        raise CloudError(
            Cause.CREDENTIALS if "Permission" in str(error) else Cause.UNREACHABLE,
            f"LXD does not answer: {words_of_failure(error)}.",
            "Check that it runs, and that this user may use its socket.",
        ) from error
    except OSError as error:
        words = words_of_failure(error)
        raise CloudError(Cause.UNANSWERED, f"LXD gave no answer: {words}.") from error


def _user(tags: Tags) -> dict[str, str]:
    return {f"{_USER}{key}": value for key, value in tags.as_mapping().items()}


def _tags(config: Mapping[str, str]) -> Tags | None:
    own = {key.removeprefix(_USER): value for key, value in config.items() if key.startswith(_USER)}
    return Tags.from_mapping(own)


def _limits(size: MachineType) -> dict[str, str]:
    """Part of a CPU is an allowance of time in each 100 ms of one CPU."""
    whole = math.ceil(size.vcpus)
    limits = {"limits.cpu": str(whole), "limits.memory": str(size.memory_bytes)}
    if size.vcpus < whole:
        limits["limits.cpu.allowance"] = f"{round(100 * size.vcpus)}ms/100ms"
    return {**limits, f"{_USER}nephoscope-type": size.name}


def _type(config: Mapping[str, str]) -> str:
    cpus, memory = config.get("limits.cpu", ""), config.get("limits.memory", "")
    return size_name(float(cpus), int(memory)) if cpus.isdecimal() and memory.isdecimal() else ""


def _seconds(text: Any) -> float | None:
    """Seconds since the epoch; None for no time, which is year 1 here."""
    with contextlib.suppress(ValueError):
        made = datetime.fromisoformat(str(text)[:19] + "+00:00").timestamp()
        return made if made > 0 else None
    return None
