"""Waiting for work that must come to its end before anything is removed again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


async def uncancelled(work: Awaitable[_Result]) -> _Result:
    """Waits for `work` to its end; a cancellation that comes meanwhile is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
        except Exception:
            break
    result = task.result()
    if cancelled:
        raise asyncio.CancelledError
    return result


async def in_thread(work: Callable[..., _Result], *arguments: Any) -> _Result:
    """The result of `work` in a thread, which nothing can stop: also a cancellation waits."""
    return await uncancelled(asyncio.to_thread(work, *arguments))


async def together(*work: Coroutine[Any, Any, Any]) -> None:
    """All of it side by side. When one fails, the others are cancelled, and it returns only when
    they have ended; the first failure is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except BaseExceptionGroup as failures:
        first: BaseException = failures
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
