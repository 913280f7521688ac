"""Options that select stored runs, and the runs that meet them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nephoscope.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.store import Store, StoredRun
    from nephoscope.store.selection import Selection

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--label",
        "labels",
        multiple=True,
        metavar="KEY=VALUE",
        help="Only runs with this label; may be repeated.",
    ),
    click.option(
        "--target",
        "targets",
        multiple=True,
        metavar="NAME",
        help="Only runs with a target of this name; may be repeated.",
    ),
    click.option(
        "--benchmark",
        "benchmarks",
        multiple=True,
        metavar="ID",
        help="Only runs of this benchmark; may be repeated.",
    ),
    click.option(
        "--state",
        "states",
        multiple=True,
        metavar="STATE",
        help="Only runs in this state, e.g. finished or killed; may be repeated.",
    ),
    click.option("--since", metavar="DATE", help="Earliest day to list (UTC)."),
    click.option("--until", metavar="DATE", help="Latest day to list (UTC)."),
)


def add_filters(function: Function) -> Function:
    """Adds the options to a command, in this order."""
    return reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), function)


def selected(shelf: Store, **conditions: Any) -> list[StoredRun]:
    """Returns the runs that meet the options' conditions, newest first."""
    wanted = selection_of(**conditions)
    return [run for run in reversed(shelf.runs()) if wanted.matches(run)]


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
    from nephoscope.reading.sentences import did_you_mean
    from nephoscope.store import ABANDONED, STATES, selection

    known = (*STATES, *ABANDONED)
    for state in states:
        if state not in known:
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
