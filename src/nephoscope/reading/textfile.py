"""A text file of a user's, read whole, with one sentence for whatever is wrong with it."""

from __future__ import annotations

import csv
import errno
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from nephoscope import limits
from nephoscope.errors import PlanError, UsageError


def read(
    file: Path, what: str = "plan", error: type[UsageError] = PlanError, *, pipe: bool = False
) -> str:
    """The text of a file of at most 1 MiB; `what` it is called in sentences. Raises `error`.

    pipe: also what a pipe gives until its end, for files that the user names.
    """
    try:
        if file.is_dir():
            raise error(f"{file}: this is a directory.", f"Name the file of the {what} in it.")
        with open_regular(file, pipe=pipe) as stream:
            raw = stream.read(limits.TEXT_BYTES + 1)
    except FileNotFoundError as missing:
        raise error(f"{file}: there is no such file.", "Check the path.") from missing
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise error(
            f"{file}: the {what} cannot be read: {reason}.", "Check the path and its permissions."
        ) from failure
    if len(raw) > limits.TEXT_BYTES:
        raise error(f"{file}: this is larger than 1 MiB.", f"Is it a {what}?")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as failure:
        line = raw.count(b"\n", 0, failure.start) + 1
        column = failure.start - (raw.rfind(b"\n", 0, failure.start) + 1) + 1
        raise error(
            f"{file}:{line}:{column}: this is no UTF-8 text (byte 0x{raw[failure.start]:02x}).",
            f"Save the {what} as UTF-8.",
        ) from failure


def csv_rows(
    text: str, name: str, error: type[UsageError] = UsageError
) -> Iterator[tuple[int, list[str]]]:
    """Yields number and cells of each line of a CSV text. Raises `error` where it is none."""
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        for cells in rows:
            yield rows.line_num, cells
    except csv.Error as problem:
        raise error(f"{name}:{rows.line_num}: invalid CSV: {problem}.", "Check the quotes.") from (
            problem
        )


def open_regular(file: Path, *, pipe: bool = False) -> BinaryIO:
    """Opens a regular file for reading; a device or a named pipe could block or never end.

    pipe: opens a pipe, too. Raises OSError.
    """
    # Without the last flag, opening a named pipe waits for somebody who writes to it.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    descriptor = os.open(file, flags)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) or (pipe and stat.S_ISFIFO(mode)):
        os.set_blocking(descriptor, True)
        return open(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no regular file")
