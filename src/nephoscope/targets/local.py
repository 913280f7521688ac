"""The machine that we run on, as a target."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from nephoscope import catalog as catalogue
from nephoscope.catalog import Catalog
from nephoscope.errors import BenchmarkFailed, TargetError
from nephoscope.targets.base import TargetTrial
from nephoscope.targets.output import MAX_BYTES, MAX_LINES, parse_output
from nephoscope.targets.probe import check_version, find_probe
from nephoscope.targets.process import GRACE_S, Ended, run_child

FINGERPRINT = ("sys.fingerprint", "fingerprint")

_PREFIX = "nephoscope-work-"
# The probe ends itself at its deadline; ours comes later, for a probe that does not.
_LATER_S = 2.0


class LocalTarget:
    """Runs the probe as a child process."""

    kind = "local"

    def __init__(
        self, name: str = "local", *, probe: Path | None = None, catalog: Catalog | None = None
    ) -> None:
        self.name = name
        self._probe = probe
        self._catalog = catalog or catalogue.load()
        self._work: Path | None = None

    async def open(self, timeout_s: float = 30.0) -> Mapping[str, Any]:
        """See `Target.open`."""
        self._probe = self._probe or find_probe()
        _sweep()
        answer = await self._child("describe", timeout_s=timeout_s)
        if answer.returncode != 0 or answer.why:
            raise TargetError(
                f"{self.name}: the probe {self._probe} does not answer `describe`.",
                "Build it again: `make survey`.",
            )
        check_version(answer.stdout, self._catalog, f"{self.name} ({self._probe})")
        benchmark, metric = FINGERPRINT
        trial = await self.run(benchmark, {}, timeout_s)
        if trial.failure is not None:
            raise TargetError(
                f"{self.name}: no fingerprint: {trial.failure.message}", trial.failure.hint
            )
        document = trial.documents.get(metric, {})
        return document if isinstance(document, dict) else {}

    async def run(self, benchmark: str, params: Mapping[str, Any], timeout_s: float) -> TargetTrial:
        """See `Target.run`."""
        spec = self._catalog.benchmark(benchmark)
        ended = await self._child(
            "run",
            benchmark,
            "--params",
            json.dumps(dict(params)),
            "--deadline",
            f"{timeout_s:.3f}",
            "--with-parent",
            timeout_s=timeout_s + _LATER_S,
        )
        if ended.why == "output":
            return _failed(
                ended,
                "too_much_output",
                f"{benchmark}: a trial printed more than {MAX_LINES} lines or "
                f"{MAX_BYTES >> 20} MiB.",
                "Take fewer samples a trial.",
            )
        # 124 without a line: the probe was deaf to its own deadline until the last alarm.
        if ended.why == "timeout" or (ended.returncode == 124 and b'{"error"' not in ended.stdout):
            return _failed(
                ended,
                "deadline",
                f"{benchmark}: the trial was not done after {timeout_s:g} s.",
                "Give it more time (`timeout`), or smaller parameters.",
            )
        return parse_output(ended.stdout, ended.returncode, spec, ended.stderr_tail)

    async def put(self, source: Path, name: str, timeout_s: float = 60.0) -> str:
        """See `Target.put`."""
        if self._work is None:
            self._work = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        there = self._inside(self._work, name)
        there.parent.mkdir(parents=True, exist_ok=True)
        await self._copy(source, there, timeout_s)
        return str(there)

    async def get(self, name: str, destination: Path, timeout_s: float = 60.0) -> None:
        """See `Target.get`."""
        if self._work is None:
            raise TargetError(f"{self.name}: there is no file '{name}'.", "Put one there first.")
        await self._copy(self._inside(self._work, name), destination, timeout_s)

    async def close(self) -> None:
        """See `Target.close`."""
        if self._work is not None:
            shutil.rmtree(self._work, ignore_errors=True)
            self._work = None

    async def _child(self, *arguments: str, timeout_s: float) -> Ended:
        probe = self._probe or find_probe()
        try:
            return await run_child(
                [str(probe), *arguments],
                timeout_s=timeout_s,
                max_bytes=MAX_BYTES,
                max_lines=MAX_LINES,
            )
        except OSError as error:
            raise TargetError(
                f"{self.name}: the probe {probe} cannot be started: {error.strerror}.",
                "Build it again: `make survey`.",
            ) from error

    def _inside(self, work: Path, name: str) -> Path:
        """A path in the work folder; a name that leads out of it is refused."""
        relative = PurePosixPath(name)
        if relative.is_absolute() or ".." in relative.parts or not relative.parts:
            raise TargetError(
                f"{self.name}: '{name}' is no name inside the work folder.",
                "Use a relative name without '..'.",
            )
        return work / relative

    async def _copy(self, source: Path, destination: Path, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.to_thread(shutil.copyfile, source, destination)
        except TimeoutError as error:
            raise TargetError(
                f"{self.name}: copying {source} took more than {timeout_s:g} s.",
                "Check the disk.",
            ) from error
        except OSError as error:
            raise TargetError(
                f"{self.name}: {source} cannot be copied: {error.strerror or error}.",
                "Check the path and the free space.",
            ) from error


def _failed(ended: Ended, name: str, message: str, hint: str) -> TargetTrial:
    return TargetTrial((), {}, None, BenchmarkFailed(name, message, hint), ended.stderr_tail)


def _sweep() -> None:
    """Removes work folders of processes that were killed before they could."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX).split("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(folder, ignore_errors=True)


__all__ = ["FINGERPRINT", "GRACE_S", "LocalTarget"]
