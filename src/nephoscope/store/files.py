"""Writes files so that a kill at any moment leaves the old or the new content, never a part."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from nephoscope.core.errors import StoreError

_ALL_SAVED = "Everything measured so far is kept; then run the same command again."
_STEPS = {
    errno.ENOSPC: (
        "the disk is full",
        f"Free some space there, or take another --store. {_ALL_SAVED}",
    ),
    errno.EDQUOT: ("the disk quota is used up", f"Free some space there. {_ALL_SAVED}"),
    errno.EROFS: ("the file system is read-only", "Name a writable directory with --store."),
    errno.EACCES: ("permission is denied", "Name a directory of your own with --store."),
    errno.EPERM: ("permission is denied", "Name a directory of your own with --store."),
    errno.ENOTDIR: ("a part of the path is a file", "Name a directory with --store."),
    errno.EMFILE: (
        "this process may open no more files",
        f"Raise its limit: `ulimit -n 1024`. {_ALL_SAVED}",
    ),
    errno.EIO: ("the disk reports an input/output error", f"Check the disk. {_ALL_SAVED}"),
}

_SYNCS_AT_ONCE = 8


@contextlib.contextmanager
def translating_os_errors(path: Path, doing: str) -> Iterator[None]:
    """Turns an OSError into a StoreError of one sentence with the next step.

    doing: 'written', 'read', … as in '<path> cannot be <doing>'.
    """
    try:
        yield
    except OSError as error:
        reason, step = _STEPS.get(
            error.errno or 0, (error.strerror or str(error), f"Look at {path.parent}. {_ALL_SAVED}")
        )
        raise StoreError(f"{path} cannot be {doing}: {reason}.", step) from error


def write_atomically(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Puts `content` at `path`; see `writing_atomically`."""
    with writing_atomically(path, durable=durable) as stream:
        stream.write(content)


@contextlib.contextmanager
def writing_atomically(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Yields a stream whose content is at `path` when the block ends, and not if it fails.

    It is written aside, synced and renamed, and the directory synced. durable: False leaves both
    syncs to a later `make_durable`; a kill is survived either way.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    with translating_os_errors(path, "written"):
        try:
            with aside.open("wb") as stream:
                yield stream
                stream.flush()
                if durable:
                    os.fsync(stream.fileno())
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        if durable:
            sync_directory(path.parent)


def make_durable(paths: Iterable[Path]) -> None:
    """Syncs files that `write_atomically` left unsynced, and the directories that hold them.

    A file that cannot be synced is removed, since it may be incomplete: some file systems report
    a full disk only here. The others are synced before its StoreError is raised.
    """
    from concurrent.futures import ThreadPoolExecutor

    files = list(paths)
    # Side by side, so that the file system commits them together: one by one takes 7 times as long.
    with ThreadPoolExecutor(_SYNCS_AT_ONCE) as threads:
        failures = [error for error in threads.map(_sync_or_remove, files) if error is not None]
    for directory in dict.fromkeys(path.parent for path in files):
        with translating_os_errors(directory, "written"):
            sync_directory(directory)
    if failures:
        raise failures[0]


def _sync_or_remove(path: Path) -> StoreError | None:
    try:
        with translating_os_errors(path, "written"), contextlib.suppress(FileNotFoundError):
            _sync(path, os.O_RDONLY)
    except StoreError as error:
        path.unlink(missing_ok=True)
        return error
    return None


_INCOMPLETE, _COMPLETE = ".part", ".whole"


def write_all_or_none(folder: Path, files: Mapping[str, bytes], *, durable: bool = True) -> None:
    """Puts files (name -> content) into `folder`, all or none. Raises StoreError.

    durable: False leaves a single file to a later `make_durable`. Several files are written into a
    folder aside; renaming that folder is the moment from which they exist. Then each moves to its
    place, and `recover` moves the rest after a kill.
    """
    if len(files) == 1:
        ((name, content),) = files.items()
        write_atomically(folder / name, content, durable=durable)
        return
    first = min(files)
    aside = folder / f".{first}.{os.getpid()}{_INCOMPLETE}"
    complete = folder / f".{first}{_COMPLETE}"
    with translating_os_errors(complete, "written"):
        try:
            aside.mkdir()
            for name, content in files.items():
                write_atomically(aside / name, content, durable=False)
            make_durable([aside / name for name in files])
            aside.rename(complete)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        sync_directory(folder)
        _move_to_place(complete)


def recover(folder: Path) -> None:
    """Completes after a kill what `write_all_or_none` began; removes what is incomplete."""
    with translating_os_errors(folder, "read"):
        for complete in folder.glob(f".*{_COMPLETE}"):
            _move_to_place(complete)
        for aside in folder.glob(f".*{_INCOMPLETE}"):
            if aside.is_dir():
                shutil.rmtree(aside, ignore_errors=True)


def _move_to_place(complete: Path) -> None:
    for path in sorted(complete.iterdir()):
        path.replace(complete.parent / path.name)
    sync_directory(complete.parent)
    complete.rmdir()


@contextlib.contextmanager
def opened(path: Path, flags: int, mode: int = 0o600) -> Iterator[int]:
    """Yields a descriptor, such as for a lock. Raises StoreError where it cannot be opened."""
    with translating_os_errors(path, "opened"):
        descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Makes the names in a directory as durable as the files."""
    try:
        _sync(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        # Some network file systems have no such call; the rename is then as durable as it gets.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(directory: Path) -> None:
    """Removes what a killed process was writing aside in `directory`."""
    for part in directory.glob(".*.part"):
        owner = part.name.split(".")[-2]
        if owner.isdigit() and (int(owner) == os.getpid() or not Path("/proc", owner).exists()):
            part.unlink(missing_ok=True)
