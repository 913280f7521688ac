"""Options that select stored runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from nephoscope.cli.kit.options import add_options, option, repeated
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.store.selection import Selection

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS = (
    repeated("--label labels", "KEY=VALUE", "Only runs with this label."),
    repeated("--target targets", "NAME", "Only runs with a target of this name."),
    repeated("--benchmark benchmarks", "ID", "Only runs of this benchmark."),
    repeated("--state states", "STATE", "Only runs in this state, e.g. finished or killed."),
    option("--since", "DATE", "Only runs from this day on, e.g. 2026-06-01 (UTC)."),
    option("--until", "DATE", "Only runs up to this day, e.g. 2026-06-30 (UTC)."),
)


def add_filters(function: Function) -> Function:
    """Adds the options to a command, in this order."""
    return add_options(function, _OPTIONS)


def selection_of(
    *,
    labels: Sequence[str],
    targets: Sequence[str],
    benchmarks: Sequence[str],
    states: Sequence[str],
    since: str | None,
    until: str | None,
) -> Selection:
    """Returns the options' conditions. Raises UsageError for values that have no meaning."""
    from nephoscope.store import ABANDONED, STATES, selection

    known = (*STATES, *ABANDONED)
    for state in states:
        if state not in known:
            from nephoscope.core.reading.sentences import did_you_mean

            raise UsageError(
                f"--state: there is no state '{state}'{did_you_mean(state, known)}.",
                f"States: {', '.join(known)}.",
            )
    return selection.Selection(
        labels=selection.labels(labels),
        targets=frozenset(targets),
        benchmarks=frozenset(benchmarks),
        states=frozenset(states),
        since_s=selection.day_s("--since", since),
        until_s=selection.day_s("--until", until),
    )
