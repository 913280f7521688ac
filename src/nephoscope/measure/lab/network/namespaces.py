"""Work inside a network namespace, from threads of this process; nothing changes outside of it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

_Result = TypeVar("_Result")

_CLONE_NEWNET = 0x40000000
_MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)

_SIOCETHTOOL = 0x8946
# ethtool's numbers (linux/ethtool.h) of: set TCP segmentation, generic segmentation and generic
# receive offload.
_OFFLOADS = (0x1F, 0x24, 0x2C)


def within(path: Path, work: Callable[[], _Result]) -> _Result:
    """The result of `work`, which runs in a thread inside the namespace `path`.

    Sockets that it opens, and programs that it starts, belong to that namespace. Raises OSError
    when the namespace cannot be entered, and whatever `work` raises.
    """

    def enter() -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _must(_libc.setns(descriptor, _CLONE_NEWNET), str(path))
        finally:
            os.close(descriptor)

    return _in_thread(enter, work)


def within_new(work: Callable[[], _Result]) -> _Result:
    """As `within`, in a namespace of its own that ends with it: for trying what the kernel has."""
    return _in_thread(lambda: _must(_libc.unshare(_CLONE_NEWNET), "unshare"), work)


def _must(code: int, what: str) -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def _in_thread(enter: Callable[[], None], work: Callable[[], _Result]) -> _Result:
    results: list[_Result] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            enter()
            results.append(work())
        except BaseException as error:
            failures.append(error)

    # A thread of its own: one of a pool would take the namespace along to its next work.
    thread = threading.Thread(target=body, name="namespace", daemon=True)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


def prepare(path: Path, sysctls: Mapping[str, str], devices: Iterable[str]) -> None:
    """Writes sysctls and turns the offloads of devices off, inside the namespace `path`."""

    def work() -> None:
        for name, value in sysctls.items():
            # /proc/sys/net shows the namespace of the thread that opens it.
            target = Path("/proc/sys", name)
            if target.exists():
                target.write_text(value, encoding="ascii")
        for device in devices:
            without_offloads(device)

    within(path, work)


def without_offloads(device: str) -> None:
    """Lets every packet of a device be one packet.

    With segmentation offload a sender hands 64 KiB to the device at once: a shaper would see one
    large packet, a loss rule would lose forty at a time, and a delay would hold them as one.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in _OFFLOADS:
            value = bytearray(struct.pack("II", command, 0))
            buffer = (ctypes.c_char * len(value)).from_buffer(value)
            request = struct.pack("16sP", device.encode(), ctypes.addressof(buffer))
            try:
                fcntl.ioctl(control, _SIOCETHTOOL, request)
            except OSError as error:
                if error.errno != 95:  # EOPNOTSUPP: a device that has no such offload has it off
                    raise


def remove(path: Path) -> bool:
    """Removes a named namespace; its devices die with it. False when it was not there."""
    # A file that is not (yet) a mount, left by a kill in between, is only unlinked.
    _libc.umount2(os.fsencode(path), _MNT_DETACH)
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def unmount(path: str) -> bool:
    """Detaches what is mounted at `path`; False when that is not possible."""
    return int(_libc.umount2(os.fsencode(path), _MNT_DETACH)) == 0


def inode(path: Path) -> int | None:
    """Number by which processes in a namespace are known; None when there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return None
