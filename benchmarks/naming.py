"""Names injected resources from a victim's canaries, and writes down how often it is right.

A lab of this machine: the victim and one neighbour share CPU 0, another neighbour has CPU 1, and
all of them reach a far host through one shaped link and use one disk. A case is one aggressor at a
drawn intensity and, where there is a choice, with drawn parameters; canaries of 50 to 100 ms run
quiet, noisy, noisy, quiet. `record` measures drawn cases, `learn` makes the references of
some, `judge` names others, of another seed, without looking at what was injected, and writes
docs/concepts/naming-accuracy.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import json
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
from nephoscope.analysis import naming  # noqa: E402
from nephoscope.analysis.naming_references import REFERENCES  # noqa: E402
from nephoscope.analysis.proportions import wilson  # noqa: E402
from nephoscope.errors import NephoscopeError  # noqa: E402
from nephoscope.lab import bringup, files  # noqa: E402
from nephoscope.targets import Target  # noqa: E402
from nephoscope.targets.lab import LabTarget  # noqa: E402

PAGE = _paired.ROOT / "docs" / "concepts" / "naming-accuracy.md"
MODULE = _paired.ROOT / "src" / "nephoscope" / "analysis" / "naming_references.py"
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


def loads(known: catalog.Catalog) -> dict[str, tuple[str, dict[str, Any], str]]:
    """Resource -> load, parameters, host.

    Where the catalogue lacks a load, a benchmark that takes the same resource stands in for it; a
    recorded case says which program it was.
    """
    table: dict[str, tuple[str, dict[str, Any], str]] = {
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
    return {
        name: one if one[0] in known.benchmarks else STAND_INS[name]
        for name, one in table.items()
        if one[0] in known.benchmarks or name in STAND_INS
    }


STAND_INS: Mapping[str, tuple[str, dict[str, Any], str]] = {
    "net_send": (
        "net.throughput",
        {"protocol": "udp", "direction": "up", "rate_bits_per_s": 190e6},
        "other",
    ),
    "net_receive": (
        "net.throughput",
        {"protocol": "udp", "direction": "down", "rate_bits_per_s": 190e6},
        "other",
    ),
    "packets": (
        "net.throughput",
        {"protocol": "udp", "direction": "up", "rate_bits_per_s": 60e6, "packet_bytes": 64},
        "other",
    ),
    "switches": ("net.loopback", {"part": ["round_trip"], "pin": "same"}, "near"),
}


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
    await bringup.up(files.from_values(values), say=lambda line: None)
    targets = {host: LabTarget(host, name, host) for host in values["hosts"]}  # type: ignore[attr-defined]
    try:
        for target in targets.values():
            await target.open()
        yield targets
    finally:
        for target in targets.values():
            await target.close()
        await bringup.down(name)


FLOORS: Mapping[str, float] = {"kernel_reads": 1e6, "kernel_writes": 1e6, "kernel_switches": 2e3}
"""What an idle kernel does a second; added, so that nothing is compared with nothing."""


def kernel_counters() -> dict[str, float]:
    """Of the kernel that all hosts of a lab share, as each of them sees it in /proc."""
    vmstat = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    stat = dict(line.split(" ", 1) for line in Path("/proc/stat").read_text().splitlines())
    return {
        "s": time.monotonic(),
        "kernel_reads": 1024.0 * int(vmstat["pgpgin"]),
        "kernel_writes": 1024.0 * int(vmstat["pgpgout"]),
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
    from nephoscope.targets import Peer

    far = targets["far"]
    address = far.address(targets[client])
    server = await far.start(benchmark, params, 60.0, serve=address)
    ready = await server.ready(20.0)
    return server, Peer(address, int(ready["port"]), str(ready["token"]))


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
        if spec.load:
            await running.stop()
            await running.result(10.0)
    finally:
        await running.end()
        if server is not None:
            await server.end()


async def case(
    targets: Mapping[str, Target], known: catalog.Catalog, resource: str, params: dict[str, Any]
) -> dict[str, Any]:
    """One case: its canaries' times, pass by pass."""
    load, fixed, host = loads(known)[resource]
    spec = known.benchmark(load)
    allowed = {param.id for param in spec.params}
    # A stand-in has no end of its own either, but for its time limit.
    endless = 0 if spec.load else 30_000 * MS
    given = {**fixed, **{k: v for k, v in params.items() if k in allowed}, "duration_ns": endless}
    if "rate_bits_per_s" in fixed:
        given["rate_bits_per_s"] = fixed["rate_bits_per_s"] * params["intensity_ratio"]

    async def one_pass() -> dict[str, float]:
        times: dict[str, float] = {}
        for name, (benchmark, _, _) in CANARIES.items():
            if benchmark in known.benchmarks:
                times |= await canary(targets, name)
        return times

    passes = [await one_pass()]
    async with injected(targets, spec, given, host):
        passes += [await one_pass(), await one_pass()]
    passes.append(await one_pass())
    return {"resource": resource, "load": load, "params": given, "host": host, "passes": passes}


