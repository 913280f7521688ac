"""What a guest's program may touch on this machine: its own files, as a user who owns nothing else.

A guest kernel is a program that obeys whoever is root inside. User-Mode Linux can mount folders of
this machine for him (hostfs), and a defect of QEMU would give him QEMU's rights.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from nephoscope.measure.lab.handle import HostPlan
from nephoscope.measure.lab.needs import sbin

_FIRST_USER, _USERS = 0x7000_0000, 1 << 24
"""User ids that no distribution, container or service manager hands out (systemd, UIDS-GIDS)."""
_DEVICES = ("/dev/null", "/dev/urandom", "/dev/net/tun", "/dev/kvm")
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache")

# Arguments: new root, user, supplementary groups; then ro:PATH or rw:PATH, `--`, the program.
# The mounts are in a namespace of their own and go with the program's last process. Devices are
# nodes that belong to the user, because those of the machine may be for root alone (in a container,
# or without udev); where nodes may not be made, they are the machine's own.
_CONFINE = """
root=$1 user=$2 groups=$3; shift 3
mount -t tmpfs -o mode=755,size=1m tmpfs "$root" || exit
while [ "$1" != -- ]; do
  path=${1#*:} at=$root${1#*:}
  if [ -d "$path" ]; then mkdir -p "$at"; else mkdir -p "${at%/*}"; fi || exit
  if [ -c "$path" ] && mknod -m 600 "$at" c $(stat -c '0x%t 0x%T' "$path") 2>/dev/null; then
    chown "$user" "$at" || exit
  else
    [ -d "$path" ] || : >"$at"
    mount --bind -o "${1%%:*}" "$path" "$at" || exit
  fi
  shift
done
shift
mkdir -p "$root/dev/shm" && mount -t tmpfs -o mode=1777,size=100% tmpfs "$root/dev/shm" || exit
exec setpriv --no-new-privs chroot --userspec="$user:$user" --groups="$groups" "$root" "$@"
"""


def user(plan: HostPlan) -> int:
    """Returns the id of the user and group that a host's program runs as."""
    return _FIRST_USER + zlib.crc32(f"{plan.lab}/{plan.name}".encode()) % _USERS


def run_folder(plan: HostPlan) -> Path:
    """Returns the folder in which the host's program makes its sockets."""
    return plan.directory / "run"


def give(plan: HostPlan, *paths: Path) -> None:
    """Makes the host's user the owner of files or folders."""
    for path in paths:
        os.chown(path, user(plan), user(plan), follow_symlinks=False)


def confined(
    plan: HostPlan, program: Sequence[str], *, reads: Iterable[Path], writes: Iterable[Path]
) -> list[str]:
    """Returns the command that runs a program which sees only these paths, as the host's user.

    It also sees the system's libraries (read-only), a /dev/shm of its own and the devices of
    virtual machines.
    """
    root = plan.directory / "root"
    root.mkdir(mode=0o755, exist_ok=True)
    devices = [path for path in _DEVICES if Path(path).exists()]
    groups = {os.stat(path).st_gid for path in devices if not _open_to_all(path)}
    system = [Path(path) for path in _SYSTEM]
    names = [f"ro:{path}" for path in (*system, *reads) if path.exists()]
    names += [f"rw:{path}" for path in (*devices, *writes)]
    number = str(user(plan))
    shell = ["sh", "-c", _CONFINE, "confine", str(root), number, ",".join(map(str, groups))]
    unshare = [str(sbin("unshare")), "--mount", "--propagation", "private"]
    return [*unshare, *shell, *names, "--", *program]


def _open_to_all(path: str) -> bool:
    return os.stat(path).st_mode & stat.S_IRWXO == stat.S_IROTH | stat.S_IWOTH
