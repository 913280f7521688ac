"""A service as a target: it is in the plan, has a name and results, and runs no program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope.core.errors import BenchmarkFailed
from nephoscope.measure.targets.base import Peer
from nephoscope.measure.targets.local import LocalChannel
from nephoscope.measure.targets.probe.process import Running
from nephoscope.measure.targets.probe.target import Target


class ServiceTarget(Target):
    """Stands for a service that the client of a trial uses. about: what is stored of it."""

    def __init__(self, name: str, about: Mapping[str, str]) -> None:
        super().__init__(name, LocalChannel(name))
        self._about = about

    async def open(self, timeout_s: float = 0.0) -> dict[str, Any]:
        """Returns what the plan says of it: only a client can find out whether it answers."""
        return {"service": dict(self._about), "reached": {"by": "URL"}}

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
        """Raises BenchmarkFailed: see `Target.start`."""
        raise BenchmarkFailed(
            "usage",
            f"{self.name} is a service, so {benchmark} cannot be started on it.",
            "Name the machine that runs it as `client`.",
            2,
        )
