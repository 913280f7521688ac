"""Removes the labs of a measurement whose process was killed.

`python -m nephoscope.features.platforms.cleanup PREFIX` waits until standard input ends, which
happens when the process that holds its other end is gone, and then removes the labs of that prefix.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator

from nephoscope.features.platforms import guests

TIMEOUT_S = 300.0
_STEP_S = 0.5


@contextlib.contextmanager
def cleaned_up_after_a_kill(prefix: str) -> Iterator[None]:
    """Has a process of its own remove the labs of `prefix` as soon as this one ends."""
    words = [sys.executable, "-m", "nephoscope.features.platforms.cleanup", prefix]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield
    finally:
        assert child.stdin is not None
        child.stdin.close()
        child.wait()


def main(prefix: str) -> None:
    """Removes the labs; one that is still being made is removed once its maker is gone."""
    sys.stdin.buffer.read()
    until = time.monotonic() + TIMEOUT_S
    while guests.remains(prefix) and time.monotonic() < until:
        asyncio.run(guests.remove_all(prefix))
        if guests.remains(prefix):
            time.sleep(_STEP_S)


if __name__ == "__main__":
    main(sys.argv[1])
