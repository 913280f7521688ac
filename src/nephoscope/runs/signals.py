"""Ctrl-C, SIGTERM and SIGHUP end a run in order: they cancel the task that measures."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def cancelling() -> Iterator[None]:
    """While the block lasts, these signals cancel the running task."""
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
