"""Opens and reads every file that another program or user may have put where it is.

A named pipe in its place would block for ever, a device never end, and a sparse file fill the
memory. All other modules read such files through this one (`tests/core/reading/test_regular.py`).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from nephoscope.core import limits

_CHUNK_BYTES = 1 << 16
_LINE_HEAD_BYTES = 256
"""What is yielded of a line that is no text or too long: enough to name it."""


def open_regular(
    file: Path, largest: int | None = None, *, pipe: bool = False, follow: bool = True
) -> BufferedReader:
    """Opens a regular file for reading; a device or a named pipe could block or never end.

    largest: refuses a larger file. pipe: opens a pipe, too. follow: False refuses a link in the
    file's place. Raises OSError.
    """
    return open(_descriptor(file, os.O_RDONLY, largest, pipe=pipe, follow=follow), "rb")


def open_to_append(file: Path, *, buffering: int = -1) -> BinaryIO:
    """Opens a regular file for reading and appending, and makes it if needed. Raises OSError.

    A link in its place is refused: lines would go to a file that somebody else chose.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    return open(_descriptor(file, flags, follow=False), "ab+", buffering)


def read_regular(file: Path, largest: int, *, start: int = 0, follow: bool = True) -> bytes:
    """Returns the content of a regular file of at most so many bytes. Raises OSError.

    start: byte from which on it is read. follow: as of `open_regular`.
    """
    descriptor = _descriptor(file, os.O_RDONLY, largest, follow=follow)
    try:
        expected = os.fstat(descriptor).st_size - start
        if start:
            os.lseek(descriptor, start, os.SEEK_SET)
        parts: list[bytes] = []
        size = 0
        # One byte more than expected shows the end; a file of the kernel states no size.
        while part := os.read(descriptor, max(expected + 1 - size, _CHUNK_BYTES)):
            parts.append(part)
            size += len(part)
            if size > largest:
                raise _too_large(file, largest)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        os.close(descriptor)


def read_text(
    file: Path,
    largest: int = limits.TEXT_BYTES,
    *,
    encoding: str = "utf-8",
    errors: str = "strict",
) -> str:
    """Returns the text of a regular file of at most so many bytes.

    Line ends are as in the file. Raises OSError, and UnicodeDecodeError unless `errors` replaces
    what is no text.
    """
    return read_regular(file, largest).decode(encoding, errors)


def lines_of(stream: BinaryIO, largest: int = limits.IMPORT_BYTES) -> Iterator[bytes]:
    """Yields the lines of a stream with their ends, holding at most one of them.

    Of a line that is longer, or has a zero byte as the holes of a sparse file have, only the
    beginning is yielded; no checksum fits it.
    """
    while line := stream.readline(_CHUNK_BYTES):
        parts = [line]
        size = len(line)
        is_text = b"\0" not in line
        while not line.endswith(b"\n") and (line := stream.readline(_CHUNK_BYTES)):
            size += len(line)
            is_text = is_text and b"\0" not in line and size <= largest
            if is_text:
                parts.append(line)
        end = b"\n" if line.endswith(b"\n") else b""
        yield b"".join(parts) if is_text else parts[0][:_LINE_HEAD_BYTES].rstrip(b"\n") + end


def _descriptor(
    file: Path,
    flags: int,
    largest: int | None = None,
    *,
    pipe: bool = False,
    follow: bool = True,
) -> int:
    """Returns a descriptor of a regular file. Raises OSError."""
    flags |= os.O_CLOEXEC | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    # Without the last flag, opening a named pipe waits for somebody at its other end.
    try:
        descriptor = os.open(file, flags | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):  # a socket, a device without a driver
            raise _not_regular(file) from None
        raise
    try:
        status = os.fstat(descriptor)
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
        if not (stat.S_ISREG(mode) or (pipe and stat.S_ISFIFO(mode))):
            raise _not_regular(file)
        if largest is not None and status.st_size > largest:
            raise _too_large(file, largest)
        if pipe:
            os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _not_regular(file: Path) -> OSError:
    return OSError(errno.EINVAL, "it is no regular file", str(file))


def _too_large(file: Path, largest: int) -> OSError:
    size = f"{largest >> 20} MiB" if largest >= 1 << 20 else f"{largest >> 10} KiB"
    return OSError(errno.EFBIG, f"it is larger than {size}", str(file))
