"""Statements about the median of some rounds, measured for only as long as they are undecided.

The median of an odd number of rounds lies below a bound exactly if most of them do. As soon as most
of all rounds are below it, or can no longer be, the rest would change nothing: it is left out, and
the verdict is the one that all rounds would have given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def hold_in_most(rounds: int, measure: Callable[[], Sequence[bool]]) -> bool:
    """Returns whether each of some statements is true in most of an odd number of rounds.

    measure: one round; returns of each statement whether it is true in it. That a median lies
    between two values is two statements: it is not below the one and not above the other.
    """
    assert rounds % 2, "the median of an even number of rounds is the value of none of them"
    most = rounds // 2 + 1
    seen: list[Sequence[bool]] = []
    while True:
        seen.append(measure())
        true = [sum(column) for column in zip(*seen, strict=True)]
        if min(true) >= most:
            return True
        if len(seen) - min(true) >= most:
            return False
