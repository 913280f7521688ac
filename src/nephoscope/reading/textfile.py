"""A text file of a user's, read whole, with one sentence for whatever is wrong with it."""

from __future__ import annotations

from pathlib import Path

from nephoscope.errors import PlanError, UsageError
from nephoscope.reading import yamltext


def read(file: Path, what: str = "plan", error: type[UsageError] = PlanError) -> str:
    """The text of a file of at most 1 MiB; `what` it is called in sentences. Raises `error`."""
    try:
        if file.is_dir():
            raise error(f"{file}: this is a directory.", f"Name the file of the {what} in it.")
        with file.open("rb") as stream:
            raw = stream.read(yamltext.MAX_TEXT_BYTES + 1)
    except FileNotFoundError as missing:
        raise error(f"{file}: there is no such file.", "Check the path.") from missing
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise error(
            f"{file}: the {what} cannot be read: {reason}.", "Check its permissions."
        ) from failure
    if len(raw) > yamltext.MAX_TEXT_BYTES:
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
