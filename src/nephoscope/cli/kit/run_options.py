"""Options of commands that make a plan, run it and print their own text of its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options
from nephoscope.core.records import dataclass

if TYPE_CHECKING:
    from nephoscope.core.model import RunResult
    from nephoscope.measure.plans import Plan


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How the plan of a command is run, and where its result goes."""

    seed: int | None = options.SEED
    budget: float | None = options.BUDGET
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    as_json: bool = options.JSON
    dry_run: bool = options.DRY_RUN

    def carry_out(self, plan: Plan, text_of: Callable[[RunResult], str]) -> int:
        """Runs the plan in a new run and prints the result, or previews it; returns the exit
        code."""
        from nephoscope.cli.kit import measuring
        from nephoscope.store import Store

        return measuring.run_or_preview(
            plan,
            Store(self.store),
            as_json=self.as_json,
            fresh=True,
            dry_run=self.dry_run,
            lab_for="",
            text_of=text_of,
        )
