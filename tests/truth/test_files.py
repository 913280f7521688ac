"""Files against what their seed says, drawn once more here, and against the kernel's account."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from channel import controlled
from tests.attempts import attempt
from trials import Trial, command, run

MASK = (1 << 64) - 1


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory on a disk: /tmp may lie in memory."""
    root = Path("/var/tmp") / f"nephoscope-test-{os.getpid()}-{time.time_ns()}"
    root.mkdir()
    yield root
    shutil.rmtree(root)


class Draw:
    """The probe's generator, SplitMix64, written a second time."""

    def __init__(self, seed: int) -> None:
        self.state = seed & MASK

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((self.state ^ self.state >> 30) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & MASK
        return mixed ^ mixed >> 31

    def below(self, bound: int) -> int:
        return self.next() * bound >> 64

    def chance(self, ratio: float) -> bool:
        return (self.next() >> 11) / (1 << 53) < ratio


def said_by_the_seed(params: dict[str, Any]) -> dict[str, dict[str, int]]:
    """What each phase does, in words of the `counts` document."""
    draw, low, high = Draw(params["seed"]), params["min_bytes"], params["max_bytes"]
    live: list[list[int]] = []
    zero = dict.fromkeys(
        ("created", "read", "appended", "deleted", "read_bytes", "written_bytes"), 0
    )
    create, transactions, delete = dict(zero), dict(zero), dict(zero)
    made = 0

    def make(counts: dict[str, int]) -> None:
        nonlocal made
        size = low + draw.below(high - low + 1)
        live.append([made, size])
        made += 1
        counts["created"] += 1
        counts["written_bytes"] += size

    for _ in range(params["files"]):
        make(create)
    for _ in range(params["transactions"]):
        reads = draw.chance(params["read_ratio"])
        if live:
            at = draw.below(len(live))
            if reads:
                transactions["read"] += 1
                transactions["read_bytes"] += live[at][1]
            else:
                room = high - live[at][1]
                added = 1 + draw.below(room) if room else 0
                live[at][1] += added
                transactions["appended"] += 1
                transactions["written_bytes"] += added
        if draw.chance(params["create_ratio"]) or not live:
            make(transactions)
        else:
            at = draw.below(len(live))
            live[at] = live[-1]
            live.pop()
            transactions["deleted"] += 1
    delete["deleted"] = len(live)
    left = {"files": len(live), "bytes": sum(size for _, size in live)}
    return {"create": create, "transactions": transactions, "delete": delete, "left": left}


FILES = {
    "files": 400,
    "transactions": 3000,
    "min_bytes": 1000,
    "max_bytes": 20_000,
    "read_ratio": 0.4,
    "create_ratio": 0.45,
    "seed": 7,
}


RATES = {
    "files_created_per_s": ("created", ("create", "transactions")),
    "files_read_per_s": ("read", ("transactions",)),
    "files_appended_per_s": ("appended", ("transactions",)),
    "files_deleted_per_s": ("deleted", ("transactions", "delete")),
    "read_bytes_per_s": ("read_bytes", ("transactions",)),
    "written_bytes_per_s": ("written_bytes", ("create", "transactions")),
}
"""What each rate counts, and in which phases."""


def counts_of(trial: Trial) -> dict[str, Any]:
    (found,) = [s["document"] for s in trial.samples if s["metric"] == "counts"]
    return found


@pytest.mark.truth(
    "disk.files", "counts", "transactions_per_s", "transaction_latency_ns", "elapsed_ns"
)
@pytest.mark.truth("disk.files", "files_created_per_s", "files_read_per_s", "files_appended_per_s")
@pytest.mark.truth("disk.files", "files_deleted_per_s", "read_bytes_per_s", "written_bytes_per_s")
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"seed": 12345, "directories": 0, "block_bytes": 512},
        {"files": 3, "create_ratio": 0.0, "transactions": 50},
        {"min_bytes": 0, "max_bytes": 1, "read_ratio": 0.0},
    ],
)
def test_the_operations_are_exactly_those_of_the_seed(place: Path, more: dict[str, Any]) -> None:
    params = {**FILES, **more}
    trial = run("disk.files", {**params, "directory": str(place)})
    said = said_by_the_seed(params)
    assert counts_of(trial) == said
    assert list(place.iterdir()) == []
    count, mean = trial.histogram("transaction_latency_ns")
    assert count == params["transactions"]
    elapsed = {
        s["factors"]["phase"]: s["value"] for s in trial.samples if s["metric"] == "elapsed_ns"
    }
    assert sum(elapsed[name] for name in ("create", "transactions", "delete")) == elapsed["all"]
    # Transactions follow each other: their times make the phase. The histogram keeps 3 digits.
    assert count * mean == pytest.approx(elapsed["transactions"], rel=0.02)
    rate = trial.one("transactions_per_s")
    assert rate * elapsed["transactions"] / 1e9 == pytest.approx(params["transactions"])
    for name, (what, phases) in RATES.items():
        rates = trial.by(name, "phase")
        assert rates.keys() == set(phases)
        for phase, per_s in rates.items():
            assert per_s * elapsed[phase] / 1e9 == pytest.approx(said[phase][what]), name


