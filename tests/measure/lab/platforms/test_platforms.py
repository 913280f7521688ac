"""What platforms are made of, without making any: commands, archives, keys, what is lacking."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import struct
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from tests import hardware
from tests.hardware import Feature
from tests.measure.lab.platforms.plans import plan

from nephoscope.core.errors import UsageError
from nephoscope.measure.lab import images, names
from nephoscope.measure.lab.images import Image
from nephoscope.measure.lab.platform_table import GUESTS, TABLE
from nephoscope.measure.lab.platforms import PLATFORMS, container, control, guest, qemu
from nephoscope.measure.lab.platforms.base import Process, chrooted, last_words
from nephoscope.measure.lab.topology import topology_schema


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Disks of hosts are made below the test's folder."""
    monkeypatch.setattr(names, "DISKS", tmp_path / "disks")


def test_the_table_has_what_a_topology_may_say() -> None:
    stated = topology_schema()["$defs"]["HostSpec"]["properties"]["platform"]
    assert list(PLATFORMS) == list(TABLE) == stated["enum"]
    assert all(
        f"{name}: {entry.description}" in stated["description"] for name, entry in TABLE.items()
    )


def test_guests_are_those_of_the_table_and_know_their_names() -> None:
    guests = {name: one for name, one in PLATFORMS.items() if isinstance(one, guest.Guest)}
    assert tuple(guests) == GUESTS
    assert all(one.name == name for name, one in guests.items())


@pytest.mark.parametrize(
    ("platform", "sentence", "hint"),
    [
        ("container", "needs runc.", "apt-get install runc"),
        ("uml", "needs linux.uml and ip.", "apt-get install user-mode-linux iproute2"),
        ("qemu", "needs qemu-system-x86_64 and qemu-img and ip.", "qemu-system-x86 qemu-utils"),
    ],
)
def test_a_missing_program_is_named_with_its_package(
    platform: str, sentence: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("nephoscope.measure.lab.needs.sbin", lambda program: None)
    lacking = PLATFORMS[platform].lacking()
    assert lacking is not None
    assert lacking.exit_code == 4
    assert lacking.message == f"A host of platform {platform} {sentence}"
    assert hint in lacking.hint


def test_the_builder_is_needed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "nephoscope.measure.lab.needs.sbin", lambda p: None if p == "mmdebstrap" else "/bin/true"
    )
    lacking = images.lacking()
    assert lacking is not None
    assert str(lacking) == "A guest image needs mmdebstrap. Run `apt-get install mmdebstrap`."


def test_not_root_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for name in ("container", *GUESTS):
        assert str(PLATFORMS[name].lacking()) == (
            f"A host of platform {name} needs root. Run the command with sudo."
        )
    assert PLATFORMS["bare"].lacking() is None


CHROOTED = """
set -e
mount -t tmpfs tmpfs "$1"
for folder in /*; do
  [ -d "$folder" ] && [ ! -L "$folder" ] && mkdir "$1$folder" && mount --rbind "$folder" "$1$folder"
  [ ! -L "$folder" ] || cp -P "$folder" "$1/"
done
exec chroot "$1" "$2" -c "$3"
"""
ASK = """
from nephoscope.measure.lab.platforms.base import chrooted
print(chrooted('A host of platform container'))
"""


@hardware.needs(Feature.ROOT, os.geteuid() == 0)
def test_in_a_chroot_no_container_is_entered(tmp_path: Path) -> None:
    # Who runs this may do so in a chroot of their own: where it may be looked at, the first process
    # is outside of it.
    with contextlib.suppress(PermissionError):
        free = os.path.samestat(os.stat("/proc/1/root"), os.stat("/"))
        assert (chrooted("A host of platform container") is None) == free
    words = ["unshare", "--mount", "sh", "-c", CHROOTED, "sh", str(tmp_path), sys.executable, ASK]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "this is a chroot" in done.stdout
    # Nothing that was mounted there is left.
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_said_before_anything_starts(tmp_path: Path) -> None:
    qemu = PLATFORMS["qemu"]
    assert isinstance(qemu, guest.Guest)
    with pytest.raises(UsageError) as caught:
        qemu.memory(plan(tmp_path, memory="128MiB"))
    assert str(caught.value) == (
        "hosts.a.memory: 128 MiB are too few for a guest of platform qemu. Write at least 224MiB."
    )
    # The program's own memory is inside the host's limit.
    assert qemu.memory(plan(tmp_path, memory="512MiB")) == (512 - 128) << 20
    assert qemu.memory(plan(tmp_path)) == 1 << 30


