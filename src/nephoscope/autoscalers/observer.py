"""Watches an autoscaler from outside: a command prints the number of instances.

`python3 -m nephoscope.autoscalers.observer JSON` calls `command` by the shell every `interval_s`
and prints each change, and each failure of the command once.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time

from nephoscope.autoscalers import log

_LONGEST = 1_000_000
_OUTPUT_BYTES = 4096
_POLL_S = 0.1


def instances_of(command: str, limit_s: float) -> tuple[int | None, str] | None:
    """Returns the number that the command prints, or None and what is wrong with it.

    Returns None alone where the program was to end before the command did. No process of the
    command outlives the call, unless it left the session.
    """
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output = _output(process, time.monotonic() + limit_s)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
    if log.ended.is_set():
        return None
    if output is None:
        return None, f"it took longer than {limit_s:g} s"
    printed, error = (text[:200].decode("utf-8", "replace").strip() for text in output)
    if max(map(len, output)) > _OUTPUT_BYTES:
        return None, f"it printed more than {_OUTPUT_BYTES:,} bytes"
    if code:
        return None, f"exit code {code}: {error or printed}"
    if not printed.isdecimal() or len(printed) > 7 or int(printed) > _LONGEST:
        return None, f"it printed '{printed[:60]}', no number of instances"
    return int(printed), ""


def _output(process: subprocess.Popen[bytes], until_s: float) -> tuple[bytes, bytes] | None:
    """Returns both outputs of a command that ended, or of one that prints too much; None where
    it did not end in time or the program was to end."""
    texts = {process.stdout: b"", process.stderr: b""}
    with selectors.DefaultSelector() as selector:
        for stream in texts:
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map() and max(map(len, texts.values())) <= _OUTPUT_BYTES:
            if log.ended.is_set() or time.monotonic() > until_s:
                return None
            for key, _ in selector.select(_POLL_S):
                part = os.read(key.fd, _OUTPUT_BYTES + 1)
                texts[key.fileobj] += part  # type: ignore[index]
                if not part:
                    selector.unregister(key.fileobj)
    printed, error = texts.values()
    if max(len(printed), len(error)) > _OUTPUT_BYTES:
        return printed, error
    while process.poll() is None:  # it closed its outputs and still runs
        if log.ended.is_set() or time.monotonic() > until_s:
            return None
        log.ended.wait(_POLL_S / 10)
    return printed, error


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
        if seen is None:
            break
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
