"""An HTTP server that serves a stated rate, and another one from a stated moment on.

`growing_server.py PORT RATE GROWS_S LATER_RATE`: each request takes the next place in a line that
moves RATE times a second, from GROWS_S seconds after the first request on LATER_RATE times; beyond
a second of waiting it is refused with status 503. At the end of stdin it ends.
"""

from __future__ import annotations

import asyncio
import sys
import time

_LONGEST_S = 1.0
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_BUSY = b"HTTP/1.1 503 Unavailable\r\nContent-Length: 4\r\n\r\nbusy"


class Line:
    """When the next request is served."""

    def __init__(self, rate_per_s: float, grows_s: float, later_per_s: float) -> None:
        self.rates = rate_per_s, later_per_s
        self.grows_s = grows_s
        self.began_s: float | None = None
        self.free_s = 0.0

    def wait_s(self) -> float | None:
        """Returns the seconds until a request is served; None where it is refused."""
        now_s = time.monotonic()
        self.began_s = self.began_s or now_s
        rate = self.rates[now_s - self.began_s >= self.grows_s]
        if self.free_s - now_s > _LONGEST_S:
            return None
        self.free_s = max(self.free_s, now_s) + 1 / rate
        return self.free_s - now_s


async def serve(port: int, line: Line) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                wait_s = line.wait_s()
                await asyncio.sleep(wait_s or 0)
                writer.write(_BUSY if wait_s is None else _OK)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Line(*map(float, sys.argv[2:5]))))
