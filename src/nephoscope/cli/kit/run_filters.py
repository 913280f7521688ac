"""Options that select stored runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.cli.kit.options import option, repeated
from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass

if TYPE_CHECKING:
    from nephoscope.store.selection import Selection


@dataclass(frozen=True, slots=True)
class RunFilters:
    """Conditions on stored runs, all of which have to hold."""

    labels: tuple[str, ...] = repeated("--label", "KEY=VALUE", "Only runs with this label.")
    targets: tuple[str, ...] = repeated("--target", "NAME", "Only runs with a target of this name.")
    benchmarks: tuple[str, ...] = repeated("--benchmark", "ID", "Only runs of this benchmark.")
    states: tuple[str, ...] = repeated(
        "--state", "STATE", "Only runs in this state, e.g. finished or killed."
    )
    since: str | None = option(
        "--since", "DATE", "Only runs from this day on, e.g. 2026-06-01 (UTC)."
    )
    until: str | None = option(
        "--until", "DATE", "Only runs up to this day, e.g. 2026-06-30 (UTC)."
    )

    def selection(self) -> Selection:
        """Returns the conditions. Raises UsageError for values that have no meaning."""
        from nephoscope.store import ABANDONED, STATES, selection

        known = (*STATES, *ABANDONED)
        for state in self.states:
            if state not in known:
                from nephoscope.core.reading.sentences import did_you_mean

                raise UsageError(
                    f"--state: there is no state '{state}'{did_you_mean(state, known)}.",
                    f"States: {', '.join(known)}.",
                )
        return selection.Selection(
            labels=selection.labels(self.labels),
            targets=frozenset(self.targets),
            benchmarks=frozenset(self.benchmarks),
            states=frozenset(self.states),
            since_s=selection.day_s("--since", self.since),
            until_s=selection.day_s("--until", self.until),
        )
