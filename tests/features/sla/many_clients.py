"""Clients of a truth test: `many_clients.py ADDRESS PORT COUNT PER_S` prints their mean time in s.

Requests begin at a fixed rate; a time lasts from the attempt to connect to the end of the answer.
"""

from __future__ import annotations

import asyncio
import sys
import time


async def request(address: str, port: int, at: float) -> float:
    await asyncio.sleep(max(0.0, at - time.perf_counter()))
    start = time.perf_counter()
    reader, writer = await asyncio.open_connection(address, port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"ok")
    elapsed = time.perf_counter() - start
    writer.close()
    return elapsed


async def mean_time(address: str, port: int, count: int, per_s: float) -> float:
    begin = time.perf_counter() + 0.5
    times = await asyncio.gather(
        *(request(address, port, begin + number / per_s) for number in range(count))
    )
    return sum(times) / count


if __name__ == "__main__":
    words = sys.argv[1:]
    mean = asyncio.run(mean_time(words[0], int(words[1]), int(words[2]), float(words[3])))
    sys.stdout.write(f"{mean}\n")
