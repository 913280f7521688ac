"""A text file of a user's, read whole, with one sentence for whatever is wrong with it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from nephoscope.core import limits
from nephoscope.core.errors import PlanError, UsageError
from nephoscope.core.reading.regular import open_regular


def read(
    file: Path,
    what: str = "plan",
    error: type[UsageError] = PlanError,
    *,
    pipe: bool = False,
    largest: int = limits.TEXT_BYTES,
) -> str:
    """The text of a file of at most 1 MiB; `what` it is called in sentences. Raises `error`.

    pipe: also what a pipe gives until its end, for files that the user names. largest: another
    limit, in bytes.
    """
    try:
        if file.is_dir():
            raise error(f"{file}: this is a directory.", f"Name the file of the {what} in it.")
        with open_regular(file, pipe=pipe) as stream:
            raw = stream.read(largest + 1)
    except FileNotFoundError as missing:
        raise error(f"{file}: there is no such file.", "Check the path.") from missing
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise error(
            f"{file}: the {what} cannot be read: {reason}.", "Check the path and its permissions."
        ) from failure
    if len(raw) > largest:
        raise error(
            f"{file}: this is larger than {largest >> 20} MiB.",
            "Check that it is the file that you meant.",
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as failure:
        line = raw.count(b"\n", 0, failure.start) + 1
        column = failure.start - (raw.rfind(b"\n", 0, failure.start) + 1) + 1
        if kind := _kind_of(raw):
            raise error(f"{file}: this is {kind}, not a {what}.", f"Name the {what}.") from failure
        raise error(
            f"{file}:{line}:{column}: this is no UTF-8 text (byte 0x{raw[failure.start]:02x}).",
            f"Save the {what} as UTF-8.",
        ) from failure


_MAGIC = (
    (b"\xac\xed\x00\x05", "a file of serialised Java objects (such as CloudAnalyst's)"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a file that gzip compressed"),
    (b"\x28\xb5\x2f\xfd", "a file that zstd compressed"),
    (b"PAR1", "a Parquet file"),
    (b"\x7fELF", "a program"),
)


def _kind_of(raw: bytes) -> str:
    """Returns what a file is that is no text; empty where its first bytes do not tell."""
    return next((kind for magic, kind in _MAGIC if raw.startswith(magic)), "")


def begins_as_json(file: Path) -> bool:
    """Returns whether a file begins as an object or a list of JSON; not of one that is away."""
    try:
        with open_regular(file) as stream:
            head = stream.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError:
        return False
    return head[:1] in (b"{", b"[")


def large_bytes(file: Path, hint: str) -> bytes:
    """Returns the bytes of a file or pipe of at most 256 MiB. UsageError; hint: if it is larger."""
    try:
        with open_regular(file, pipe=True) as stream:
            raw = stream.read(limits.IMPORT_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.", "Check the path.") from error
    if len(raw) > limits.IMPORT_BYTES:
        raise UsageError(f"{file} is larger than 256 MiB.", hint)
    return raw


_DECIMAL_COMMA = re.compile(r"^([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)$")


def csv_rows(
    text: str, name: str, error: type[UsageError] = UsageError, delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """Yields number and cells of each line of a CSV text. Raises `error` where it is none."""
    rows = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    try:
        for cells in rows:
            yield rows.line_num, cells
    except csv.Error as problem:
        raise error(f"{name}:{rows.line_num}: invalid CSV: {problem}.", "Check the quotes.") from (
            problem
        )


def csv_records(
    text: str, name: str, known: Collection[str], needed: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields place and cells by column of each row below a line that names the columns.

    The separator is a comma, a tab or, as spreadsheets write where the decimal mark is a comma, a
    semicolon. Empty lines and those that begin with # are skipped. known: columns that there may
    be, needed: those that there must be. UsageError for other columns, and for rows that do not fit
    them.
    """
    head: list[str] = []
    text = text.removeprefix("\ufeff")
    delimiter = _delimiter(text)
    for line, fields in csv_rows(text, name, delimiter=delimiter):
        cells = [field.strip() for field in fields]
        if delimiter == ";":
            cells = [_DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in cells]
        if not any(cells) or cells[0].startswith("#"):
            continue
        where = f"{name}:{line}"
        if not head:
            check_columns(cells, where, known, needed)
            head = cells
            continue
        if len(cells) != len(head):
            raise UsageError(
                f"{where}: {len(cells)} fields under {len(head)} columns.",
                'Put text with a comma into "quotes".',
            )
        yield where, dict(zip(head, cells, strict=True))


def _delimiter(text: str) -> str:
    """Returns the separator of the columns' names: a comma, a semicolon or a tab."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    head = next(lines, "")
    return next((mark for mark in (",", ";", "\t") if mark in head), ",")


def check_columns(
    names: Sequence[str], where: str, known: Collection[str], needed: Sequence[str] = ()
) -> None:
    """UsageError for a column that is not known, stands there twice, or is missing."""
    from nephoscope.core.reading.foreign import table_format_of
    from nephoscope.core.reading.sentences import did_you_mean

    for name in names:
        if name not in known:
            kind = table_format_of(names)
            if kind and not set(needed) <= set(names):
                raise UsageError(f"{where}: this is {kind}.", f"Columns: {', '.join(known)}.")
            raise UsageError(
                f"{where}: unknown column '{name[:40]}'{did_you_mean(name, known)}.",
                f"Columns: {', '.join(known)}.",
            )
    if len(set(names)) != len(names):
        raise UsageError(f"{where}: duplicate column.", "Name each column once.")
    if missing := [name for name in needed if name not in names]:
        raise UsageError(f"{where}: the column '{missing[0]}' is missing.", "It is required.")