def accounted(words: list[str]) -> tuple[Trial, int, int]:
    """The trial, and the bytes that the kernel accounts to it as read and written by calls."""
    # The kernel adds a child's account to its parent's when the parent waits for it.
    script = (
        "import subprocess, sys\n"
        "def seen():\n"
        "    pairs = [line.split(': ') for line in open('/proc/self/io')]\n"
        "    return {key: int(value) for key, value in pairs}\n"
        "before = seen()\n"
        "subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], 'w'), check=True)\n"
        "after = seen()\n"
        "print(after['rchar'] - before['rchar'], after['wchar'] - before['wchar'])\n"
    )
    out = f"/tmp/nephoscope-test-{os.getpid()}-{time.time_ns()}"
    try:
        done = subprocess.run(
            [sys.executable, "-c", script, out, *words], capture_output=True, text=True, check=True
        )
        text = Path(out).read_text("utf-8")
    finally:
        Path(out).unlink(missing_ok=True)
    read, written = map(int, done.stdout.split())
    return Trial(text), read, written - len(text)


@pytest.mark.together
def test_the_kernel_counts_the_same_bytes(place: Path) -> None:
    trial, read, written = accounted(command("disk.files", {**FILES, "directory": str(place)}))
    counts = counts_of(trial)
    moved = {
        key: sum(counts[phase][key] for phase in ("create", "transactions", "delete"))
        for key in ("read_bytes", "written_bytes")
    }
    # What the probe reads of /proc around the trial, and the harness of its own files.
    assert moved["read_bytes"] <= read <= moved["read_bytes"] + (512 << 10)
    assert moved["written_bytes"] <= written <= moved["written_bytes"] + (16 << 10)


@pytest.mark.together
@pytest.mark.parametrize("sync", ["fsync", "phase"])
def test_what_is_synced_reaches_the_disk(place: Path, sync: str) -> None:
    small = {**FILES, "files": 50, "transactions": 200}
    trial = run("disk.files", {**small, "directory": str(place), "sync": sync})
    counts = counts_of(trial)
    written = sum(counts[phase]["written_bytes"] for phase in ("create", "transactions"))
    # Dirtied pages are accounted whole; appends dirty a page again.
    assert trial.written_bytes >= written


def left_by(kill: Callable[[subprocess.Popen[str]], None], place: Path) -> int:
    """Kills a trial in its middle; how much of it is left."""
    params = {**FILES, "directory": str(place), "transactions": 10_000_000}
    with controlled("run", "disk.files", params) as trial:
        trial.ready()
        trial.say("go")
        deadline = time.monotonic() + 120
        while not list(place.glob("*/d*/f*")):
            assert time.monotonic() < deadline, "no file was ever made"
            time.sleep(0.01)
        kill(trial.process)
        trial.process.wait(timeout=120)
    return len(list(place.iterdir()))


@pytest.mark.together
def test_a_cancelled_trial_cleans_up(place: Path) -> None:
    assert left_by(lambda process: process.terminate(), place) == 0


@pytest.mark.together
def test_what_a_killed_trial_leaves_the_next_one_removes(place: Path) -> None:
    assert left_by(lambda process: process.send_signal(signal.SIGKILL), place) == 1
    mine = place / ".nephoscope-folder-of-mine"
    mine.mkdir()
    run("disk.files", {**FILES, "directory": str(place)})
    assert list(place.iterdir()) == [mine]


