"""A run as two objects: its samples, which any Parquet reader reads, and all its other files."""

from __future__ import annotations

import gzip
import io
import os
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from nephoscope.core import limits
from nephoscope.core.errors import StoreError
from nephoscope.core.reading import regular
from nephoscope.store.files import translating_os_errors

SAMPLES = "trials/samples.parquet"
_NAME = re.compile(r"(?:(?:trials|report)/)?[A-Za-z0-9][^/\0]{0,254}")
"""Files of a run's folder; those that begin with a dot are this machine's own."""
_TIME = "NEPHOSCOPE.mtime_ns"
"""Header with a file's time of change: summaries know their files by its nanoseconds."""
_LIMIT = 8 << 30
"""Bytes of a run without its samples that are unpacked."""


def files_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yields name and path of each file of a run but its samples, ordered by name."""
    with translating_os_errors(folder, "read"):
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in paths:
        name = path.relative_to(folder).as_posix()
        if name != SAMPLES and _NAME.fullmatch(name):
            yield name, path


def packed(folder: Path) -> bytes:
    """Returns a run's files but its samples as tar.gz, with their times of change."""
    sink = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=sink, mode="wb", compresslevel=6, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, path in files_of(folder):
            with translating_os_errors(path, "read"):
                content, stat = regular.read_regular(path, limits.RECORDS_BYTES), path.stat()
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            member.pax_headers = {_TIME: str(stat.st_mtime_ns)}
            tar.addfile(member, io.BytesIO(content))
    return sink.getvalue()


def unpack(content: bytes, folder: Path, where: str) -> None:
    """Writes the files of `packed` into an empty folder. Raises StoreError for anything else.

    where: address of the object, for sentences.
    """
    left = _LIMIT
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
            for member in tar:
                left -= member.size
                source = tar.extractfile(member) if member.isfile() else None
                if source is None or not _NAME.fullmatch(member.name) or left < 0:
                    raise ValueError(f"it has a member {member.name[:60]!r}")
                path = folder / member.name
                with translating_os_errors(path, "written"):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(source.read())
                    changed_ns = int(member.pax_headers[_TIME])
                    os.utime(path, ns=(changed_ns, changed_ns))
    except (tarfile.TarError, EOFError, ValueError, LookupError, OSError, zlib.error) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StoreError(f"{where} is damaged: {reason}.", "Restore it from a copy.") from error
