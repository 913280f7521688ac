"""An HTTP server for truth tests: `faulty_server.py ADDRESS PORT`.

Each line of stdin sets its mode: `good`, `error` (status 503), `slow` (answers after 2 s) or `take
SECONDS` (the time that an answer takes). At the end of stdin it prints the number of answers and
their mean time in seconds, from accepting the connection to the end of the answer.
"""

from __future__ import annotations

import asyncio
import sys
import time


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Server:
    def __init__(self) -> None:
        self.mode = "good"
        self.seconds = 0.0
        self.times: list[float] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        start = time.perf_counter()
        try:
            while (await reader.readline()).strip():
                pass
            await asyncio.sleep(2.0 if self.mode == "slow" else self.seconds)
            status = "503 Unavailable" if self.mode == "error" else "200 OK"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok".encode())
            await writer.drain()
            self.times.append(time.perf_counter() - start)
        except OSError:
            pass
        finally:
            writer.close()

    async def run(self, address: str, port: int) -> None:
        server = await asyncio.start_server(self.answer, address, port, backlog=4096)
        say("ready")
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            words = line.split()
            if words[0] == "take":
                self.seconds = float(words[1])
            else:
                self.mode = words[0]
            say("set")
        server.close()
        say(f"{len(self.times)} {sum(self.times) / max(1, len(self.times))}")


if __name__ == "__main__":
    asyncio.run(Server().run(sys.argv[1], int(sys.argv[2])))
