"""A recording as a target: what the probe answered in a stored run, at the pace of that run.

A trial is started, told to go and read as on a machine, and waits as long as the recorded one took.
Which answer comes depends on the number of the target and on how often it was asked alone.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NoReturn

from nephoscope.core.errors import BenchmarkFailed, TargetError
from nephoscope.core.programs import PROBE
from nephoscope.measure.targets import recording
from nephoscope.measure.targets.base import Peer
from nephoscope.measure.targets.channels.channel import connection_lost
from nephoscope.measure.targets.channels.child import Ended
from nephoscope.measure.targets.local import LocalChannel
from nephoscope.measure.targets.probe.output import parse_output
from nephoscope.measure.targets.probe.process import Running
from nephoscope.measure.targets.probe.target import DIRECTORY, Target
from nephoscope.measure.targets.recording import LOST, RecordedAnswer, Recording
from nephoscope.stats import facts

_FAILED = 3
"""Exit code of the probe after a failure of its benchmark."""


class RecordedTarget(Target):
    """Answers from a recording. source, first, speed: as of `RecordedRecord`. turns: how often it
    was asked what."""

    shares_clock = True

    def __init__(
        self,
        name: str,
        file: str,
        turns: Counter[tuple[str, str]],
        *,
        source: str = "",
        first: int = 0,
        speed: float = 1.0,
    ) -> None:
        super().__init__(name, _NoMachine(name))
        self._file, self._source, self._first, self._speed = file, source, first, speed
        self._recording: Recording | None = None
        self._turns = turns

    async def open(self, timeout_s: float = 30.0) -> Mapping[str, Any]:
        """Returns the fingerprint of the recorded target, without the machine's identity, because
        this is not that machine. Raises UsageError for a file that is no recording."""
        self._recording = recorded = recording.read(self._file)
        names = recorded.targets
        self._source = self._source or names[self._first % len(names)]
        fingerprint = dict(recorded.fingerprints.get(self._source, {}))
        for name in ("identity", DIRECTORY):
            fingerprint.pop(name, None)
        reached = {
            "by": facts.RECORDING,
            "file": self._file,
            "sha256": recorded.digest,
            "run": recorded.run,
            "target": self._source,
            "measured_at": recorded.measured_at,
        }
        return {**fingerprint, "reached": reached}

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
        """See `Target.start`. Raises BenchmarkFailed for what was not recorded, and for the sides
        of a benchmark that has two."""
        if serve is not None or peer is not None:
            raise BenchmarkFailed(
                "usage",
                f"{self.name}: {benchmark} has two sides, and a recording reaches no other.",
                "Replay benchmarks of one side.",
                2,
            )
        spec = self._catalog.benchmark(benchmark)
        full = {param.id: params.get(param.id, param.default) for param in spec.params}
        program = _Program(self.name, self._next(benchmark, full), self._note, self._speed)
        return Running(program, benchmark, partial(parse_output, spec))

    async def tool(self, benchmark: str) -> str:
        """See `Target.tool`; whatever the tool was, its answers are there."""
        return ""

    async def require_server(self, benchmark: str) -> None:
        """See `Target.require_server`; `start` refuses both sides."""

    async def process_times(self) -> None:
        """See `Target.process_times`; a recording has no processes."""

    def _next(self, benchmark: str, params: Mapping[str, Any]) -> RecordedAnswer:
        """Returns the next answer of the source; after the last one the first follows."""
        recorded = self._opened
        key = recording.question(benchmark, params)
        answers = recorded.answers[self._source].get(key)
        if not answers:
            raise BenchmarkFailed(
                "not_recorded",
                f"{self.name}: {self._file} has no trial of {benchmark} with these parameters on "
                f"{self._source}.",
                "Replay with the parameters of the recorded plan.",
                2,
            )
        # Targets with the same source begin at different answers, so that they are no copies.
        number = self._turns[key] + self._first // len(recorded.targets)
        self._turns[key] += 1
        return answers[number % len(answers)]

    @property
    def _opened(self) -> Recording:
        if self._recording is None:
            raise TargetError(f"{self.name}: it is not open.", "Open it first.")
        return self._recording

    @property
    def _note(self) -> str:
        recorded = self._opened
        day = datetime.fromtimestamp(recorded.measured_at, UTC)
        return (
            f"Replayed from a recording of run {recorded.run}, measured on {day:%Y-%m-%d}; no new "
            "measurement."
        )


class _NoMachine(LocalChannel):
    """The channel of a recording: no program can be started."""

    async def probe(self, name: str = PROBE) -> str:
        """See `Channel.probe`."""
        self._refuse()

    async def start(self, command: Sequence[str]) -> NoReturn:
        """See `Channel.start`."""
        self._refuse()

    async def work(self) -> str:
        """See `Channel.work`."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TargetError(
            f"{self.name}: a recording answers, and starts no program.",
            "Name a machine for what is more than a recorded benchmark.",
        )


class _Program:
    """A recorded answer as a `Program`. note: added to the notes of the trial."""

    def __init__(self, where: str, answer: RecordedAnswer, note: str, speed: float) -> None:
        self._where, self._answer, self._note, self._speed = where, answer, note, speed
        self._go = asyncio.Event()
        self._is_ready = self._has_ended = False

    async def send_line(self, line: bytes) -> None:
        """See `Program.send_line`; `go`, at whatever moment, is the only one that counts."""
        if self._has_ended:
            raise BrokenPipeError
        if line.split(b" ")[0].strip() == b"go":
            self._go.set()

    def close_input(self) -> None:
        """See `Program.close_input`."""
        self._has_ended = True

    async def chunk(self) -> bytes:
        """See `Program.chunk`."""
        return b"" if self._is_ready else await self.line() or b""

    async def line(self) -> bytes | None:
        """See `Program.line`: the `ready` line, then nothing before the end."""
        if self._is_ready or self._has_ended:
            return None
        await asyncio.sleep(self._answer.ready_s / self._speed)
        self._is_ready = True
        return b'{"ready":{}}\n'

    async def rest(self, timeout_s: float, max_bytes: int, max_lines: int) -> Ended:
        """See `Program.rest`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._go.wait()
                started_ns = round(datetime.now(UTC).timestamp() * 1e9)
                await asyncio.sleep(self._answer.elapsed_s / self._speed)
        except TimeoutError:
            return Ended(-9, b"", "", "timeout")
        finally:
            self._has_ended = True
        failure = self._answer.failure
        if failure == LOST:
            raise connection_lost(self._where)
        last = dict(self._answer.last)
        if not failure:
            notes = [*last["done"].get("notes", ()), self._note]
            last["done"] = {**last["done"], "notes": notes, "started_wall_ns": started_ns}
        stdout = self._answer.lines + json.dumps(last).encode() + b"\n"
        if len(stdout) > max_bytes or stdout.count(b"\n") > max_lines:
            return Ended(-9, stdout[:max_bytes], "", "output")
        return Ended(_FAILED if failure else 0, stdout, "")

    async def end(self) -> None:
        """See `Program.end`."""
        self._has_ended = True

    def ended(self) -> bool:
        """See `Program.ended`."""
        return self._has_ended
