"""kv.load with the core workloads of YCSB: a real Redis counts the mix, and shows which records."""

from __future__ import annotations

import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from kv_servers import Redis, needs_redis, redis
from test_kv_load import SHORT, error, failures, load
from trials import Trial

pytestmark = pytest.mark.together

RECORDS = 1000
PUBLISHED = {
    "a": {"hgetall": 0.5, "hmset": 0.5},
    "b": {"hgetall": 0.95, "hmset": 0.05},
    "c": {"hgetall": 1.0},
    "d": {"hgetall": 0.95, "zadd": 0.05},
    "e": {"zrangebyscore": 0.95, "zadd": 0.05},
}
"""The share of operations that begin or end with a command, by workload."""


def core(server: Redis, workload: str, **params: Any) -> Trial:
    return load(server, workload=workload, **{"keys": RECORDS, **params})


def in_bounds(count: int, all_: int, share: float) -> bool:
    """Whether a binomial count lies within five standard deviations, and one for those near 0."""
    return abs(count - all_ * share) <= 5 * (all_ * share * (1 - share)) ** 0.5 + 1


@needs_redis
@pytest.mark.truth("kv.load", "scanned_count")
@pytest.mark.parametrize("workload", ["e"])
def test_scans_read_the_records_that_redis_returns(workload: str) -> None:
    with redis() as server:
        trial = core(server, workload)
        calls = {name: server.calls(name) for name in ("hgetall", "zrangebyscore", "hmset", "zadd")}
        assert server.call("DBSIZE") == ":0"
    assert trial.one("scanned_count") == calls["hgetall"] == trial.one("hits_count") > 0
    inserted = calls["zadd"] - RECORDS
    assert inserted == calls["hmset"] - RECORDS
    assert calls["zrangebyscore"] + inserted == trial.one("sent_count")
    assert in_bounds(inserted, int(trial.one("sent_count")), 0.05)
    assert failures(trial) == {"any": 0}


@needs_redis
def test_redis_counts_the_published_mix() -> None:
    for workload, shares in PUBLISHED.items():
        with redis() as server:
            trial = core(server, workload, connections=2, duration_ns=50_000_000)
            calls = {name: server.calls(name) for name in shares}
            assert server.call("DBSIZE") == ":0", workload
        sent = int(trial.one("sent_count"))
        stored = {"hmset": RECORDS, "zadd": RECORDS}
        asked = {name: count - stored.get(name, 0) for name, count in calls.items()}
        assert sum(asked.values()) == sent == trial.one("completed_count"), workload
        assert all(in_bounds(asked[name], sent, share) for name, share in shares.items()), asked
        assert trial.one("misses_count") == 0, workload


@needs_redis
def test_a_record_is_read_before_it_is_modified() -> None:
    with redis() as server, monitored(server) as lines:
        trial = core(server, "f", connections=1, delete_keys=False)
    commands = [(command, key) for command, key, _ in parsed(lines)][2 * RECORDS :]
    modified = sum(command == "HMSET" for command, _ in commands)
    sent = int(trial.one("sent_count"))
    assert len(commands) == sent + modified
    assert in_bounds(modified, sent, 0.5)
    for before, after in pairwise(commands):
        assert after[0] == "HGETALL" or before == ("HGETALL", after[1])


@needs_redis
def test_records_have_the_published_form_and_the_popularity_of_zipfs_law() -> None:
    with redis() as server, monitored(server) as lines:
        trial = core(server, "c", connections=1, duration_ns=300_000_000, delete_keys=False)
        form = server.ask(f"HGETALL {record(0)}", b"\r\n").splitlines()
        assert server.call("ZCARD nephoscope:indices") == f":{RECORDS}"
    assert form[0] == "*20"
    assert [form[1], form[3]] == ["$6", "$100"]
    keys = Counter(key for command, key, _ in parsed(lines) if command == "HGETALL")
    reads = int(trial.one("sent_count"))
    # Zipf's law over ten thousand million items, each hashed onto a record.
    shares, listed = [0.0] * RECORDS, 0.0
    for rank in range(20_000):
        share = (rank + 1) ** -0.99 / 26.46902820178302
        shares[fnv(rank) % RECORDS] += share
        listed += share
    for number, share in enumerate(shares):
        expected = share + (1 - listed) / RECORDS
        assert in_bounds(keys[record(number)], reads, expected), number
    assert keys.most_common(1)[0][0] == record(fnv(0) % RECORDS)