def test_a_guest_is_told_what_it_is(tmp_path: Path) -> None:
    mine = plan(tmp_path)
    taps = guest.taps_of(mine)
    assert [tap.device for tap in taps] == ["tap-eth0", "tap-eth1", "control"]
    keys = control.make_keys(tmp_path)
    archive = tmp_path / "given.tar"
    guest.write_given(archive, guest.identity_files(mine, taps, keys))
    assert archive.stat().st_mode & 0o777 == 0o600
    with tarfile.open(archive) as tar:
        texts = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]
        assert tar.getmember("root/.ssh").mode == 0o700
        assert tar.getmember("etc/dropbear/host_key").mode == 0o600
    assert texts["etc/nephoscope/nics"].decode().splitlines() == [
        f"{taps[-1].mac} control 169.254.77.2/30 1500",
        "02:11:22:33:44:55 eth0 10.77.0.1/16 1500",
        "02:66:77:88:99:aa eth1 10.78.0.1/24 9000",
    ]
    assert texts["etc/nephoscope/routes"] == b"10.79.0.0/16 10.78.0.9\n"
    assert b"10.77.0.2 b\n" in texts["etc/hosts"]
    # It has two networks, so it passes packets on; IPv6 is off unless the topology says so.
    assert b"net/ipv4/ip_forward 1\n" in texts["etc/nephoscope/sysctls"]
    assert b"net/ipv6/conf/all/disable_ipv6 1\n" in texts["etc/nephoscope/sysctls"]


def test_the_end_outside_has_another_address() -> None:
    assert guest.outside("02:11:22:33:44:55") == "06:11:22:33:44:55"
    assert guest.outside(guest.outside("02:11:22:33:44:55")) == "02:11:22:33:44:55"


def test_keys_are_pinned_and_ours_alone(tmp_path: Path) -> None:
    keys = control.make_keys(tmp_path)
    again = control.make_keys(tmp_path)
    assert keys.host_key != again.host_key
    for path in (again.identity, again.known_hosts):
        assert path.stat().st_mode & 0o777 == 0o600
    address, kind, text = again.known_hosts.read_text().split()
    assert (address, kind) == ("169.254.77.2", "ssh-ed25519")
    # dropbear's file is the ssh name, then secret and public key in one string.
    public = base64.b64decode(text)[-32:]
    assert again.host_key == (
        struct.pack(">I", 11) + b"ssh-ed25519" + struct.pack(">I", 64) + again.host_key[-64:]
    )
    assert again.host_key.endswith(public)


def _image(tmp_path: Path) -> Image:
    return Image("k", tmp_path / "image", {"kernel": "6.1"})


def _secret_free(words: list[str], keys: control.Keys) -> bool:
    text = " ".join(words)
    return all(word not in text for word in keys.authorized.decode().split()[1:])


def test_the_machine_is_what_the_topology_says(tmp_path: Path) -> None:
    mine = plan(tmp_path, vcpus=3)
    qemu = PLATFORMS["qemu"]
    assert isinstance(qemu, guest.Guest)
    extra = {"accelerator": "tcg"}
    words = qemu.command(mine, _image(tmp_path), guest.taps_of(mine), 256 << 20, extra)
    assert words[words.index("-smp") + 1] == "3"
    assert words[words.index("-m") + 1] == "256"
    assert [word for word in words if word.startswith("tap,")] == [
        f"tap,id=n{number},ifname={name},script=no,downscript=no"
        for number, name in enumerate(("tap-eth0", "tap-eth1", "control"))
    ]
    assert any("mac=02:66:77:88:99:aa" in word for word in words)
    assert words[words.index("-accel") + 1].startswith("tcg")
    with_kvm = qemu.command(
        mine, _image(tmp_path), guest.taps_of(mine), 256 << 20, {"accelerator": "kvm"}
    )
    assert with_kvm[with_kvm.index("-accel") + 1] == "kvm"
    assert _secret_free(words, control.make_keys(tmp_path))


