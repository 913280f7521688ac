"""A guest of known memory on either of two lab hosts, and its migration from one to the other."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nephoscope.core.errors import Lacking, RunFailed
from nephoscope.core.format_versions import TOPOLOGY
from nephoscope.core.programs import find_launcher
from nephoscope.core.tasks import uncancelled
from nephoscope.measure.lab import files, images
from nephoscope.measure.lab.handle import Host, Lab, Nic
from nephoscope.measure.lab.images import Image, initramfs
from nephoscope.measure.lab.migration.heartbeats import PORT, Heartbeats
from nephoscope.measure.lab.migration.qmp import Monitor
from nephoscope.measure.lab.network import namespaces
from nephoscope.measure.lab.platforms import confinement, guest
from nephoscope.measure.lab.platforms.base import end_group, last_words, launch
from nephoscope.measure.lab.platforms.guest import Tap
from nephoscope.measure.lab.platforms.qemu import (
    PLATFORM,
    find_accelerator,
    machine_words,
    network_words,
)
from nephoscope.measure.lab.provisioner import LABS

HOSTS = ("first", "second")
CLIENT, SWITCH, LINK = "client", "lan", "migration"
MIGRATION_PORT = 4444
KERNEL_BYTES = 96 << 20
"""What a guest's kernel and its first root need; the rest of its memory can be filled."""
FRAME_PAYLOAD = 1448 / 1514
"""Share of a full Ethernet frame that is payload of TCP with timestamps; RFC 7323, 3.2."""
_SEND_BUFFER = "4096 65536 131072"
"""Bytes that a socket holds. What it holds when the guest pauses is sent first, as if it were dirty
memory; the kernel's own maximum of 4 MiB would lengthen pauses by tenths of a second."""
_FLUSHING = "pti=on "
"""Empties the emulated TLB at every system call and interrupt. QEMU before 9.0 forgets to do so
when it looks for dirty pages under TCG, and misses what the guest then writes: guests crash after
their migration. Source: "Fix migration dirty bitmap coherency with TCG memory access", QEMU 9.0."""
HEARTBEAT_INTERVAL_S = 0.002
_BOOT_S, _MONITOR_S, _POLL_S, _RESUME_S = 120.0, 60.0, 0.05, 20.0
_CANCEL_S = 30.0
_COMPLETED, _CANCELLED, _FAILED = "completed", "cancelled", "failed"


@dataclass(frozen=True, slots=True)
class GuestSpec:
    """Memory of the guest and of its program, the link, and QEMU's bound of the pause."""

    memory_bytes: int
    working_set_bytes: int
    filled_bytes: int
    link_bits_per_s: float
    downtime_limit_ns: int

    @property
    def bytes_per_s(self) -> float:
        """Payload that the link carries."""
        return self.link_bits_per_s / 8 * FRAME_PAYLOAD


@dataclass(frozen=True, slots=True)
class MigrationEvents:
    """One migration as QEMU reports it. Times in ns since the epoch; ram: its last counters.

    paused_ns, resumed_ns: the source's STOP and the destination's RESUME; None of a migration that
    did not complete. first_round_bytes: pages sent before dirty ones were looked for again.
    """

    began_ns: int
    ended_ns: int
    paused_ns: int | None
    resumed_ns: int | None
    downtime_ms: int | None
    first_round_bytes: int
    ram: Mapping[str, int]


def lacking() -> Lacking | None:
    """Returns what this machine lacks for migrations."""
    return PLATFORM.lacking()


@contextlib.asynccontextmanager
async def migration_lab(
    name: str, spec: GuestSpec, say: Callable[[str], None]
) -> AsyncIterator[MigratingGuest]:
    """A lab with a guest that has booted and answers; removed at the end of the block."""
    image = await images.ensure(say)
    accelerator, _ = await find_accelerator(image.kernel, say)
    topology = files.from_values(
        {
            "version": TOPOLOGY.version,
            "name": name,
            "hosts": {host: {} for host in (*HOSTS, CLIENT)},
            "switches": {SWITCH: {}},
            "links": {
                **{f"to-{host}": {"between": [host, SWITCH]} for host in (*HOSTS, CLIENT)},
                LINK: {"between": list(HOSTS), "rate": f"{spec.link_bits_per_s:.0f}bit/s"},
            },
        }
    )
    lab = await LABS.create(topology, say=lambda sentence: None)
    made = MigratingGuest(lab, spec, image, accelerator)
    try:
        await made.boot()
        yield made
    finally:
        await uncancelled(made.close())
        await uncancelled(LABS.remove(name))


