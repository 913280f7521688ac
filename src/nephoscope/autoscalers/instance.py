"""A machine that can be started: it boots, warms up, serves, and is removed.

`python3 -m nephoscope.autoscalers.instance JSON` serves its control on `address` and `port`:
POST /start?boot=SECONDS&warm_up=SECONDS, POST /stop, GET /health (200 when it is warm), GET /state.
After the boot time `command` runs, which is the service; after the warm-up time it is healthy.
"""

from __future__ import annotations

import contextlib
import json
import math
import signal
import subprocess
import sys
import threading
import time
from urllib.parse import parse_qs, urlsplit

from nephoscope.autoscalers import log


class ScaledMachine:
    """The state of one instance. The thread that calls `run` starts the service, and has to live as
    long as it."""

    def __init__(self, command: list[str]) -> None:
        self._command = log.bound(command)
        self._changed = threading.Condition()
        self._service: subprocess.Popen[bytes] | None = None
        self._boots_at = self._warm_at = math.inf
        self._warm_up_s = 0.0

    def start(self, boot_s: float, warm_up_s: float) -> None:
        """Boots in the background."""
        with self._changed:
            self._boots_at = time.monotonic() + boot_s
            self._warm_up_s = warm_up_s
            self._changed.notify()

    def run(self) -> None:
        """Starts the service whenever its boot is over, until the program ends."""
        while not log.ended.is_set():
            with self._changed:
                if time.monotonic() >= self._boots_at:
                    self._boots_at = math.inf
                    self._warm_at = time.monotonic() + self._warm_up_s
                    self._service = subprocess.Popen(
                        self._command,
                        stdin=subprocess.DEVNULL,
                        start_new_session=True,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                    )
                self._changed.wait(max(0.0, min(0.1, self._boots_at - time.monotonic())))
        self.stop()

    def stop(self) -> None:
        """Ends the service, also one that is not there yet."""
        with self._changed:
            service, self._service = self._service, None
            self._boots_at = self._warm_at = math.inf
        if service is not None:
            service.send_signal(signal.SIGKILL)
            service.wait()

    def state(self) -> dict[str, object]:
        """Returns whether the service runs and is warm, and the CPU time that it used."""
        service = self._service
        runs = service is not None and service.poll() is None
        used_s = 0.0
        if service is not None and runs:
            # Its CPU clock, as clock_getcpuclockid(3) names it: the ticks of /proc are 10 ms, which
            # is a twentieth of what an instance with a fifth of a CPU has in a second.
            with contextlib.suppress(OSError):  # it has just ended
                used_s = time.clock_gettime(~service.pid << 3 | 2)
        dead = service is not None and not runs
        return {
            "runs": runs,
            "is_warm": runs and time.monotonic() >= self._warm_at,
            "died": dead,
            "cpu_s": used_s,
        }

    def answer(self, method: str, path: str) -> tuple[int, str]:
        """Returns the answer to a request of the control."""
        parts = urlsplit(path)
        if (method, parts.path) == ("POST", "/start"):
            query = parse_qs(parts.query)
            self.start(*(float(query[name][0]) for name in ("boot", "warm_up")))
            return 202, ""
        if (method, parts.path) == ("POST", "/stop"):
            self.stop()
            return 200, ""
        if parts.path == "/state":
            return 200, json.dumps(self.state())
        if parts.path == "/health":
            return (200, "ok") if self.state()["is_warm"] else (503, "")
        return 404, ""


def main(settings: dict[str, object]) -> None:
    """Serves until SIGTERM."""
    log.begin()
    machine = ScaledMachine(list(settings["command"]))  # type: ignore[call-overload]
    log.serve(str(settings["address"]), int(str(settings["port"])), machine.answer)
    machine.run()
    log.event("ended")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