@needs_redis
def test_the_latest_records_are_read_most() -> None:
    with redis() as server, monitored(server) as lines:
        core(server, "d", connections=1, duration_ns=300_000_000, delete_keys=False)
    numbers = {record(number): number for number in range(20 * RECORDS)}
    latest, ages = RECORDS - 1, Counter[int]()
    for command, key, _ in list(parsed(lines))[2 * RECORDS :]:
        if command == "ZADD":
            latest += 1
        elif command == "HGETALL":
            ages[latest - numbers[key]] += 1
    assert latest >= RECORDS
    # Between the first and the last number of records the sum differs by less than a standard
    # deviation of the counts.
    total = sum(rank**-0.99 for rank in range(1, (RECORDS + latest) // 2))
    for age in range(20):
        assert in_bounds(ages[age], ages.total(), (age + 1) ** -0.99 / total), age


@needs_redis
def test_scans_have_uniform_lengths() -> None:
    with redis() as server, monitored(server) as lines:
        core(server, "e", connections=1, scan_records=10, duration_ns=200_000_000)
    lengths = Counter(
        int(words[-1]) for command, _, words in parsed(lines) if command == "ZRANGEBYSCORE"
    )
    assert set(lengths) == set(range(1, 11))
    assert all(in_bounds(count, lengths.total(), 0.1) for count in lengths.values()), lengths


@needs_redis
def test_generators_insert_records_of_their_own() -> None:
    with redis() as server:
        share = {"generators": 2, "connections": 2, "threads": 1, "delete_keys": False}
        sent = [core(server, "d", generator=number, **share) for number in (0, 1)]
        # The second one stored the same records again.
        inserted = server.calls("zadd") - 2 * RECORDS
        assert server.call("ZCARD nephoscope:indices") == f":{RECORDS + inserted}"
    assert all(trial.one("misses_count") == 0 for trial in sent)


@needs_redis
def test_missing_and_damaged_records_are_counted() -> None:
    with redis() as server:
        trial = core(server, "c", fill=False)
        assert trial.one("misses_count") == trial.one("completed_count") > 0
        assert server.call(f"SET {record(0)} text") == "+OK"
        assert server.call(f"HSET {record(1)} field0 short") == ":1"
        trial = core(server, "c", fill=False, keys=3)
    counted = failures(trial)
    assert set(counted) == {"error_reply", "wrong_value", "any"}


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"protocol": "memcached"}, "workload a runs on Redis."),
        ({"operations": ["get"]}, "workload a has operations of its own."),
        ({"key_distribution": "zipf"}, "workload a has a distribution of its own."),
        ({"pipeline": 2}, "workload a has one operation in flight per connection."),
        ({"fields": 100, "field_bytes": 1 << 16}, "exceed 1 MiB."),
    ],
)
def test_what_a_core_workload_excludes_is_refused(params: dict[str, Any], words: str) -> None:
    assert words in error(workload="a", **params)


def fnv(number: int) -> int:
    """64-bit FNV-1a of a number's eight bytes, without its sign."""
    value = 0xCBF29CE484222325
    for byte in number.to_bytes(8, "little"):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return abs(value - 2**64 if value >= 2**63 else value)


def record(number: int) -> str:
    return f"nephoscope:user{fnv(number)}"


@contextmanager
def monitored(server: Redis) -> Iterator[list[str]]:
    """Yields what a server executes until the end, filled when the block has ended."""
    lines: list[str] = []
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"MONITOR\r\n")
        reader = client.makefile("r", encoding="utf-8")
        assert reader.readline() == "+OK\n"
        thread = threading.Thread(target=lambda: lines.extend(until_end(reader)))
        thread.start()
        try:
            yield lines
        finally:
            server.call("PING the-end")
            thread.join(SHORT["duration_ns"] / 1e9 + 60)


def until_end(reader: Any) -> Iterator[str]:
    for line in reader:
        if "the-end" in line:
            return
        yield line


def parsed(lines: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yields command, key and words of each command of records."""
    for line in lines:
        words = re.findall(r'"([^"]*)"', line)
        if words and words[0] in ("HGETALL", "HMSET", "ZADD", "ZRANGEBYSCORE"):
            yield words[0], words[1], words