@pytest.mark.together
@pytest.mark.parametrize(
    ("params", "code", "name"),
    [
        ({"min_bytes": 9, "max_bytes": 8}, 2, "usage"),
        ({"files": 10_000_000, "max_bytes": 1 << 30}, 4, "disk_full"),
        ({"directory": "/no/such/folder"}, 2, "usage"),
    ],
)
def test_bad_files_are_one_sentence(params: dict[str, Any], code: int, name: str) -> None:
    done = subprocess.run(
        command("disk.files", params), capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout
    assert json.loads(done.stdout)["error"]["name"] == name


RECORDS = {"file_bytes": 8 << 20, "record_bytes": [64 << 10], "seed": 5}


def cells(trial: Trial, metric: str) -> dict[str, float]:
    return {s["factors"]["operation"]: s["value"] for s in trial.samples if s["metric"] == metric}


def test_warm_passes_are_called_cached_and_read_nothing(place: Path) -> None:
    trial = run("disk.records", {**RECORDS, "directory": str(place)})
    rates = cells(trial, "cached_bytes_per_s")
    assert list(rates) == ["write", "rewrite", "read", "reread", "randread", "randwrite"]
    assert not any(metric.startswith("disk_") for metric in trial.metrics)
    assert trial.read_bytes <= 1 << 20
    assert "cache measurement" in trial.notes
    count, _ = trial.histogram("cached_latency_ns")
    assert count == 6 * (8 << 20) // (64 << 10)


@pytest.mark.together
@pytest.mark.parametrize("threads", [1, 3])
def test_direct_and_cold_passes_move_their_bytes_to_and_from_the_disk(
    place: Path, threads: int
) -> None:
    ways = {"direct": {"direct": True}, "cold": {"cold": True, "include_fsync": True}}
    for name, way in ways.items():
        trial = run("disk.records", {**RECORDS, **way, "threads": threads, "directory": str(place)})
        assert not any(metric.startswith("cached_") for metric in trial.metrics), name
        whole = threads * (8 << 20)
        # Three passes read and three write; what the file system reads for itself comes on top.
        assert 3 * whole <= trial.read_bytes <= 3 * whole + (2 << 20), name
        assert 3 * whole <= trial.written_bytes <= 3 * whole + (2 << 20), name
        rates = cells(trial, "disk_bytes_per_s")
        for operation, time_ns in cells(trial, "disk_operation_ns").items():
            # Bytes a second and the time of an operation are one measurement.
            expected = threads * (64 << 10) * 1e9 / time_ns
            assert rates[operation] == pytest.approx(expected), operation


@pytest.mark.together
def test_a_chosen_operation_runs_alone_on_a_filled_file(place: Path) -> None:
    params = {**RECORDS, "directory": str(place), "operations": ["reread", "read"]}
    trial = run("disk.records", params)
    assert list(cells(trial, "cached_bytes_per_s")) == ["read", "reread"]
    assert trial.written_bytes >= 8 << 20
    assert list(place.iterdir()) == []


def test_including_the_sync_makes_a_write_slower(place: Path) -> None:
    def measure() -> tuple[str, bool]:
        rates = []
        for fsync in (False, True):
            params = {**RECORDS, "directory": str(place), "operations": ["write"]}
            trial = run("disk.records", {**params, "include_fsync": fsync, "include_close": True})
            name = "disk_bytes_per_s" if fsync else "cached_bytes_per_s"
            rates.append(cells(trial, name)["write"])
        return f"cached {rates[0]:.3g}, synced {rates[1]:.3g}", rates[1] < rates[0]

    attempt("a write with its sync", measure)


@pytest.mark.together
@pytest.mark.parametrize(
    "params",
    [
        {"record_bytes": []},
        {"record_bytes": [1 << 20], "file_bytes": 4096},
        {"record_bytes": [1000], "direct": True},
        {"operations": ["fly"]},
    ],
)
def test_bad_records_are_one_sentence(params: dict[str, Any]) -> None:
    done = subprocess.run(
        command("disk.records", params), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["message"].startswith("disk.records:")


def wrapped(job: dict[str, Any]) -> list[str]:
    return [command("null", {})[0], "wrap", "--job", json.dumps(job)]


@pytest.mark.together
def test_a_wrapped_program_ends_with_its_master(place: Path) -> None:
    script = "echo $$; sleep 60 & echo $!; wait"
    job = {"program": "sh", "arguments": ["-c", script], "directory": str(place)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*wrapped(job), "--control"], stdin=pipe, stdout=pipe, text=True
    ) as probe:
        assert probe.stdin is not None
        assert probe.stdout is not None
        assert "ready" in probe.stdout.readline()
        probe.stdin.write("go\n")
        probe.stdin.flush()
        deadline = time.monotonic() + 120
        # The shell, and what it started a moment later.
        while len(sleeping(place)) != 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        probe.stdin.close()
        assert json.loads(probe.stdout.read())["error"]["name"] == "cancelled"
        assert probe.wait(timeout=120) == 130
    deadline = time.monotonic() + 120
    while sleeping(place):
        assert time.monotonic() < deadline, "a wrapped program outlived its trial"
        time.sleep(0.02)
    assert list(place.iterdir()) == []


def sleeping(place: Path) -> list[int]:
    """Processes that work in a folder of `place`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                there = os.readlink(entry / "cwd")
            except OSError:
                continue
            if there.startswith(f"{place}/"):
                found.append(int(entry.name))
    return found


@pytest.mark.together
def test_counters_and_children_are_accounted_to_a_wrapped_program(place: Path) -> None:
    script = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"
    job = {"program": "sh", "arguments": ["-c", script], "directory": str(place)}
    done = subprocess.run(wrapped(job), capture_output=True, text=True, check=True)
    beside = json.loads(done.stdout.splitlines()[-1])["done"]["counters"]
    # Each of 200 programs maps at least some ten pages of its own.
    assert beside["minor_faults_count"] > 2000
