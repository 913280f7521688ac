"""The programs that the lab starts: to enter hosts, in batches, and to stay; and its JSON files."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.errors import Lacking, RunFailed
from nephoscope.core.programs import find_launcher
from nephoscope.core.reading import regular
from nephoscope.measure.lab import processes

TIMEOUT_S = 60.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment() -> dict[str, str]:
    """Returns what these programs see: where programs are, and messages in English."""
    return {"PATH": os.environ.get("PATH", "") + ":" + _PATH, "LC_ALL": "C"}


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a file of ours; None when there is none that can be read."""
    try:
        document = json.loads(regular.read_text(path, limits.STATE_BYTES))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes an object to a file, whole or not at all."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    aside.rename(path)


def try_lock(descriptor: int) -> bool:
    """Locks an open file or folder, unless another has it; the kernel lets go when both end."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def output_of(words: Sequence[str]) -> str:
    """Returns what a program that ends by itself prints; empty when it cannot be run."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment(), check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


async def run_to_end(
    command: Sequence[str], text: str = "", *, pass_fds: Sequence[int] = ()
) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors of a program that gets `text`; killed when that is cancelled.

    Raises FileNotFoundError without the program, TimeoutError after TIMEOUT_S.
    """
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(),
        pass_fds=pass_fds,
        process_group=0,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            out, err = await child.communicate(text.encode())
    except BaseException:
        # It ends by itself within milliseconds; nothing may be removed before that.
        if child.returncode is None:
            child.kill()
        await asyncio.shield(child.wait())
        raise
    assert child.returncode is not None
    return child.returncode, out, err


class Runner:
    """Starts short programs while a lab is changed.

    They inherit the lab's lock, so that after a kill of this process a `down` waits for them.
    """

    def __init__(self, lock: int | None) -> None:
        self.lock = lock
        self._pass = () if lock is None else (lock,)
        # More at once than CPUs only wait for the kernel's network lock.
        self._slots = asyncio.Semaphore(2 * (os.cpu_count() or 1))

    async def run(self, command: Sequence[str], text: str = "") -> str:
        """The output of a program that gets `text`; RunFailed with its own words when it fails."""
        async with self._slots:
            try:
                code, out, err = await run_to_end(command, text, pass_fds=self._pass)
            except FileNotFoundError as error:
                raise Lacking(
                    f"The program {command[0]} is not installed.",
                    "Run `apt-get install iproute2 nftables`.",
                ) from error
        if code != 0:
            raise RunFailed(
                f"{_words(command)}: {_reason(err, out)} (exit code {code}).",
                "Everything that was made is removed.",
            )
        return out.decode(errors="replace")

    async def ip(self, lines: Sequence[str], netns: Path | None = None) -> None:
        """A batch of `ip`, inside a namespace when one is given."""
        await self._batch("ip", lines, netns)

    async def tc(self, lines: Sequence[str], netns: Path) -> None:
        """A batch of `tc` inside a namespace."""
        await self._batch("tc", lines, netns)

    async def _batch(self, program: str, lines: Sequence[str], netns: Path | None) -> None:
        if not lines:
            return
        inside = ["-n", netns.name] if netns else []
        try:
            await self.run([program, *inside, "-batch", "-"], "\n".join(lines) + "\n")
        except RunFailed as error:
            line = _line_of(error.message, lines)
            raise RunFailed(f"{error.message.rstrip('.')}{line}.", error.hint) from error

    async def nft(self, script: str, netns: Path) -> None:
        """A script of nft inside a namespace."""
        await self.run(["ip", "netns", "exec", netns.name, "nft", "-f", "-"], script)


def _words(command: Sequence[str]) -> str:
    return " ".join(command[:3]) if command[0] == "ip" else command[0]


def _reason(err: bytes, out: bytes) -> str:
    lines = (err or out).decode(errors="replace").strip().splitlines()
    return "; ".join(line.strip() for line in lines[:2]).rstrip(".") or "no reason given"


def _line_of(message: str, lines: Sequence[str]) -> str:
    """' in `the line`' of ip's 'Command failed -:3'."""
    _, separator, rest = message.partition("Command failed -:")
    number = rest.split(maxsplit=1)[0].rstrip(").;") if separator else ""
    if number.isdigit() and 1 <= int(number) <= len(lines):
        return f" in `{lines[int(number) - 1]}`"
    return ""


