"""What every kind of target can do: five verbs, asynchronous, time-limited, cancellable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from nephoscope.errors import BenchmarkFailed
from nephoscope.model import Sample


@dataclass(frozen=True, slots=True)
class Done:
    """The last line of a trial that went well (see `Done` in crates/wire).

    started_wall_ns: the machine's wall clock when the measured part began, ns since the epoch.
    elapsed_ns: from then to the end. served: what the far side of a two-sided benchmark counted.
    """

    elapsed_ns: int
    samples: int
    beside: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    started_wall_ns: int | None = None
    served: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetTrial:
    """What a target brought back from one trial.

    failure: why there are no numbers; None when `done` is there. Samples of a failed trial are
    kept out: half a trial is no trial. stderr_tail: the last words of the probe, for people.
    """

    samples: tuple[Sample, ...]
    documents: Mapping[str, Any]
    done: Done | None
    failure: BenchmarkFailed | None
    stderr_tail: str = ""


IpVersion = Literal[4, 6]
"""Version of the Internet Protocol."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a target's servers are reached. bind: its own address, on which they listen.

    address: the one under which the client reaches it; another one behind address translation.
    """

    bind: str
    address: str


@dataclass(frozen=True, slots=True)
class Peer:
    """Where the far side of a two-sided benchmark listens, and the token that it expects."""

    address: str
    port: int
    token: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


class Running(Protocol):
    """A probe that was started on a target: prepared, waiting to be told to go."""

    async def ready(self, timeout_s: float) -> Mapping[str, Any]:
        """Waits until it is prepared; the content of its `ready` line (a server's address, port).

        Raises BenchmarkFailed when it failed or took longer.
        """

    async def go(self, at_ns: int | None = None) -> None:
        """Starts measuring: now, or when the wall clock there (ns since the epoch) is `at_ns`."""

    async def stop(self) -> None:
        """Asks a load or a server to end in order; `result` then has what it counted."""

    async def result(self, timeout_s: float) -> TargetTrial:
        """Waits for its end; see `Target.run`. It is ended, and a failure, after `timeout_s`."""

    def ended(self) -> bool:
        """Whether it has ended already (a background load that died)."""

    async def end(self) -> None:
        """Ends it at once, whatever it does; nothing it counted is kept. May be called twice."""


class Target(Protocol):
    """A machine that can be measured. Cancelling any verb ends what it started there."""

    name: str

    @property
    def shares_clock(self) -> bool:
        """Whether the wall clock there is the controller's, to the nanosecond; while it is open."""

    async def open(self, timeout_s: float = 30.0) -> Mapping[str, Any]:
        """Makes the target ready and returns its fingerprint (the document of sys.fingerprint).

        Raises Lacking when there is no probe for it, TargetError when its probe is of another
        version than this package's or does not answer.
        """

    async def run(self, benchmark: str, params: Mapping[str, Any], timeout_s: float) -> TargetTrial:
        """One trial. A benchmark that fails or is too slow is a TargetTrial with `failure`.

        Raises TargetError when the target itself is gone. It is `start`, `ready`, `go`, `result`.
        """

    async def start(
        self,
        benchmark: str,
        params: Mapping[str, Any],
        timeout_s: float,
        *,
        serve: str | None = None,
        peer: Peer | None = None,
        gap_meter: bool = False,
    ) -> Running:
        """The verb `run` in steps, for whatever has to begin with, or during, something else.

        serve: be the far side, on this address of the target, for the peer that presents the token
        that `Running.ready` returns under "token". peer: where the far side is. gap_meter: watch a
        CPU that the benchmark leaves free, where there is one.

        Raises BenchmarkFailed for parameters that an adapter's tool cannot be asked.
        """

    async def tool(self, benchmark: str) -> str:
        """Version of the tool there that an adapter drives; '' for a benchmark without one.

        Raises Lacking with the command that installs it when it is not there, or too old.
        """

    def endpoint(self, client: Target, version: IpVersion | None = None) -> Endpoint:
        """Where `client` reaches servers of this target; any version of IP unless one is given.

        Raises TargetError when there is no way.
        """

    async def put(self, source: Path, name: str, timeout_s: float = 60.0) -> str:
        """Copies a file into the target's work folder; returns its path there.

        Raises TargetError. The folder vanishes with `close`, or with the next `open` after a kill.
        """

    async def get(self, name: str, destination: Path, timeout_s: float = 60.0) -> None:
        """Copies a file of the target's work folder here. Raises TargetError."""

    async def close(self) -> None:
        """Ends whatever still runs there and removes the work folder. May be called twice."""
