"""File systems in memory, for tests that fill a disk or make it read-only."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.hardware import Feature, lacking


@contextmanager
def in_memory(path: Path, options: str) -> Iterator[Path]:
    """Mounts a tmpfs with these options at a new folder; skips where mounting is not allowed."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    mounted = subprocess.run(command, capture_output=True)
    if mounted.returncode != 0:
        lacking(Feature.MOUNTS, mounted.stderr.decode().strip())
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)
        path.rmdir()
