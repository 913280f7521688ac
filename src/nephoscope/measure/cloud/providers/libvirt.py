"""libvirt: machines of QEMU, KVM or Xen on one host, by libvirt-python.

The profile is libvirt's URI (`qemu:///system`, `qemu+ssh://root@host/system`, `xen:///system`). A
type is written as vCPUs and memory, such as 2x1g. An image is a volume of a storage pool by its
path, over which every machine has a disk of its own, or KERNEL+INITRD, two of them.

Names carry the token, so that a call with the same one finds what it made before. Disks, seeds and
consoles are volumes whose names hold the tags: they outlive their machine, and are found then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import libvirt

from nephoscope.core.records import dataclass
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
from nephoscope.measure.cloud.nocloud import seed
from nephoscope.measure.cloud.provider import (
    Cause,
    CloudError,
    CloudSettings,
    CloudTraits,
    WithoutFirewalls,
)
from nephoscope.measure.cloud.providers import libvirt_xml as xml
from nephoscope.measure.cloud.providers.libvirt_errors import translated

_T = TypeVar("_T")

REGION = "host"
"""The only region: the host of the URI."""
_LARGEST_CONSOLE_BYTES = 1 << 20
_MIB = 1 << 20
_STATES = {
    libvirt.VIR_DOMAIN_RUNNING: ResourceState.READY,
    libvirt.VIR_DOMAIN_BLOCKED: ResourceState.READY,
    libvirt.VIR_DOMAIN_PAUSED: ResourceState.STOPPED,
    libvirt.VIR_DOMAIN_SHUTDOWN: ResourceState.STOPPING,
    libvirt.VIR_DOMAIN_SHUTOFF: ResourceState.STOPPED,
    libvirt.VIR_DOMAIN_CRASHED: ResourceState.FAILED,
    libvirt.VIR_DOMAIN_PMSUSPENDED: ResourceState.STOPPED,
}
ROOT, SEED, CONSOLE, DATA, SNAPSHOT = "root", "seed", "console", "data", "snapshot"
"""What a volume is for: the last word of its name."""


@dataclass(frozen=True, slots=True)
class _Image:
    """A base disk, or a kernel with its first root: volumes of pools, by path."""

    disk: str = ""
    format: str = ""
    size_bytes: int = 0
    kernel: str = ""
    initrd: str = ""


class Libvirt(WithoutFirewalls):
    """See `Provider`."""

    traits: ClassVar[CloudTraits] = CloudTraits(
        kinds=frozenset({Kind.MACHINE, Kind.VOLUME, Kind.SNAPSHOT}),
        actions=frozenset(Action),
        tokens=True,
        per_second=50.0,
        rents=False,
    )

    def __init__(self, settings: CloudSettings) -> None:
        self._uri = settings.endpoint or settings.profile or None
        self._lock = threading.Lock()
        # A call that was left behind may still make what the next one looks for.
        self._creating = threading.Lock()
        self._opened: Any = None

    def _connection(self) -> Any:
        with self._lock:
            if self._opened is None or not self._opened.isAlive():
                self._opened = libvirt.open(self._uri)
            return self._opened

    def _call(self, what: str, call: Callable[[Any], _T]) -> _T:
        return translated(what, lambda: call(self._connection()))

    def account(self) -> Account:
        """See `Provider.account`: the host, with the memory and the CPUs that machines take."""

        def read(host: Any) -> Account:
            _, memory_mib, cpus, *_ = host.getInfo()
            infos = [entry.info() for entry in host.listAllDomains() if entry.isActive()]
            quotas = {
                "vCPUs": (float(sum(info[3] for info in infos)), float(cpus)),
                "memory (MiB)": (sum(info[1] for info in infos) / 1024, float(memory_mib)),
            }
            return Account(str(host.getURI()), str(host.getHostname()), quotas)

        return self._call("reading the host", read)

    def regions(self) -> Sequence[str]:
        """See `Provider.regions`."""
        return (REGION,)

    def zones(self, region: str) -> Sequence[str]:
        """See `Provider.zones`: a host has none."""
        return ()

    def types(self, region: str) -> Sequence[MachineType]:
        """See `Provider.types`: up to what the host has, memory in powers of two."""

        def read(host: Any) -> Sequence[MachineType]:
            _, memory_mib, cpus, *_ = host.getInfo()
            sizes = [size for bits in range(7, 24) if (size := 1 << bits) <= memory_mib]
            return [
                MachineType(xml.type_name(vcpus, size), vcpus, size * _MIB)
                for vcpus in range(1, cpus + 1)
                for size in sizes
            ]

        return self._call("reading the host", read)

    def image(self, region: str, name: str) -> str:
        """See `Provider.image`."""
        self._call(f"reading image {name}", lambda host: _image(host, name))
        return name

    def prices(self, request: MachineRequest) -> MachinePrices | None:
        """See `Provider.prices`: nobody is paid."""
        return None

    def storage_prices(self, region: str, type: str) -> StoragePrices | None:
        """See `Provider.storage_prices`."""
        return None

    def create(self, request: Request) -> Sequence[CloudResource]:
        """See `Provider.create`."""
        if isinstance(request, MachineRequest | VolumeRequest | SnapshotRequest):
            return self._call("making what was asked for", lambda host: self._create(host, request))
        raise CloudError(
            Cause.REFUSED,
            "libvirt: it has no key pairs and no security groups.",
            "Hand keys over in the user data.",
        )

    def _create(
        self, host: Any, request: MachineRequest | VolumeRequest | SnapshotRequest
    ) -> Sequence[CloudResource]:
        with self._creating:
            if isinstance(request, MachineRequest):
                return _machines(host, request)
            if isinstance(request, VolumeRequest):
                return [_data(host, request)]
            return [_copy(host, request)]

    def resources(
        self, region: str, run: str | None = None, kinds: Collection[Kind] | None = None
    ) -> Sequence[CloudResource]:
        """See `Provider.resources`."""
        result = self._call("listing resources", lambda host: [*_listed(host)])
        return [entry for entry in result if run in (None, entry.tags.run)]

    def delete(self, resource: CloudResource) -> None:
        """See `Provider.delete`; a machine's disk, seed and console go with it."""

        def remove(host: Any) -> None:
            if resource.kind is Kind.MACHINE:
                domain = _domain(host, resource.id)
                if domain is not None:
                    _remove(host, domain)
                return
            volume = _volume(host, resource.id)
            if volume is None:
                return
            user = next(
                (entry for entry in host.listAllDomains() if xml.uses(entry, resource.id)), None
            )
            if user is not None:
                raise CloudError(
                    Cause.IN_USE, f"libvirt: {resource.id} is a disk of machine {user.name()}."
                )
            volume.delete()

        self._call(f"removing {resource}", remove)

    def act(self, machine: Machine, action: Action, value: str = "") -> None:
        """See `Provider.act`: a stop is a power-off, and only a stopped machine is resized."""

        def act(host: Any) -> None:
            domain = _known(host, machine.id)
            if action is Action.STOP and domain.isActive():
                domain.destroyFlags(libvirt.VIR_DOMAIN_DESTROY_GRACEFUL)
            elif action is Action.START and not domain.isActive():
                domain.create()
            elif action is Action.REBOOT:
                domain.reset()
            elif action is Action.RESIZE:
                _resize(domain, value)

        self._call(f"{action} of {machine}", act)

    def attach(self, machine: Machine, volume: CloudResource) -> None:
        """See `Provider.attach`."""

        def attach(host: Any) -> None:
            domain = _known(host, machine.id)
            disk = xml.data_disk(volume.id, domain.XMLDesc())
            domain.attachDeviceFlags(disk, _everywhere(domain))

        self._call(f"attaching {volume}", attach)

    def detach(self, volume: CloudResource) -> None:
        """See `Provider.detach`."""

        def detach(host: Any) -> None:
            for domain in host.listAllDomains():
                if xml.uses(domain, volume.id):
                    disk = xml.data_disk(volume.id, domain.XMLDesc())
                    domain.detachDeviceFlags(disk, _everywhere(domain))

        self._call(f"detaching {volume}", detach)

    def console(self, machine: Machine) -> str:
        """See `Provider.console`: of the volume that the machine's serial port writes to."""

        def read(host: Any) -> str:
            path = xml.console_path(_known(host, machine.id).XMLDesc())
            volume = _volume(host, path) if path else None
            return _text(host, volume) if volume is not None else ""

        return self._call(f"reading the console of {machine}", read)

    def extend(self, resource: CloudResource, expires_s: int) -> None:
        """See `Provider.extend`. Volumes keep the names that they have."""

        def extend(host: Any) -> None:
            domain = _known(host, resource.id)
            domain.setMetadata(
                libvirt.VIR_DOMAIN_METADATA_ELEMENT,
                xml.tags_element(replace(resource.tags, expires_s=expires_s)),
                xml.PREFIX,
                xml.NAMESPACE,
                _everywhere(domain),
            )

        if resource.kind is Kind.MACHINE:
            self._call(f"extending {resource}", extend)


