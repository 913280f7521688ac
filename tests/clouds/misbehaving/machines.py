"""Instances as real machines: a network, process and mount namespace each, with an ssh server.

The root of a machine is this machine's, below an overlay in memory: nothing that happens inside is
seen outside. All machines of a double are on one bridge; nothing outside is reached. A machine has
a private address, which those of its region reach, and a public one, which is translated; security
groups are enforced, and distances are planted where a test sets some.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from . import catalogue, cpu_share, firewall
from .cloud import Cloud, Resource
from .disks import GROUPS, Disks, detach_all
from .metadata import Metadata
from .paths import Paths
from .paths import ip as _ip

BOOT = Path(__file__).with_name("boot.sh")
_CLONE_NEWNET = 0x40000000
_MEMORY = "/dev/shm"
"""Where disks are: an overlay's upper part has to be on another file system than its lower one."""

_PREFIX = "nephoscope-cloud-"
_GROUP = "nepho-"

_METADATA = "169.254.169.254"


class Machines:
    """All machines of a cloud, on a bridge of this machine."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self._metadata = Metadata(cloud)
        self._running: dict[str, _Machine] = {}
        self._disks: dict[str, Path] = {}
        self._lock = threading.Lock()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=_MEMORY))
        self.disks = Disks(cloud, self._folder)
        self._timers: list[threading.Timer] = []
        self.bridge, self._network = _new_bridge()
        self._hosts = 1
        self._paths: Paths | None = None
        self._filters = threading.Lock()

    @property
    def address(self) -> str:
        """Of this machine on the bridge."""
        return f"{self._network}.1"

    def start(self, instance: Resource) -> None:
        """The first start gives it an address; user data runs then only."""
        with self._lock:
            if instance.id not in self._disks:
                self._hosts += 1
                if self._hosts > 250:
                    raise RuntimeError("a double has at most 249 machines")
                region = list(catalogue.REGIONS).index(instance.region)
                own = self._network.rpartition(".")[2]
                instance.data["public"] = f"{self._network}.{self._hosts}"
                instance.data["private"] = f"10.{own}.{region}.{self._hosts}"
                self._disks[instance.id] = self._folder / instance.id
                self._disks[instance.id].mkdir()
            # It keeps its address, unlike the records: there are few of them here.
            instance.data["address"] = instance.data["public"]
            if self.cloud.settings["paths"] and self._paths is None:
                self._paths = Paths(self.cloud, self.bridge)
            bridge = self._paths.bridge_for(instance) if self._paths else self.bridge
            machine = _Machine(self, instance, bridge, self._disks[instance.id])
            self._running[instance.id] = machine
        threading.Thread(target=self._live, args=(machine,), daemon=True).start()

    def _live(self, machine: _Machine) -> None:
        """From boot to power-off; reboots in between."""
        again = True
        while again:
            machine.boot()
            machine.wait()
            again = machine.reason() == "reboot" and not machine.ended
        with self._lock:
            self._running.pop(machine.instance.id, None)
            if self._paths is not None:
                self._paths.release(machine.instance)
        if not machine.ended:
            self._powered_off(machine.instance)

    def _powered_off(self, instance: Resource) -> None:
        from . import instances

        reason = "Client.InstanceInitiatedShutdown: Instance initiated shutdown"
        with self.cloud.lock:
            if instance.state(self.cloud.now()) in ("pending", "running"):
                if instance.data["on_shutdown"] == "terminate":
                    instances.end(self.cloud, instance, reason)
                else:
                    instances.stop(self.cloud, instance, reason)

    def of(self, instance: str) -> Any:
        """The machine of an instance while it runs; else None."""
        return self._running.get(instance)

    def end(self, instance: Resource, after_s: float = 0.0) -> None:
        """Pulls the plug, now or so many of our seconds later."""
        machine = self._running.get(instance.id)
        if machine is None:
            return
        if after_s > 0:
            timer = threading.Timer(after_s, machine.end)
            timer.daemon = True
            self._timers.append(timer)
            timer.start()
        else:
            machine.end()

    def reboot(self, instance: Resource) -> None:
        if machine := self._running.get(instance.id):
            machine.restart()

    def console(self, instance: Resource) -> str:
        folder = self._disks.get(instance.id)
        if folder is None or not (folder / "console").exists():
            return ""
        return (folder / "console").read_text(errors="replace")

    def metadata(self, instance: str, method: str, path: str, headers: Any) -> tuple[int, str]:
        with self.cloud.lock:
            return self._metadata.answer(instance, method, path, headers)

    def filter_of(self, instance: Resource) -> str:
        """What the security groups of a machine let in."""
        return firewall.text(self.cloud, instance, f"{self._network}.1")

    def enforce(self) -> None:
        """Gives every machine the packet filter that its groups have now."""
        with self._filters:
            for machine in list(self._running.values()):
                machine.enforce()

    def join(self, bridge: str) -> None:
        """Connects this cloud's machines with those of another double, by their public
        addresses."""
        ours, theirs = f"nj-{os.getpid()}", f"nk-{os.getpid()}"
        _ip("link", "add", ours, "type", "veth", "peer", "name", theirs)
        _ip("link", "set", ours, "master", self.bridge, "up")
        _ip("link", "set", theirs, "master", bridge, "up")

    def is_silent(self) -> bool:
        return self.cloud.faults.strikes("silent", "")

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()
        for machine in list(self._running.values()):
            machine.end()
        for machine in list(self._running.values()):
            with contextlib.suppress(subprocess.TimeoutExpired):
                machine.process.wait(60)
        for link in (f"nj-{os.getpid()}", self.bridge):
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("link", "delete", link)
        if self._paths is not None:
            self._paths.close()
        self.disks.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def remove_remains() -> None:
    """Removes what doubles that were killed left: disks, links, control groups."""
    for folder in _of_killed(Path(_MEMORY), _PREFIX):
        detach_all(folder)
        shutil.rmtree(folder, ignore_errors=True)
    for kind in ("nepho-", "nb-"):
        for link in _of_killed(Path("/sys/class/net"), kind):
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("link", "delete", link.name)
    for groups, prefix in ((cpu_share.groups(), _GROUP), ([GROUPS], _PREFIX)):
        for hierarchy in groups:
            for group in _of_killed(hierarchy, prefix):
                cpu_share.remove_tree(group)


def _of_killed(folder: Path, prefix: str) -> list[Path]:
    """What is named after the process of a double that has ended."""
    owners = {path: path.name[len(prefix) :].split("-")[0] for path in folder.glob(f"{prefix}*")}
    return [
        path
        for path, owner in owners.items()
        if owner.isdigit() and not Path(f"/proc/{owner}").exists()
    ]


def _new_bridge() -> tuple[str, str]:
    """A bridge and the first three bytes of its network; remains of doubles that were killed go."""
    remove_remains()
    name = f"nepho-{os.getpid()}"
    used = subprocess.run(["ip", "-4", "route"], capture_output=True, text=True).stdout
    # 213 would make private addresses out of public ones.
    free = [number for number in range(20, 213) if f"10.213.{number}." not in used]
    network = f"10.213.{free[os.getpid() % len(free)]}"
    _ip("link", "add", name, "type", "bridge")
    _ip("address", "add", f"{network}.1/24", "dev", name)
    _ip("link", "set", name, "up")
    # Joined to another double's bridge, it must not answer for that one's address.
    Path(f"/proc/sys/net/ipv4/conf/{name}/arp_ignore").write_text("1")
    return name, network


class _Machine:
    """One machine from its start to its end."""

    def __init__(self, owner: Machines, instance: Resource, bridge: str, disk: Path) -> None:
        self._owner = owner
        self._bridge, self._filter = bridge, ""
        self.instance, self.address, self.disk = instance, str(instance.data["address"]), disk
        self.ended = False
        self.process: Any = None
        self._connected = 0
        self._booted = threading.Event()
        self._group: Path | None = None
        self._bucket: cpu_share.CreditBucket | None = None
        self._metadata: ThreadingHTTPServer | None = None

    def boot(self) -> None:
        """Starts its first process, which waits until the network is there."""
        self._connected, self._filter = 0, ""
        data = self.instance.data
        (self.disk / "user-data").write_bytes(base64.b64decode(data["user_data"]))
        (self.disk / "reason").write_text("")
        (self.disk / "silent").unlink(missing_ok=True)
        if self._owner.is_silent():
            (self.disk / "silent").touch()
        (self.disk / "key").write_text(self._login_key())
        console = (self.disk / "console").open("ab")
        self.process = subprocess.Popen(
            # The double may be killed: then its machines go too.
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--uts",
             "--ipc", "--fork", "--kill-child",
             "sh", str(BOOT), str(self.disk), self.instance.id, str(BOOT.parent)],
            stdin=subprocess.PIPE, stdout=console, stderr=console,
        )  # fmt: skip
        console.close()
        self._group = self._slowed(self.process.pid)
        if self._owner.cloud.settings["disk_iops"]:
            self._owner.disks.begin(self.instance.id, self.disk, self.process.pid)
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            self._connect(self.process.pid)
            self.process.stdin.write(b"\n")
            self.process.stdin.close()
        self._booted.set()
        if self.ended:
            self.end()

    def _slowed(self, pid: int) -> Path | None:
        """The CPU group of the machine, where the double's hosts differ in speed."""
        speeds = self._owner.cloud.settings["host_cpus"]
        credit = self._owner.cloud.settings["cpu_credit"]
        if not speeds and not credit:
            return None
        host = int(self.instance.data["host"].rpartition("-")[2])
        cpus = credit["burst"] if credit else speeds[host % len(speeds)]
        group = cpu_share.limit(f"{_GROUP}{os.getpid()}-{self.instance.id}", pid, cpus)
        if group is None:
            raise RuntimeError("no CPU group can be made here")
        if credit:
            self._bucket = cpu_share.CreditBucket(group, pid, **credit)
        return group

    def _login_key(self) -> str:
        """The key pair's text, also of one that has been removed since: a disk keeps it."""
        name = self.instance.data["key"]
        found = [
            str(each.data["text"])
            for each in list(self._owner.cloud.resources.values())
            if each.kind == "key-pair" and each.data["name"] == name
        ]
        return found[-1] if found else ""

    def _connect(self, pid: int) -> None:
        """A cable from the bridge to the machine, its address, and its metadata service."""
        _wait_for_namespace(pid)
        cable = f"nv{self.address.replace('.', '')[-8:]}"
        inside = f"/proc/{pid}/ns/net"
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("link", "delete", cable)
        _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        _ip("link", "set", cable, "master", self._bridge, "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{_METADATA}/32", "dev", "lo"),
            ("address", "add", f"{self.instance.data['private']}/24", "dev", "eth0"),
            # All clouds here share the network of public addresses.
            ("address", "add", f"{self.address}/16", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            subprocess.run(["nsenter", f"--net={inside}", "ip", *words], check=True)
        if credit := self._owner.cloud.settings["network_credit"]:
            _give_credit(inside, **credit)
        self._metadata = _serve_metadata(inside, self._owner, self.instance.id)
        self._connected = pid
        # The groups of others may let in their members, of which this is one now.
        self._owner.enforce()

    def enforce(self) -> None:
        """Gives it the packet filter of its groups, where that has changed."""
        wanted = self._owner.filter_of(self.instance)
        if self._connected and wanted != self._filter:
            with contextlib.suppress(subprocess.CalledProcessError):  # It has ended meanwhile.
                firewall.apply(self._connected, wanted)
                self._filter = wanted

    def wait(self) -> None:
        """Until it is off."""
        self.process.wait()
        if self._metadata is not None:
            self._metadata.shutdown()
            self._metadata.server_close()
            self._metadata = None
        if self._bucket is not None:
            self._bucket.end()
            self._bucket = None
        cpu_share.release(self._group)
        self._owner.disks.end(self.instance.id)

    def reason(self) -> str:
        return (self.disk / "reason").read_text().strip()

    def end(self) -> None:
        self.ended = True
        self._kill()

    def restart(self) -> None:
        (self.disk / "reason").write_text("reboot")
        self._kill()

    def _kill(self) -> None:
        if self._booted.wait(60) and self.process.poll() is None:
            # With --kill-child the namespace's first process goes with it, and so all others.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)


def _wait_for_namespace(pid: int) -> None:
    """Until the process has left our network namespace."""
    ours = os.readlink("/proc/self/ns/net")
    pause = threading.Event()
    for _ in range(12_000):
        if os.readlink(f"/proc/{pid}/ns/net") != ours:
            return
        pause.wait(0.005)


def _serve_metadata(namespace: str, owner: Machines, instance: str) -> ThreadingHTTPServer | None:
    """A web server whose socket is in the machine's namespace."""
    made: list[socket.socket] = []

    def listen() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = os.open(namespace, os.O_RDONLY)
        try:
            if libc.setns(descriptor, _CLONE_NEWNET) != 0:
                return
        finally:
            os.close(descriptor)
        made.append(socket.create_server((_METADATA, 80)))

    # The namespace is that of one thread, which ends with this.
    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    if not made:
        return None

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, text = owner.metadata(instance, self.command, self.path, headers)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_PUT = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def server_bind(self) -> None:
            self.server_name, self.server_port = _METADATA, 80

    server = Server((_METADATA, 80), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = made[0]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _give_credit(inside: str, *, burst: float, baseline: float, credit: float) -> None:
    """A token bucket for what a machine sends, in bits: the kernel's own, whose timer is too coarse
    for single frames; ten are sent at once."""
    rates = ["rate", f"{baseline:.0f}bit", "peakrate", f"{burst:.0f}bit", "mtu", "15140"]
    words = ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", *rates]
    words += ["burst", f"{credit / 8:.0f}b", "latency", "50ms"]
    subprocess.run(["nsenter", f"--net={inside}", *words], check=True)
