"""Records of a census: counts and speeds that go in, types and expectations that come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nephoscope.analysis.compare import estimate_json
from nephoscope.census.analysis import Expected, Machines, Share, Speed
from nephoscope.model import Better
from nephoscope.results import names

UNKNOWN_TYPE = "unknown type"

IDENTITY = (
    "A machine is one cloud instance (hash of its identifier) or, without cloud "
    "metadata, one machine identifier. Each machine counts once, with the CPU model, "
    "zone and hour (UTC) of its first measurement."
)


@dataclass(frozen=True, slots=True)
class Count:
    """So many machines of a model; zone '' and hour None where they are not known.

    machines: None where a model is told without a number. share: as printed, of a published table.
    clock_hz: as told. source: file and line, table, or ''. notes: of the source.
    """

    instance_type: str
    model: str
    machines: int | None
    zone: str = ""
    hour: int | None = None
    clock_hz: float | None = None
    source: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """Trial values of one metric at one setting: model -> machine -> run -> values."""

    instance_type: str
    benchmark: str
    metric: str
    factors: Mapping[str, Any]
    better: Better
    values: Mapping[str, Machines]


@dataclass(frozen=True, slots=True)
class Told:
    """A speed that a source gives as a ratio, with an interval or without."""

    instance_type: str
    model: str
    benchmark: str
    speed: float
    low: float | None = None
    high: float | None = None
    n: int = 0
    source: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Shares within a zone or an hour."""

    name: str
    machines: int
    models: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark's speeds of the models of a type, fastest first, and what to expect of it.

    source: 'measured' or where the ratios were read. refused: why there is no expectation.
    """

    benchmark: str
    metric: str
    factors: Mapping[str, Any]
    source: str
    speeds: tuple[Speed, ...]
    expected: Expected | None
    refused: str = ""

    @property
    def label(self) -> str:
        """Its name in a sentence."""
        return (
            names.label(self.benchmark, self.metric, self.factors)
            if self.metric
            else self.benchmark
        )


@dataclass(frozen=True, slots=True)
class Kind:
    """One instance type. clocks: model -> the clock that was told, Hz. uncounted: models that a
    source names without a number. unseen_at_most: most that all unseen models may have together.
    """

    name: str
    machines: int
    models: tuple[Share, ...]
    zones: tuple[Group, ...]
    hours: tuple[Group, ...]
    benches: tuple[Bench, ...]
    clocks: Mapping[str, float] = field(default_factory=dict)
    uncounted: tuple[str, ...] = ()
    unseen_at_most: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Census:
    """Every type, the most machines first. runs: how many stored runs were read. sources: files
    and tables. flags: what does not fit together. left_out: what was not counted, and why. notes:
    what the sources say of their own rows.
    """

    kinds: tuple[Kind, ...]
    confidence: float
    runs: int = 0
    sources: tuple[str, ...] = ()
    identity: str = ""
    flags: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def machines(self) -> int:
        """How many were counted in all."""
        return sum(kind.machines for kind in self.kinds)

    def to_json(self) -> dict[str, Any]:
        """The `--json` output (contracts/census.schema.json)."""
        return {
            "confidence": self.confidence,
            "machines": self.machines,
            "runs": self.runs,
            "sources": list(self.sources),
            "identity": self.identity or None,
            "types": [_kind_json(kind) for kind in self.kinds],
            "flags": list(self.flags),
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }


def _share_json(one: Share) -> dict[str, Any]:
    return {"model": one.model, "machines": one.count, "share": estimate_json(one.share)}


def _group_json(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "machines": group.machines,
        "models": [_share_json(one) for one in group.models],
    }


def _bench_json(bench: Bench) -> dict[str, Any]:
    expected = bench.expected
    return {
        "benchmark": bench.benchmark,
        "metric": bench.metric or None,
        "factors": dict(bench.factors),
        "source": bench.source,
        "speeds": [
            {
                "model": one.model,
                "ratio": estimate_json(one.ratio),
                "unit": one.unit or None,
                "machines": one.machines,
                "runs": one.runs,
                "trials": one.trials,
                "note": one.note,
            }
            for one in bench.speeds
        ],
        "expected": None
        if expected is None
        else {
            "mean": estimate_json(expected.mean),
            "chances": [
                {
                    "at_least": one.at_least,
                    "models": list(one.models),
                    "share": estimate_json(one.share),
                }
                for one in expected.chances
            ],
            "left_out": list(expected.left_out),
        },
        "refused": bench.refused or None,
    }


def _kind_json(kind: Kind) -> dict[str, Any]:
    return {
        "instance_type": kind.name,
        "machines": kind.machines,
        "models": [
            {**_share_json(one), "clock_hz": kind.clocks.get(one.model)} for one in kind.models
        ],
        "uncounted": [
            {"model": model, "clock_hz": kind.clocks.get(model)} for model in kind.uncounted
        ],
        "unseen_at_most": kind.unseen_at_most,
        "zones": [_group_json(group) for group in kind.zones],
        "hours": [_group_json(group) for group in kind.hours],
        "benchmarks": [_bench_json(bench) for bench in kind.benches],
        "notes": list(kind.notes),
    }
