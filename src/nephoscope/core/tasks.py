"""Asynchronous work: to its end before anything is removed again, together, until a signal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from nephoscope.core.errors import Interrupted

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


async def together(*work: Coroutine[Any, Any, _Result]) -> list[_Result]:
    """Returns the results of work that runs side by side, in its order.

    When one fails, the others are cancelled, and it returns only when they have ended; the first
    failure is raised.
    """
    if len(work) == 1:
        return [await work[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part) for part in work]
    except BaseExceptionGroup as failures:
        first: BaseException = failures
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    return [task.result() for task in tasks]


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def cancelled_by_signals() -> Iterator[None]:
    """Lets Ctrl-C, SIGTERM and SIGHUP cancel the running task while the block lasts."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    installed = []
    for number in SIGNALS:
        # Only the main thread may install handlers; elsewhere the owner cancels the task.
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
            loop.add_signal_handler(number, task.cancel)
            installed.append(number)
    try:
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)


def run_until_signal(work: Coroutine[Any, Any, _Result], interrupted: str) -> _Result:
    """Returns the result of `work`. Raises Interrupted with a sentence where a signal ends it."""

    async def guarded() -> _Result:
        with cancelled_by_signals():
            return await work

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        raise Interrupted(interrupted) from None
