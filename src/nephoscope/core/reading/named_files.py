"""Files that a user's file names, which a stranger may have written, with the name of any file.

Errors quote what is wrong in a file. What a named file holds is quoted only where it lies beside
the one that names it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import regular


def is_below(file: Path, folder: Path) -> bool:
    """States whether a file is in a folder or below it, with all links followed."""
    top = os.path.realpath(folder)
    return os.path.commonpath((os.path.realpath(file), top)) == top


@contextlib.contextmanager
def hiding_content_elsewhere(file: Path, folder: Path, what: str) -> Iterator[None]:
    """Reads a file in its block, whose errors tell nothing of a file that lies elsewhere.

    folder: of the file that names it. what: it is called in sentences. Errors of a file that cannot
    be read hold nothing of it and stay as they are. Raises UsageError.
    """
    try:
        yield
    except UsageError:
        if is_below(file, folder) or not _is_readable(file):
            raise
        raise UsageError(
            f"{file}: this is not a {what} that can be used.",
            f"It lies outside {folder}, so that nothing of it is quoted; move it there to see "
            "what is wrong.",
        ) from None


def _is_readable(file: Path) -> bool:
    try:
        regular.open_regular(file).close()
    except OSError:
        return False
    return True
