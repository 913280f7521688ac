"""Plain files of numbers, one a line, as `compare` takes them."""

from __future__ import annotations

from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import numbers, textfile


def read(path: Path) -> list[float]:
    """The numbers of a file, in its order; '#' begins a comment, blank lines are skipped.

    Raises UsageError with file and line at the first thing that is no number, or so large or
    small that analyses of it overflow.
    """
    try:
        text = textfile.large_bytes(path, "Use a sample of its lines.").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(
            f"{path} is not a text file.", "Use a file with one number per line."
        ) from None
    values = []
    for line, content in enumerate(text.splitlines(), start=1):
        word = content.partition("#")[0].strip()
        if not word:
            continue
        if line == 1 and word[0] in "{[<":
            raise UsageError(
                f"{path} is a result file of another tool, not a list of numbers.",
                f"Import it with `nephoscope import {path}`, then compare the runs.",
            )
        try:
            values.append(numbers.ANY.read(word))
        except ValueError as error:
            raise UsageError(
                f"{path}:{line}: '{word[:40]}' {error}.",
                "Write one number per line; '#' starts a comment.",
            ) from None
    if not values:
        raise UsageError(f"{path} has no numbers.", "Write one number per line.")
    return values
