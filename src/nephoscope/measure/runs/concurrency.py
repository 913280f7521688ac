"""The groups of a round, side by side on machines that have no part in one another; those that
disturb nobody, as many at once as there are CPUs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")

Execute = Callable[[Item], Awaitable[bool]]
"""Executes an item; False when nothing more is to begin."""


async def run_on_free_machines(
    items: Sequence[Item],
    execute: Execute[Item],
    machines: Callable[[Item], frozenset[str]],
) -> bool:
    """Executes each item as soon as every machine that it needs is free.

    On each machine the order stays that of `items`: one does not overtake one before it that
    waits for the same machine. False when one said that the round ends; those that run then are
    waited for. The first failure ends the others and is raised.
    """
    waiting = list(items)
    running: dict[asyncio.Task[bool], frozenset[str]] = {}
    is_continuing = True
    try:
        while running or (waiting and is_continuing):
            busy_machines = frozenset().union(*running.values())
            for item in list(waiting) if is_continuing else []:
                needs = machines(item)
                if not needs & busy_machines:
                    waiting.remove(item)
                    running[asyncio.ensure_future(execute(item))] = needs
                busy_machines |= needs
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                del running[task]
                is_continuing = task.result() and is_continuing
    except BaseException:
        await _cancelled(running)
        raise
    return is_continuing


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
