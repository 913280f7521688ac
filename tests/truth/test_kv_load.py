"""kv.load against real servers: its counts are theirs, and what goes wrong is counted by kind."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from http_truth import serving
from kv_servers import Memcached, Redis, memcached, needs_memcached, needs_redis, redis
from trials import Trial
from trials import command as trial_command

pytestmark = pytest.mark.together

MS = 1_000_000
SHORT = {"warmup_ns": 20 * MS, "duration_ns": 100 * MS, "keys": 100, "connections": 4, "seed": 5}


def command(params: dict[str, Any]) -> tuple[int, str]:
    words = trial_command("kv.load", {**SHORT, **params})
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def load(server: Redis | Memcached, **params: Any) -> Trial:
    code, text = command({"port": server.port, **params})
    assert code == 0, text[-600:]
    return Trial(text)


def error(**params: Any) -> str:
    code, text = command(params)
    assert code in (2, 3), text[-600:]
    found: dict[str, str] = json.loads(text.splitlines()[-1])["error"]
    return found["message"]


def failures(trial: Trial) -> dict[str, int]:
    found = [sample for sample in trial.samples if sample["metric"] == "errors_count"]
    return {sample["factors"]["kind"]: int(sample["value"]) for sample in found}


@needs_redis
@pytest.mark.parametrize(
    "how", [{}, {"pipeline": 16, "key_distribution": "zipf"}, {"arrivals": "poisson"}]
)
def test_redis_counts_the_same_commands(how: dict[str, Any]) -> None:
    mix = ["get=5", "set", "incr", "lpush", "lrange=2"]
    with redis() as server:
        trial = load(server, operations=mix, range_items=10, **how)
        # The values were stored first, and all keys deleted in the end.
        calls = {name: server.calls(name) for name in ("get", "set", "incr", "lpush", "lrange")}
        stored = SHORT["keys"]
        assert sum(calls.values()) - stored == trial.one("sent_count")
        assert trial.one("sent_count") == trial.one("completed_count")
        assert int(server.info("stats")["keyspace_hits"]) == trial.one("hits_count")
        assert trial.one("hits_count") == calls["get"] + calls["lrange"]
        assert server.call("DBSIZE") == ":0"
    # On a machine that stands still, requests of an open loop find no free connection.
    assert failures(trial).keys() <= {"any", "unsent"}
    assert trial.one("hit_ratio") == 1
    operations = {s["factors"]["operation"] for s in trial.samples if s["metric"] == "latency_ns"}
    assert operations == {"get", "set", "incr", "lpush", "lrange"}


@needs_redis
@pytest.mark.truth("kv.load", "hits_count", "misses_count", "hit_ratio")
def test_misses_are_counted() -> None:
    with redis() as server:
        for number in range(0, 100, 2):
            assert server.call(f"SET b:s{number:012d} abc") == "+OK"
        trial = load(server, key_prefix="b:", value_bytes=3, fill=False, delete_keys=False)
        stats = server.info("stats")
        assert server.call("DBSIZE") == ":50"
    assert trial.one("hits_count") == int(stats["keyspace_hits"]) > 0
    assert trial.one("misses_count") == int(stats["keyspace_misses"]) > 0
    assert trial.one("hits_count") + trial.one("misses_count") == trial.one("completed_count")
    hits = int(stats["keyspace_hits"])
    asked = hits + int(stats["keyspace_misses"])
    assert trial.one("hit_ratio") == pytest.approx(hits / asked)


@needs_memcached
@pytest.mark.parametrize("protocol", ["memcached", "memcached_meta"])
def test_memcached_counts_the_same_commands(protocol: str) -> None:
    with memcached() as server:
        mix = ["get=3", "set", "incr"]
        trial = load(server, protocol=protocol, operations=mix, pipeline=4)
        stats = server.stats()
    assert failures(trial) == {"any": 0}
    counters = stats["incr_hits"] + stats["incr_misses"]
    stored = 2 * SHORT["keys"]  # values and counters
    assert stats["cmd_get"] + stats["cmd_set"] + counters - stored == trial.one("sent_count")
    assert stats["get_misses"] == stats["incr_misses"] == stats["curr_items"] == 0
    hits = stats["get_hits"] + (stats["incr_hits"] if protocol == "memcached" else 0)
    assert trial.one("hits_count") == hits


@needs_redis
def test_errors_of_the_server_are_counted_by_kind() -> None:
    with redis() as server:
        # One key of two is no list; one value of two has another length.
        assert server.call("SET b:l000000000000 text") == "+OK"
        assert server.call("SET b:s000000000000 x") == "+OK"
        assert server.call("SET b:s000000000001 abc") == "+OK"
        params = {"key_prefix": "b:", "keys": 2, "value_bytes": 3, "fill": False}
        trial = load(server, operations=["lpush", "get"], **params)
        errors = server.info("errorstats")
    counted = failures(trial)
    assert f"count={counted['error_reply']}" == errors["errorstat_WRONGTYPE"]
    assert counted["wrong_value"] > 0
    assert counted["any"] == counted["wrong_value"] + counted["error_reply"]
    assert counted["any"] + trial.one("completed_count") == trial.one("sent_count")


@needs_redis
def test_a_password_is_presented_on_each_connection(tmp_path: Path) -> None:
    file = tmp_path / "password"
    with redis("--requirepass", "secret words") as server:
        file.write_text("secret words\n")
        trial = load(server, password_file=str(file), pipeline=3)
        assert failures(trial) == {"any": 0}
        file.write_text("wrong\n")
        port = server.port
        for given in (str(file), ""):
            said = error(port=port, password_file=given)
            assert said.endswith("failed: the server wants a password, or another one.")
            said = error(port=port, password_file=given, fill=False, delete_keys=False)
            assert said.endswith("failed because the server wants a password, or another one.")


def test_another_server_is_told_in_a_sentence() -> None:
    with serving() as server:
        port = server.address[1]
        for protocol in ("redis", "memcached"):
            said = error(port=port, protocol=protocol)
            assert said.endswith("failed: the answer was not of the protocol.")
            said = error(port=port, protocol=protocol, fill=False, delete_keys=False)
            assert "failed because the answer was not of the protocol" in said


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"operations": ["del"]}, "'del' is no operation with a weight."),
        ({"operations": ["get=0"]}, "'get=0' is no operation with a weight."),
        ({"operations": ["lpush"], "protocol": "memcached"}, "memcached has no lists"),
        ({"key_prefix": "a b"}, "key_prefix has spaces"),
        ({"password_file": "/no/where"}, "cannot be read from '/no/where'"),
        ({"password_file": "/dev/null"}, "'/dev/null' has no password."),
        ({"password_file": "x", "protocol": "memcached"}, "to Redis servers only."),
        (
            {"operations": ["lrange"], "value_bytes": 1 << 20, "range_items": 17},
            "lists of 17 values of 1048576 bytes exceed 16 MiB.",
        ),
        ({"port": 1}, "No server accepts a connection at 127.0.0.1:1"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(params: dict[str, Any], words: str) -> None:
    assert words in error(**params)
