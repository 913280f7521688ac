"""A file to import: its bytes, its text, the JSON values in it."""

from __future__ import annotations

import hashlib
import os
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.errors import StoreError, UsageError
from nephoscope.core.reading import jsonstream, regular
from nephoscope.core.records import dataclass

DATABASE = b"SQLite format 3\0"
"""The first bytes of a database, of which nothing else is read at once."""
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Source:
    """A file to import: its path, its content (of a database DATABASE), time of its last change.

    The content of a compressed file (gzip) is what was compressed.
    """

    path: Path
    content: bytes
    changed_at_s: float
    value_unit: str = ""

    @classmethod
    def read(cls, path: Path, value_unit: str = "") -> Source:
        """Reads a regular file. StoreError if that is impossible, UsageError if it is too large.

        value_unit: of the values, for files that do not state it; '' where nobody stated it.
        """
        try:
            with regular.open_regular(path) as stream:
                status = os.fstat(stream.fileno())
                if stream.read(len(DATABASE)) == DATABASE:
                    return cls(path, DATABASE, status.st_mtime)
                stream.seek(0)
                if status.st_size > limits.IMPORT_BYTES:
                    raise UsageError(f"{path} is larger than 256 MiB.", "Import it in parts.")
                content = stream.read(limits.IMPORT_BYTES)
        except OSError as error:
            reason = error.strerror or error
            raise StoreError(
                f"{path} cannot be read: {reason}.", "Check the path and its permissions."
            ) from error
        if content.startswith(_GZIP):
            content = _decompressed(path, content)
        return cls(path, content, status.st_mtime, value_unit)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its content; '' for a database, which is not read whole."""
        return "" if self.content == DATABASE else hashlib.sha256(self.content).hexdigest()

    @cached_property
    def text(self) -> str:
        """Its content with lines that end in a newline; ValueError where it is no UTF-8 or UTF-16.

        A byte-order mark is removed.
        """
        content = self.content
        utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        # Windows PowerShell redirects into UTF-16; some editors leave its mark out.
        without_mark = content[1:2] == b"\0" and content[:1] not in (b"", b"\0")
        encoding = "utf-16" if utf16 else "utf-16-le" if without_mark else "utf-8-sig"
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            raise ValueError("it is no UTF-8 text") from None
        return text.replace("\r\n", "\n")

    @cached_property
    def documents(self) -> jsonstream.Documents:
        """The JSON values of its text."""
        return jsonstream.documents(self.text)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The last JSON object of its text; empty where there is none."""
        values = [value for _, value in self.documents.values if isinstance(value, dict)]
        return values[-1] if values else {}

    def refused(self, reason: str) -> UsageError:
        """Returns the error for a file that is not imported."""
        return UsageError(f"{self.path}: {reason}.", "Nothing was imported.")


def _decompressed(path: Path, content: bytes) -> bytes:
    try:
        decompressor = zlib.decompressobj(wbits=31)
        plain = decompressor.decompress(content, limits.IMPORT_BYTES + 1)
    except zlib.error as error:
        raise UsageError(
            f"{path}: the compressed data (gzip) are damaged: {error}.", "Copy the file again."
        ) from error
    if len(plain) > limits.IMPORT_BYTES:
        raise UsageError(f"{path} is larger than 256 MiB when decompressed.", "Import it in parts.")
    if not decompressor.eof:
        raise UsageError(
            f"{path}: the compressed data (gzip) end in the middle.", "Copy the file again."
        )
    return plain
