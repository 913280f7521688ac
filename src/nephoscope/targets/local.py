"""The machine that we run on, as a target."""

from __future__ import annotations

from pathlib import Path

from nephoscope.catalog import Catalog
from nephoscope.targets.base import Target
from nephoscope.targets.local_channel import LocalChannel
from nephoscope.targets.probed import ProbeTarget


class LocalTarget(ProbeTarget):
    """Runs the probe as a child process."""

    shares_clock = True

    def __init__(
        self, name: str = "local", *, probe: Path | None = None, catalog: Catalog | None = None
    ) -> None:
        super().__init__(name, LocalChannel(name, probe=probe), catalog=catalog)

    def address(self, toward: Target) -> str:
        """See `Target.address`; only this machine itself has one that is known: loopback."""
        return "127.0.0.1" if isinstance(toward, LocalTarget) else super().address(toward)