async def record(
    known: catalog.Catalog,
    count: int,
    seed: int,
    limit_s: float,
    keep: Path | None = None,
    resources: Sequence[str] = (),
) -> list[Any]:
    """That many cases, every resource equally often, in drawn order, until the time is over.

    keep: file to which each is added as soon as it is measured. resources: only these, else all.
    """
    rng = random.Random(seed)
    names = [name for name in loads(known) if not resources or name in resources]
    wanted = [names[n % len(names)] for n in range(count)]
    rng.shuffle(wanted)
    out = []
    began = time.monotonic()
    async with made(known) as targets:
        for number, resource in enumerate(wanted):
            if time.monotonic() - began > limit_s:
                break
            params = draw(rng, resource)
            try:
                found = await case(targets, known, resource, params)
            except (RuntimeError, NephoscopeError) as error:
                # A case that could not be measured is no case: it is said, and not judged.
                print(f"{number + 1}/{count} {resource}: left out: {error}", file=sys.stderr)
                continue
            out.append({"seed": seed, **found})
            if keep is not None:
                with keep.open("a") as file:
                    file.write(json.dumps(out[-1]) + "\n")
            effects = effects_of(out[-1])
            told = " ".join(f"{n}{one.value:+.2f}" for n, one in effects.items())
            print(f"{number + 1}/{count} {resource}: {told}", file=sys.stderr)
    return out


def effects_of(one: Mapping[str, Any]) -> dict[str, naming.Effect]:
    """The effects of a recorded case, by canary."""
    out = {}
    for name in one["passes"][0]:
        sides = [
            [p[name] for p, noisy in zip(one["passes"], PASSES, strict=True) if noisy is side]
            for side in (False, True)
        ]
        found = naming.effect(*sides)
        if found is not None:
            out[name] = found
    return out


FELT = 0.1
"""ln of the factor from which a victim has felt its resource's load: 10 %, twice the spread of the
quietest canaries here."""


def references_of(cases: Sequence[Mapping[str, Any]]) -> list[naming.Reference]:
    """What calibration cases teach: those whose own victim felt something, and those of nothing.

    What its own victim does not feel has no signature; kept, it would give noise a name.
    """
    found = [
        naming.Reference(
            one["resource"], {n: round(e.shrunk, 3) for n, e in effects_of(one).items()}
        )
        for one in cases
    ]
    return [
        one
        for one in found
        if one.resource == naming.NONE or one.effects.get(one.resource, 0.0) >= FELT
    ]


def judge(
    cases: Sequence[Mapping[str, Any]], references: Sequence[naming.Reference]
) -> list[tuple[str, str]]:
    """What was injected and what it was named, case by case."""
    return [(one["resource"], naming.name(effects_of(one), references).word) for one in cases]


def learn(cases: Sequence[Mapping[str, Any]]) -> str:
    """The module of references, as text."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    seeds = sorted({one["seed"] for one in cases})
    lines = [
        f'"""Signatures of known aggressors, measured on {date} (benchmarks/naming.py, seed '
        f"{', '.join(map(str, seeds))}).",
        "",
        "Each is one aggressor at a drawn intensity: ln(time noisy / time quiet) of every canary.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from nephoscope.analysis.naming import Reference",
        "",
        "REFERENCES: tuple[Reference, ...] = (",
    ]
    for one in sorted(references_of(cases), key=lambda one: one.resource):
        lines += [f"    Reference({one.resource!r}, {dict(one.effects)!r}),"]
    return "\n".join([*lines, ")", ""])


