"""Starts runs for requests, where the server was started with `--allow-runs`.

A request names a plan in the folder of `--data`, or a survey; it never sends one, because a plan is
a program. The run is a process of its own that goes on when the server ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from pathlib import Path

from nephoscope.core.errors import RunFailed, UsageError
from nephoscope.httpd.responses import Refusal
from nephoscope.serve.queries import file_of

START_S = 60.0
"""Seconds within which a run says its id."""
MAX_LINE_BYTES = 1 << 16
SURVEYS = ("quick", "standard", "full")

_STARTED = re.compile(r"(?:Run|Resuming run) (\d{8}-\d{6}-\S+)")


class Launcher:
    """Starts one run at a time."""

    def __init__(self, store: Path, data: Path | None) -> None:
        self._store = store
        self._data = data
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def start(self, plan: str | None, survey: str | None) -> str:
        """Returns the id of the new run of a plan's file, or of a survey's extent.

        Raises UsageError for neither or both, UnknownName for a plan that is not there, Refusal
        during another run, and RunFailed with what the command printed.
        """
        words = self._words(plan, survey)
        async with self._starting:  # a second request could come before the process is known
            if self._process is not None and self._process.returncode is None:
                raise Refusal(
                    409, "A run is in progress already.", "Wait until it ends, or stop it."
                )
            self._process = process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "nephoscope", *words, f"--store={self._store}"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=MAX_LINE_BYTES,
            )
        assert process.stderr is not None
        try:
            async with asyncio.timeout(START_S):
                run_id = await _id_of(process.stderr)
        except (TimeoutError, ValueError):
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            raise RunFailed(f"The run did not begin within {START_S:g} s.") from None
        # A pipe that nobody reads would stop the run once it is full.
        self._reader = asyncio.create_task(_drain(process.stderr))
        return run_id

    def _words(self, plan: str | None, survey: str | None) -> list[str]:
        if (plan is None) == (survey is None):
            raise UsageError("A run is of a plan or of a survey.", "Name one of `plan`, `survey`.")
        if plan is not None:
            return ["run", "--fresh", str(file_of(plan, self._data))]
        if survey is None or survey not in SURVEYS:
            raise UsageError(
                f"There is no survey '{str(survey)[:80]}'.", f"Use {', '.join(SURVEYS)}."
            )
        return ["survey", "--fresh", *([] if survey == "standard" else [f"--{survey}"])]


async def _id_of(stream: asyncio.StreamReader) -> str:
    lines: list[str] = []
    while line := await stream.readline():
        text = line.decode("utf-8", "replace").strip()
        match = _STARTED.match(text)
        if match:
            return match[1].rstrip(".")
        lines = [*lines[-4:], text.removeprefix("nephoscope: ")]
    raise RunFailed(" ".join(lines) or "The run ended without a word.")


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(MAX_LINE_BYTES):
        pass
