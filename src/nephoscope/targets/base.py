"""What every kind of target can do: five verbs, asynchronous, time-limited, cancellable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from nephoscope.errors import BenchmarkFailed
from nephoscope.model import Sample


@dataclass(frozen=True, slots=True)
class Done:
    """The last line of a trial that went well (see `Done` in crates/wire)."""

    elapsed_ns: int
    samples: int
    beside: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


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


class Target(Protocol):
    """A machine that can be measured. Cancelling any verb ends what it started there."""

    name: str
    kind: str

    async def open(self, timeout_s: float = 30.0) -> Mapping[str, Any]:
        """Makes the target ready and returns its fingerprint (the document of sys.fingerprint).

        Raises Lacking when there is no probe for it, TargetError when its probe is of another
        version than this package's or does not answer.
        """

    async def run(self, benchmark: str, params: Mapping[str, Any], timeout_s: float) -> TargetTrial:
        """One trial. A benchmark that fails or is too slow is a TargetTrial with `failure`.

        Raises TargetError when the target itself is gone.
        """

    async def put(self, source: Path, name: str, timeout_s: float = 60.0) -> str:
        """Copies a file into the target's work folder; returns its path there.

        Raises TargetError. The folder vanishes with `close`, or with the next `open` after a kill.
        """

    async def get(self, name: str, destination: Path, timeout_s: float = 60.0) -> None:
        """Copies a file of the target's work folder here. Raises TargetError."""

    async def close(self) -> None:
        """Ends whatever still runs there and removes the work folder. May be called twice."""