def open(settings: CloudSettings) -> Libvirt:
    """Returns a host. Nothing is asked of it yet."""
    # Its errors are raised; this is its second way to say them.
    libvirt.registerErrorHandler(lambda *_: None, None)
    return Libvirt(settings)


def _everywhere(domain: Any) -> int:
    """Flags of a change that holds now and after the next start."""
    live = libvirt.VIR_DOMAIN_AFFECT_LIVE if domain.isActive() else 0
    return int(libvirt.VIR_DOMAIN_AFFECT_CONFIG | live)


def _domain(host: Any, id_: str) -> Any:
    return next((entry for entry in host.listAllDomains() if entry.UUIDString() == id_), None)


def _known(host: Any, id_: str) -> Any:
    domain = _domain(host, id_)
    if domain is None:
        raise CloudError(Cause.UNKNOWN, f"libvirt: no machine {id_}.")
    return domain


def _pools(host: Any) -> list[Any]:
    return list(host.listAllStoragePools(libvirt.VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE))


def _volume(host: Any, path: str) -> Any:
    for pool in _pools(host):
        for volume in pool.listAllVolumes():
            if volume.path() == path:
                return volume
    return None


def _image(host: Any, name: str) -> _Image:
    paths = name.split("+")
    volumes = [_volume(host, path) for path in paths]
    if missing := [path for path, entry in zip(paths, volumes, strict=True) if entry is None]:
        raise CloudError(
            Cause.UNKNOWN,
            f"libvirt: no storage pool has a volume {missing[0]}.",
            "Add its folder with `virsh pool-create-as images dir --target FOLDER`, or refresh it "
            "with `virsh pool-refresh`.",
        )
    if len(paths) == 2:
        return _Image(kernel=paths[0], initrd=paths[1])
    if len(paths) > 2:
        raise CloudError(
            Cause.UNKNOWN, f"libvirt: '{name}' is no image.", "Write DISK or KERNEL+INITRD."
        )
    return _Image(paths[0], xml.format_of(volumes[0].XMLDesc()), int(volumes[0].info()[1]))


