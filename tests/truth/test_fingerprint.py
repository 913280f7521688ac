"""sys.fingerprint: planted files, limits that the test sets, and what other calls say."""

from __future__ import annotations

import os
import platform
import resource
import socket
from pathlib import Path

import pytest
import veth
from cpu_truth import group, last_cpu
from planted_files import seeing
from trials import command, needs_root
from trials import run as run_here
from trials import run_words as run

pytestmark = pytest.mark.together

BENCHMARK = "sys.fingerprint"


@pytest.mark.truth(BENCHMARK, "fingerprint", "memory_total_bytes", "available_cpus")
def test_the_document_says_what_system_calls_say() -> None:
    trial = run_here(BENCHMARK, {})
    found = trial.document("fingerprint")
    assert trial.one("memory_total_bytes") == found["memory"]["total_bytes"] == total_bytes()
    assert trial.one("available_cpus") == found["limits"]["available_cpus"]
    cpus = sorted(os.sched_getaffinity(0))
    assert found["topology"]["allowed_cpus"] == cpus
    assert found["kernel"]["release"] == platform.release()
    assert found["kernel"]["arch"] == platform.machine()
    assert found["memory"]["page_bytes"] == os.sysconf("SC_PAGE_SIZE")
    assert found["limits"]["open_files"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    (root,) = [mount for mount in found["disks"]["mounts"] if mount["role"] == "root"]
    space = os.statvfs("/")
    assert root["size_bytes"] == space.f_blocks * space.f_frsize
    names = {name for _, name in socket.if_nameindex()} - {"lo"}
    assert {port["name"] for port in found["nics"]["ports"]} == names
    assert found["abilities"]["root"] is (os.geteuid() == 0)


def total_bytes() -> int:
    return 1024 * int(Path("/proc/meminfo").read_text().split()[1])


@needs_root
@pytest.mark.truth(BENCHMARK, "memory_total_bytes", "fingerprint")
def test_planted_files_are_the_machine(tmp_path: Path) -> None:
    meminfo, cpuinfo = tmp_path / "meminfo", tmp_path / "cpuinfo"
    meminfo.write_text("MemTotal: 123456 kB\nMemAvailable: 7890 kB\nSwapTotal: 64 kB\n")
    cpuinfo.write_text("processor\t: 0\nvendor_id\t: Planted\nmodel name\t: Planted CPU\n")
    words = seeing({"/proc/meminfo": meminfo, "/proc/cpuinfo": cpuinfo})
    trial = run_here(BENCHMARK, {}, before=words)
    found = trial.document("fingerprint")
    assert trial.one("memory_total_bytes") == 123_456 * 1024
    memory = found["memory"]
    assert (memory["available_bytes"], memory["swap_total_bytes"]) == (7890 * 1024, 64 * 1024)
    assert found["cpu"]["by_cpuinfo"]["model_name"] == "Planted CPU"
    assert found["cpu"]["agree"] is False


@needs_root
@pytest.mark.truth(BENCHMARK, "available_cpus")
def test_a_quota_and_a_mask_are_what_is_available() -> None:
    with group() as limited:
        limited.limit(50_000, 100_000)
        assert run(limited.inside(command(BENCHMARK, {}))).one("available_cpus") == 0.5
    words = ["taskset", "-c", str(last_cpu()), *command(BENCHMARK, {})]
    assert run(words).one("available_cpus") == 1


@needs_root
@pytest.mark.truth(BENCHMARK, "nic_speed_bits_per_s")
def test_the_speed_of_a_port_is_that_of_its_driver(tmp_path: Path) -> None:
    with veth.pair() as path:
        file = "/sys/class/net/veth0/speed"
        megabits = int(veth.call([*path.near, "cat", file]))
        trial = run_here(BENCHMARK, {}, before=path.near)
        assert trial.by("nic_speed_bits_per_s", "nic") == {"veth0": megabits * 1e6}
        planted = tmp_path / "speed"
        planted.write_text("2500\n")
        trial = run_here(BENCHMARK, {}, before=[*path.near, *seeing({file: planted})])
        assert trial.by("nic_speed_bits_per_s", "nic") == {"veth0": 2.5e9}