def test_user_mode_linux_gets_its_disks_and_interfaces(tmp_path: Path) -> None:
    mine = plan(tmp_path, "uml")
    uml = PLATFORMS["uml"]
    assert isinstance(uml, guest.Guest)
    words = uml.command(mine, _image(tmp_path), guest.taps_of(mine), 256 << 20, {})
    assert f"ubd0={tmp_path}/disks/paper/a/disk.cow,{tmp_path}/image.ext4" in words
    assert "mem=256M" in words
    assert any(word.startswith("vec1:transport=tap,ifname=tap-eth1,mac=02:66:77") for word in words)


def test_a_container_may_do_little(tmp_path: Path) -> None:
    host = plan(tmp_path, "container")
    assert host.hosts_text == "127.0.0.1 localhost\n10.77.0.1 a\n10.77.0.2 b\n"
    document = container.bundle(host)
    mounts = {mount["destination"]: mount["source"] for mount in document["mounts"]}
    assert mounts["/etc/hosts"] == str(host.hosts_path)
    json.dumps(document)
    process = document["process"]
    assert process["noNewPrivileges"] is True
    assert document["root"]["readonly"] is True
    for forbidden in (
        "CAP_SYS_ADMIN",
        "CAP_NET_ADMIN",
        "CAP_NET_RAW",
        "CAP_MKNOD",
        "CAP_SYS_PTRACE",
    ):
        assert forbidden not in process["capabilities"]["bounding"]
    assert document["linux"]["cgroupsPath"] == "/nephoscope/paper/a"
    spaces = {space["type"] for space in document["linux"]["namespaces"]}
    assert spaces == {"user", "pid", "ipc", "uts", "mount"}  # it is started in its network
    for kind in ("uidMappings", "gidMappings"):
        (ids,) = document["linux"][kind]
        assert (ids["containerID"], ids["size"]) == (0, 65536)
        assert 0x7100_0000 <= ids["hostID"] <= 0x7FFD_0000
    for mount in document["mounts"]:
        assert "nosuid" in mount["options"]


def test_a_process_is_known_by_more_than_its_id(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        file = tmp_path / "pid"
        file.write_text(f"{child.pid}\n")
        process = Process.read(file)
        assert process is not None
        process.write(file)
        assert Process.read(file) == process
        assert process.alive()
        # The same id with another start time is another process.
        file.write_text(f"{child.pid} {process.started_ticks - 100}\n")
        assert Process.read(file) is None
    finally:
        child.kill()
    until = time.monotonic() + 120
    while process.alive():  # a zombie does not count
        assert time.monotonic() < until
    child.wait()
    assert Process.read(tmp_path / "nothing") is None


def test_last_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_words(log) == "it said nothing"
    log.write_text("one\ntwo.\n\n")
    assert last_words(log) == "two"


def test_without_kvm_there_is_tcg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setattr(qemu, "_KVM", tmp_path / "kvm")
    kind, why = asyncio.run(qemu.find_accelerator(tmp_path / "vmlinuz", lambda line: None))
    assert (kind, why) == ("tcg", "there is no /dev/kvm that we may use")


def test_what_was_tried_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    tries = []

    async def boots(kernel: Path) -> bool:
        tries.append(kernel)
        return False

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(qemu, "_KVM", tmp_path)
    monkeypatch.setattr(qemu, "_boots", boots)
    monkeypatch.setattr(qemu, "_version", lambda: "QEMU 7.2")
    said: list[str] = []
    for _ in range(2):
        kind, why = asyncio.run(qemu.find_accelerator(tmp_path / "vmlinuz", said.append))
        assert kind == "tcg"
        assert why == "no kernel boots on /dev/kvm within 5 s"
    assert len(tries) == len(said) == 1