def entering(
    *,
    netns: Path | None = None,
    cgroups: Iterable[Path] = (),
    sysfs: bool = False,
    hide_limits: bool = False,
    with_parent: bool = False,
    nice: int | None = None,
) -> list[str]:
    """The words before a program that runs in these groups and this network, `--` last.

    sysfs: the program sees the /sys of that network. hide_limits: it sees no control group, as a
    guest sees nothing of what its hypervisor limits. with_parent: the kernel kills the program
    when the process that started it ends. The groups are joined in the order given.
    """
    words = [str(find_launcher()), "enter"]
    for group in cgroups:
        words += ["--cgroup", str(group)]
    if netns is not None:
        words += ["--netns", str(netns)]
    words += ["--sysfs"] if sysfs else []
    words += ["--hide-limits"] if hide_limits else []
    words += ["--die-with-parent"] if with_parent else []
    words += [] if nice is None else ["--nice", str(nice)]
    return [*words, "--"]


_STEP_S = 0.003
_READY_S, _STOP_S = 10.0, 3.0


async def start_helper(
    command: Sequence[str],
    cgroups: Iterable[Path],
    log: Path,
    text: str = "",
) -> None:
    """Starts a helper, gives it `text` on its standard input, waits until its log says so.

    What it prints goes to the file `log`. Raises RunFailed with its last line when it ends, or says
    nothing in time.
    """
    words = [*entering(cgroups=cgroups), *command]
    input_file = log.with_suffix(".in")
    input_file.write_text(text, encoding="utf-8")
    alive, held = os.pipe()
    try:
        with log.open("wb") as output, input_file.open("rb") as source:
            # `setsid --fork` gives it to init at once; a child of ours would be left a zombie.
            child = await asyncio.create_subprocess_exec(
                "setsid",
                "--fork",
                *words,
                stdin=source,
                stdout=output,
                stderr=output,
                cwd="/",
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                pass_fds=(held,),
            )
            await child.wait()
        os.close(held)
        held = -1
        await _until_ready(alive, log)
    finally:
        os.close(alive)
        if held >= 0:
            os.close(held)


async def stop_helper(log: Path, first: signal.Signals) -> None:
    """Ends the helper that writes `log`: asked, then killed. Returns when it is gone."""
    for number in (first, signal.SIGKILL):
        until = time.monotonic() + _STOP_S
        for pid in _writers(log):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        while _writers(log):
            if time.monotonic() > until:
                break
            await asyncio.sleep(_STEP_S)
        else:
            return
    raise RunFailed(f"The helper of {log.name} does not end.", "Take the lab down.")


def _writers(log: Path) -> list[int]:
    """Process ids whose standard output is this file."""
    return processes.matching(lambda process: os.readlink(process / "fd/1") == str(log))


async def _until_ready(alive: int, log: Path) -> None:
    until = time.monotonic() + _READY_S
    while b'{"ready"' not in (output := log.read_bytes()):
        # The helper holds the other end of this pipe, so its end is seen as the end of the file.
        ended, _, _ = select.select([alive], [], [], 0)
        if ended or time.monotonic() > until:
            lines = output.decode(errors="replace").strip().splitlines()
            words = lines[-1] if lines else "it said nothing"
            what = "ended" if ended else f"was not ready in {_READY_S:g} s"
            raise RunFailed(f"The helper of {log.name} {what}: {words}", "See `dmesg`.")
        await asyncio.sleep(_STEP_S)
