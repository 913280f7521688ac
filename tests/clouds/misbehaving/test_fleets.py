"""Fleets on machines of the double: nobody logs in, results come through an object store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import tools
from tests.clouds.objects import server
from tests.clouds.objects.server import ObjectStore

from nephoscope.store import Store

from .double import ROOT, SECRET, Double
from .helpers import IMAGE_NAME

pytestmark = [
    tools.needs("ip"),
    pytest.mark.usefixtures("root_only", "probe"),
    pytest.mark.slow,
]
PATIENCE_S = 400.0


@pytest.fixture
def machines(cloud: Double) -> Iterator[Double]:
    cloud.settings(
        machines=True, boot_s=0.3, stop_s=0.3, shutdown_s=0.3, lag_s=0.0, listed_s=3600.0
    )
    yield cloud
    cloud.reset()


@pytest.fixture
def objects(machines: Double) -> Iterator[ObjectStore]:
    with server.running(machines.network()) as store:
        yield store


class User:
    """Types commands; keeps what they print."""

    def __init__(self, cloud: Double, store: ObjectStore, folder: Path) -> None:
        self.cloud, self.store, self.folder = cloud, store, folder
        self.printed = ""

    def start(self, *words: str) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            **self.cloud.environment(),
            "NEPHOSCOPE_STORE": str(self.folder / "store"),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "nephoscope", *words],
            cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def type(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        out, error = process.communicate(timeout=PATIENCE_S)
        self.printed += out + error
        return process.returncode, out if process.returncode in (0, 3) and out else out + error

    def fleet(self, *words: str) -> tuple[str, ...]:
        rented = ("--region", "us-east-1", "--type", "t3.micro", "--image", IMAGE_NAME)
        bucket = ("--bucket", "s3://results/f", "--bucket-endpoint", self.store.endpoint)
        return (
            "cloud", "fleet", "ec2", *rented, *bucket, "--endpoint", self.cloud.endpoint,
            "--name", "night", "--money", "5", *words,
        )  # fmt: skip

    def collected(self, *words: str) -> Any:
        """Collects until nothing more comes."""
        end = time.monotonic() + PATIENCE_S
        while True:
            _, out = self.type("cloud", "collect", "night", "--json", *words)
            document = json.loads(out)
            counts = [document[f"trials_{name}"] for name in ("done", "failed", "missing")]
            assert sum(counts) == document["trials_planned"]
            if document["is_final"]:
                return document
            assert time.monotonic() < end, document
            time.sleep(2)

    def written(self) -> str:
        """Returns everything that was printed or stored, but for what is compressed."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return self.printed + "".join(path.read_text(errors="replace") for path in files)


@pytest.fixture
def user(machines: Double, objects: ObjectStore, tmp_path: Path) -> User:
    return User(machines, objects, tmp_path)


def instances(cloud: Double) -> list[dict[str, Any]]:
    return [entry for entry in cloud.oracle() if entry["kind"] == "instance"]


