"""Counts the steps of long work, for a line that shows how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

Step = TypeVar("Step")

Listener = Callable[[str, int, int], None]
"""Takes what is done, the number of finished steps, and that of all."""

_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Calls the listener at each step of this process's work until `ignore`."""
    _listeners.append(listener)


def ignore(listener: Listener) -> None:
    """Ends what `listen` began."""
    if listener in _listeners:
        _listeners.remove(listener)


def counted(steps: Sequence[Step], what: str) -> Iterator[Step]:
    """Yields the steps, each of which counts when the next one is asked for. what: noun phrase,
    such as 'Reading runs'."""
    return counted_of(steps, what, len(steps))


def counted_of(steps: Iterable[Step], what: str, total: int) -> Iterator[Step]:
    """Yields steps of which the number is known, as `counted` does."""
    for number, step in enumerate(steps):
        for listener in tuple(_listeners):
            listener(what, number, total)
        yield step
