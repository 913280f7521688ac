"""A target whose verbs are calls of the probe over a channel: local, ssh and lab hosts."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from nephoscope import catalog as catalogue
from nephoscope.catalog import Catalog
from nephoscope.catalog.adapters import ADAPTERS
from nephoscope.core import limits
from nephoscope.core.errors import BenchmarkFailed, TargetError
from nephoscope.core.programs import BUILD_COMMAND, PROBE, STORAGE, STORAGE_COMMAND
from nephoscope.measure.targets.base import Endpoint, IpVersion, Peer, TargetTrial
from nephoscope.measure.targets.channels.channel import Channel, Program
from nephoscope.measure.targets.channels.child import Ended, last_words
from nephoscope.measure.targets.probe import busy_programs, storage
from nephoscope.measure.targets.probe.busy_programs import Reading
from nephoscope.measure.targets.probe.output import Parse, check_version, parse_output
from nephoscope.measure.targets.probe.process import LATER_S, Running
from nephoscope.measure.targets.probe.tools import (
    ASK_S,
    check_server,
    client_job,
    served_by,
    server_job,
    server_search,
    serving_alone,
    version_of,
    wrap,
    wrapped_by,
)

START_S = 60.0
"""A program that has not begun by then, on a busy machine and behind others, never will."""

PROCESSES_S = 30.0
"""Time for a busy machine to list its processes."""

FINGERPRINT = (catalogue.FINGERPRINT, "fingerprint")

DIRECTORY = "directory"
"""Key of the fingerprint: where the target's programs start, and so where relative paths begin."""


