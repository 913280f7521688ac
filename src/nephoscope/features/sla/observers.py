"""Observers: targets that probe services, each over one connection that is kept.

An observer that is lost reports its probes as unknown until it answers again; it is opened again
with waits that grow to a limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nephoscope.core.errors import Lacking, NephoscopeError, TargetError
from nephoscope.core.records import dataclass
from nephoscope.features.sla.probes import ProbeOutcome, answer_of, request_of
from nephoscope.measure.targets.channels.channel import Program
from nephoscope.measure.targets.kinds.record import TargetRecord
from nephoscope.measure.targets.probe.target import Target

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
"""Waits before a lost target is opened again; each is twice the one before."""
_SILENCE_S = 10.0
"""Time after a probe's timeout within which its answer comes, unless the target is lost."""
_LATEST_NS = 1_000_000_000
"""Time between an observer's order and its probe from which the event tells nothing."""
_OPEN_S, _CLOSE_S = 60.0, 20.0
_OUTPUT_LINES, _OUTPUT_BYTES = 1000, 1 << 20


@dataclass(frozen=True, slots=True)
class Seen:
    """An outcome, and the bound of when its probe began: at most way_ns after it was ordered."""

    outcome: ProbeOutcome
    way_ns: int = 0


class ObserverSession:
    """Requests to the program on a target and its answers, which come in any order.

    why: reason for its end; empty while it lasts.
    """

    def __init__(self, program: Program) -> None:
        self.why = ""
        self._program = program
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[tuple[ProbeOutcome, int] | None]] = {}
        self._sending = asyncio.Lock()
        self._over = asyncio.Event()
        self._reading = asyncio.ensure_future(self._read())

    async def ask(self, request: Mapping[str, Any], limit_s: float) -> Seen | None:
        """Returns the answer to a request; None where the session is over."""
        if self.why:
            return None
        number = next(self._numbers)
        future: asyncio.Future[tuple[ProbeOutcome, int] | None] = asyncio.Future()
        self._waiting[number] = future
        line = json.dumps({"id": number, **request}).encode() + b"\n"
        try:
            async with asyncio.timeout(limit_s):
                async with self._sending:
                    sent_ns = time.monotonic_ns()
                    await self._program.send_line(line)
                answer = await future
        except (BrokenPipeError, ConnectionResetError):
            self._end("the connection to its probe was lost.")
            answer = None
        except TimeoutError:
            self._end("it does not answer.")
            answer = None
        finally:
            del self._waiting[number]
        if answer is None:
            return None
        outcome, received_ns = answer
        return Seen(outcome, max(0, received_ns - sent_ns - outcome.held_ns))

    async def ended(self) -> str:
        """Waits until the session is over; returns why it is."""
        await self._over.wait()
        return self.why

    async def close(self) -> None:
        """Ends the program in order: its input ends, and it kills the scripts that still run."""
        self._reading.cancel()
        await asyncio.wait({self._reading})
        self._program.close_input()
        await self._program.rest(_CLOSE_S, _OUTPUT_BYTES, _OUTPUT_LINES)

    async def _read(self) -> None:
        """Hands out answers until there are no more."""
        why = "its probe has ended."
        try:
            while (line := await self._program.line()) is not None:
                number, outcome = answer_of(line)
                future = self._waiting.get(number)
                if future is not None and not future.done():
                    future.set_result((outcome, time.monotonic_ns()))
        except TargetError as error:
            why = error.message
        except ValueError as error:
            why = f"its probe sent an invalid response: {error}."
        finally:
            self._end(why)

    def _end(self, why: str) -> None:
        self.why = self.why or why
        self._over.set()
        for future in self._waiting.values():
            if not future.done():
                future.set_result(None)


class ServiceObserver:
    """A target that probes services. name: in the events. say: prints a line for the user."""

    def __init__(self, name: str, record: TargetRecord, say: Callable[[str], None]) -> None:
        self.name = name
        self.losses = 0
        self._record = record
        self._say = say
        self._target: Target | None = None
        self._session: ObserverSession | None = None
        self._why = "it was not reached yet."

    async def open(self, addresses: Sequence[str], *, patient: bool) -> None:
        """Opens the target and checks that it can probe these addresses.

        Raises Lacking where it cannot, TargetError where it cannot be reached; patient: that is
        reported instead, and `keep` tries again.
        """
        try:
            await self._connect()
        except NephoscopeError as error:
            if not patient:
                raise
            self._report(error.message)
            return
        session = self._session
        assert session is not None
        for address in addresses:
            request = {"check": True, "timeout_ms": 0, "service": request_of(address)}
            seen = await session.ask(request, _OPEN_S)
            if seen is None:
                raise TargetError(f"{self.name}: {session.why}", "Check the target.")
            if seen.outcome.ok is None:
                raise Lacking(f"{self.name}: {seen.outcome.reason}", seen.outcome.hint)

    async def keep(self) -> None:
        """Keeps the connection until it is cancelled."""
        wait_s = FIRST_WAIT_S
        while True:
            if self._session is not None:
                began_s = time.monotonic()
                why = await self._session.ended()
                self._report(why)
                await self.close()
                if time.monotonic() - began_s > LONGEST_WAIT_S:
                    wait_s = FIRST_WAIT_S
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
            try:
                await self._connect()
            except (NephoscopeError, OSError) as error:
                self._why = getattr(error, "message", str(error))
            else:
                self._say(f"{self.name}: it answers again.")

    async def probe(self, address: str, timeout_s: float) -> Seen:
        """Returns what the target sees of a service; unknown where it is lost or late."""
        session = self._session
        why = self._why
        seen = None
        if session is not None:
            request = {"timeout_ms": round(timeout_s * 1e3), "service": request_of(address)}
            seen = await session.ask(request, timeout_s + _SILENCE_S)
            why = session.why
        if seen is None:
            why = why.removeprefix(f"{self.name}: ")
            return Seen(ProbeOutcome(None, reason=f"the observer is lost: {why}"))
        if seen.way_ns > _LATEST_NS:
            late_s = seen.way_ns / 1e9
            return Seen(ProbeOutcome(None, reason=f"the observer was up to {late_s:.1f} s late"))
        return seen

    async def close(self) -> None:
        """Ends what runs on the target. May be called twice."""
        session, self._session = self._session, None
        target, self._target = self._target, None
        if target is None:
            return
        # A target that is gone cannot be closed, and that is no reason to end.
        with contextlib.suppress(TimeoutError, OSError, NephoscopeError):
            async with asyncio.timeout(_CLOSE_S):
                if session is not None:
                    await session.close()
        with contextlib.suppress(TimeoutError, OSError, NephoscopeError):
            async with asyncio.timeout(_CLOSE_S):
                await target.close()

    async def _connect(self) -> None:
        target = self._record.make()
        self._target = target
        try:
            await target.open()
            self._session = ObserverSession(await target.observe())
        except BaseException:
            await self.close()
            raise

    def _report(self, why: str) -> None:
        self.losses += 1
        self._why = why.removeprefix(f"{self.name}: ")
        # The sentences of a target begin with its name.
        name = "" if self._why.startswith(self.name) else f"{self.name}: "
        self._say(f"{name}{self._why} Its events are unknown until it answers again.")
