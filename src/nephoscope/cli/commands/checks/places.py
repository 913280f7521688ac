"""Directories: where runs are kept, and where the disk is measured."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from pathlib import Path

from nephoscope.cli.commands.checks.frame import LACKS, LIMITED, WORKS, CheckAnswer, Places
from nephoscope.core import units

_MIN_FREE_BYTES = 1 << 30


def _nearest_existing(path: Path) -> Path:
    while not os.path.exists(path) and path != path.parent:  # one behind a closed directory, too
        path = path.parent
    return path


def store(places: Places) -> CheckAnswer:
    """Runs can be kept."""
    where = _nearest_existing(places.store)
    problem = _unwritable(where)
    if problem:
        fix = "use another directory with --store DIR"
        return CheckAnswer("store", LACKS, f"{places.store}: {problem}", fix, True)
    free = shutil.disk_usage(where).free
    text = f"{places.store}, {units.format_value(free, 'bytes')} free"
    if free < _MIN_FREE_BYTES // 10:
        return CheckAnswer(
            "store", LACKS, text, "free 100 MiB, or use another directory with --store DIR", True
        )
    return CheckAnswer("store", WORKS, text, needed=True)


def temporary(places: Places) -> CheckAnswer:
    """The disk benchmarks have a place for their file."""
    problem = _unwritable(places.temporary)
    if problem:
        fix = "export TMPDIR=DIR with a writable directory"
        return CheckAnswer("temporary files", LACKS, f"{places.temporary}: {problem}", fix, True)
    free = shutil.disk_usage(places.temporary).free
    text = f"{places.temporary}, {units.format_value(free, 'bytes')} free"
    if free < _MIN_FREE_BYTES:
        return CheckAnswer(
            "temporary files",
            LIMITED,
            f"{text}: not enough for the disk benchmarks",
            "free 1 GiB, or export TMPDIR=DIR",
        )
    return CheckAnswer("temporary files", WORKS, text)


def _unwritable(directory: Path) -> str:
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"x" * 4096)
            file.flush()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def direct_io(places: Places) -> CheckAnswer:
    """The disk can be measured past the page cache."""
    attempts = []
    for directory in dict.fromkeys((places.temporary, _nearest_existing(places.store))):
        problem = _no_direct_io(directory)
        attempts.append((directory, problem))
    good = [str(directory) for directory, problem in attempts if not problem]
    bad = [
        f"{directory} does not support it ({problem})" for directory, problem in attempts if problem
    ]
    if not good:
        fix = "export TMPDIR=DIR on a disk file system (ext4, xfs), not tmpfs"
        return CheckAnswer("direct I/O", LIMITED, "; ".join(bad), fix)
    return CheckAnswer("direct I/O", WORKS, "; ".join([f"in {', '.join(good)}", *bad]))


def _no_direct_io(directory: Path) -> str:
    path = directory / f".nephoscope-direct-{os.getpid()}"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_DIRECT, 0o600)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    finally:
        path.unlink(missing_ok=True) if os.access(directory, os.W_OK) else None
    try:
        with mmap.mmap(-1, 4096) as page:  # anonymous memory is aligned to a page
            os.write(handle, page)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    finally:
        os.close(handle)
    return ""
