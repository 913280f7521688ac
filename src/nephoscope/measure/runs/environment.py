"""What the targets of a run stand on: nothing of the plan's own, for machines as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nephoscope.core.errors import PlanError
from nephoscope.measure.plans.model import Invalidity
from nephoscope.measure.targets.kinds.record import TargetRecord as Target

if TYPE_CHECKING:
    from nephoscope.measure.cloud.restores import RestoreTimes
    from nephoscope.measure.lab.boot import BootTimes


class Environment:
    """What the targets of a run stand on: without a lab, machines as they are."""

    async def up(self) -> None:
        """Makes it. All or nothing: after a failure or a cancellation nothing is left."""

    def placed(self, target: Target) -> Target:
        """The target with the lab's name filled in."""
        return target

    def accepts(self, target: Target) -> Sequence[Invalidity]:
        """Reasons that make no trial of this target invalid, because the plan itself sets what
        they tell."""
        return ()

    async def apply(self, conditions: Mapping[str, Any]) -> frozenset[str]:
        """Sets conditions (path -> value); returns the hosts that were made anew by it."""
        if conditions:
            raise PlanError(
                f"The plan varies {', '.join(sorted(conditions))} and has no lab.",
                "Give it `lab:` with a topology.",
            )
        return frozenset()

    async def renew(
        self, host: str, level: str, conditions: Mapping[str, Any] | None = None
    ) -> BootTimes | None:
        """Makes a host anew (level instance) or boots it (level boot); None without a boot.

        conditions: to be set first, where they decide what is booted (its platform).
        """
        raise PlanError(
            f"'{host}' cannot be booted from here: only hosts of the plan's own lab can.",
            "Give the plan `lab:`, or leave out `design.nest`.",
        )

    async def restore(
        self, host: str, directory: str, data_bytes: int, limit_s: float
    ) -> RestoreTimes:
        """Copies a volume like the one in a directory as a snapshot, and restores it."""
        raise PlanError(
            f"'{host}' has no volumes that could be restored.",
            "Give a target of kind rented `volumes`.",
        )

    async def down(self) -> None:
        """Removes what `up` made."""