def test_twenty_machines_work_while_nobody_is_there(user: User, objects: ObjectStore) -> None:
    cloud = user.cloud

    def fault(method: str, key: str) -> int | str | None:
        if method != "PUT":
            return None
        # One machine never gets on, one batch is refused, one is cut, one answer is lost.
        cases: dict[str, int | str] = {"m-3/b002": 503, "m-4/b002": 403, "m-5/b002": "cut"}
        return next((what for end, what in cases.items() if key.endswith(end)), None)

    objects.fault = fault
    launch = user.start(*user.fleet("--count", "20", "--bench", "null", "--repetitions", "6"))
    end = time.monotonic() + PATIENCE_S
    while len(instances(cloud)) < 20:
        assert launch.poll() in (None, 0), launch.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)
    launch.send_signal(signal.SIGKILL)
    launch.communicate(timeout=60)
    while not any(key.endswith("m-3/b001") for key in objects.keys):
        assert time.monotonic() < end, objects.keys
        time.sleep(0.5)
    (stuck,) = (
        entry for entry in instances(cloud) if entry["tags"].get("Name", "").endswith("-m-3")
    )
    cloud.break_down(stuck["id"])
    found = user.collected()
    assert (len(found["machines"]), found["batches_planned"]) == (20, 20 * 8)
    lacking = {entry["name"]: entry["why"] for entry in found["machines"] if entry["why"]}
    assert set(lacking) == {"m-3", "m-4", "m-5"}
    assert "ended without a report" in lacking["m-3"]
    assert "status 403" in lacking["m-4"]
    assert "cut" in lacking["m-5"]
    assert found["trials_planned"] == 20 * 7
    assert 3 <= found["trials_missing"] <= 8
    assert found["trials_valid"] == found["trials_done"]
    run = Store(user.folder / "store").open(found["run"])
    assert set(run.manifest.lost) == {"m-3", "m-4", "m-5"}
    assert run.state in ("measured", "finished")
    assert cloud.live() == []
    assert objects.keys == []
    made = cloud.oracle()
    assert not [entry for entry in made if entry["kind"] == "key-pair"]
    assert [entry["rules"] for entry in made if entry["kind"] == "security-group"] == [[]]
    written = user.written()
    for secret in ("X-Amz-Signature", "X-Amz-Credential", SECRET):
        assert secret not in written
    # As of every run that lost machines, whose sentences follow.
    code, out = user.type("show", found["run"])
    assert code == 3
    assert "and 16 others" in out
    assert "Partial results" in out


def test_a_probe_with_another_digest_is_refused(user: User, objects: ObjectStore) -> None:
    def fault(method: str, key: str) -> None:
        if method == "GET" and "/probe-" in key:
            objects.objects[key] = (b"#!/bin/sh\necho evil\n", objects.now())

    objects.fault = fault
    code, out = user.type(*user.fleet("--count", "1", "--bench", "null", "--repetitions", "1"))
    assert code == 0, out
    found = user.collected()
    assert found["trials_done"] == 0
    assert "probe is refused: its SHA-256" in found["machines"][0]["why"]
    assert user.cloud.live() == []
    assert objects.keys == []


def test_what_a_fleet_left_is_swept_and_what_is_wanted_stays(
    user: User, objects: ObjectStore
) -> None:
    cloud = user.cloud
    code, out = user.type(*user.fleet("--count", "1", "--bench", "null", "--repetitions", "1"))
    assert code == 0, out
    end = time.monotonic() + PATIENCE_S
    while not any(key.endswith("/report") for key in objects.keys):
        assert time.monotonic() < end
        time.sleep(0.5)
    code, out = user.type("cloud", "sweep", "ec2", "--endpoint", cloud.endpoint)
    assert code == 0, out
    assert objects.keys
    code, out = user.type("cloud", "down", "night")
    assert code == 0, out
    assert "result folder" in out
    assert objects.keys == []
    assert cloud.live() == []


def test_results_are_those_of_a_run_over_ssh(
    user: User, objects: ObjectStore, tmp_path: Path
) -> None:
    code, out = user.type(
        *user.fleet("--count", "2", "--bench", "cpu.pi", "--set", "digits=500"),
        "--repetitions", "6", "--seed", "7",
    )  # fmt: skip
    assert code == 0, out
    found = user.collected()
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        f"""
name: over-ssh
seed: 7
budget: 5min
money: {{limit: 5}}
repeat: {{min: 6, max: 6}}
targets:
  - {{name: m, kind: rented, provider: ec2, region: us-east-1, type: t3.micro, count: 2,
     image: "{IMAGE_NAME}", endpoint: "{user.cloud.endpoint}"}}
benchmarks:
  - {{benchmark: cpu.pi, params: {{digits: 500}}}}
"""
    )
    code, out = user.type("run", str(plan), "--json")
    assert code == 0, out
    store = Store(user.folder / "store")
    runs = store.open(found["run"]), store.open(json.loads(out)["run"]["id"])
    apart, over_ssh = ({record.key: record for record in run.records()} for run in runs)
    assert apart.keys() == over_ssh.keys()
    for key, record in apart.items():
        again = over_ssh[key]
        assert (record.params, record.factors) == (again.params, again.factors)
        assert record.counters.keys() == again.counters.keys()
    sides = [f"{run.id}:m-1" for run in runs]
    _, compared = user.type("compare", *sides, "--json")
    assert "cpu.pi" in compared