def _pool(host: Any, image: _Image) -> Any:
    """The pool of the new disks: that of the image, else the one named default, else the first."""
    pools = _pools(host)
    for pool in pools if image.disk else ():
        if any(entry.path() == image.disk for entry in pool.listAllVolumes()):
            return pool
    named = [pool for pool in pools if pool.name() == "default"]
    if not pools:
        raise CloudError(
            Cause.REFUSED,
            "libvirt: the host has no active storage pool.",
            "Make one with `virsh pool-create-as default dir --target FOLDER`.",
        )
    return (named or pools)[0]


def _network(host: Any, name: str) -> str:
    known = [str(entry.name()) for entry in host.listAllNetworks() if entry.isActive()]
    wanted = name or "default"
    if wanted not in known:
        raise CloudError(
            Cause.UNKNOWN,
            f"libvirt: the host has no active network '{wanted}'.",
            f"It has: {', '.join(known) or 'none'}; `virsh net-start NAME` starts one.",
        )
    return wanted


def _volume_name(tags: Tags, number: int, use: str) -> str:
    return tags.as_name(f"{tags.token}-{number}-{use}")


def _machines(host: Any, request: MachineRequest) -> Sequence[Machine]:
    image = _image(host, request.image)
    network = _network(host, request.network)
    vcpus, memory_mib = xml.parsed_type(request.type)
    pool = _pool(host, image)
    made: list[Machine] = []
    for number in range(_granted(host, request, memory_mib)):
        name = f"{request.name or request.tags.run}-{request.tags.token[:12]}-{number}"
        shape = xml.DomainShape(name, vcpus, memory_mib, request.tags, network)
        try:
            made.append(_made(host, pool, image, request, shape, number))
        except (libvirt.libvirtError, CloudError):
            if len(made) >= request.at_least:
                _remove_volumes(host, request.tags, number)
                return made
            for entry in range(number + 1):
                domain = _named(host, f"{name.rpartition('-')[0]}-{entry}")
                if domain is not None:
                    _remove(host, domain)
                _remove_volumes(host, request.tags, entry)
            raise
    return made


