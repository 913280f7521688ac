"""Processes that analyse for the dashboard, so that its pages stay responsive and its memory small.

A worker takes one request at a time, as a line of JSON on its standard input, and answers with a
line of JSON and the body. It runs at the lowest priority, has a limit on memory, and is killed
where an answer takes too long or nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from nephoscope.core import blas_threads
from nephoscope.core.errors import NephoscopeError
from nephoscope.httpd.responses import Refusal, RenderedResponse

WORKERS = 2
MAX_WAITING = 32
ANSWER_S = 120.0
CACHE_BYTES = 64 << 20
MAX_ANSWER_BYTES = 256 << 20
_LINE_BYTES = 1 << 16
_ENDING_S = 2.0


class Workers:
    """A few worker processes, started when they are needed; and their last answers."""

    def __init__(self, store: Path, count: int = WORKERS) -> None:
        self._store = store
        self._idle: asyncio.LifoQueue[_Worker | None] = asyncio.LifoQueue()
        for _ in range(count):
            self._idle.put_nowait(None)
        self._waiting = 0
        self._answers: OrderedDict[Hashable, RenderedResponse] = OrderedDict()
        self._answers_bytes = 0

    async def answer(
        self, function: str, arguments: Mapping[str, Any], version: Hashable = None
    ) -> RenderedResponse:
        """Returns the answer of a function of `answers.FUNCTIONS`.

        version: of what it reads; an answer of the same version is used again. Raises Refusal where
        too many wait or it takes too long, NephoscopeError where a worker dies.
        """
        key = (function, json.dumps(arguments, sort_keys=True), version)
        if version is not None and key in self._answers:
            self._answers.move_to_end(key)
            return self._answers[key]
        if self._waiting >= MAX_WAITING:
            raise Refusal(503, "Too many analyses wait already.", "Try again in a minute.")
        self._waiting += 1
        try:
            answer = await self._ask(function, arguments)
        finally:
            self._waiting -= 1
        if version is not None and answer.status == 200:
            self._remember(key, answer)
        return answer

    async def close(self) -> None:
        """Ends the workers that are idle; those at work end when nobody waits for them."""
        while not self._idle.empty():
            worker = self._idle.get_nowait()
            if worker is not None:
                await worker.kill()

    async def _ask(self, function: str, arguments: Mapping[str, Any]) -> RenderedResponse:
        worker = await self._idle.get()
        is_usable = False
        try:
            if worker is None or not worker.is_alive:
                worker = await _Worker.start(self._store)
            async with asyncio.timeout(ANSWER_S):
                answer = await worker.ask(function, arguments)
            is_usable = True
            return answer
        except TimeoutError:
            raise Refusal(
                504, f"The analysis took longer than {ANSWER_S:g} s.", "Use the command line."
            ) from None
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            code = 0 if worker is None else await worker.ended()
            why = (
                "was killed; it may need more memory"
                if code < 0
                else f"ended with exit code {code}; the server's log has its errors"
            )
            raise NephoscopeError(f"The analysis {why}.", "Use the command line.") from error
        finally:
            try:
                if worker is not None and not is_usable:
                    # Also where the client left: what it asked for is nobody's any more.
                    await asyncio.shield(worker.kill())
            finally:
                self._idle.put_nowait(worker if is_usable else None)

    def _remember(self, key: Hashable, answer: RenderedResponse) -> None:
        self._answers[key] = answer
        self._answers_bytes += len(answer.body)
        while self._answers_bytes > CACHE_BYTES:
            _, oldest = self._answers.popitem(last=False)
            self._answers_bytes -= len(oldest.body)


class _Worker:
    """One worker process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, store: Path) -> _Worker:
        return cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "nephoscope.serve.worker", str(store)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env={blas_threads.VARIABLE: "1", **os.environ},
                # Ctrl-C on a terminal is for the server, which ends its workers itself.
                start_new_session=True,
                limit=_LINE_BYTES,
            )
        )

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, function: str, arguments: Mapping[str, Any]) -> RenderedResponse:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({"function": function, "arguments": arguments})
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()
        head = json.loads(await self._process.stdout.readline())
        if not 0 <= head["bytes"] <= MAX_ANSWER_BYTES:
            raise ValueError("the answer is too large")
        body = await self._process.stdout.readexactly(head["bytes"])
        return RenderedResponse(head["status"], body, head["content_type"], head["headers"])

    async def ended(self) -> int:
        """Returns the exit code of a process that ends by itself; 0 where it does not."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ENDING_S):
                return await self._process.wait()
        return 0

    async def kill(self) -> None:
        if self.is_alive:
            self._process.kill()
        await self._process.wait()
