"""Native counterparts beside the third-party tools: cpu.hash, app.lzma and sys.calls.

`cpu.hash` beside John the Ripper and OpenSSL on one thread, `app.lzma` beside xz on the same text,
`sys.calls` beside `perf bench`, where they are installed. Bounds are those of the
documentation of each benchmark; where a tool does other work, the row has no bound and its page
has the reason.
"""

from __future__ import annotations

import asyncio
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

from nephoscope.adapters import ADAPTERS
from nephoscope.targets import parse as target_of

SECOND_NS = 1_000_000_000
TENTH = (0.9, 1.1)
NONE = (None, None)


@dataclass(frozen=True)
class Side:
    """A benchmark, its parameters, and the figure that is compared."""

    benchmark: str
    metric: str
    params: Mapping[str, Any] = field(default_factory=dict)
    factors: Mapping[str, Any] = field(default_factory=dict)

    @property
    def installed(self) -> bool:
        """Whether the tool is in PATH, or in a folder where its adapter looks."""
        adapter = ADAPTERS[self.benchmark]
        places = (None, *adapter.look.paths)
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


def _call(name: str) -> Side:
    params = {"calls": [name], "duration_ns": SECOND_NS // 5}
    return Side("sys.calls", "call_ns", params, {"call": name})


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
    Pair("getpid (perf)", "ns", _call("getpid"), Side("perf.syscall", "operation_ns"), NONE),
    Pair("pipe (perf)", "ns", _call("pipe"), Side("perf.pipe", "operation_ns"), NONE),
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
    values = [
        sample.value
        for sample in trial.samples
        if sample.metric == side.metric
        and all(sample.factors.get(key) == value for key, value in side.factors.items())
    ]
    if len(values) != 1:
        raise LookupError(f"{len(values)} values of {side.metric} where one was expected")
    return float(values[0])


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
        versions[adapter.spec.tool] = version(adapter.spec.tool, *adapter.look.arguments)
        row = compare(
            pair.name,
            pair.unit,
            lambda side=pair.native: asyncio.run(_measured(side)),
            lambda side=pair.tool: asyncio.run(_measured(side)),
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
