"""Shares of time from counters that the test sets; and the readers of /proc on real processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

import pytest
from tests.hardware import Feature, lacking

from nephoscope.core.errors import Lacking, RunFailed, UsageError
from nephoscope.features.advise import hardware_counters, observe, processes, sockets, telemetry
from nephoscope.features.advise.machine_counters import Device, devices, pressure
from nephoscope.features.advise.processes import Process, ProcessTree, Thread
from nephoscope.features.advise.sockets import TcpSocket
from nephoscope.features.advise.telemetry import Snapshot, Telemetry

ROOT = (10, 1)
STEP_S = 0.1
COUNT = 40


def snapshots(
    *,
    running: float = 0.0,
    waiting: float = 0.0,
    in_disk: Sequence[bool] = (),
    short_lived: float = 0.0,
    threads: int = 1,
    connection: TcpSocket | None = None,
    device_busy: float = 0.0,
    own_bytes: int = 0,
    other_bytes: int = 0,
    stalls: Mapping[str, float] | None = None,
) -> list[Snapshot]:
    """A process of constant behaviour: shares of the time, bytes and connection per step."""
    made = []
    for number in range(COUNT):
        seconds = number * STEP_S
        state = "D" if in_disk and in_disk[number % len(in_disk)] else "S"
        thread = Thread(int(1e9 * running * seconds), int(1e9 * waiting * seconds), state)
        cpu_s = (threads * running + short_lived) * seconds
        process = Process(cpu_s, number * own_bytes, 0, 0, 5 * number, 1000 + number)
        moved = number * (own_bytes + other_bytes)
        grown = None
        if connection is not None:
            counters = (connection.sent_bytes, connection.received_bytes, connection.busy_us)
            grown = TcpSocket(
                connection.local_only,
                connection.outgoing,
                *(number * counter for counter in counters),
                connection.rtt_us,
            )
        made.append(
            Snapshot(
                seconds,
                {ROOT: process},
                {(*ROOT, place): thread for place in range(threads)},
                {} if grown is None else {b"cookie": grown},
                {"vda": Device(int(1e3 * device_busy * seconds), moved)},
                {name: int(1e6 * share * seconds) for name, share in (stalls or {}).items()},
                {},
            )
        )
    return made


def of(cpus: int = 2, **behaviour: object) -> Telemetry:
    return telemetry.analyse("made", snapshots(**behaviour), cpus)  # type: ignore[arg-type]


def shares(found: Telemetry) -> dict[str, float]:
    return {entry.resource: pytest.approx(entry.share.value, abs=0.01) for entry in found.shares}


def test_a_compression_uses_the_cpu() -> None:
    found = of(running=0.98)
    assert shares(found) == {"cpu": 0.98, "memory": 0, "disk": 0, "network": 0}
    assert found.dominant == "cpu"
    assert found.cpus.value == pytest.approx(0.98, abs=0.01)


def test_a_host_that_is_busy_with_others_changes_no_share() -> None:
    alone = of(running=0.4, in_disk=[False, True])
    contended = of(running=0.1, waiting=0.75, in_disk=[False, True, *[False] * 6])
    assert contended.cpu_wait.value == pytest.approx(0.75, abs=0.01)
    for name in ("cpu", "disk"):
        shares = (alone.share(name).value, contended.share(name).value)
        assert shares[1] == pytest.approx(shares[0], abs=0.06)
    assert of(running=0.29, waiting=0.7).dominant == "cpu"
    assert contended.notes[0].startswith("It waited for a CPU for 75 % of the time.")
    assert alone.notes == ()


def test_idle_threads_do_not_dilute_a_busy_one_and_many_small_ones_do_not_saturate() -> None:
    assert of(running=0.1, threads=8, cpus=8).share("cpu").value == pytest.approx(0.1, abs=0.01)
    assert of(running=0.5, threads=4, cpus=2).share("cpu").value == pytest.approx(1.0, abs=0.01)


def test_processes_that_live_between_two_readings_count() -> None:
    assert of(short_lived=0.7).share("cpu").value == pytest.approx(0.7, abs=0.01)


def test_uninterruptible_sleep_is_waiting_for_storage() -> None:
    found = of(running=0.1, in_disk=[True, True, True, True, False])
    assert found.share("disk").value == pytest.approx(0.8, abs=0.03)
    assert found.dominant == "disk"


def test_asynchronous_requests_show_in_the_device_by_their_part_of_its_bytes() -> None:
    found = of(device_busy=0.9, own_bytes=3_000_000, other_bytes=1_000_000)
    assert found.share("disk").value == pytest.approx(0.675, abs=0.01)
    assert found.storage_bytes_per_s == pytest.approx(30e6)
    assert of(device_busy=0.9, other_bytes=1_000_000).share("disk").value == 0


def test_a_sender_is_busy_and_a_receiver_awaits_answers() -> None:
    sender = TcpSocket(False, True, 100_000, 0, 90_000, 2_000)
    assert of(connection=sender).share("network").value == pytest.approx(0.9, abs=0.01)
    receiver = TcpSocket(False, True, 0, 100_000, 0, 2_000)
    found = of(running=0.2, connection=receiver)
    assert found.share("network").value == pytest.approx(0.8, abs=0.01)
    assert found.received_bits_per_s == pytest.approx(8e6)
    assert found.rtt_ns == 2e6
    assert found.dominant == "network"


def test_a_server_that_receives_requests_does_not_await_them() -> None:
    served = TcpSocket(False, False, 100, 100, 0, 2_000)
    assert of(connection=served).dominant == "none"


def test_loopback_is_no_network() -> None:
    found = of(running=0.9, connection=TcpSocket(True, False, 10_000, 10_000, 100_000, 20))
    assert found.share("network").value == 0
    assert found.loopback_bits_per_s == pytest.approx(1.6e6)
    assert found.dominant == "cpu"


def test_idle_and_mixed_have_words_of_their_own() -> None:
    assert of().dominant == "none"
    assert of(running=0.3).dominant == "mixed"
    assert of(running=0.7, in_disk=[True, False]).dominant == "mixed"


def test_pressure_of_the_machine_bounds_the_memory_share() -> None:
    found = of(stalls={"memory some": 0.25, "io some": 0.5})
    assert found.share("memory").value == pytest.approx(0.25, abs=0.01)
    assert found.share("disk").value == 0
    assert found.pressure["io some"] == pytest.approx(0.5, abs=0.01)


def test_a_share_has_an_interval_within_0_and_1() -> None:
    share = of(running=0.2, in_disk=[True, False, False]).share("disk")
    assert share.low is not None
    assert share.high is not None
    assert 0 <= share.low < share.value < share.high <= 1
    assert share.n == telemetry.BATCHES


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "600"])
    yield child
    child.kill()
    child.wait()


def test_a_tree_reads_a_real_process(sleeper: subprocess.Popen[bytes]) -> None:
    tree = ProcessTree(sleeper.pid)
    (member,) = tree.refresh()
    assert member[0] == sleeper.pid
    assert [key[2] for key in tree.threads()] == [sleeper.pid]
    assert processes.is_member_alive(member)
    sleeper.kill()
    sleeper.wait()
    assert not processes.is_member_alive(member)
    assert not tree.refresh()


def test_orphans_stay_in_the_tree() -> None:
    inherit = ctypes.CDLL(None).prctl
    inherit(36, 1, 0, 0, 0)
    try:
        script = "sleep 600 > /dev/null & echo $!"
        before = processes.children_of(os.getpid())
        shell = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE)
        tree = ProcessTree(heir=os.getpid(), before=before)
        assert shell.stdout is not None
        with shell.stdout:
            orphan = int(shell.stdout.read())
        shell.wait()
        assert orphan in {pid for pid, _ in tree.refresh()}
    finally:
        inherit(36, 0, 0, 0, 0)
        with contextlib.suppress(ProcessLookupError):
            os.kill(orphan, signal.SIGKILL)
        os.waitpid(orphan, 0)


def test_connections_of_a_process_have_their_bytes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        with client, accepted:
            client.sendall(b"x" * 1000)
            assert accepted.recv(1000, socket.MSG_WAITALL) == b"x" * 1000
            inodes = sockets.inodes_of([os.getpid()])
            assert inodes is not None
            number = os.fstat(accepted.fileno()).st_ino
            (entry,) = sockets.connections(inodes & {number}).values()
            assert entry.local_only
            assert entry.received_bytes == 1000
            assert not entry.outgoing
            (other,) = sockets.connections({os.fstat(client.fileno()).st_ino}).values()
            assert other.outgoing
            assert sockets.connections({number + 1_000_000}) == {}


def test_counters_of_this_machine_are_read_or_absent() -> None:
    assert all(device.busy_ms >= 0 for device in devices().values())
    assert all(" " in name for name in pressure())


@pytest.mark.parametrize(
    ("line", "error", "sentence"),
    [
        ("", UsageError, "--command is empty"),
        ("sleep 'x", UsageError, "cannot be split"),
        ("no-such-program-here 1", Lacking, "'no-such-program-here' cannot be started"),
        ("false", RunFailed, "too soon to be observed"),
        ("sh -c 'echo broken >&2; exit 3'", RunFailed, "with exit code 3 ('broken')"),
    ],
)
def test_a_command_that_cannot_be_observed_is_one_sentence(
    line: str, error: type[Exception], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long a program takes to start and to end, it is too short.
    monkeypatch.setattr(observe, "LEAST_S", 1e6)
    with pytest.raises(error) as failure:
        observe.of_command(line, 3600.0)
    assert sentence in str(failure.value)


def test_a_pid_without_process_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no process 4194305"):
        observe.of_process(4_194_305, 1.0)


def test_a_command_and_its_children_are_ended() -> None:
    marker = f"6{os.getpid()}"
    observe.of_command(f"sh -c 'sleep {marker} & sleep {marker}'", 1.0)
    left = [
        entry
        for entry in os.listdir("/proc")
        if entry.isdigit() and marker in _command_line(int(entry))
    ]
    assert not left


def test_a_signal_to_the_observer_ends_the_command() -> None:
    marker = f"7{os.getpid()}"
    words = ["advise", "--command", f"sleep {marker}", "--time", "1h"]
    observer = subprocess.Popen(
        [sys.executable, "-m", "nephoscope", *words], stderr=subprocess.DEVNULL
    )
    name = b"sleep\0" + marker.encode()
    while not (left := _processes(name)):
        assert observer.poll() is None
        time.sleep(0.02)
    observer.terminate()
    assert observer.wait() == 130
    assert len(left) == 1
    assert not _processes(name)


def _processes(start: bytes) -> list[int]:
    numbers = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [number for number in numbers if _command_line(number).encode().startswith(start)]


def _command_line(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def test_event_counters_count_or_say_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Task clock and page faults stand for the hardware's events, which most guests lack."""
    events = {"cycles": (1, 1), "instructions": (1, 2)}
    monkeypatch.setattr(hardware_counters, "EVENTS", events)
    counters = hardware_counters.EventCounters([os.getpid()])
    blocks = [bytearray(1 << 20) for _ in range(20)]
    found = counters.read()
    assert len(blocks) == 20
    if found.hidden:
        lacking(Feature.PERF_EVENTS, str(found.hidden))
    assert found.counts["cycles"] > 0
    assert found.misses_per_1000_instructions is None


def test_missing_events_are_hidden_and_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware_counters, "EVENTS", {"cycles": (1, 9999)})
    found = hardware_counters.EventCounters([os.getpid()]).read()
    assert found.hidden
    assert found.instructions_per_cycle is None
