"""Watches an autoscaler from outside: a command prints the number of instances.

`python3 -m nephoscope.autoscalers.observer JSON` calls `command` by the shell every `interval_s`
and prints each change, and each failure of the command once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

from nephoscope.autoscalers import log

_LONGEST = 1_000_000


def instances_of(command: str, limit_s: float) -> tuple[int | None, str]:
    """Returns the number that the command prints, or None and what is wrong with it."""
    try:
        completed = subprocess.run(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"it took longer than {limit_s:g} s"
    words = completed.stdout[:200].decode("utf-8", "replace").strip()
    if completed.returncode:
        error = completed.stderr[:200].decode("utf-8", "replace").strip()
        return None, f"exit code {completed.returncode}: {error or words}"
    if not words.isdecimal() or len(words) > 7 or int(words) > _LONGEST:
        return None, f"it printed '{words[:60]}', no number of instances"
    return int(words), ""


def main(settings: dict[str, object]) -> None:
    """Watches until SIGTERM."""
    log.begin()
    command = str(settings["command"])
    interval_s, limit_s = float(str(settings["interval_s"])), float(str(settings["limit_s"]))
    last: tuple[int | None, str] | None = None
    opened = False
    while not log.ended.is_set():
        began_s = time.monotonic()
        seen = instances_of(command, limit_s)
        if seen != last:
            count, failure = seen
            if count is None:
                log.event("unobserved", failure=failure)
            else:
                log.event("count", in_rotation=count)
            last = seen
        if not opened:
            log.event("begins")
            # Its port is what the start of the trial waits for: the first count is there then.
            log.serve(str(settings["address"]), int(str(settings["port"])), lambda *_: (200, ""))
            opened = True
        log.ended.wait(max(0.0, interval_s - (time.monotonic() - began_s)))
    log.event("ended")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