def page(cases: Sequence[Mapping[str, Any]], told: Sequence[tuple[str, str]]) -> str:
    """The page of the docs: the confusion matrix, what was injected, and how."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    right = sum(a == b for a, b in told)
    share = wilson(right, len(told))
    names = [name for name in [*naming.CANARIES, "none"] if any(a == name for a, _ in told)]
    words = [*names, *sorted({b for _, b in told} - set(names))]
    facts = _paired.machine()
    rows = [
        f"| {a} | " + " | ".join(str(sum(t == (a, b) for t in told) or "") for b in words) + " |"
        for a in names
    ]
    programs = {one["resource"]: one for one in cases}
    hosts = {"near": "the victim's own CPU", "other": "another CPU of the same machine"}
    injected_rows = [
        f"| {name} | `{programs[name]['load']}` | {hosts[programs[name]['host']]} | {SEEN[name]} |"
        for name in names
    ]
    seeds = ", ".join(str(seed) for seed in sorted({one["seed"] for one in cases}))
    return "\n".join(
        [
            "# How often a resource is named rightly",
            "",
            f"Measured on {date} by `benchmarks/naming.py` (seed {seeds}): "
            f"{right} of {len(told)} injected cases were named rightly, "
            f"{100 * share.value:.1f} % [{100 * (share.low or 0):.1f}, "
            f"{100 * (share.high or 1):.1f}] (Wilson, 95 %). *Unclear* counts as wrong.",
            f"The machine: {facts['cpu']}, {facts['cpus']} CPUs, Linux {facts['kernel']}.",
            "",
            "Rows: what was injected. Columns: what it was named.",
            "",
            "| | " + " | ".join(words) + " |",
            "|---" * (len(words) + 1) + "|",
            *rows,
            "",
            "## What was injected, and where it can be seen at all",
            "A case is one program at an intensity drawn from 50 to 100 %, with drawn parameters. "
            "The namer sees only what the victim's canaries lost.",
            "",
            "| Resource | Program | Placed on | It can be seen where |",
            "|---|---|---|---|",
            *injected_rows,
            "",
            "The references were measured with other seeds, on no trial that is named here. They "
            "hold for this machine; on another one, and where fewer canaries are measured, expect "
            "*unclear* more often. Two resources that are taken at once are not told apart.",
            "",
        ]
    )


SEEN: Mapping[str, str] = {
    "cpu": "on the same CPU or, behind a hypervisor, the same physical one",
    "memory": "under the same memory controller; another CPU will do",
    "cache": "on CPUs that share the last-level cache",
    "disk_read": "on the same disk",
    "disk_write": "on the same disk",
    "fsync": "on the same disk or journal",
    "net_send": "on the same link, in this direction",
    "net_receive": "on the same link, in this direction",
    "packets": "on the same link or packet-processing CPU",
    "switches": "on the same CPU",
    "none": "nowhere: it does nothing",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["record", "learn", "judge"])
    parser.add_argument("--file", type=Path, required=True, help="recorded cases (JSON lines)")
    parser.add_argument("--count", type=int, default=33)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds")
    parser.add_argument("--write", action="store_true", help="write the references, or the page")
    args = parser.parse_args()
    if args.verb == "record":
        found = asyncio.run(record(catalog.load(), args.count, args.seed, args.limit, args.file))
        return 0 if found else 1
    cases = [json.loads(line) for line in args.file.read_text().splitlines()]
    if args.verb == "learn":
        text = learn(cases)
        if args.write:
            MODULE.write_text(text)
        else:
            print(text)
        return 0
    told = judge(cases, REFERENCES)
    right = sum(a == b for a, b in told)
    print(f"{right} of {len(told)} right")
    for number, (a, b) in enumerate(told):
        if a != b:
            print(f"  case {number}: {a} named {b}")
    if args.write:
        PAGE.write_text(page(cases, told))
    return 0 if right / len(told) >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
