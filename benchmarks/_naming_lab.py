"""The lab, the canaries and the cases of benchmarks/naming.py.

The victim and one neighbour share CPU 0, another neighbour has CPU 1, and all of them reach a far
host through one shaped link and use one disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import _paired

sys.path[:0] = [str(_paired.ROOT / "src")]

from nephoscope import catalog  # noqa: E402
from nephoscope.features.isolation.naming import KERNEL_FLOORS as FLOORS  # noqa: E402
from nephoscope.measure.lab import files  # noqa: E402
from nephoscope.measure.lab.provisioner import LABS  # noqa: E402
from nephoscope.measure.targets.lab import LabTarget  # noqa: E402
from nephoscope.measure.targets.probe.target import Target  # noqa: E402

MS = 1_000_000
PASSES = (False, True, True, False)
"""Quiet, noisy, noisy, quiet."""

CANARIES: Mapping[str, tuple[str, dict[str, Any], bool]] = {
    "loop": ("cpu.gaps", {"duration_ns": 100 * MS, "threshold_ns": 20_000, "events_max": 0}, False),
    "memory": (
        "mem.stream",
        {"threads": 1, "kernels": ["triad"], "types": ["double"], "bytes_per_array": 32 << 20,
         "laps": 1, "passes": 2},
        False,
    ),
    "cache": ("mem.latency", {"lengths": [2 << 20], "pages": ["huge"],
                              "time_per_point_ns": 40 * MS}, False),
    "disk_read": ("disk.io", {"operation": "randread", "duration_ns": 60 * MS,
                              "file_bytes": 16 << 20}, False),
    "disk_write": ("disk.io", {"operation": "randwrite", "duration_ns": 60 * MS,
                               "file_bytes": 16 << 20}, False),
    "fsync": ("disk.sync", {"operations": 20, "duration_ns": 80 * MS}, False),
    "net_send": ("net.throughput", {"direction": "up", "duration_ns": 80 * MS,
                                    "warmup_ns": 60 * MS}, True),
    "net_receive": ("net.throughput", {"direction": "down", "duration_ns": 80 * MS,
                                       "warmup_ns": 60 * MS}, True),
    "packets": ("net.rtt", {"rate_per_s": 1000.0, "duration_ns": 80 * MS,
                            "wait_ns": 60 * MS}, True),
    "switches": ("cpu.switch", {"duration_ns": 60 * MS}, False),
}  # fmt: skip


LOADS: Mapping[str, tuple[str, dict[str, Any], str]] = {
    "cpu": ("load.cpu", {"threads": 1}, "near"),
    "memory": ("load.memory", {"threads": 1}, "other"),
    "cache": ("load.cache", {"threads": 1}, "other"),
    "disk_read": ("load.disk", {"operation": "read"}, "other"),
    "disk_write": ("load.disk", {"operation": "write"}, "other"),
    "fsync": ("load.disk", {"operation": "fsync"}, "other"),
    "net_send": ("load.net", {"direction": "send"}, "other"),
    "net_receive": ("load.net", {"direction": "receive"}, "other"),
    "packets": ("load.packets", {"direction": "send"}, "other"),
    "switches": ("load.switches", {}, "near"),
    "none": ("load.cpu", {"threads": 1, "intensity_ratio": 0.0}, "other"),
}
"""Resource -> load, parameters, host."""


def draw(rng: random.Random, resource: str) -> dict[str, Any]:
    """What is drawn of a case besides its resource."""
    params: dict[str, Any] = {}
    if resource != "none":
        params["intensity_ratio"] = round(rng.uniform(0.5, 1.0), 3)
        params["period_ns"] = rng.choice([5, 10, 20]) * MS
    if resource == "memory":
        params["operation"] = rng.choice(["copy", "read", "write"])
    if resource in ("disk_read", "disk_write"):
        params["record_bytes"] = rng.choice([4, 16, 64, 256]) << 10
        params["order"] = rng.choice(["random", "sequential"])
    if resource in ("net_send", "net_receive"):
        params["protocol"] = rng.choice(["tcp", "udp"])
    if resource in ("cpu", "none"):
        params.pop("period_ns", None)
    return params


@contextlib.asynccontextmanager
async def made(known: catalog.Catalog) -> AsyncIterator[dict[str, LabTarget]]:
    """The lab, up, with a target for each of its hosts."""
    name = f"bename{os.getpid() % 10_000}"
    values = {
        "version": 1,
        "name": name,
        "hosts": {
            "victim": {"cpu": {"cpus": [0]}},
            "near": {"cpu": {"cpus": [0]}},
            "other": {"cpu": {"cpus": [1]}},
            # Beside the victim: on the other CPU every aggressor's work would slow its answers.
            "far": {"cpu": {"cpus": [0]}},
        },
        "network": "10.87.0.0/16",
        "links": {"wan": {"between": ["far", "lan"], "rate": "200Mbit/s"}},
    }
    await LABS.create(files.from_values(values), say=lambda line: None)
    targets = {host: LabTarget(host, name, host) for host in values["hosts"]}  # type: ignore[attr-defined]
    try:
        for target in targets.values():
            await target.open()
        yield targets
    finally:
        for target in targets.values():
            await target.close()
        await LABS.remove(name)


def kernel_counters() -> dict[str, float]:
    """Of the kernel that all hosts of a lab share, as each of them sees it in /proc."""
    vmstat = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    stat = dict(line.split(" ", 1) for line in Path("/proc/stat").read_text().splitlines())
    softnet = Path("/proc/net/softnet_stat").read_text().splitlines()
    disks = [line.split() for line in Path("/proc/diskstats").read_text().splitlines()]
    return {
        "s": time.monotonic(),
        "kernel_reads": 1024.0 * int(vmstat["pgpgin"]),
        "kernel_writes": 1024.0 * int(vmstat["pgpgout"]),
        # Requests to write the disk's cache out; since Linux 5.5, the 16th figure behind the name.
        "kernel_flushes": float(sum(int(disk[18]) for disk in disks if len(disk) > 18)),
        # Of all network namespaces, processor by processor, hexadecimal.
        "kernel_packets": float(sum(int(line.split()[0], 16) for line in softnet)),
        "kernel_switches": float(stat["ctxt"]),
    }


async def canary(targets: Mapping[str, Target], name: str) -> dict[str, float]:
    """The canary's times: what it takes for one unit of its work, above 0; worse is larger."""
    benchmark, params, two_sided = CANARIES[name]
    before = kernel_counters()
    samples = await one_trial(targets, "victim", benchmark, params, two_sided)
    after = kernel_counters()
    values = {sample.metric: sample.value for sample in samples if not sample.count > 1}
    if name == "loop":
        return {
            "cpu": 1 / max(values["cpu_share_ratio"], 1e-3),
            "gaps": 10 + values["gaps_per_s"],
            # While the loop runs the victim itself does none of this.
            **{
                key: FLOORS[key] + (after[key] - before[key]) / (after["s"] - before["s"])
                for key in FLOORS
            },
        }
    if name == "memory":
        return {name: 1 / values["stream_bytes_per_s"]}
    if name == "cache":
        return {name: values["load_latency_ns"]}
    if name in ("disk_read", "disk_write"):
        return {name: 1 / max(values["disk_operations_per_s"], 1.0)}
    if name == "fsync":
        return {name: 1 / max(values["syncs_per_s"], 0.1)}
    if name == "switches":
        return {name: 1 / values["switches_per_s"]}
    if name == "packets":
        seen = [(s.value, s.count) for s in samples if s.metric == "rtt_ns"]
        total = sum(count for _, count in seen)
        return {name: sum(v * c for v, c in seen) / total} if total else {name: 1e9}
    return {name: 1 / max(values["goodput_bytes_per_s"], 1e3)}


