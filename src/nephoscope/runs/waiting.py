"""Several things at once: all of them, or the first failure and none of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

Value = TypeVar("Value")


async def all_of(works: Iterable[Awaitable[Value]]) -> list[Value]:
    """What each of the works returns, in their order; the first failure ends the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def to_the_end(work: Awaitable[None]) -> None:
    """Waits for `work` to its end; a cancellation that comes meanwhile is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                break
            cancelled = True
    if not task.cancelled():
        task.result()
    if cancelled:
        raise asyncio.CancelledError
