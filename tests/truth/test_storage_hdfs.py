"""storage.transfer and storage.durability against a real HDFS, read back by another client."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from math import exp, log, sqrt
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hdfs_cluster import DATA_NODES, USER, HdfsCluster, hdfs, needs_hdfs
from storage_servers import needs_storage
from test_storage_transfer import check_counts, failure, transfer
from tests.attempts import attempt
from tests.conftest import ROOT
from tests.tools import located, needs
from trials import Trial, command

from nephoscope.core.programs import find_storage

pytestmark = [pytest.mark.slow, needs_storage, needs_hdfs, needs("curl")]

KEYS = {"HADOOP_USER_NAME": USER}
OBJECT_BYTES = 4 << 20


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    with hdfs(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def curl(cluster: HdfsCluster, path: str, operation: str, *words: str) -> bytes:
    """One request of WebHDFS by another client, redirections followed."""
    url = f"{cluster.url}/webhdfs/v1/{path}?op={operation}&user.name={USER}"
    done = subprocess.run(
        [located("curl"), "-sS", "--fail", "-L", *words, url], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed(cluster: HdfsCluster, path: str) -> list[str]:
    """Names in a folder of the cluster."""
    statuses = json.loads(curl(cluster, path, "LISTSTATUS"))["FileStatuses"]["FileStatus"]
    return [status["pathSuffix"] for status in statuses]


def at(cluster: HdfsCluster, folder: str) -> dict[str, Any]:
    return {"service": "webhdfs", "endpoint": cluster.url, "directory": folder}


def test_objects_are_hashed_and_removed(cluster: HdfsCluster) -> None:
    curl(cluster, "data/of-somebody-else", "CREATE", "-X", "PUT", "--data-binary", "1")
    trial = transfer(at(cluster, "data"), KEYS)
    check_counts(trial, verified_passes=3)
    assert trial.one("retries_count") == 0
    assert listed(cluster, "data") == ["of-somebody-else"]


def test_no_cluster_there_is_one_sentence(cluster: HdfsCluster) -> None:
    place = {**at(cluster, "data"), "retries": 0}
    closed = {**place, "endpoint": "http://127.0.0.1:1"}
    assert failure(closed, KEYS)[1] == "no_server"


def test_another_client_reads_the_bytes_that_were_written(
    cluster: HdfsCluster, tmp_path: Path
) -> None:
    params = {
        **at(cluster, "lasting"),
        "name": "photos",
        "objects": 3,
        "object_bytes": OBJECT_BYTES,
    }
    params["ledger_directory"] = str(tmp_path)
    before = cluster.block_bytes()
    assert _durability(params).one("written_count") == 3
    # Every block is on each data node, so the bytes are at the server and in no cache.
    assert cluster.block_bytes() - before >= DATA_NODES * 3 * OBJECT_BYTES
    ledger = json.loads((tmp_path / "photos.ledger").read_text().splitlines()[0])
    (folder,) = listed(cluster, "lasting")
    names = [name for name in listed(cluster, f"lasting/{folder}") if name.isdecimal()]
    digests = {
        hashlib.sha256(curl(cluster, f"lasting/{folder}/{name}", "OPEN")).hexdigest()
        for name in names
    }
    assert digests == {entry["sha256"] for entry in ledger["objects"]}
    curl(cluster, f"lasting/{folder}/{names[0]}", "DELETE", "-X", "DELETE")
    after = _durability(params)
    # A new object replaced the lost one.
    assert (after.one("intact_count"), after.one("lost_count")) == (3, 1)
    _durability({**params, "operation": "remove"})
    assert listed(cluster, "lasting") == []


def _durability(params: dict[str, Any]) -> Trial:
    words = [str(find_storage()), *command("storage.durability", params, 120)[1:]]
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **KEYS}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
    return Trial(done.stdout)


def test_the_command_of_the_guide_measures_it(cluster: HdfsCluster, tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "how-to" / "storage.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^\$ nephoscope (.*service=webhdfs.*)$", guide, re.M)
    words = shlex.split(line.replace("http://namenode:9870", cluster.url))
    words += ["--repetitions", "1", "--set", "object_bytes=[1, 1048576]", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "nephoscope", *words, "--store", str(tmp_path / "store")],
        env={**os.environ, **KEYS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    measured = {line["metric"] for line in json.loads(done.stdout)["metrics"]}
    assert {"transfer_bytes_per_s", "transactions_per_s"} <= measured


ROUNDS, OBJECTS, LARGE_BYTES = 5, 8, 16 << 20
CONNECTIONS = 1.1
"""What two connections and a redirection of each request may change in the time of 16 MiB: curl
opens them anew, and a wait for one delayed acknowledgement, 40 ms, is more than that."""


@pytest.mark.alone
def test_times_are_those_of_another_client(cluster: HdfsCluster, tmp_path: Path) -> None:
    payload = tmp_path / "payload"
    payload.write_bytes(os.urandom(LARGE_BYTES))
    params = {
        **at(cluster, "timed"),
        "object_bytes": [LARGE_BYTES],
        "objects": OBJECTS,
        "clients": 1,
    }
    params |= {"transactions_ns": 0, "verify": "never"}

    def by_curl(operation: str, *words: str) -> float:
        """Seconds of an object, the start of the program left out."""
        times = []
        for number in range(OBJECTS):
            out = curl(cluster, f"curl/{number}", operation, *words, "-w", "\n%{time_total}")
            times.append(float(out.rsplit(b"\n", 1)[1]))
        return sum(times) / OBJECTS

    def both_by_curl() -> dict[str, float]:
        write = by_curl("CREATE&overwrite=true", "-X", "PUT", "-T", str(payload))
        return {"write": write, "read": by_curl("OPEN")}

    def measure() -> tuple[str, bool]:
        """Ours between two of curl's: no further from them than they are from each other."""
        ratios: dict[str, list[float]] = {"write": [], "read": []}
        own: dict[str, list[float]] = {"write": [], "read": []}
        for _ in range(ROUNDS):
            first, trial, second = both_by_curl(), transfer(params, KEYS), both_by_curl()
            for operation in ratios:
                _, mean_ns = trial.histogram("transfer_latency_ns", operation=operation)
                there = sqrt(first[operation] * second[operation])
                ratios[operation].append(mean_ns / 1e9 / there)
                own[operation].append(abs(log(first[operation] / second[operation])))
        bounds = {operation: CONNECTIONS * exp(median(own[operation])) for operation in own}
        medians = {operation: median(values) for operation, values in ratios.items()}
        held = all(
            1 / bounds[operation] <= ratio <= bounds[operation]
            for operation, ratio in medians.items()
        )
        return f"time here to time of curl: {medians}; bounds by curl itself: {bounds}", held

    attempt("HDFS by two clients", measure, contends=True)
