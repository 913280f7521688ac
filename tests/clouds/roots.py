"""Roots of Debian in which control planes of clouds run: made once, kept in the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.hardware import Feature, lacking
from tests.tools import find

LIMIT_S = 900.0
RELEASE = "bookworm"


def cache(cloud: str) -> Path:
    """The folder of a cloud in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(home) / "nephoscope" / "clouds" / cloud
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def made_once(folder: Path, name: str, make: Callable[[Path], None]) -> Path:
    """Returns `folder/name`, made by the first that asks: whole, or not at all."""
    made = folder / name
    if made.exists():
        # It was moved there whole; another thing of this folder may be in the making for minutes.
        return made
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            part = folder / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            make(part)
            part.rename(made)
    return made


def debian(cloud: str, packages: Sequence[str]) -> Path:
    """Returns a root with these packages of Debian and what they depend on; none of their services
    is started. Skips the test where it cannot be made."""
    if os.geteuid() != 0:
        lacking(Feature.ROOT)
    builder = find("mmdebstrap")
    assert builder, "a fixture of a root is marked by fixture_needs('mmdebstrap')"

    def make(part: Path) -> None:
        words = [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
            *(builder, "--mode=root", "--variant=minbase", "--format=directory"),
            f"--include={','.join(packages)}",
            "--aptopt=APT::Install-Recommends false",
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/man/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*",
            '--customize-hook=rm -rf "$1"/var/lib/apt/lists "$1"/var/cache/apt',
            *(RELEASE, str(part)),
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
        if done.returncode != 0:
            lacking(Feature.CLOUD_ROOT, done.stderr.strip().splitlines()[-1][:300])

    digest = hashlib.sha256("\n".join([RELEASE, *packages]).encode()).hexdigest()[:12]
    return made_once(cache(cloud), f"root-{digest}", make)
