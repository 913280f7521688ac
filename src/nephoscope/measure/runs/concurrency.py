"""The groups of a round, side by side on machines that have no part in one another; those that
disturb nobody, as many at once as there are CPUs.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")

Execute = Callable[[Item], Awaitable[bool]]
"""Executes an item; False when nothing more is to begin."""


async def run_on_free_machines(
    items: Sequence[Item],
    execute: Execute[Item],
    machines: Callable[[Item], frozenset[str]],
    most: int,
) -> bool:
    """Executes each item as soon as every machine that it needs is free; at most so many at once.

    On each machine the order stays that of `items`: one does not overtake one before it that
    waits for the same machine. False when one said that the round ends; those that run then are
    waited for. The first failure ends the others and is raised.
    """
    queues = _Queues([machines(item) for item in items])
    running: dict[asyncio.Task[bool], int] = {}
    is_continuing = True
    try:
        while running or (queues.free and is_continuing):
            while is_continuing and queues.free and len(running) < most:
                number = heapq.heappop(queues.free)
                running[asyncio.ensure_future(execute(items[number]))] = number
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                queues.leave(running.pop(task))
                is_continuing = task.result() and is_continuing
    except BaseException:
        await _cancelled(running)
        raise
    return is_continuing


class _Queues:
    """The items that wait at each machine, in their order. free: a heap of the numbers of those
    that are first at every machine that they need, and have not begun."""

    def __init__(self, needs: Sequence[frozenset[str]]) -> None:
        self._needs = needs
        self._waiting: dict[str, deque[int]] = {}
        for number, machines in enumerate(needs):
            for machine in machines:
                self._waiting.setdefault(machine, deque()).append(number)
        self.free = [number for number in range(len(needs)) if self._is_first(number)]

    def leave(self, number: int) -> None:
        """An item has ended: the next ones at its machines may be free now."""
        for machine in self._needs[number]:
            self._waiting[machine].popleft()
        following = {
            self._waiting[machine][0] for machine in self._needs[number] if self._waiting[machine]
        }
        for first in following:
            if self._is_first(first):
                heapq.heappush(self.free, first)

    def _is_first(self, number: int) -> bool:
        return all(self._waiting[machine][0] == number for machine in self._needs[number])


async def run_in_parallel(items: Sequence[Item], execute: Execute[Item], most: int) -> bool:
    """So many at a time, begun in order. False when one said that nothing more is to begin; those
    that run then are waited for. The first failure ends the others and is raised.
    """
    free, is_continuing = asyncio.Semaphore(most), True

    async def execute_when_free(item: Item) -> None:
        nonlocal is_continuing
        async with free:
            if is_continuing and not await execute(item):
                is_continuing = False

    running = [asyncio.ensure_future(execute_when_free(item)) for item in items]
    try:
        await asyncio.gather(*running)
    except BaseException:
        await _cancelled(running)
        raise
    return is_continuing


async def _cancelled(running: Iterable[asyncio.Task[Any]]) -> None:
    """Ends what still runs, and waits for it."""
    tasks = list(running)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
