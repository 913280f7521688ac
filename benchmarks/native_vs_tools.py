"""Native counterparts beside the third-party tools: cpu.hash, app.lzma and sys.calls.

`cpu.hash` beside John the Ripper and OpenSSL on one thread, `app.lzma` beside xz on the same text,
`sys.calls` beside `perf bench` and lmbench on one CPU, where they are installed. Bounds are of
the documentation of each benchmark; where a tool does other work, a row has none, and its page
has the reason. Tools of `sys.calls` have batches of a millisecond as well, where they can be set: a
long one has the pauses of a busy machine in its mean.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from _paired import (
    Row,
    arguments,
    compare,
    finish,
    machine,
    parse,
    print_table,
    probe_path,
    version,
)

from nephoscope.catalog.adapters import ADAPTERS
from nephoscope.measure.targets import parse as target_of

SECOND_NS = 1_000_000_000
TENTH = (0.9, 1.1)
NONE = (None, None)


@dataclass(frozen=True)
class Side:
    """A benchmark, its parameters, and the figure that is compared.

    less: factors of the figure that is subtracted. one_cpu: whether all of it runs on one CPU.
    """

    benchmark: str
    metric: str
    params: Mapping[str, Any] = field(default_factory=dict)
    factors: Mapping[str, Any] = field(default_factory=dict)
    less: Mapping[str, Any] | None = None
    one_cpu: bool = False

    @property
    def installed(self) -> bool:
        """Whether the tool is in PATH, or in a folder where its adapter looks."""
        adapter = ADAPTERS[self.benchmark]
        places = (None, *adapter.version_command.paths)
        return any(shutil.which(adapter.spec.tool, path=path) for path in places)


@dataclass(frozen=True)
class Pair:
    """A row of the table."""

    name: str
    unit: str
    native: Side
    tool: Side
    bound: tuple[float | None, float | None] = TENTH


def _hash(algorithm: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"algorithm": algorithm, "threads": 1, "duration_ns": SECOND_NS, **(params or {})}


def _call(name: str, less: str = "") -> Side:
    calls = [name, *([less] if less else [])]
    params = {"calls": calls, "duration_ns": SECOND_NS // 10}
    subtracted = {"call": less} if less else None
    return Side("sys.calls", "call_ns", params, {"call": name}, subtracted, one_cpu=True)


def _perf(name: str, loops: int) -> Side:
    return Side(f"perf.{name}", "operation_ns", {"loops": loops}, one_cpu=True)


def _lmbench(name: str, metric: str = "operation_ns", **params: Any) -> Side:
    # Its own placement: a parent on the CPU of a spinning child never runs under --realtime.
    settings = {"interval_ns": SECOND_NS // 1000, "repetitions": 50, "placement": "one-cpu"}
    return Side(f"lmbench.{name}", metric, {**settings, **params})


def _john(kind: str) -> Side:
    return Side("john", "cpu_guesses_per_s", {"format": kind, "duration_ns": SECOND_NS})


_OPENSSL = {"algorithm": "sha256", "duration_ns": SECOND_NS}
_TEXT = 8 << 20
_LZMA = {"corpus_bytes": _TEXT, "threads": 1, "duration_ns": 0}
_XZ = Side("xz", "compress_bytes_per_s", {"corpus_bytes": _TEXT})

PAIRS = (
    Pair(
        "SHA-256",
        "bytes_per_s",
        Side("cpu.hash", "hash_bytes_per_s", _hash("sha256")),
        Side("openssl", "hash_bytes_per_s", _OPENSSL),
        NONE,
    ),
    *(
        Pair(kind, "per_s", Side("cpu.hash", "hashes_per_s", _hash(kind)), _john(other), NONE)
        for kind, other in (
            ("des-crypt", "descrypt"),
            ("md5-crypt", "md5crypt"),
            ("bcrypt", "bcrypt"),
        )
    ),
    Pair("LZMA", "bytes_per_s", Side("app.lzma", "compress_bytes_per_s", _LZMA), _XZ),
    Pair("getppid (perf)", "ns", _call("getppid"), _perf("syscall", 20_000)),
    Pair("pipe (perf)", "ns", _call("pipe"), _perf("pipe", 20_000)),
    Pair("getppid (lmbench)", "ns", _call("getppid"), _lmbench("syscall")),
    Pair("read (lmbench)", "ns", _call("read"), _lmbench("syscall", call="read")),
    Pair("write (lmbench)", "ns", _call("write"), _lmbench("syscall", call="write")),
    Pair("signal (lmbench)", "ns", _call("signal", "kill"), _lmbench("signal")),
    Pair("switch (lmbench)", "ns", _call("context_switch"), _lmbench("context", "switch_ns")),
    Pair("pipe (lmbench)", "ns", _call("pipe"), _lmbench("pipe", repetitions=1), NONE),
    Pair("fork (lmbench)", "ns", _call("fork"), _lmbench("process"), NONE),
    Pair("page fault (lmbench)", "ns", _call("page_fault"), _lmbench("page_fault"), NONE),
)


async def _measured(side: Side) -> float:
    target = target_of("local").make()
    try:
        await target.open()
        trial = await target.run(side.benchmark, dict(side.params), 120)
    finally:
        await target.close()
    if trial.failure is not None:
        raise RuntimeError(f"{side.benchmark}: {trial.failure}")

    def value_at(factors: Mapping[str, Any]) -> float:
        values = [
            sample.value
            for sample in trial.samples
            if sample.metric == side.metric
            and all(sample.factors.get(key) == value for key, value in factors.items())
        ]
        if len(values) != 1:
            raise LookupError(f"{len(values)} values of {side.metric} where one was expected")
        return float(values[0])

    return value_at(side.factors) - (0.0 if side.less is None else value_at(side.less))


def _measure(side: Side) -> float:
    allowed = os.sched_getaffinity(0)
    if side.one_cpu:
        os.sched_setaffinity(0, {min(allowed)})
    try:
        return asyncio.run(_measured(side))
    finally:
        os.sched_setaffinity(0, allowed)


def main() -> int:
    """Runs the comparisons; 0 when the bounds hold."""
    parser = arguments("Native benchmarks beside third-party tools", rounds=11)
    parser.add_argument("--only", default="", help="names of rows, separated by commas")
    args = parse(parser)
    facts = machine()
    names = [name for name in args.only.split(",") if name]
    rows: list[Row] = []
    versions = {"probe": version(probe_path(), "version")}
    for pair in PAIRS:
        if names and pair.name not in names:
            continue
        adapter = ADAPTERS[pair.tool.benchmark]
        if not pair.tool.installed:
            print(f"{pair.name}: {adapter.spec.tool} is missing: {adapter.spec.install}")
            continue
        path = os.pathsep.join((os.environ["PATH"], *adapter.version_command.paths))
        program = shutil.which(adapter.spec.tool, path=path) or adapter.spec.tool
        versions[adapter.spec.tool] = version(program, *adapter.version_command.arguments)
        row = compare(
            pair.name,
            pair.unit,
            lambda side=pair.native: _measure(side),
            lambda side=pair.tool: _measure(side),
            pair.bound,
            args.rounds,
            args.seed,
        )
        rows.append(row)
    print_table(rows, "tool")
    settings = {"seed": args.seed, "nice": args.nice, "realtime": args.realtime}
    return finish("native-vs-tools", rows, versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
