"""Widths of the columns of a table in a limited room."""

from __future__ import annotations

from collections.abc import Sequence


def column_widths(whole: Sequence[int], least: Sequence[int], room: int) -> list[int] | None:
    """Returns a width for each column, together at most `room`; None where there is no room.

    whole: of the longest cell of each column, least: of what may not be broken. Room beyond the
    least widths goes to the narrowest column that is not whole, so that few columns are wrapped.
    """
    if sum(whole) <= room:
        return list(whole)
    widths = list(least)
    spare = room - sum(widths)
    if spare < 0:
        return None
    for _ in range(spare):
        lacking = [index for index, width in enumerate(widths) if width < whole[index]]
        widths[min(lacking, key=widths.__getitem__)] += 1
    return widths