async def one_trial(
    targets: Mapping[str, Target],
    where: str,
    benchmark: str,
    params: Mapping[str, Any],
    two_sided: bool,
) -> Sequence[Any]:
    """A trial that has to go well; its samples."""
    server = peer = None
    if two_sided:
        server, peer = await serving(targets, where, benchmark, params)
    try:
        running = await targets[where].start(benchmark, params, 20.0, peer=peer)
        await running.ready(20.0)
        await running.go()
        trial = await running.result(20.0)
    finally:
        if server is not None:
            await server.stop()
            await server.result(5.0)
    if trial.failure is not None:
        raise RuntimeError(f"{benchmark} on {where}: {trial.failure}")
    return trial.samples


async def serving(
    targets: Mapping[str, Target], client: str, benchmark: str, params: Mapping[str, Any]
) -> tuple[Any, Any]:
    """The far side, and what its peer has to know."""
    from nephoscope.measure.targets import session

    far = await session.serve(
        targets["far"], targets[client], benchmark, params, deadline_s=60.0, limit_s=20.0
    )
    return far.running, far.peer


@contextlib.asynccontextmanager
async def injected(
    targets: Mapping[str, Target], spec: catalog.BenchmarkSpec, params: Mapping[str, Any], host: str
) -> AsyncIterator[None]:
    """An aggressor that runs inside the block."""
    server = peer = None
    if spec.two_sided:
        server, peer = await serving(targets, host, spec.id, params)
    running = await targets[host].start(spec.id, params, 60.0, peer=peer)
    await running.ready(30.0)
    await running.go()
    await asyncio.sleep(0.15)
    try:
        yield
        if running.ended():
            raise RuntimeError(f"{spec.id} on {host} ended by itself")
        await running.stop()
        await running.result(10.0)
    finally:
        await running.end()
        if server is not None:
            await server.end()


OWN: Mapping[str, str] = {"cpu": "loop", "none": "loop"}
"""The canary whose loss is the truth of a resource, where it has another name."""


async def case(
    targets: Mapping[str, Target],
    known: catalog.Catalog,
    resource: str,
    params: dict[str, Any],
    checks: int,
) -> dict[str, Any]:
    """One case: its canaries' times, pass by pass, and trials of its resource's own canary.

    checks: trials of the own canary on either side of each boundary of the load. They are no part
    of the passes: what was really lost is told from them alone.
    """
    load, fixed, host = LOADS[resource]
    spec = known.benchmark(load)
    given = {**fixed, **params, "duration_ns": 0}
    own = OWN.get(resource, resource)
    key = "cpu" if own == "loop" else own
    quiet: list[float] = []
    noisy: list[float] = []

    async def one_pass() -> dict[str, float]:
        times: dict[str, float] = {}
        for name in CANARIES:
            times |= await canary(targets, name)
        return times

    async def check(side: list[float]) -> None:
        for _ in range(checks):
            side.append((await canary(targets, own))[key])

    passes = [await one_pass()]
    await check(quiet)
    async with injected(targets, spec, given, host):
        await check(noisy)
        passes += [await one_pass(), await one_pass()]
        await check(noisy)
    await check(quiet)
    passes.append(await one_pass())
    return {
        "resource": resource,
        "load": load,
        "params": given,
        "host": host,
        "passes": passes,
        "own": [quiet, noisy],
    }
