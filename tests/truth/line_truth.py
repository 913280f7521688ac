"""Two or more network namespaces with a delay line, or a plain wire, between them; a UDP sender
and a receiver that takes the kernel's own time of arrival."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nephoscope.core.programs import find_launcher

_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE = 33
_UDP_SEGMENT = 103
_CLONE_NEWNET = 0x40000000
_PORT = 7007
_libc = ctypes.CDLL(None, use_errno=True)


def _enter(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.setns(handle, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {path}")
    finally:
        os.close(handle)


class Wire:
    """Namespaces 0, 1, … with eth0 at 198.18.0.1, .2, …

    paths: those of the delay line; None for a plain veth between two namespaces. name: of this
    wire among those that a test holds at the same time.
    """

    def __init__(
        self, paths: Sequence[Mapping[str, Any]] | None, ports: int = 2, name: str = "line"
    ) -> None:
        prefix = f"neph-mech-test-{os.getpid()}-{name}"
        self.names = [f"{prefix}-{port}" for port in range(ports)]
        self.far_address = self.address(1)
        self._paths = paths
        self._line: subprocess.Popen[str] | None = None
        self.ready: dict[str, Any] = {}
        self.late_ns: list[int] = []
        """How late the sender's sleeps ended in the last `one_way`: what the machine adds to any
        program that waits."""

    def __enter__(self) -> Wire:
        try:
            for name in self.names:
                _ip("netns", "add", name)
            if self._paths is None:
                peer = ("peer", "name", "eth0", "netns", self.names[1])
                _ip("link", "add", "eth0", "netns", self.names[0], "type", "veth", *peer)
            else:
                self._start(self._paths)
            for port, name in enumerate(self.names):
                _ip("-n", name, "addr", "add", f"{self.address(port)}/24", "dev", "eth0")
                _ip("-n", name, "link", "set", "eth0", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._line is not None:
            with self._line:  # closes its pipes
                self._line.terminate()
        for name in self.names:
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "del", name)

    def _start(self, paths: Sequence[Mapping[str, Any]]) -> None:
        ports = [{"name": "eth0", "netns": f"/run/netns/{name}"} for name in self.names]
        config = {"ports": ports, "paths": list(paths), "seed": 20_261_121}
        words = [str(find_launcher()), "line", "--config", "-"]
        pipe = subprocess.PIPE
        self._line = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, bufsize=1)
        self.ready = self.ask(config)["ready"]

    def ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Gives the line a line and returns its answer."""
        assert self._line is not None
        assert self._line.stdin is not None
        assert self._line.stdout is not None
        self._line.stdin.write(json.dumps(order) + "\n")
        self._line.stdin.flush()
        readable, _, _ = select.select([self._line.stdout], [], [], 10)
        assert readable, "the line does not answer"
        answer: dict[str, Any] = json.loads(self._line.stdout.readline())
        return answer

    def counters(self) -> dict[str, Any]:
        return dict(self.ask({"counters": True})["counters"])

    def path(self, source: int, to: int) -> dict[str, Any]:
        """Counters of one path."""
        (found,) = [p for p in self.counters()["paths"] if (p["from"], p["to"]) == (source, to)]
        return dict(found)

    @property
    def near(self) -> list[str]:
        """Words that run a program in the first namespace."""
        return ["ip", "netns", "exec", self.names[0]]

    @property
    def far(self) -> list[str]:
        """Words that run a program in the second one."""
        return ["ip", "netns", "exec", self.names[1]]

    def set(self, *paths: Mapping[str, Any]) -> None:
        """Changes conditions; each names its path by `from` and `to`."""
        assert "applied" in self.ask({"paths": list(paths)})

    @property
    def pid(self) -> int:
        assert self._line is not None
        return self._line.pid

    def end(self) -> dict[str, Any]:
        """Ends the line in order; its last words."""
        assert self._line is not None
        self._line.send_signal(signal.SIGTERM)
        out, _ = self._line.communicate(timeout=120)
        assert self._line.returncode == 0
        return dict(json.loads(out.splitlines()[-1]))

    @staticmethod
    def address(port: int) -> str:
        return f"198.18.0.{port + 1}"

    def _made_inside(self, port: int, kind: socket.SocketKind) -> socket.socket:
        """A socket of a namespace, in which this thread is for a moment only."""
        with open("/proc/thread-self/ns/net", "rb") as own:
            _enter(f"/run/netns/{self.names[port]}")
            try:
                return socket.socket(socket.AF_INET, kind)
            finally:
                assert _libc.setns(own.fileno(), _CLONE_NEWNET) == 0

    def listener(self) -> socket.socket:
        """A TCP socket that listens at the far side."""
        made = self._made_inside(1, socket.SOCK_STREAM)
        made.bind((self.far_address, 0))
        made.listen()
        return made

    @contextlib.contextmanager
    def socket(self, port: int) -> Iterator[socket.socket]:
        """A UDP socket inside a namespace."""
        with self._made_inside(port, socket.SOCK_DGRAM) as made:
            made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 32 << 20)
            made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            made.bind((self.address(port), _PORT))
            yield made

    def warm(self, source: int = 0, to: int = 1) -> None:
        """Has both ends learn each other's hardware address."""
        self.one_way(2, 0.01, source, to)

    def one_way(
        self, count: int, gap_s: float, source: int = 0, to: int = 1, *, more: bool = False
    ) -> list[tuple[int, int]]:
        """(number, ns from sending to the kernel's time of arrival) in order of arrival.

        Packets are sent every `gap_s` whether or not those before have come. more: more may come
        than were sent.
        """
        got: list[tuple[int, int]] = []
        sent_all = threading.Event()
        with self.socket(source) as sender, self.socket(to) as receiver:

            def receive() -> None:
                # A packet is under way for at most the longest delay used here, 0.5 s.
                receiver.settimeout(0.6)
                while more or len(got) < count:
                    try:
                        data, stamps, _, _ = receiver.recvmsg(64, 128)
                    except TimeoutError:
                        if sent_all.is_set():
                            return
                        continue
                    seconds, ns = struct.unpack("qq", stamps[0][2])
                    number, sent = struct.unpack("qq", data)
                    got.append((number, seconds * 1_000_000_000 + ns - sent))

            thread = threading.Thread(target=receive)
            thread.start()
            to_address = (self.address(to), _PORT)
            self.late_ns = []
            due = time.perf_counter()
            for number in range(count):
                while (left := due - time.perf_counter()) > 0:
                    time.sleep(left)
                self.late_ns.append(round(1e9 * (time.perf_counter() - due)))
                sender.sendto(struct.pack("qq", number, time.time_ns()), to_address)
                due += gap_s
            sent_all.set()
            thread.join()
        return got

    def flood(self, payload_bytes: int, seconds: float) -> float:
        """Sends as fast as one CPU can; the seconds it took.

        The kernel cuts one large buffer into packets (UDP_SEGMENT), so that the sender is not what
        is measured.
        """
        each = min(60, 65_000 // payload_bytes)
        data = bytes(payload_bytes * each)
        with self.socket(0) as sender:
            sender.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, payload_bytes)
            began = time.monotonic()
            while time.monotonic() < began + seconds:
                sender.sendto(data, (self.address(1), _PORT + 1))
            return time.monotonic() - began


def both_ways(**conditions: Any) -> list[dict[str, Any]]:
    """The same conditions in both directions of a wire of two."""
    return [{"from": source, "to": 1 - source, **conditions} for source in (0, 1)]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def left_over() -> list[Path]:
    """Namespaces of this process that are still there."""
    return list(Path("/run/netns").glob(f"neph-mech-test-{os.getpid()}-*"))
