"""The script of a machine that nobody logs in to, run by a shell of this machine."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from pathlib import Path

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.measure.cloud.unattended import Download, script, work


def ended(folder: Path, text: str, *programs: str) -> str:
    """What the script says. programs: those that the machine has besides the shell's own."""
    place = folder / "bin"
    place.mkdir()
    for name in ("poweroff", "shutdown"):
        (place / name).write_text("#!/bin/sh\necho off\n")
    wanted = (
        "sh",
        "mktemp",
        "uname",
        "sha256sum",
        "chmod",
        "sleep",
        "sync",
        "cp",
        "echo",
        "printf",
    )
    for name in (*wanted, *programs):
        found = subprocess.run(["which", name], capture_output=True, text=True).stdout.strip()
        if found:
            (place / name).symlink_to(found)
    for path in place.iterdir():
        if not path.is_symlink():
            path.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", text],
        env={"PATH": str(place)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout


def download(folder: Path, name: str, content: str, sha256: str = "") -> Download:
    file = folder / name
    file.write_text(content)
    return Download(f"file://{file}", sha256 or hashlib.sha256(content.encode()).hexdigest())


PROBE = '#!/bin/sh\necho "ran $1 $2 $(cat $3 2> /dev/null)"\n'


def test_what_has_the_right_digest_runs_and_the_machine_is_switched_off(tmp_path: Path) -> None:
    probe = download(tmp_path, "p", PROBE)
    text = work({platform.machine(): probe}, download(tmp_path, "j", "{}"))
    said = ended(tmp_path, text, "curl", "cat")
    assert "ran unattended --job {}" in said
    assert said.splitlines()[-1] == "off"


@pytest.mark.parametrize("wrong", ["probe", "job"])
def test_what_has_another_digest_is_refused(tmp_path: Path, wrong: str) -> None:
    probe = download(tmp_path, "p", PROBE, "0" * 64 if wrong == "probe" else "")
    job = download(tmp_path, "j", "{}", "0" * 64 if wrong == "job" else "")
    said = ended(tmp_path, work({platform.machine(): probe}, job), "curl", "cat")
    assert f"{wrong} is refused: its SHA-256 is not 0000" in said
    assert "ran unattended" not in said
    assert said.splitlines()[-1] == "off"


def test_an_image_without_a_program_to_fetch_with_says_so(tmp_path: Path) -> None:
    probe, job = download(tmp_path, "p", PROBE), download(tmp_path, "j", "{}")
    said = ended(tmp_path, work({platform.machine(): probe}, job))
    assert "none of curl, wget and python3" in said
    other = ended_on_another_processor(tmp_path, probe, job)
    assert "there is no probe for the processor" in other


def ended_on_another_processor(folder: Path, probe: Download, job: Download) -> str:
    there = folder / "there"
    there.mkdir()
    return ended(there, work({"pdp11": probe}, job), "curl")


def test_addresses_that_are_too_long_for_user_data_are_refused() -> None:
    long = Download("https://x/" + "a" * 9000, "0" * 64)
    with pytest.raises(UsageError, match="session token"):
        script({"x86_64": long, "aarch64": long}, long, 60)


def test_addresses_stand_in_no_representation() -> None:
    assert "secret" not in repr(Download("https://x/?X-Amz-Signature=secret", "0" * 64))
