"""A test that waits for the other end of a pipe fails, instead of hanging."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def failing_after(seconds: int) -> Iterator[None]:
    """Raises AssertionError in the block after some seconds, however little of a CPU it gets."""

    def ring(*_: object) -> None:
        raise AssertionError(f"this did not end within {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
