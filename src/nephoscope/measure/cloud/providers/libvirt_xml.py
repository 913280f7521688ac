"""libvirt's documents: what is written into them, and what is read from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.model import Tags
from nephoscope.measure.cloud.provider import Cause, CloudError

PREFIX, NAMESPACE = "nephoscope", "urn:nephoscope:rental"
_TYPE = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,5})([mg])")
_BEST = ("kvm", "xen", "qemu", "test")


@dataclass(frozen=True, slots=True)
class DomainShape:
    """A machine as its document describes it."""

    name: str
    vcpus: int
    memory_mib: int
    tags: Tags
    network: str


def type_name(vcpus: int, memory_mib: int) -> str:
    """Returns the name of a type, such as 2x1g or 1x256m."""
    whole, rest = divmod(memory_mib, 1024)
    return f"{vcpus}x{memory_mib}m" if rest else f"{vcpus}x{whole}g"


def parsed_type(name: str) -> tuple[int, int]:
    """Returns vCPUs and MiB of memory of a type. Raises CloudError when it is none."""
    match = _TYPE.fullmatch(name)
    if match is None:
        raise CloudError(
            Cause.UNKNOWN,
            f"libvirt: '{name}' is no type.",
            "Write vCPUs and memory, such as 2x1g or 1x512m.",
        )
    return int(match[1]), int(match[2]) * (1024 if match[3] == "g" else 1)


def best_kind(capabilities: str) -> tuple[str, str]:
    """Returns the domains' type and the architecture: by KVM where the host has it."""
    root = ElementTree.fromstring(capabilities)
    arch = root.findtext("./host/cpu/arch") or ""
    guests = [entry for entry in root.iter("guest") if entry.findtext("os_type") == "hvm"]
    offered = {
        (str(entry.get("type")), str(of.get("name")))
        for guest in guests
        for of in guest.iter("arch")
        for entry in of.iter("domain")
    }
    own = sorted(
        (pair for pair in offered if pair[0] in _BEST),
        key=lambda pair: (_BEST.index(pair[0]), pair[1] != arch),
    )
    if not own:
        raise CloudError(Cause.REFUSED, "libvirt: the host runs no fully virtualised machines.")
    return own[0]


def _under(parent: Element, within: str, text: str = "", /, **attributes: str) -> Element:
    """Adds an element below others of that path."""
    *above, last = within.split("/")
    for name in above:
        parent = SubElement(parent, name)
    made = SubElement(parent, last, attributes)
    made.text = text or None
    return made


def tags_element(tags: Tags) -> str:
    """Returns the element that holds the tags in a machine's metadata."""
    element = Element("rental")
    for key, value in tags.as_mapping().items():
        SubElement(element, "tag", {"key": key, "value": value})
    return ElementTree.tostring(element, encoding="unicode")


def tags_of(description: str) -> Tags | None:
    """Returns the tags in a machine's document; None when it has none of ours."""
    match = ElementTree.fromstring(description).find(f"./metadata/{{{NAMESPACE}}}rental")
    if match is None:
        return None
    pairs = {entry.get("key", ""): entry.get("value", "") for entry in match}
    return Tags.from_mapping(pairs)


