"""Formats the facts of a fingerprint as rows of name and text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nephoscope.core import units
from nephoscope.report import wording
from nephoscope.stats import facts

Rows = list[tuple[str, str]]


def rows_of(known: Mapping[str, Any]) -> Rows:
    """Returns name and text of every fact; 'unknown' where a machine does not show it."""
    table: tuple[tuple[str, Callable[[Any], str]], ...] = (
        ("CPU", lambda k: facts.text(k, "cpu.model") or ""),
        ("cpuid instruction", lambda k: _cpu(facts.fact(k, "cpu.by_cpuid"), "brand")),
        ("/proc/cpuinfo", lambda k: _cpu(facts.fact(k, "cpu.by_cpuinfo"), "model_name")),
        ("sources agree", _agreement),
        ("Microcode", lambda k: facts.text(k, "cpu.microcode") or ""),
        ("Clock rate", _clock_rate),
        ("Topology", _topology),
        ("Caches", _caches),
        ("Hypervisor", _hypervisor),
        ("Clock source", _clock),
        ("System", lambda k: facts.text(k, "os.pretty_name") or ""),
        ("Kernel", _kernel),
        ("Mitigations", _mitigation_summary),
        ("Memory", _memory),
        ("Huge pages", _huge_pages),
        ("Swap", _swap),
        ("Disks", _disks),
        ("File systems", _mounts),
        ("Working directory", lambda k: facts.text(k, "directory") or ""),
        ("Network interfaces", _ports),
        ("Limits", _limits),
        ("Counters", _counters),
        ("Cloud", _cloud),
    )
    rows = [(name, wording.clean(tell(known))) for name, tell in table]
    return [(name, text or "unknown") for name, text in rows]


_CHANGING = frozenset({"Clock rate", "Memory", "Swap", "File systems", "Working directory"})
"""Rows that differ between two looks at one machine."""


def lasting_rows_of(known: Mapping[str, Any]) -> Rows:
    """Returns `rows_of` without what differs between two looks at one machine."""
    return [row for row in rows_of(known) if row[0] not in _CHANGING]


def _listed(parts: Iterable[str | None], between: str = ", ") -> str:
    """The parts that are known."""
    return between.join(part for part in parts if part)


def _cpu(account: Any, name: str) -> str:
    if not isinstance(account, Mapping):
        return ""
    numbers = [
        f"{word} {value:.0f}"
        for word in ("family", "model", "stepping")
        if (value := facts.number(account, word)) is not None
    ]
    vendor, model = facts.text(account, "vendor"), facts.text(account, name)
    return _listed([vendor, model, ", ".join(numbers)], "; ")


def _agreement(known: Any) -> str:
    agree = facts.fact(known, "cpu.agree")
    if agree is None:
        return f"unknown: {facts.reason(known, 'cpu.agree')}"
    differences = facts.items(known, "cpu.disagreements") or []
    return "yes" if agree else "no: " + "; ".join(str(line) for line in differences)


def _clock_rate(known: Any) -> str:
    now = facts.number(known, "cpu.frequency_hz")
    low, high = (facts.number(known, f"cpu.frequency_{end}_hz") for end in ("min", "max"))
    governor = facts.text(known, "cpu.governor")
    parts = [
        f"{now / 1e9:.2f} GHz at start of run" if now else "",
        f"{low / 1e9:.2f} to {high / 1e9:.2f} GHz" if low and high else "",
        f"governor {governor}" if governor else "",
    ]
    return _listed(parts, "; ")


def _topology(known: Any) -> str:
    online = facts.items(known, "topology.online_cpus")
    allowed = facts.items(known, "topology.allowed_cpus")
    parts = [f"{len(online)} CPUs online" if online else ""]
    if online and allowed and len(allowed) < len(online):
        parts.append(f"{len(allowed)} allowed")
    for name, word in (("sockets", "socket"), ("cores", "core")):
        count = facts.number(known, f"topology.{name}")
        parts.append(wording.plural(int(count), word) if count else "")
    threads = facts.number(known, "topology.threads_per_core")
    per_core = wording.plural(int(threads), "thread") if threads and threads % 1 == 0 else ""
    parts.append(f"{per_core or f'{threads:g} threads'} per core" if threads else "")
    nodes = facts.items(known, "topology.numa_nodes")
    parts.append(wording.plural(len(nodes), "NUMA node") if nodes else "")
    return _listed(parts)


def _caches(known: Any) -> str:
    listed = facts.items(known, "caches.by_sysfs") or facts.items(known, "caches.by_cpuid") or []
    out = []
    for cache in listed:
        level, size = facts.number(cache, "level"), facts.number(cache, "size_bytes")
        if level is None or size is None:
            continue
        kind = facts.text(cache, "kind") or ""
        shared = facts.number(cache, "shared_by")
        by = f", shared by {shared:.0f} CPUs" if shared and shared > 1 else ""
        out.append(f"L{level:.0f} {kind} {wording.bytes_text(size)}{by}")
    return "; ".join(out)


def _hypervisor(known: Any) -> str:
    virtual = facts.is_virtual(known)
    if virtual is False:
        return "none (cpuid reports no hypervisor)"
    name = facts.text(known, "hypervisor.name")
    if name is None:
        return f"unnamed: {facts.reason(known, 'hypervisor.name')}"
    parts = (facts.text(known, f"hypervisor.{part}") for part in ("sys_vendor", "product_name"))
    firmware = _listed(parts, " ")
    return f"{name}; firmware: {firmware}" if firmware else name


def _clock(known: Any) -> str:
    source = facts.text(known, "clock.source")
    if source is None:
        return ""
    offered = [str(word) for word in facts.items(known, "clock.available_sources") or []]
    alternatives = [word for word in offered if word != source]
    return f"{source} (also available: {', '.join(alternatives)})" if alternatives else source


def _kernel(known: Any) -> str:
    parts = [facts.text(known, f"kernel.{part}") for part in ("release", "arch", "version")]
    flags = facts.fact(known, "kernel.boot_flags")
    if isinstance(flags, Mapping) and flags:
        words = (f"{name}={value}" if value else str(name) for name, value in flags.items())
        parts.append("booted with " + " ".join(words))
    return _listed(parts)


def mitigations_of(known: Any) -> Rows:
    """Returns the vulnerabilities of the CPU, each with its state."""
    states = facts.fact(known, "mitigations")
    if not isinstance(states, Mapping):
        return []
    return [
        (wording.clean(name).replace("_", " "), wording.clean(state))
        for name, state in sorted(states.items())
        if state is not None
    ]


def _mitigation_summary(known: Any) -> str:
    states = [state.lower() for _, state in mitigations_of(known)]
    if not states:
        return ""
    kinds = (
        ("vulnerable", "vulnerable"),
        ("mitigation", "mitigated"),
        ("not affected", "not affected"),
    )
    counts = [(sum(s.startswith(start) for s in states), word) for start, word in kinds]
    uncounted = len(states) - sum(count for count, _ in counts)
    counts.append((uncounted, "other"))
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def _memory(known: Any) -> str:
    total, free = (facts.number(known, f"memory.{part}_bytes") for part in ("total", "available"))
    parts = [f"{_bytes(total)} total" if total else "", f"{_bytes(free)} available" if free else ""]
    return _listed(parts)


def _bytes(value: float) -> str:
    return units.format_value(value, "bytes")


def _huge_pages(known: Any) -> str:
    chosen = facts.text(known, "memory.transparent_hugepage")
    parts = [f"transparent: {chosen}" if chosen else ""]
    for pool in facts.items(known, "memory.huge_pages") or []:
        size, total = facts.number(pool, "size_bytes"), facts.number(pool, "total")
        if size and total:
            parts.append(f"{total:.0f} reserved of {wording.bytes_text(size)}")
    return _listed(parts)


def _swap(known: Any) -> str:
    total, free = (facts.number(known, f"memory.swap_{part}_bytes") for part in ("total", "free"))
    if total is None:
        return ""
    if total == 0:
        return "none"
    used = "" if free is None else f", {_bytes(total - free)} used"
    return f"{_bytes(total)}{used}"


def _disks(known: Any) -> str:
    out = []
    for disk in facts.items(known, "disks.devices") or []:
        size, spins = facts.number(disk, "size_bytes"), facts.fact(disk, "rotational")
        parts = [
            _bytes(size) if size else "",
            facts.text(disk, "kind"),
            facts.text(disk, "model"),
            {True: "rotational", False: "not rotational"}.get(spins),
            f"scheduler {facts.text(disk, 'scheduler')}" if facts.text(disk, "scheduler") else "",
        ]
        out.append(f"{facts.text(disk, 'name')}: {_listed(parts)}")
    return "; ".join(out)


def _mounts(known: Any) -> str:
    roles: dict[str, list[str]] = {}
    label: dict[str, str] = {}
    for mount in facts.items(known, "disks.mounts") or []:
        size, free = (facts.number(mount, f"{part}_bytes") for part in ("size", "free"))
        room = f", {_bytes(free)} free of {_bytes(size)}" if size and free is not None else ""
        only = ", read-only" if facts.fact(mount, "read_only") is True else ""
        place, kind = facts.text(mount, "mount_point"), facts.text(mount, "file_system")
        if place:
            roles.setdefault(place, []).append(facts.text(mount, "role") or "?")
            label[place] = f"{kind or '?'}{room}{only}"
    return "; ".join(
        f"{place} ({', '.join(roles[place])}): {text}" for place, text in label.items()
    )


def _ports(known: Any) -> str:
    ports = facts.items(known, "nics.ports")
    if ports is None:
        return ""
    real = [port for port in ports if facts.fact(port, "virtual") is not True]
    label = [_port(port) for port in real]
    if len(real) < len(ports):
        label.append(wording.plural(len(ports) - len(real), "virtual port"))
    return "; ".join(label) or "none except loopback"


def _port(port: Any) -> str:
    speed = facts.number(port, "speed_bits_per_s")
    duplex = facts.text(port, "duplex")
    parts = [
        facts.text(port, "driver") or ("virtual" if facts.fact(port, "virtual") else ""),
        facts.text(port, "state"),
        units.format_value(speed, "bits_per_s") if speed else "speed unknown",
        f"{duplex} duplex" if duplex in ("full", "half") else "",
    ]
    return f"{facts.text(port, 'name')}: {_listed(parts)}"


def _limits(known: Any) -> str:
    version = facts.text(known, "limits.cgroup_version") or "unknown"
    quota = facts.number(known, "limits.cpu_quota_cpus")
    memory = facts.number(known, "limits.memory_limit_bytes")
    return _listed(
        [
            f"cgroup {version}",
            _no_limit(known, "cpu_quota_cpus", "CPU quota")
            if quota is None
            else f"{units.format_number(quota)} CPUs",
            _no_limit(known, "memory_limit_bytes", "memory limit")
            if memory is None
            else f"{_bytes(memory)} of memory",
        ]
    )


def _no_limit(known: Any, fact: str, name: str) -> str:
    reason = facts.reason(known, f"limits.{fact}")
    return f"no {name}" if reason in ("no limit", "") else f"{name} unknown ({reason})"


def _counters(known: Any) -> str:
    if facts.fact(known, "counters") is None:
        return ""
    counters = {"steal": "steal", "pressure": "pressure_cpu", "throttling": "throttling"}
    visible_by_name = {
        name: facts.fact(known, f"counters.{key}") is True for name, key in counters.items()
    }
    seen = wording.joined(name for name, is_shown in visible_by_name.items() if is_shown)
    hidden = wording.joined(name for name, is_shown in visible_by_name.items() if not is_shown)
    return _listed([f"shows {seen}" if seen else "", f"hides {hidden}" if hidden else ""], "; ")


def _cloud(known: Any) -> str:
    if facts.fact(known, "cloud.asked") is not True:
        return "not requested"
    names: Iterable[str] = ("provider", "instance_type", "region", "zone", "image")
    parts = [facts.text(known, f"cloud.{name}") for name in names]
    return _listed(parts) or facts.reason(known, "cloud.provider")


def missing_of(known: Any) -> Rows:
    """Returns the facts that a machine does not show, each with the reason."""
    out = []
    for entry in facts.items(known, "missing") or []:
        name, reason = facts.text(entry, "fact"), facts.text(entry, "reason")
        if name and reason != "no limit" and not name.startswith("cloud."):
            out.append((wording.clean(name), wording.clean(reason or "no reason reported")))
    return out
