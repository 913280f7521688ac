"""A probe on its way: prepared, told to go, told to stop, read to its end."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nephoscope.core import limits
from nephoscope.core.errors import BenchmarkFailed
from nephoscope.core.reading import jsontext
from nephoscope.measure.targets.base import Peer, TargetTrial
from nephoscope.measure.targets.channels.channel import Program
from nephoscope.measure.targets.channels.child import Ended
from nephoscope.measure.targets.probe.output import Parse

LATER_S = 2.0
"""The probe ends itself at its deadline; ours comes later, for a probe that does not."""

_MORE_TIME = "Give it more time (`timeout`), or smaller parameters."


class Running:
    """A probe that was started on a target: prepared, waiting to be told to go.

    It is told by the control channel of `nephoscope-probe run --control`.
    """

    def __init__(self, program: Program, benchmark: str, parse: Parse) -> None:
        self._program = program
        self._benchmark = benchmark
        self._parse = parse
        self._first_output = b""
        self._ready: dict[str, Any] | None = None
        self._token = ""
        self.last_words = ""

    async def introduce(
        self,
        *,
        serve: bool,
        peer: Peer | None,
        credentials: Mapping[str, str] | None = None,
    ) -> None:
        """Says what may not be seen in a process list, before anything else."""
        if serve:
            self._token = secrets.token_hex(32)
            await self._send(f"token {self._token}")
        elif peer is not None:
            values = {"address": peer.address, "port": peer.port, "token": peer.token}
            await self._send("peer " + json.dumps(values, separators=(",", ":")))
        elif credentials is not None:
            await self._send("credentials " + json.dumps(credentials, separators=(",", ":")))

    async def ready(self, timeout_s: float) -> Mapping[str, Any]:
        """Waits until it is prepared; the content of its `ready` line (a server's address, port).

        Raises BenchmarkFailed when it failed or took longer.
        """
        if self._ready is None:
            try:
                async with asyncio.timeout(timeout_s):
                    line = await self._program.line()
            except TimeoutError:
                await self._program.end()
                raise self._late(f"was not ready after {timeout_s:g} s") from None
            except BaseException:
                # A cancelled wait must not leave its probe behind.
                await self._program.end()
                raise
            self._ready = _ready(line)
            if self._ready is None:
                self._first_output += line or b""
                raise await self._failure()
            if self._token:
                self._ready["token"] = self._token
        return self._ready

    async def go(self, at_ns: int | None = None) -> None:
        """Starts measuring: now, or when the wall clock there (ns since the epoch) is `at_ns`."""
        await self._send("go" if at_ns is None else f"go {at_ns}")

    async def stop(self) -> None:
        """Asks a load or a server to end in order; `result` then has what it counted."""
        await self._send("stop")

    async def result(self, timeout_s: float) -> TargetTrial:
        """Waits for its end; see `Target.run`. It is ended, and a failure, after `timeout_s`."""
        began = time.monotonic()
        try:
            await self.ready(timeout_s + LATER_S)
        except BenchmarkFailed as failure:
            return TargetTrial((), {}, None, failure, self.last_words)
        left_s = max(0.0, timeout_s + LATER_S - (time.monotonic() - began))
        return self._trial(await self._rest(left_s), timeout_s)

    def ended(self) -> bool:
        """Returns whether it has ended already (a background load that died)."""
        return self._program.ended()

    async def end(self) -> None:
        """Ends it at once, whatever it does; nothing it counted is kept. May be called twice."""
        await self._program.end()

    async def _send(self, line: str) -> None:
        try:
            await self._program.send_line(line.encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            # It ended; `ready` or `result` tells why.
            pass
        except BaseException:
            await self._program.end()
            raise

    async def _rest(self, timeout_s: float) -> Any:
        return await self._program.rest(timeout_s, limits.TRIAL_BYTES, limits.TRIAL_LINES)

    async def _failure(self) -> BenchmarkFailed:
        """Why there was no `ready` line."""
        trial = self._trial(await self._rest(LATER_S), LATER_S)
        self.last_words = trial.stderr_tail
        return trial.failure or BenchmarkFailed(
            "bad_output",
            f"{self._benchmark}: the probe measured before it was told to go.",
            "Check NEPHOSCOPE_PROBE: it must be of this package's version.",
        )

    def _trial(self, ended: Ended, timeout_s: float) -> TargetTrial:
        whole = replace(ended, stdout=self._first_output + ended.stdout)
        return trial_of(self._benchmark, whole, timeout_s, self._parse)

    def _late(self, what: str) -> BenchmarkFailed:
        return _late(self._benchmark, what)


def trial_of(benchmark: str, ended: Ended, timeout_s: float, parse: Parse) -> TargetTrial:
    """Returns the trial of a probe that has ended, by what it printed and how it ended."""
    if ended.why == "output":
        failure = BenchmarkFailed(
            "too_much_output",
            f"{benchmark}: a trial printed more than {limits.TRIAL_LINES} lines or "
            f"{limits.TRIAL_BYTES >> 20} MiB.",
            "Take fewer samples a trial.",
        )
        return TargetTrial((), {}, None, failure, ended.stderr_tail)
    # 124 without a line: the probe was deaf to its own deadline until the last alarm.
    if ended.why == "timeout" or (ended.returncode == 124 and b'{"error"' not in ended.stdout):
        failure = _late(benchmark, f"was not done after {timeout_s:g} s")
        printed = parse(ended.stdout, 124, ended.stderr_tail).before_failure
        return TargetTrial((), {}, None, failure, ended.stderr_tail, printed)
    return parse(ended.stdout, ended.returncode, ended.stderr_tail)


def _late(benchmark: str, what: str) -> BenchmarkFailed:
    return BenchmarkFailed("deadline", f"{benchmark}: the trial {what}.", _MORE_TIME)


def _ready(line: bytes | None) -> dict[str, Any] | None:
    """The content of a `ready` line; None for any other."""
    try:
        values = jsontext.parse(line or b"")
    except ValueError:
        return None
    ready = values.get("ready") if isinstance(values, dict) else None
    return dict(ready) if isinstance(ready, dict) else None
