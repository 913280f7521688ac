"""disk.io and disk.sync against throttles, sizes, sandboxes and accounts that the test sets."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests import file_systems
from tests.attempts import attempt
from tests.hardware import Feature, lacking
from tests.tools import needs
from trials import forbid, needs_root, refused, run, start

MIB = 1 << 20
IO_URING_SETUP = 425
NOBODY = 65534


def small(directory: Path, **more: Any) -> dict[str, Any]:
    """A short trial on a small file."""
    params = {"directory": str(directory), "file_bytes": 16 * MIB, "duration_ns": 200_000_000}
    return {**params, **more}


@contextmanager
def group(controller: str) -> Iterator[Path]:
    """A control group of version 1 with one controller; skips where there is none."""
    base = Path("/sys/fs/cgroup") / controller
    if not (base / "cgroup.procs").exists():
        lacking(Feature.CONTROL_GROUPS, f"no hierarchy of version 1 with {controller}")
    path = base / f"nephoscope-test-{os.getpid()}"
    path.mkdir()
    try:
        yield path
    finally:
        path.rmdir()


def join(path: Path) -> None:
    """Moves the calling process into a control group."""
    (path / "cgroup.procs").write_text(str(os.getpid()))


def whole_device(directory: Path) -> str:
    """major:minor of the whole disk below a directory."""
    number = directory.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    device = Path("/sys/dev/block") / name
    if not device.exists():
        lacking(Feature.DISK, str(directory))
    if (device / "partition").exists():
        return (device.resolve().parent / "dev").read_text().strip()
    return name


@pytest.mark.parametrize("engine", ["io_uring", "sync"])
@pytest.mark.parametrize("depth", [1, 8, 32])
def test_littles_law_gives_the_depth(disk: Path, engine: str, depth: int) -> None:
    stalls: list[str] = []

    def measure() -> tuple[str, bool]:
        trial = run("disk.io", small(disk, engine=engine, queue_depth=depth))
        assert {sample["factors"]["engine"] for sample in trial.samples} == {engine}
        assert {sample["factors"]["direct"] for sample in trial.samples} == {True}
        count, mean_ns = trial.histogram("disk_latency_ns")
        in_flight = trial.one("disk_operations_per_s") * mean_ns / 1e9
        # The law is exact in the long run, and a stall at an edge breaks it; the bound is 10 %,
        # and beyond it the trial has to say so.
        holds = in_flight == pytest.approx(depth, rel=0.1)
        stalls.append("the disk stalled" if "stalled at the edge" in trial.notes else "")
        assert holds or stalls[-1]
        return f"{in_flight:.3f} of {depth} in {count} operations", holds

    attempt(f"{engine} at depth {depth}", measure, witness=lambda: stalls[-1])


@pytest.mark.parametrize("operation", ["read", "randread", "write", "randwrite"])
def test_the_kernel_accounts_the_bytes_that_were_counted(disk: Path, operation: str) -> None:
    record = 16384

    def measure() -> tuple[str, bool]:
        trial = run("disk.io", small(disk, operation=operation, record_bytes=record, seed=1))
        count, _ = trial.histogram("disk_latency_ns")
        rate = trial.one("disk_operations_per_s")
        assert trial.one("disk_bytes_per_s") == pytest.approx(rate * record)
        # Writes are accounted twice over: the filling, then the trial.
        accounted = trial.read_bytes if "read" in operation else trial.written_bytes - 16 * MIB
        # Uncounted are the warm-up, a tenth of the time at any rate up to three times that of the
        # rest, and the process's own few pages.
        ratio = accounted / (count * record)
        return f"accounted {accounted}, counted {count * record}", 1.0 <= ratio <= 1.3

    attempt(operation, measure)


@needs_root
@pytest.mark.parametrize(
    ("engine", "depth"),
    [("io_uring", 8), ("sync", 4), pytest.param("io_uring", 1, marks=pytest.mark.slow)],
)
def test_a_throttle_of_the_block_layer_is_reported(disk: Path, engine: str, depth: int) -> None:
    limit = 500
    with group("blkio") as path:
        throttle = path / "blkio.throttle.read_iops_device"
        if not throttle.exists():
            lacking(Feature.BLOCK_THROTTLING)
        throttle.write_text(f"{whole_device(disk)} {limit}")
        params = small(disk, engine=engine, queue_depth=depth, duration_ns=2_500_000_000)

        def measure() -> tuple[str, bool]:
            trial = run("disk.io", params, inside=lambda: join(path))
            rate = trial.one("disk_operations_per_s")
            # The throttle works in slices of 100 ms; an edge may cut one, 4 % of the trial.
            return f"{rate:.1f} of {limit}", rate == pytest.approx(limit, rel=0.05)

        attempt(f"{engine} at depth {depth}", measure)


@pytest.mark.together
def test_a_file_that_fits_in_memory_is_a_cache_measurement(disk: Path) -> None:
    trial = run("disk.io", small(disk, direct=False))
    wanted = {"cached_operations_per_s", "cached_bytes_per_s", "cached_latency_ns"}
    assert trial.metrics == wanted
    assert "smaller than twice the memory" in trial.notes
    assert trial.read_bytes < MIB, "the reads went to the disk after all"


@needs_root
def test_a_file_of_twice_the_memory_is_a_disk_measurement(disk: Path) -> None:
    with group("memory") as path:
        (path / "memory.limit_in_bytes").write_text(str(32 * MIB))
        inside = lambda: join(path)  # noqa: E731
        more = {"file_bytes": 64 * MIB, "direct": False, "operation": "randread"}
        trial = run("disk.io", small(disk, **more), inside=inside)
        less = run("disk.io", small(disk, **{**more, "file_bytes": 60 * MIB}), inside=inside)
    assert trial.metrics == {"disk_operations_per_s", "disk_bytes_per_s", "disk_latency_ns"}
    assert less.metrics == {
        "cached_operations_per_s",
        "cached_bytes_per_s",
        "cached_latency_ns",
    }
    # At most half of the file can be cached, so at least half of the reads reach the disk.
    count, _ = trial.histogram("disk_latency_ns")
    assert trial.read_bytes >= count * 4096 / 2


@pytest.mark.together
def test_without_io_uring_the_synchronous_engine_says_so(disk: Path) -> None:
    def sandboxed() -> None:
        forbid(IO_URING_SETUP)

    trial = run("disk.io", small(disk, queue_depth=4), inside=sandboxed)
    assert {sample["factors"]["engine"] for sample in trial.samples} == {"sync"}
    assert "io_uring cannot be used here" in trial.notes
    assert refused("disk.io", small(disk, engine="io_uring"), inside=sandboxed) == (
        4,
        "no_io_uring",
    )


@pytest.mark.together
@pytest.mark.parametrize("benchmark", ["disk.io", "disk.sync"])
def test_files_in_memory_are_no_disk(benchmark: str) -> None:
    name = {"disk.io": "no_direct_io", "disk.sync": "no_disk"}[benchmark]
    assert refused(benchmark, {"directory": "/dev/shm"}) == (4, name)


def test_a_file_larger_than_the_free_space_is_refused(disk: Path) -> None:
    space = os.statvfs(disk)
    free = space.f_bavail * space.f_frsize
    assert refused("disk.io", small(disk, file_bytes=free)) == (4, "disk_full")


@pytest.mark.together
@needs_root
def test_a_full_file_system_is_named(tmp_path: Path) -> None:
    with file_systems.in_memory(tmp_path / "full", "size=1m") as path:
        (path / "ballast").write_bytes(b"x" * 900_000)
        params = small(path, direct=False, file_bytes=512 * 1024)
        assert refused("disk.io", params) == (4, "disk_full")


@pytest.mark.together
def test_space_that_ends_during_the_writing_is_named(disk: Path) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))

    assert refused("disk.io", small(disk), inside=limited) == (4, "disk_full")
    many = {"directory": str(disk), "record_bytes": MIB // 4, "operations": 50}
    assert refused("disk.sync", many, inside=limited) == (4, "disk_full")


@pytest.mark.together
@needs_root
@needs("mkfs.ext4")
def test_a_file_system_that_only_pretends_direct_io_is_found_out(tmp_path: Path) -> None:
    if not Path("/dev/loop-control").exists():
        lacking(Feature.LOOP_DEVICES)
    image, target = Path(f"/var/tmp/nephoscope-test-{os.getpid()}.img"), tmp_path / "journaled"
    target.mkdir()
    try:
        with image.open("wb") as file:
            file.truncate(100 * MIB)
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
        # ext4 takes O_DIRECT with data=journal and goes through the page cache all the same.
        options = ["-o", "loop,data=journal", str(image), str(target)]
        subprocess.run(["mount", *options], check=True)
        try:
            assert refused("disk.io", small(target)) == (4, "no_direct_io")
        finally:
            subprocess.run(["umount", str(target)], check=True)
    finally:
        image.unlink(missing_ok=True)


@pytest.mark.together
@needs_root
@pytest.mark.parametrize("benchmark", ["disk.io", "disk.sync"])
def test_a_read_only_directory_is_named(tmp_path: Path, benchmark: str) -> None:
    # A read-only view of a directory on a disk.
    source, target = Path("/var/tmp"), tmp_path / "view"
    target.mkdir()
    subprocess.run(["mount", "--bind", str(source), str(target)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(target)], check=True)
        given = {"directory": str(target)}
        assert refused(benchmark, given) == (4, "read_only_directory")
    finally:
        subprocess.run(["umount", str(target)], check=True)


@pytest.mark.together
@pytest.mark.parametrize("benchmark", ["disk.io", "disk.sync"])
def test_a_directory_of_somebody_else_is_named(disk: Path, benchmark: str) -> None:
    disk.chmod(0o555)

    def without_privileges() -> None:
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    given = {"directory": str(disk)}
    assert refused(benchmark, given, inside=without_privileges) == (4, "no_permission")
    disk.chmod(0o755)


@pytest.mark.together
@pytest.mark.parametrize(
    "params",
    [
        {"directory": "/nowhere/at/all"},
        {"directory": "/etc/passwd"},
        {"record_bytes": 1000},
        {"record_bytes": 64 * MIB, "queue_depth": 256},
        {"file_bytes": 4096, "queue_depth": 2},
        {"queue_depth": 257},
        {"operation": "trim"},
    ],
)
def test_what_cannot_be_asked_for_is_usage(params: dict[str, Any]) -> None:
    assert refused("disk.io", params) == (2, "usage")


def test_nothing_stays_behind_after_a_kill(disk: Path) -> None:
    moments = random.Random(4)
    before = os.statvfs(disk)
    for _ in range(6):
        with start("disk.io", small(disk, operation="randwrite", file_bytes=64 * MIB)) as process:
            time.sleep(moments.uniform(0.0, 0.4))
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert list(disk.iterdir()) == []
    # Nor any space: had all six files stayed, 384 MiB would be missing. Others write here too.
    after = os.statvfs(disk)
    assert (before.f_bfree - after.f_bfree) * before.f_frsize < 192 * MIB


@pytest.mark.together
@pytest.mark.parametrize("engine", ["io_uring", "sync"])
def test_a_signal_ends_the_trial(disk: Path, engine: str) -> None:
    params = small(disk, engine=engine, queue_depth=8, duration_ns=50_000_000_000)
    with start("disk.io", params) as process:
        time.sleep(0.7)
        process.terminate()
        told = time.monotonic()
        out, _ = process.communicate(timeout=120)
    # The probe's own bound is one second of grace; the rest is for a busy machine.
    assert time.monotonic() - told < 3
    assert process.returncode == 130
    assert '"cancelled"' in out


@pytest.mark.truth("disk.sync", "sync_latency_ns", "syncs_per_s")
@pytest.mark.parametrize("method", ["fsync", "fdatasync", "o_dsync"])
@pytest.mark.parametrize("append", [True, False])
def test_every_sync_reaches_the_device(disk: Path, method: str, append: bool) -> None:
    device = Path("/sys/dev/block") / whole_device(disk) / "stat"
    params = {"directory": str(disk), "method": method, "append": append, "operations": 40}
    params["duration_ns"] = 50_000_000_000
    writes_before = int(device.read_text().split()[4])
    trial = run("disk.sync", params)
    writes = int(device.read_text().split()[4]) - writes_before
    count, mean_ns = trial.histogram("sync_latency_ns")
    assert count == 40
    # One at a time, so each second is full; the histogram rounds to 3 digits.
    assert trial.one("syncs_per_s") * mean_ns / 1e9 == pytest.approx(1, rel=0.01)
    # The first one is not counted. Other programs can only add to the device's own count.
    assert writes >= 41


def test_syncing_ends_when_its_time_is_over(disk: Path) -> None:
    params = {"directory": str(disk), "operations": 1_000_000, "record_bytes": 1}
    trial = run("disk.sync", {**params, "duration_ns": 100_000_000})
    count, mean_ns = trial.histogram("sync_latency_ns")
    assert 1 <= count < 1_000_000
    # It ends with the operation that crosses the end, so not before it.
    assert count * mean_ns >= 0.99 * 100_000_000
