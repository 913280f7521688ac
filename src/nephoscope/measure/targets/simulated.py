"""A simulation as a target: a simulated machine, or a simulated cloud that is asked as one.

The simulator speaks as the probe does, so that all of `Target` holds: started, told to go,
cancelled, read. What differs is what it can be asked, and that its chance is given by the caller.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nephoscope.catalog import ANSWERED, SIMULATED
from nephoscope.catalog.adapters import ADAPTERS
from nephoscope.core.errors import BenchmarkFailed, Lacking
from nephoscope.core.programs import find_simulator
from nephoscope.measure.targets.base import Peer
from nephoscope.measure.targets.local import LocalChannel
from nephoscope.measure.targets.probe.process import Running
from nephoscope.measure.targets.probe.target import Target

SEED = "seed"
"""Taken out of every trial's parameters: it is the chance of the trial, whatever is simulated."""

MOST_WORDS = 50_000
"""Bytes of JSON that go as one argument, of which Linux allows 128 KiB; more goes in a file."""


class SimTarget(Target):
    """Runs the simulator as a child process.

    machine: the scheduler scenario in which cpu.gaps looks. vm: from which of its virtual machines;
    empty where there is one only.
    """

    shares_clock = True

    def __init__(
        self,
        name: str = "sim",
        *,
        machine: Mapping[str, Any] | None = None,
        vm: str = "",
    ) -> None:
        super().__init__(name, LocalChannel(name, probe=find_simulator()))
        self._machine = machine
        self._vm = vm

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
        """See `Target.start`. There are no idle CPUs to watch, and no other side.

        Raises BenchmarkFailed for what is not simulated.
        """
        if serve is not None or peer is not None:
            raise BenchmarkFailed(
                "usage",
                f"{self.name}: {benchmark} has two sides, and nobody is at the other end of a "
                "simulation.",
                "Simulate networks with `nephoscope simulate geo`.",
                2,
            )
        if not benchmark.startswith(SIMULATED) and benchmark not in ANSWERED:
            raise BenchmarkFailed(
                "usage",
                f"{self.name}: {benchmark} cannot be simulated.",
                f"It answers the simulations and {', '.join(ANSWERED)}.",
                2,
            )
        return await super().start(benchmark, params, timeout_s)

    async def tool(self, benchmark: str) -> str:
        """See `Target.tool`; there are none."""
        adapter = ADAPTERS.get(benchmark)
        if adapter is None:
            return ""
        raise Lacking(
            f"{self.name}: {adapter.spec.tool} does not run on a simulated machine.",
            "Measure it on a real one.",
        )

    async def _parameter_words(self, benchmark: str, params: Mapping[str, Any]) -> list[str]:
        own = {name: value for name, value in params.items() if name != SEED}
        words = ["--params", await self._text(own)]
        if params.get(SEED):
            words += ["--seed", str(params[SEED])]
        if self._machine is not None and not benchmark.startswith(SIMULATED):
            words += ["--machine", await self._text(self._machine)]
            words += ["--vm", self._vm] if self._vm else []
        return words

    async def _text(self, values: Mapping[str, Any]) -> str:
        """JSON, or @FILE of it in the work folder; one file for all trials of one content."""
        text = json.dumps(dict(values))
        if len(text) <= MOST_WORDS:
            return text
        digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        file = Path(await self._channel.work()) / f"given-{digest}.json"
        if not file.is_file():
            file.write_text(text, encoding="utf-8")
        return f"@{file}"

    def _reached_by(self) -> Mapping[str, Any]:
        return {"reached": {"by": "simulation"}}
