"""The groups of a round, one after the other, or side by side on machines that have no part in
one another; those that disturb nobody, as many at once as there are CPUs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

from nephoscope.measure.runs.schedule.groups import Group

Execute = Callable[[Group], Awaitable[bool]]
"""Executes a group; False when the round is to end here."""


async def run_in_order(groups: Sequence[Group], execute: Execute) -> bool:
    """In order; False as soon as one says that the round ends."""
    for group in groups:
        if not await execute(group):
            return False
    return True


async def run_on_free_machines(
    groups: Sequence[Group],
    execute: Execute,
    machines: Callable[[Group], frozenset[str]],
) -> bool:
    """Each group as soon as every machine that it needs is free.

    On each machine the order stays that of `groups`: a group does not overtake one before it that
    waits for the same machine. False when one said that the round ends; those that run then are
    waited for. The first failure ends the others and is raised.
    """
    waiting = list(groups)
    running: dict[asyncio.Task[bool], frozenset[str]] = {}
    goes_on = True
    try:
        while running or (waiting and goes_on):
            taken = frozenset().union(*running.values())
            for group in list(waiting) if goes_on else []:
                needs = machines(group)
                if not needs & taken:
                    waiting.remove(group)
                    running[asyncio.ensure_future(execute(group))] = needs
                taken |= needs
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                del running[task]
                goes_on = task.result() and goes_on
    except BaseException:
        await _cancelled(running)
        raise
    return goes_on


Job = Callable[[], Coroutine[Any, Any, bool]]
"""Something to be executed; False when nothing more is to begin."""


async def run_in_parallel(jobs: Sequence[Job], most: int) -> bool:
    """So many at a time, begun in order. False when one said that nothing more is to begin; those
    that run then are waited for. The first failure ends the others and is raised.
    """
    free, goes_on = asyncio.Semaphore(most), True

    async def one(job: Job) -> None:
        nonlocal goes_on
        async with free:
            if goes_on and not await job():
                goes_on = False

    running = [asyncio.ensure_future(one(job)) for job in jobs]
    try:
        await asyncio.gather(*running)
    except BaseException:
        await _cancelled(running)
        raise
    return goes_on


async def _cancelled(running: Iterable[asyncio.Task[Any]]) -> None:
    """Ends what still runs, and waits for it."""
    tasks = list(running)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
