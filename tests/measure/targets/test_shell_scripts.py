"""The scripts for the far side, under every shell that is here."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.tools import needs

from nephoscope.core.errors import TargetError
from nephoscope.measure.targets.channels import shell_scripts
from nephoscope.measure.targets.lab import EnteredShell

SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}


@pytest.fixture(params=["dash", "bash", pytest.param("busybox", marks=needs("busybox"))])
def shell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The scripts run under this shell, with a home of their own."""
    words = SHELLS[request.param]
    monkeypatch.setattr(
        shell_scripts, "script", lambda text, *more: [*words, "-c", text, shell_scripts.NAME, *more]
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    return str(request.param)


async def opened() -> EnteredShell:
    channel = EnteredShell("here", ["env"])
    await channel.open(10)
    return channel


def test_files_go_there_and_back_and_the_folder_vanishes(shell: str, tmp_path: Path) -> None:
    content = os.urandom(300_001)
    (tmp_path / "source").write_bytes(content)

    async def work() -> Path:
        channel = await opened()
        folder = Path(await channel.work())
        assert folder.parent == tmp_path / ".cache" / "nephoscope"
        assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
        await channel.put(tmp_path / "source", f"{folder}/a 'b'/c$d")
        assert (folder / "a 'b'" / "c$d").read_bytes() == content
        await channel.get(f"{folder}/a 'b'/c$d", tmp_path / "back")
        await channel.close()
        return folder

    folder = asyncio.run(work())
    assert (tmp_path / "back").read_bytes() == content
    assert list(folder.parent.iterdir()) == []


def test_the_probe_is_copied_once_and_made_good_when_it_was_changed(
    shell: str, probe: Path
) -> None:
    wanted = hashlib.sha256(probe.read_bytes()).hexdigest()

    async def where() -> Path:
        channel = await opened()
        path = Path(await channel.probe())
        await channel.close()
        return path

    path = asyncio.run(where())
    assert path.name == f"probe-{wanted}"
    first = path.stat()
    assert asyncio.run(where()).stat().st_ino == first.st_ino
    path.write_bytes(b"someone else's")
    assert asyncio.run(where()) == path
    assert hashlib.sha256(path.read_bytes()).hexdigest() == wanted
    assert path.stat().st_mode & 0o777 == 0o700


# The shell of busybox has sha256sum inside it.
@pytest.mark.parametrize("shell", ["dash", "bash"], indirect=True)
def test_without_sha256sum_it_is_read_back(
    shell: str, probe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    needed = "sh dash bash cat chmod id kill mkdir mv rm touch tr uname wc env"
    for tool in needed.split():
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))

    async def where() -> Path:
        channel = await opened()
        path = Path(await channel.probe())
        path.write_bytes(b"changed behind our back")
        channel._probes = {}
        assert Path(await channel.probe()) == path
        await channel.close()
        return path

    assert asyncio.run(where()).read_bytes() == probe.read_bytes()


def test_what_a_killed_process_left_is_swept(shell: str, tmp_path: Path) -> None:
    cache = tmp_path / ".cache" / "nephoscope"
    cache.mkdir(parents=True)
    # No process has this number: it is above the kernel's limit. Process 1 is no shell of ours.
    for name in ("work-4194400-x", "part-4194400-put", "work-1-x", "probe-00", "notes"):
        (cache / name).mkdir()

    async def work() -> None:
        other, channel = await opened(), await opened()
        kept = Path(await other.work())
        await (third := await opened()).close()
        assert kept.is_dir()
        await channel.close()
        await other.close()
        assert third is not channel

    asyncio.run(work())
    assert sorted(path.name for path in cache.iterdir()) == ["notes", "probe-00"]


def test_a_copy_that_is_cut_off_is_no_copy(shell: str, tmp_path: Path) -> None:
    there = tmp_path / "folder" / "file"
    ended = subprocess.run(
        shell_scripts.script(shell_scripts.PUT, str(there), "10", "600"),
        input=b"short",
        capture_output=True,
    )
    assert ended.returncode == 1
    assert b"cut off" in ended.stderr
    assert list(there.parent.iterdir()) == []


def test_a_home_that_cannot_be_used_falls_back_to_tmp(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    monkeypatch.setenv("HOME", str(blocked))
    text = shell_scripts.SUPERVISOR.replace("/tmp/nephoscope-", f"{tmp_path}/nephoscope-")
    monkeypatch.setattr(shell_scripts, "SUPERVISOR", text)

    async def where() -> Path:
        channel = await opened()
        folder = Path(await channel.work())
        await channel.close()
        return folder

    assert asyncio.run(where()).parent == tmp_path / f"nephoscope-{os.geteuid()}"


def test_a_folder_that_is_someone_elses_is_not_used(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A symbolic link in /tmp would let another user choose what is run."""
    text = shell_scripts.SUPERVISOR.replace("/tmp/nephoscope-$(id -u)", f"{tmp_path}/taken")
    monkeypatch.setattr(shell_scripts, "SUPERVISOR", text)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "taken").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setenv("HOME", "/dev/null")
    with pytest.raises(TargetError, match="no folder there that this user may write to") as caught:
        asyncio.run(opened())
    assert caught.value.exit_code == 3


def test_programs_start_in_the_directory_of_the_login_or_the_target(
    shell: str, tmp_path: Path
) -> None:
    there = tmp_path / "a 'b' $c"
    there.mkdir()

    async def started(channel: EnteredShell) -> tuple[str, str]:
        await channel.open(10)
        program = await channel.start(["pwd"])
        ended = await program.rest(10, 1000, 10)
        await channel.close()
        return channel.directory, ended.stdout.decode().rstrip("\n")

    assert asyncio.run(started(EnteredShell("x", ["env"]))) == (os.getcwd(), os.getcwd())
    told = asyncio.run(started(EnteredShell("x", ["env"], str(there))))
    assert told == (str(there), str(there))
    with pytest.raises(TargetError, match="no directory /no/where there"):
        asyncio.run(started(EnteredShell("x", ["env"], "/no/where")))


@pytest.mark.parametrize(
    "words",
    [
        ["sh"],
        pytest.param(["busybox", "sh"], marks=needs("busybox")),
        pytest.param(["csh"], marks=needs("csh")),
        pytest.param(["zsh"], marks=needs("zsh")),
    ],
    ids=" ".join,
)
def test_every_login_shell_hands_arguments_on_unchanged(words: list[str]) -> None:
    plain = ["a b", "it's", "$HOME `x`", "%d \\n \\1", "ü", ""]
    # A csh takes neither of these between quotes.
    for arguments in (plain, [*plain, "two\nlines", "1!2", "\x011"]):
        line = shell_scripts.command_line(["printf", "<%s>", *arguments], "mark")
        done = subprocess.run([*words, "-c", line], capture_output=True, check=True, timeout=120)
        mark, _, output = done.stdout.partition(b"mark ")[2].partition(b"\n")
        assert mark.isdigit()
        assert output.decode() == "".join(f"<{text}>" for text in arguments)
