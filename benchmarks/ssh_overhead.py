"""A hundred short commands on one kept connection: ours (asyncssh) and OpenSSH's ControlMaster.

Both talk to the same sshd on loopback, started here with keys of its own and an empty home; the
command is `true`. Ours is what a target really does (`SshChannel.start` to the exit code); theirs
is one `ssh` a command through a master that stays open. A round is a hundred commands of each.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version as installed
from pathlib import Path

import _paired

sys.path[:0] = [str(_paired.ROOT), str(_paired.ROOT / "src")]

from tests import sshd  # noqa: E402

from nephoscope.measure.targets.ssh.target import SshChannel  # noqa: E402

COMMANDS = 100
BOUND = (None, 1.0)
"""A command through us costs no more than one through OpenSSH's own client."""


async def ours_s(channel: SshChannel) -> float:
    began = time.perf_counter()
    for _ in range(COMMANDS):
        program = await channel.start(["true"])
        ended = await program.rest(20, 1000, 10)
        if ended.returncode != 0:
            raise RuntimeError(f"`true` ended with {ended.returncode}")
    return time.perf_counter() - began


def theirs(server: sshd.Server, socket: Path) -> tuple[list[str], Callable[[], float]]:
    """The words of `ssh` to the server, and the measurement."""
    words = [
        *("ssh", "-F", "/dev/null", "-S", str(socket), "-p", str(server.port)),
        *("-i", str(server.identity), "-o", f"UserKnownHostsFile={server.known_hosts}"),
        *("-o", "BatchMode=yes", f"{server.user}@127.0.0.1"),
    ]

    def seconds() -> float:
        began = time.perf_counter()
        for _ in range(COMMANDS):
            subprocess.run([*words, "true"], check=True, stdin=subprocess.DEVNULL)
        return time.perf_counter() - began

    return words, seconds


def main() -> int:
    args = _paired.parse(_paired.arguments(__doc__ or ""))
    if reason := sshd.lacking():
        print(reason, file=sys.stderr)
        return 4
    _paired.needed("ssh", "openssh-client")
    facts = _paired.machine()
    with tempfile.TemporaryDirectory() as folder, sshd.serving(Path(folder) / "sshd") as server:
        words, seconds = theirs(server, Path(folder) / "master")
        master = subprocess.Popen([*words, "-M", "-N"], stdin=subprocess.DEVNULL)
        loop = asyncio.new_event_loop()
        channel = SshChannel("far", server.record().route())
        try:
            loop.run_until_complete(channel.open(20))
            while subprocess.run([*words, "-O", "check"], capture_output=True).returncode != 0:
                time.sleep(0.05)
            row = _paired.compare(
                f"{COMMANDS} short commands",
                "s",
                lambda: loop.run_until_complete(ours_s(channel)),
                seconds,
                BOUND,
                args.rounds,
                args.seed,
            )
        finally:
            loop.run_until_complete(channel.close())
            loop.close()
            master.terminate()
            master.wait()
    _paired.print_table([row], "ControlMaster")
    versions = {"asyncssh": installed("asyncssh"), "ssh": _paired.version("ssh", "-V")}
    settings = {"commands": COMMANDS, "rounds": args.rounds, "seed": args.seed}
    return _paired.finish("ssh-overhead", [row], versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