def domain(
    kind: str,
    arch: str,
    shape: DomainShape,
    paths: Mapping[str, str],
    kernel: str = "",
    initrd: str = "",
) -> str:
    """Returns a machine's document. paths: of its volumes `root`, `seed` and `console`."""
    root = Element("domain", {"type": kind})
    _under(root, "name", shape.name)
    ElementTree.register_namespace(PREFIX, NAMESPACE)
    rental = SubElement(SubElement(root, "metadata"), f"{{{NAMESPACE}}}rental")
    for key, value in shape.tags.as_mapping().items():
        SubElement(rental, f"{{{NAMESPACE}}}tag", {"key": key, "value": value})
    _under(root, "memory", str(shape.memory_mib), unit="MiB")
    _under(root, "vcpu", str(shape.vcpus))
    system = SubElement(root, "os")
    _under(system, "type", "hvm", arch=arch)
    if kernel:
        _under(system, "kernel", kernel)
        _under(system, "initrd", initrd)
        _under(system, "cmdline", "console=ttyS0 quiet panic=-1")
    else:
        _under(system, "boot", dev="hd")
    features = SubElement(root, "features")
    SubElement(features, "acpi")
    _under(root, "on_poweroff", "destroy")
    _under(root, "on_crash", "destroy")
    devices = SubElement(root, "devices")
    bus, letters = ("xen", "xvd") if kind == "xen" else ("virtio", "vd")
    for letter, use, format_ in (("a", "root", "qcow2"), ("b", "seed", "raw")):
        if use in paths:
            _disk(devices, paths[use], format_, f"{letters}{letter}", bus)
    interface = _under(devices, "interface", type="network")
    _under(interface, "source", network=shape.network)
    if kind != "xen":
        _under(interface, "model", type="virtio")
        random = _under(devices, "rng", model="virtio")
        _under(random, "backend", "/dev/urandom", model="random")
    serial = _under(devices, "serial", type="file")
    _under(serial, "source", path=paths["console"], append="on")
    _under(serial, "target", port="0")
    return ElementTree.tostring(root, encoding="unicode")


def _disk(devices: Element, path: str, format_: str, target: str, bus: str) -> Element:
    disk = _under(devices, "disk", type="file", device="disk")
    _under(disk, "driver", name="qemu", type=format_)
    _under(disk, "source", file=path)
    _under(disk, "target", dev=target, bus=bus)
    return disk


def data_disk(path: str, description: str) -> str:
    """Returns the device of a volume in a machine of that description: the one under which it is
    attached, else under the first free name."""
    used: dict[str, str] = {}
    for disk in ElementTree.fromstring(description).iterfind("./devices/disk"):
        source, place = disk.find("source"), disk.find("target")
        if place is not None:
            file = "" if source is None else source.get("file", "")
            used[place.get("dev", "")] = file
    names = [f"vd{letter}" for letter in "fghijklmnopqrst"]
    name = next((name for name in names if used.get(name) == path), "")
    name = name or next(name for name in names if name not in used)
    devices = Element("devices")
    return ElementTree.tostring(_disk(devices, path, "qcow2", name, "virtio"), encoding="unicode")


def volume(name: str, size: int, format_: str, base: str = "", base_format: str = "") -> str:
    """Returns a volume's document. base: path of the volume that it stands on."""
    root = Element("volume")
    _under(root, "name", name)
    _under(root, "capacity", str(size), unit="bytes")
    _under(root, "allocation", "0", unit="bytes")
    _under(root, "target/format", type=format_)
    if base:
        below = SubElement(root, "backingStore")
        _under(below, "path", base)
        _under(below, "format", type=base_format)
    return ElementTree.tostring(root, encoding="unicode")


def format_of(description: str) -> str:
    """Returns the format in a volume's document."""
    match = ElementTree.fromstring(description).find("./target/format")
    return str(match.get("type", "raw")) if match is not None else "raw"


def own_paths(description: str) -> list[str]:
    """Returns the paths of a machine's disks and of its console."""
    devices = ElementTree.fromstring(description).find("devices")
    if devices is None:
        return []
    disks = [entry.get("file", "") for entry in devices.findall("./disk/source")]
    return [*filter(None, disks), *filter(None, [console_path(description)])]


def console_path(description: str) -> str:
    """Returns the path of a machine's console; '' when it writes to no file."""
    match = ElementTree.fromstring(description).find("./devices/serial/source")
    return match.get("path", "") if match is not None else ""


def uses(domain: Any, path: str) -> bool:
    """Returns whether a volume is a disk or the console of a machine."""
    return path in own_paths(domain.XMLDesc())
