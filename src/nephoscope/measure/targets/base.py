"""The records of one trial on a target, and where a target's servers are reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from nephoscope.core.errors import BenchmarkFailed
from nephoscope.core.model import Sample
from nephoscope.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """The last line of a trial that went well (see `Done` in crates/wire).

    started_wall_ns: the machine's wall clock when the measured part began, ns since the epoch.
    elapsed_ns: from then to the end. served: what the far side of a two-sided benchmark counted.
    """

    elapsed_ns: int
    samples: int
    counters: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    started_wall_ns: int | None = None
    served: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetTrial:
    """Result of one trial on a target.

    failure: why there are no numbers; None when `done` is there. Samples of a failed trial are
    kept out: half a trial is no trial. stderr_tail: the last words of the probe, for people.
    before_failure: what a trial that failed had printed until then, to account for what it did.
    """

    samples: tuple[Sample, ...]
    documents: Mapping[str, Any]
    done: Done | None
    failure: BenchmarkFailed | None
    stderr_tail: str = ""
    before_failure: tuple[Sample, ...] = ()


IpVersion = Literal[4, 6]
"""Version of the Internet Protocol."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of a target's servers. bind: its own address, on which they listen.

    address: the one under which the client reaches it; another one behind address translation.
    """

    bind: str
    address: str


@dataclass(frozen=True, slots=True)
class Peer:
    """Address of the far side of a two-sided benchmark, and the token that it expects."""

    address: str
    port: int
    token: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"