class MigratingGuest:
    """A guest with the two hosts that it can run on; `migrate` moves it to the other one."""

    def __init__(self, lab: Lab, spec: GuestSpec, image: Image, accelerator: str) -> None:
        self.spec, self.accelerator = spec, accelerator
        self._lab, self._image = lab, image
        self._hosts = [lab.hosts[host] for host in HOSTS]
        self._monitor: Monitor | None = None
        self._heartbeats: Heartbeats | None = None
        lan = _nic(self._hosts[0], SWITCH)
        self._mac = lan.mac
        network = ipaddress.ip_interface(f"{lan.address}/{lan.prefix_bits}").network
        self._address = f"{network[-2]}"
        self._prefix_bits = lan.prefix_bits

    @property
    def heartbeats(self) -> Heartbeats:
        """The heartbeats of the running guest."""
        assert self._heartbeats is not None
        return self._heartbeats

    async def boot(self) -> None:
        """Starts the guest on the first host. Raises RunFailed when it does not answer in time."""
        first_root = self._lab.directory / "migration.initrd"
        files_ = {
            "init": (Path(__file__).parent / "guest-init").read_bytes(),
            "nephoscope-lab": find_launcher().read_bytes(),
        }
        first_root.write_bytes(self._image.initrd.read_bytes() + initramfs.overlay(files_))
        for host in self._hosts:
            namespaces.prepare(host.netns, {"net/ipv4/tcp_wmem": _SEND_BUFFER}, [])
            await guest.connect(_on_lan(host), None)
        self._monitor = await self._start(self._hosts[0])
        client = self._lab.hosts[CLIENT]
        self._heartbeats = Heartbeats(client.netns, self._address, HEARTBEAT_INTERVAL_S)
        until = time.monotonic() + _BOOT_S
        while not self.heartbeats.answered:
            if time.monotonic() > until:
                words = last_words(self._hosts[0].directory / "console.log")
                raise RunFailed(
                    f"The guest does not answer within {_BOOT_S:.0f} s; the last line of its "
                    f"console: {words}.",
                    "Repeat the measurement on a less busy machine.",
                )
            await asyncio.sleep(0.1)

    async def migrate(self, timeout_s: float) -> MigrationEvents:
        """Migrates the guest to the other host; cancels a migration that takes longer."""
        source, target = self._hosts
        assert self._monitor is not None
        monitor, after = self._monitor, await self._start(target, incoming=True)
        monitor.events.clear()
        try:
            await monitor.execute(
                "migrate-set-parameters",
                # QEMU lifts its own limit while the guest is paused; the link's holds throughout.
                max_bandwidth=round(2 * self.spec.bytes_per_s),
                downtime_limit=round(self.spec.downtime_limit_ns / 1e6),
            )
            address = _nic(target, LINK).address
            began_ns = time.time_ns()
            await monitor.execute("migrate", uri=f"tcp:{address}:{MIGRATION_PORT}")
            answer, first_round = await _until_end(monitor, timeout_s)
            events = await _events(monitor, after, answer, began_ns, first_round)
        except BaseException:
            await after.close()
            raise
        if events.resumed_ns is None:
            await after.close()
            await end_group(target)
        else:
            await monitor.close()
            await end_group(source)
            self._monitor, self._hosts = after, [target, source]
        return events

    async def close(self) -> None:
        """Ends heartbeats and connections; the lab's removal ends the guest."""
        if self._heartbeats is not None:
            self._heartbeats.close()
        if self._monitor is not None:
            await self._monitor.close()

    async def _start(self, host: Host, *, incoming: bool = False) -> Monitor:
        run, log = confinement.run_folder(host), host.directory / "console.log"
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir(mode=0o700)
        log.unlink(missing_ok=True)
        log.touch(mode=0o600)
        confinement.give(host, run, log)
        first_root = self._lab.directory / "migration.initrd"
        tap = Tap(guest.taps_of(_on_lan(host))[0].device, self._mac)
        spec = self.spec
        # Both ends need the same machine; its name and paths may differ.
        program = [
            *("--listen", f"0.0.0.0:{PORT}", "--working-set", str(spec.working_set_bytes)),
            *("--filled", str(spec.filled_bytes)),
        ]
        flushing = _FLUSHING if self.accelerator != "kvm" else ""
        guest_words = " ".join([f"{self._address}/{self._prefix_bits}", *program])
        words = [
            *machine_words(host, spec.memory_bytes, self.accelerator),
            *("-chardev", f"file,id=console,path={log}", "-serial", "chardev:console"),
            *("-kernel", str(self._image.kernel), "-initrd", str(first_root)),
            *("-append", f"console=ttyS0 loglevel=6 panic=-1 {flushing}-- {guest_words}"),
            *network_words((tap,)),
            *("-qmp", f"unix:{run}/monitor.sock,server=on,wait=off"),
        ]
        if incoming:
            words += ["-incoming", f"tcp:{_nic(host, LINK).address}:{MIGRATION_PORT}"]
        confined = confinement.confined(
            host, words, reads=[self._image.kernel, first_root], writes=[run, log]
        )
        await launch(host, confined, log=log, lock=None)
        return await Monitor.opened(run / "monitor.sock", _MONITOR_S)


