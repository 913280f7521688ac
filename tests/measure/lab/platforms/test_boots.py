"""All four platforms, booted side by side in one lab that the tests share."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests import hardware
from tests.hardware import Feature
from tests.tools import needs

from nephoscope.core.errors import Lacking, RunFailed
from nephoscope.measure.lab import bringup, conditions, files, images, names
from nephoscope.measure.lab.handle import GuestAccess, Host, Lab
from nephoscope.measure.lab.images import Image
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.platforms import PLATFORMS, container, control
from nephoscope.measure.lab.provisioner import LABS
from nephoscope.measure.targets.lab import LabTarget

pytestmark = [
    hardware.needs(Feature.ROOT, os.geteuid() == 0),
    needs("ip", "tc", "runc", "linux.uml", "qemu-system-x86_64", "qemu-img", "mmdebstrap"),
]

HOSTS = ("bare", "container", "uml", "qemu")
GUESTS = ("uml", "qemu")
MAY_LACK = ("uml",)
"""Its kernel does not run on every CPU; the tests of the others need no such host."""

_Result = TypeVar("_Result")


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """One loop for all of them: connections belong to the loop they were made in."""
    made = asyncio.new_event_loop()
    yield made
    made.close()


def _topology(name: str, **hosts: dict[str, Any]) -> Any:
    third = 1 + secrets.randbelow(250)
    values = {"version": 1, "name": name, "network": f"10.{third}.0.0/16", "hosts": hosts}
    return files.from_values(values)


def _needs_platforms(*chosen: str) -> None:
    """Skips the test where this machine lacks what one of the platforms needs."""
    for each in chosen:
        if (lacking := _lacking(each)) is not None:
            hardware.lacking(Feature.LAB, str(lacking))


@functools.cache
def _lacking(platform: str) -> Lacking | None:
    return PLATFORMS[platform].lacking()


def _host(lab: Lab, name: str) -> Host:
    """A host of the lab; skips the test where this machine cannot run its platform."""
    if name in MAY_LACK:
        _needs_platforms(name)
    return lab.hosts[name]


def _present(lab: Lab, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those that the lab has: all but such as may lack."""
    assert set(HOSTS) - set(lab.hosts) <= set(MAY_LACK)
    return tuple(name for name in names if name in lab.hosts)


@pytest.fixture(scope="module")
def lab(loop: asyncio.AbstractEventLoop) -> Iterator[Lab]:
    """A lab with a host of each platform."""
    _needs_platforms(*(name for name in HOSTS if name not in MAY_LACK))
    name = f"t{secrets.token_hex(4)}"
    hosts = [host for host in HOSTS if host not in MAY_LACK or _lacking(host) is None]
    topology = _topology(name, **{host: {"platform": host} for host in hosts})
    try:
        made = loop.run_until_complete(LABS.create(topology, say=print))
        for host in made.hosts.values():
            assert host.boot is not None
            sys.stdout.write(f"{host.name}: {host.boot.says()}; {dict(host.details)}\n")
        yield made
    finally:
        if LABS.remains(name):
            loop.run_until_complete(LABS.remove(name))
        assert LABS.remains(name) == []


def _guest(host: Host) -> GuestAccess:
    assert host.guest is not None
    return host.guest