def _granted(host: Any, request: MachineRequest, memory_mib: int) -> int:
    """How many machines fit into the memory that is free, those of this call not counted."""
    own = f"{request.name or request.tags.run}-{request.tags.token[:12]}-"
    running = [
        entry for entry in host.listAllDomains() if entry.isActive() and own not in entry.name()
    ]
    free_mib: int = int(host.getInfo()[1]) - sum(entry.info()[1] for entry in running) // 1024
    if free_mib // memory_mib >= request.at_least:
        return min(request.count, free_mib // memory_mib)
    raise CloudError(
        Cause.CAPACITY,
        f"libvirt: {request.at_least} of {request.type} need "
        f"{request.at_least * memory_mib} MiB, and the host has {max(free_mib, 0)} MiB free.",
        "Take a smaller type, or fewer machines.",
    )


def _made(
    host: Any,
    pool: Any,
    image: _Image,
    request: MachineRequest,
    shape: xml.DomainShape,
    number: int,
) -> Machine:
    domain = _named(host, shape.name)
    if domain is None:
        names = {use: _volume_name(request.tags, number, use) for use in (ROOT, SEED, CONSOLE)}
        paths = {CONSOLE: _ensured(pool, names[CONSOLE], 0).path()}
        size = request.disk_bytes or image.size_bytes
        if size:
            root = _ensured(pool, names[ROOT], size, "qcow2", image.disk, image.format)
            paths[ROOT] = root.path()
        if request.user_data:
            content = seed(request.user_data, shape.name)
            volume = _ensured(pool, names[SEED], len(content))
            _fill(host, volume, content)
            paths[SEED] = volume.path()
        kind, arch = xml.best_kind(host.getCapabilities())
        domain = host.defineXML(xml.domain(kind, arch, shape, paths, image.kernel, image.initrd))
    if not domain.isActive():
        domain.create()
    machine = _machine(domain)
    assert machine is not None, "it was defined with its tags"
    return replace(machine, image=request.image)


def _named(host: Any, name: str) -> Any:
    return next((entry for entry in host.listAllDomains() if entry.name() == name), None)


def _ensured(
    pool: Any, name: str, size: int, format_: str = "raw", base: str = "", base_format: str = ""
) -> Any:
    """A volume of that name, as an interrupted call may have left it, or new."""
    for volume in pool.listAllVolumes():
        if volume.name() == name:
            return volume
    return pool.createXML(xml.volume(name, size, format_, base, base_format))


def _fill(host: Any, volume: Any, content: bytes) -> None:
    if host.getType() == "TEST":
        # Its machines do not run, and its volumes hold nothing.
        return
    stream = host.newStream()
    volume.upload(stream, 0, len(content))
    at = 0
    while at < len(content):
        at += stream.send(content[at : at + (1 << 16)])
    stream.finish()


def _text(host: Any, volume: Any) -> str:
    if host.getType() == "TEST":
        return ""
    size = int(volume.info()[1])
    stream = host.newStream()
    volume.download(stream, max(0, size - _LARGEST_CONSOLE_BYTES), 0)
    parts = []
    while part := stream.recv(1 << 16):
        parts.append(part)
    stream.finish()
    return b"".join(parts).decode(errors="replace")


def _remove(host: Any, domain: Any) -> None:
    paths = xml.own_paths(domain.XMLDesc())
    if domain.isActive():
        domain.destroy()
    domain.undefineFlags(
        libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
    )
    for path in paths:
        volume = _volume(host, path)
        if volume is not None and _use(volume.name()) in (ROOT, SEED, CONSOLE):
            volume.delete()


def _remove_volumes(host: Any, tags: Tags, number: int) -> None:
    names = {_volume_name(tags, number, use) for use in (ROOT, SEED, CONSOLE)}
    for pool in _pools(host):
        for volume in pool.listAllVolumes():
            if volume.name() in names:
                volume.delete()


def _data(host: Any, request: VolumeRequest) -> CloudResource:
    pool, name = _pool(host, _Image()), _volume_name(request.tags, 0, DATA)
    if request.snapshot:
        volume = _copied(host, request.snapshot, name)
    else:
        volume = _ensured(pool, name, request.size_bytes, "qcow2")
    return CloudResource(Kind.VOLUME, str(volume.path()), REGION, request.tags, name=name)


def _copy(host: Any, request: SnapshotRequest) -> CloudResource:
    """A copy of a volume, or of a machine's root disk."""
    domain, source = _domain(host, request.source), request.source
    if domain is not None:
        disks = [path for path in xml.own_paths(domain.XMLDesc()) if _use(path) == ROOT]
        if not disks:
            raise CloudError(Cause.REFUSED, f"libvirt: {domain.name()} has no root disk.")
        source = disks[0]
    name = _volume_name(request.tags, 0, SNAPSHOT)
    volume = _copied(host, source, name)
    return CloudResource(Kind.SNAPSHOT, str(volume.path()), REGION, request.tags, name=name)


def _copied(host: Any, source: str, name: str) -> Any:
    volume = _volume(host, source)
    if volume is None:
        raise CloudError(Cause.UNKNOWN, f"libvirt: no volume {source}.")
    pool = volume.storagePoolLookupByVolume()
    for entry in pool.listAllVolumes():
        if entry.name() == name:
            return entry
    size = int(volume.info()[1])
    return pool.createXMLFrom(xml.volume(name, size, xml.format_of(volume.XMLDesc())), volume)


def _resize(domain: Any, value: str) -> None:
    vcpus, memory_mib = xml.parsed_type(value)
    if domain.isActive():
        raise CloudError(
            Cause.REFUSED, f"libvirt: {domain.name()} runs.", "Stop it before it is resized."
        )
    config = libvirt.VIR_DOMAIN_AFFECT_CONFIG
    domain.setMemoryFlags(memory_mib * 1024, config | libvirt.VIR_DOMAIN_MEM_MAXIMUM)
    domain.setMemoryFlags(memory_mib * 1024, config)
    domain.setVcpusFlags(vcpus, config | libvirt.VIR_DOMAIN_VCPU_MAXIMUM)
    domain.setVcpusFlags(vcpus, config)


def _use(name: str) -> str:
    return str(name).rpartition("-")[2]


def _listed(host: Any) -> Iterator[CloudResource]:
    for domain in host.listAllDomains():
        if machine := _machine(domain):
            yield machine
    for pool in _pools(host):
        for volume in pool.listAllVolumes():
            name = str(volume.name())
            if tags := Tags.from_name(name):
                kind = Kind.SNAPSHOT if _use(name) == SNAPSHOT else Kind.VOLUME
                token = name.split(".", 4)[-1].rsplit("-", 2)[0]
                tags = replace(tags, token=token)
                yield CloudResource(kind, str(volume.path()), REGION, tags, name=name)


def _machine(domain: Any) -> Machine | None:
    """A machine of ours; None for one of another's, or one that goes while it is looked at."""
    try:
        description = domain.XMLDesc()
        tags = xml.tags_of(description)
        if tags is None:
            return None
        state, address = _STATES.get(domain.state()[0], ResourceState.PENDING), ""
        info = domain.info()
        if state is ResourceState.READY:
            address = _address(domain)
        return Machine(
            Kind.MACHINE,
            str(domain.UUIDString()),
            REGION,
            tags,
            state,
            name=str(domain.name()),
            type=xml.type_name(info[3], info[1] // 1024),
            address=address,
            private_address=address,
            problem="its guest crashed" if state is ResourceState.FAILED else "",
        )
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            return None
        raise


def _address(domain: Any) -> str:
    """The IPv4 address that the network's DHCP server has leased, or that the host has seen."""
    for source in (
        libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE,
        libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_ARP,
    ):
        try:
            result = domain.interfaceAddresses(source)
        except libvirt.libvirtError:
            continue
        for interface in result.values():
            for entry in interface["addrs"] or ():
                if entry["type"] == libvirt.VIR_IP_ADDR_TYPE_IPV4:
                    return str(entry["addr"])
    return ""