class Target:
    """A machine that can be measured over a `Channel`. Cancelling any verb ends what it started.

    shares_clock: whether the wall clock there is the controller's, to the nanosecond.
    """

    shares_clock = False

    def __init__(self, name: str, channel: Channel, *, catalog: Catalog | None = None) -> None:
        self.name = name
        self._channel = channel
        self._catalog = catalog or catalogue.load()
        self._programs: dict[str, str] = {}
        self._running: set[Running] = set()
        self._tools: dict[str, str] = {}
        self._servers: set[str] = set()

    async def open(self, timeout_s: float = 30.0) -> Mapping[str, Any]:
        """Makes the target ready and returns its fingerprint (the document of sys.fingerprint).

        Raises Lacking when there is no probe for it, TargetError when its probe is of another
        version than this package's or does not answer.
        """
        self._programs = {}
        self._tools = {}
        self._servers = set()
        try:
            async with asyncio.timeout(timeout_s):
                await self._channel.open(timeout_s)
                await self._where()
        except TimeoutError as error:
            raise TargetError(
                f"{self.name}: it was not ready for measuring after {timeout_s:g} s.",
                "Check that it is up and reachable.",
            ) from error
        benchmark, metric = FINGERPRINT
        trial = await self.run(benchmark, {}, timeout_s)
        if trial.failure is not None:
            raise TargetError(
                f"{self.name}: no fingerprint: {trial.failure.message}", trial.failure.hint
            )
        document = trial.documents.get(metric, {})
        return {**document, **self._reached_by()} if isinstance(document, dict) else {}

    async def run(self, benchmark: str, params: Mapping[str, Any], timeout_s: float) -> TargetTrial:
        """One trial. A benchmark that fails or is too slow is a TargetTrial with `failure`.

        Raises TargetError when the target itself is gone. It is `start`, `ready`, `go`, `result`.
        """
        try:
            running = await self.start(benchmark, params, timeout_s)
        except BenchmarkFailed as failure:
            return TargetTrial((), {}, None, failure)
        try:
            await running.ready(timeout_s + LATER_S)
        except BenchmarkFailed as failure:
            return TargetTrial((), {}, None, failure, running.last_words)
        await running.go()
        return await running.result(timeout_s)

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
        spec = self._catalog.benchmark(benchmark)
        self._lease(benchmark, params)
        adapter = ADAPTERS.get(benchmark)
        parse: Parse = partial(parse_output, spec)
        if adapter is not None and spec.load:
            # It serves on an address of its own, whoever its clients are.
            serve = str(params.get("address", spec.param("address").default))
            job = server_job(adapter, params)
            parse = serving_alone(adapter, await self.tool(benchmark))
            command = [*wrap(await self._where(), job, timeout_s), "--server"]
        elif adapter is not None and serve is not None:
            job, parse = server_job(adapter, params), served_by(adapter)
            command = [*wrap(await self._where(), job, timeout_s), "--server"]
        elif adapter is not None:
            version = await self.tool(benchmark)
            job, parse = client_job(adapter, params, peer), wrapped_by(adapter, version)
            command = wrap(await self._where(), job, timeout_s)
        else:
            verb = "run" if serve is None else "serve"
            command = [
                await self._where(storage.program(benchmark, params)),
                verb,
                benchmark,
                *await self._parameter_words(benchmark, params),
                "--deadline",
                f"{timeout_s:.3f}",
                "--with-parent",
            ]
        command.append("--control")
        if serve is not None:
            command += ["--bind", serve]
        elif gap_meter:
            command.append("--gap-meter")
        self._running = {running for running in self._running if not running.ended()}
        try:
            # Not the trial's time: that runs from the probe's own start, however slow the way.
            async with asyncio.timeout(START_S):
                program = await self._channel.start(command)
        except TimeoutError as error:
            raise TargetError(
                f"{self.name}: {benchmark} could not be started within {START_S:g} s.",
                "Check that the machine is not overloaded; over ssh at most 7 programs run there "
                "at once.",
            ) from error
        running = Running(program, spec.id, parse)
        self._running.add(running)
        credentials = storage.credentials(benchmark, params)
        await running.introduce(serve=serve is not None, peer=peer, credentials=credentials)
        return running

    def _lease(self, benchmark: str, params: Mapping[str, Any]) -> None:
        """Names what a trial leaves on this machine if it is killed; elsewhere nothing."""

    async def observe(self) -> Program:
        """Starts the probe as an observer of services: a line asks, a line answers.

        The caller ends it. Raises TargetError.
        """
        return await self._channel.start([await self._where(), "observe"])

    async def tool(self, benchmark: str) -> str:
        """Version of the tool there that an adapter drives; '' for a benchmark without one.

        Raises Lacking with the command that installs it when it is not there, or too old.
        """
        adapter = ADAPTERS.get(benchmark)
        if adapter is None:
            return ""
        if benchmark not in self._tools:
            command = wrap(
                await self._where(), adapter.version_command.job(adapter.spec.tool), ASK_S
            )
            program = await self._channel.start(command)
            ended = await program.rest(ASK_S + LATER_S, limits.TRIAL_BYTES, limits.TRIAL_LINES)
            self._tools[benchmark] = version_of(adapter, ended, self.name)
        return self._tools[benchmark]

    async def process_times(self) -> Reading | None:
        """Returns the CPU time of each process that the target shows; None where it shows none.

        Raises TargetError when the target itself is gone.
        """
        program = await self._channel.start(busy_programs.COMMAND)
        ended = await program.rest(PROCESSES_S, limits.TRIAL_BYTES, limits.TRIAL_LINES)
        reading = busy_programs.reading(ended.stdout.decode(errors="replace"), time.monotonic())
        return reading if reading.processes else None

    async def command(self, words: Sequence[str], timeout_s: float = 30.0) -> Ended:
        """Returns how a short program ended there, with its output. Raises TargetError."""
        program = await self._channel.start(words)
        return await program.rest(timeout_s, limits.TRIAL_BYTES, limits.TRIAL_LINES)

    async def require_server(self, benchmark: str) -> None:
        """Raises Lacking, with the command that installs it, when the server of an adapter's tool
        is not there."""
        adapter = ADAPTERS.get(benchmark)
        if adapter is None or adapter.server is None or benchmark in self._servers:
            return
        command = wrap(await self._where(), server_search(adapter), ASK_S)
        program = await self._channel.start(command)
        ended = await program.rest(ASK_S + LATER_S, limits.TRIAL_BYTES, limits.TRIAL_LINES)
        check_server(adapter, ended, self.name)
        self._servers.add(benchmark)

    def endpoint(self, client: Target, version: IpVersion | None = None) -> Endpoint:
        """Returns where `client` reaches servers of this target; any version of IP unless one is
        given.

        Raises TargetError when there is no way.
        """
        over = f" over IPv{version}" if version else ""
        raise TargetError(
            f"{self.name}: {client.name} has no way to it{over} that is known here.",
            "Measure between targets of one lab, or between ssh hosts.",
        )

    async def put(self, source: Path, name: str, timeout_s: float = 60.0) -> str:
        """Copies a file into the target's work folder; returns its path there.

        Raises TargetError. The folder vanishes with `close`, or with the next `open` after a kill.
        """
        relative = self._inside(name)
        async with _copying(self.name, str(source), timeout_s):
            there = f"{await self._channel.work()}/{relative}"
            await self._channel.put(source, there)
        return there

    async def get(self, name: str, destination: Path, timeout_s: float = 60.0) -> None:
        """Copies a file of the target's work folder here. Raises TargetError."""
        relative = self._inside(name)
        async with _copying(self.name, name, timeout_s):
            await self._channel.get(f"{await self._channel.work()}/{relative}", destination)

    async def close(self) -> None:
        """Ends whatever still runs there and removes the work folder. May be called twice."""
        running, self._running = self._running, set()
        try:
            await asyncio.gather(*(probe.end() for probe in running), return_exceptions=True)
        finally:
            await self._channel.close()

    async def _parameter_words(self, benchmark: str, params: Mapping[str, Any]) -> list[str]:
        """The words that give a trial its parameters."""
        return ["--params", json.dumps(dict(params))]

    def _reached_by(self) -> Mapping[str, Any]:
        """Returns what is known of the target besides the probe's document: keys for the
        fingerprint."""
        return {DIRECTORY: self._channel.directory}

    async def _where(self, name: str = PROBE) -> str:
        """Path of a program there; checked to be of this package's version when it is new."""
        if name not in self._programs:
            path = await self._channel.probe(name)
            await self._check(path, STORAGE_COMMAND if name == STORAGE else BUILD_COMMAND)
            self._programs[name] = path
        return self._programs[name]

    async def _check(self, probe: str, build_command: str) -> None:
        program = await self._channel.start([probe, "describe"])
        answer = await program.rest(START_S, limits.TRIAL_BYTES, limits.TRIAL_LINES)
        if answer.returncode != 0 or answer.why:
            prefix = shlex.join(self._channel.prefix)
            raise TargetError(
                f"{self.name}: the probe {probe} does not answer `describe`."
                f"{last_words(answer.stderr_tail)}",
                f"Run `{prefix} true` to see why."
                if prefix
                else f"Build it again: `{build_command}`.",
            )
        check_version(answer.stdout, self._catalog, f"{self.name} ({probe})", build_command)

    def _inside(self, name: str) -> PurePosixPath:
        """A path in the work folder; a name that leads out of it is refused."""
        relative = PurePosixPath(name)
        if relative.is_absolute() or ".." in relative.parts or not relative.parts:
            raise TargetError(
                f"{self.name}: '{name}' is no name inside the work folder.",
                "Use a relative name without '..'.",
            )
        return relative


@asynccontextmanager
async def _copying(target: str, what: str, timeout_s: float) -> AsyncIterator[None]:
    """Turns the ends that a copy can have into a TargetError of one sentence."""
    try:
        async with asyncio.timeout(timeout_s) as limit:
            yield
    except OSError as error:
        if limit.expired():
            raise TargetError(
                f"{target}: copying {what} took more than {timeout_s:g} s.",
                "Check the disk and the way to it.",
            ) from error
        raise TargetError(
            f"{target}: {what} cannot be copied: {error.strerror or error}.",
            "Check the path and the free space.",
        ) from error