def _nic(host: Host, link: str) -> Nic:
    """The interface of a host on a link, or on its link to the switch."""
    wanted = link if link == LINK else f"to-{host.name}"
    (nic,) = (nic for nic in host.nics if nic.link == wanted)
    return nic


def _on_lan(host: Host) -> Host:
    """The host with its interface on the switch only, which the guest's is bridged to."""
    return replace(host, nics=(_nic(host, SWITCH),))


async def _until_end(monitor: Monitor, timeout_s: float) -> tuple[Mapping[str, Any], int]:
    """The last answer on the migration, and the bytes of its first round."""
    until, first_round_bytes, is_cancelled = time.monotonic() + timeout_s, 0, False
    while True:
        answer = await monitor.execute("query-migrate")
        ram = answer.get("ram", {})
        if ram.get("dirty-sync-count", 0) <= 1:
            first_round_bytes = max(first_round_bytes, ram.get("normal-bytes", 0))
        status = answer.get("status")
        # QEMU completes a migration a moment before it has its times.
        if status in (_CANCELLED, _FAILED) or (status == _COMPLETED and answer.get("total-time")):
            return answer, first_round_bytes
        if time.monotonic() > until:
            if is_cancelled:
                raise RunFailed(
                    "QEMU does not cancel a migration.",
                    "Repeat the measurement on a less busy machine.",
                )
            await monitor.execute("migrate_cancel")
            is_cancelled, until = True, time.monotonic() + _CANCEL_S
        await asyncio.sleep(_POLL_S)


async def _events(
    monitor: Monitor,
    after: Monitor,
    answer: Mapping[str, Any],
    began_ns: int,
    first_round_bytes: int,
) -> MigrationEvents:
    status, ram = answer["status"], answer.get("ram", {})
    if status == _FAILED:
        words = str(answer.get("error-desc", "QEMU states no reason")).rstrip(".")
        raise RunFailed(f"The migration failed: {words}.", "Repeat the measurement.")
    if status == _CANCELLED:
        ended_ns = time.time_ns()
        return MigrationEvents(began_ns, ended_ns, None, None, None, first_round_bytes, ram)
    paused, resumed = await monitor.event("STOP", 0), await after.event("RESUME", _RESUME_S)
    if paused is None or resumed is None:
        raise RunFailed(
            "The guest did not resume after its migration.",
            "Repeat the measurement on a less busy machine.",
        )
    ended_ns = began_ns + int(answer["total-time"]) * 1_000_000
    at = (paused.at_ns, resumed.at_ns, int(answer["downtime"]))
    return MigrationEvents(began_ns, ended_ns, *at, first_round_bytes, ram)