def _inside(loop: asyncio.AbstractEventLoop, host: Host, command: str) -> str:
    """What a shell command prints inside a host."""

    async def by_ssh() -> str:
        async with control.login(_guest(host), 30) as connection:
            done = await connection.run(command, timeout=120)
            return f"{done.stdout!s}{done.stderr!s}"

    if host.guest is not None:
        return loop.run_until_complete(by_ssh())
    words = [*host.enter(), "/bin/sh", "-c", command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout + done.stderr


def test_segments_are_in_order(lab: Lab) -> None:
    for name in _present(lab, HOSTS):
        boot = lab.hosts[name].boot
        assert boot is not None
        marks = [at for at in boot.marks().values() if at is not None]
        assert marks == sorted(marks), name
        assert marks[0] > 0
        # Every mark that is missing says why, and no other does.
        assert set(boot.reasons) == {key for key, at in boot.marks().items() if at is None}
    # On a busy machine the first output may be seen together with the line after it.
    missing = {
        name: set(host.boot.reasons) - {"output"}  # type: ignore[union-attr]
        for name, host in lab.hosts.items()
    }
    wanted = {"bare": {"kernel", "userland"}, "container": {"kernel"}, "uml": set(), "qemu": set()}
    assert missing == {name: wanted[name] for name in _present(lab, HOSTS)}


def test_each_has_the_kernel_that_it_should(lab: Lab, loop: asyncio.AbstractEventLoop) -> None:
    releases = {name: _inside(loop, host, "uname -r").strip() for name, host in lab.hosts.items()}
    assert releases["bare"] == releases["container"] == os.uname().release
    assert releases["qemu"] == lab.hosts["qemu"].details["kernel"]
    assert len({releases[name] for name in ("bare", *_present(lab, GUESTS))}) == len(lab.hosts) - 1


@pytest.mark.parametrize("name", HOSTS)
def test_the_probe_runs_inside(lab: Lab, loop: asyncio.AbstractEventLoop, name: str) -> None:
    _host(lab, name)

    async def measure() -> None:
        target = LabTarget(name, lab.name, name)
        try:
            fingerprint = await target.open(60)
            assert fingerprint["kernel"]["release"]
            for benchmark in ("null", "sys.fingerprint"):
                trial = await target.run(benchmark, {}, 60)
                assert trial.failure is None, trial.stderr_tail
                assert trial.done is not None
                assert trial.done.samples > 0 or trial.documents
        finally:
            await target.close()

    loop.run_until_complete(measure())


def test_a_guest_has_the_hosts_address_on_the_link(
    lab: Lab, loop: asyncio.AbstractEventLoop
) -> None:
    # The bare host reaches each over the switch: a closed port is refused by whoever has the
    # address, and nothing else of the host has it.
    for name in ("container", *_present(lab, GUESTS)):
        host = lab.hosts[name]
        outside = subprocess.run(
            ["ip", "-n", host.netns.name, "-o", "-4", "addr", "show"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert (f" {host.address}/" in outside) == (name == "container")
        words = [
            *lab.hosts["bare"].enter(),
            "/usr/bin/env",
            "python3",
            "-c",
            _CONNECT,
            host.address,
        ]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
        assert done.stdout.strip() == "ConnectionRefusedError", done.stderr
    for name in _present(lab, GUESTS):
        assert lab.hosts[name].mac in _inside(
            loop, lab.hosts[name], "cat /sys/class/net/eth0/address"
        )


_CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 22), 10)
except OSError as error:
    print(type(error).__name__)
"""


def test_hosts_are_known_by_name(lab: Lab, loop: asyncio.AbstractEventLoop) -> None:
    for name in _present(lab, GUESTS):
        assert _inside(loop, lab.hosts[name], "hostname").strip() == name
        known = _inside(loop, lab.hosts[name], "cat /etc/hosts")
        assert f"{lab.hosts['bare'].address} bare" in known


def test_a_container_cannot_change_its_root(lab: Lab, loop: asyncio.AbstractEventLoop) -> None:
    host = lab.hosts["container"]
    assert "Read-only file system" in _inside(loop, host, "touch /usr/x")
    assert "Operation not permitted" in _inside(loop, host, "mknod /tmp/sda b 8 0")
    assert "NoNewPrivs:\t1" in _inside(loop, host, "cat /proc/self/status")
    for folder in ("/tmp", "/var/tmp", "/root"):
        assert _inside(loop, host, f"echo here > {folder}/x && cat {folder}/x") == "here\n"
    # Its root is a user without rights on this machine.
    inside, outside, count = map(int, _inside(loop, host, "cat /proc/self/uid_map").split())
    assert (inside, count) == (0, 65536)
    assert outside >= 0x7100_0000
    # Its processes are its own, and it is where its namespace is.
    assert _inside(loop, host, "cat /proc/1/cmdline").startswith("/bin/busybox")
    assert _inside(loop, host, "ls /sys/class/net").split() == ["eth0", "lo"]


def test_a_container_cannot_manage_the_machine(lab: Lab, loop: asyncio.AbstractEventLoop) -> None:
    host = lab.hosts["container"]
    status = _inside(loop, host, "cat /proc/self/status")
    assert "Seccomp:\t2" in status
    # Calls that need no capability: a user namespace, and the kernel's keys.
    for number, arguments in ((272, 0x1000_0000), (250, 0)):
        words = f"perl -e 'print syscall({number}, {arguments}) < 0 ? $! : 0'"
        assert _inside(loop, host, words) == "Operation not permitted", number
    # A fork bomb, with as many processes as may be.
    words = (
        "perl -e 'for (;;) { defined(my $p = fork) or last; $p or sleep 60, exit; $n++ } print $n'"
    )
    forks = _inside(loop, host, f"{words}; kill -9 -1")
    assert container.PIDS_MAX - 100 < int(forks) < container.PIDS_MAX


def test_a_guest_reaches_no_file_of_this_machine(lab: Lab, loop: asyncio.AbstractEventLoop) -> None:
    """User-Mode Linux has a file system that shows this machine's folders (hostfs)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "secret").write_text("secret\n")
        for path in (name, f"/../../../../../../../..{name}", "/../../../../../../../.."):
            words = (
                f'syscall(165, "none", "/mnt", "hostfs", 0, "{path}") == 0 or print "$!\\n"; '
                'system("cat /mnt/secret; echo x >/mnt/x; echo x >/mnt/usr/x; ls /mnt"); '
                'syscall(166, "/mnt", 0)'
            )
            seen = _inside(loop, _host(lab, "uml"), f"perl -e '{words}'")
            assert "secret\n" not in seen, seen
            assert not {"root", "home", "proc"} & set(seen.split()), seen
        assert [path.name for path in folder.iterdir()] == ["secret"]
    assert not Path("/usr/x").exists()


def test_the_processes_of_a_host_are_of_users_without_rights(lab: Lab) -> None:
    for guest in ("container", *_present(lab, GUESTS)):
        statuses = []
        for process in cgroups.host(lab.name, guest).processes():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                statuses.append(Path(f"/proc/{process}/status").read_text())
        assert statuses, guest
        for status in statuses:
            real, effective = re.findall(r"^Uid:\t(\d+)\t(\d+)", status, re.MULTILINE)[0]
            assert int(real) == int(effective) >= 0x7000_0000, guest
            assert "NoNewPrivs:\t1" in status


def test_everything_of_a_host_is_in_its_groups(lab: Lab) -> None:
    for name in ("container", *_present(lab, GUESTS)):
        group = cgroups.host(lab.name, name)
        assert group.processes(), name
    # The keys of guests lie in folders that only root may enter.
    for name in _present(lab, GUESTS):
        access = _guest(lab.hosts[name])
        assert access.identity.stat().st_mode & 0o777 == 0o600
        assert access.identity.parent.stat().st_mode & 0o777 == 0o700


def test_a_guest_with_another_key_is_not_talked_to(
    lab: Lab, loop: asyncio.AbstractEventLoop, tmp_path: Path
) -> None:
    access = _guest(lab.hosts[_present(lab, GUESTS)[0]])
    (tmp_path / "keys").mkdir()
    other = control.make_keys(tmp_path / "keys")

    async def enter(changed: GuestAccess) -> None:
        async with control.login(changed, 30):
            pass

    with pytest.raises(RunFailed, match="does not let us in: Host key is not trusted"):
        loop.run_until_complete(enter(replace(access, known_hosts=other.known_hosts)))
    with pytest.raises(RunFailed, match="does not let us in: Permission denied"):
        loop.run_until_complete(enter(replace(access, identity=other.identity)))


def test_clocks_are_set_and_the_rest_is_known(lab: Lab, loop: asyncio.AbstractEventLoop) -> None:
    for name in _present(lab, GUESTS):
        told = lab.hosts[name].details["clock"]
        # Ours against the guest's can only be known to half a round trip, which a busy machine
        # makes long: the claim is that the clock was set as well as it could be measured.
        assert abs(told["offset_ns"]) <= max(told["uncertainty_ns"], 1_000_000), name
        access = _guest(lab.hosts[name])

        async def shifted(
            access: GuestAccess = access,
        ) -> tuple[control.ClockOffset, control.ClockOffset]:
            async with control.login(access, 30) as connection:
                await connection.run(
                    "echo 'step 250000000' | /usr/lib/nephoscope/clock", check=True
                )
                process = await connection.create_process(
                    "exec /usr/lib/nephoscope/clock", encoding=None
                )
                offset = await control._offset(process)
                process.close()
            return offset, await control.set_clock(access)

        before, after = loop.run_until_complete(shifted())
        # The kernel adds the quarter of a second in one call, so that it is known to within what
        # the two measurements allow; 5 ms more for the drift of the clocks since the guest booted.
        slack = before.uncertainty_ns + abs(told["offset_ns"]) + told["uncertainty_ns"] + 5_000_000
        assert abs(before.offset_ns - 250_000_000) <= slack, name
        assert abs(after.offset_ns) <= max(after.uncertainty_ns, 1_000_000), name


@pytest.mark.parametrize("name", ["container", "uml"])
def test_a_reboot_keeps_the_disk_and_a_new_instance_does_not(
    lab: Lab, loop: asyncio.AbstractEventLoop, name: str
) -> None:
    first = _host(lab, name).boot
    _inside(loop, lab.hosts[name], "echo kept > /root/left; sync")
    for level, found in (("boot", "kept"), ("instance", "No such file or directory")):
        times = loop.run_until_complete(conditions.renew(lab, name, level))  # type: ignore[arg-type]
        assert times is not None
        assert times != first
        assert found in _inside(loop, lab.hosts[name], "cat /root/left"), level
        assert LABS.open(lab.name).hosts[name].boot == times


def test_stopping_in_order_is_quick_and_leaves_no_process(
    lab: Lab, loop: asyncio.AbstractEventLoop
) -> None:
    laid = bringup.layout.lay_out(lab.topology)
    for name in ("container", *_present(lab, GUESTS)):
        plan = bringup.plan_of(laid, name)
        loop.run_until_complete(PLATFORMS[name].stop(plan))
        assert cgroups.host(lab.name, name).processes() == []
        loop.run_until_complete(PLATFORMS[name].stop(plan))  # twice does no harm
        devices = os.listdir(f"/run/nephoscope/{lab.name}/{name}")
        assert "pid" in devices or "init.pid" in devices
        if name in GUESTS:
            # It went by itself: the kernel's own last words are on the console.
            console = (plan.directory / "console.log").read_text(errors="replace")
            assert (
                "nephoscope: power off" in console.splitlines()[-3:] or "reboot:" in console[-200:]
            )
        links = subprocess.run(
            ["ip", "-n", plan.netns.name, "-br", "link"], capture_output=True, text=True, check=True
        ).stdout
        assert sorted(line.split("@")[0].split()[0] for line in links.splitlines()) == [
            "eth0",
            "lo",
        ]
        assert lab.hosts[name].mac in links


def test_a_host_that_never_boots_is_told_and_cleaned(
    loop: asyncio.AbstractEventLoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _needs_platforms("uml")
    blank = tmp_path / "disk.ext4"
    with blank.open("wb") as file:
        file.truncate(8 << 20)
    (tmp_path / "image.json").write_text("{}")

    async def broken(say: object) -> Image:
        return Image("broken", tmp_path, {"kernel": "none"})

    monkeypatch.setattr(images, "ensure", broken)
    name = f"t{secrets.token_hex(4)}"
    began = time.monotonic()
    with pytest.raises((RunFailed, ExceptionGroup)) as caught:
        loop.run_until_complete(LABS.create(_topology(name, u={"platform": "uml"}), say=print))
    message = str(_only(caught.value))
    assert message.startswith(
        "host u (uml) ended: its kernel had begun, its userland had not; its last line was '"
    )
    assert time.monotonic() - began < 60
    assert LABS.remains(name) == []


def _only(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        assert len(error.exceptions) == 1
        error = error.exceptions[0]
    return error


@pytest.mark.parametrize("after_s", [0.3, 1.0, 2.5])
def test_a_kill_while_guests_start_leaves_what_down_removes(
    lab: Lab, loop: asyncio.AbstractEventLoop, tmp_path: Path, after_s: float
) -> None:
    # `lab` is there so that the image is; only this one may be touched.
    name = f"t{secrets.token_hex(4)}"
    file = tmp_path / "two.yaml"
    third = 1 + secrets.randbelow(250)
    file.write_text(
        f"version: 1\nname: {name}\nnetwork: 10.{third}.0.0/16\n"
        f"hosts: {{c: {{platform: container}}, u: {{platform: {_present(lab, GUESTS)[0]}}}}}\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-m", "nephoscope", "lab", "up", str(file)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 120
    while not names.directory(name).exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    time.sleep(after_s)
    child.kill()
    child.wait()
    loop.run_until_complete(LABS.remove(name))
    assert LABS.remains(name) == []
    left = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]
    assert left == []
    assert _processes_of(name) == []
    assert name not in names.labs_in(names.RUN)
    assert LABS.open(lab.name).name == lab.name


def _processes_of(name: str) -> list[str]:
    """Command lines of processes that mention a lab."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if name in words:
                found.append(words)
    return found
