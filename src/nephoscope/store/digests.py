"""Digests of what a run stored, so that a change of a file afterwards is noticed.

The journal has the digest of each trial file, the manifest its own and that of the journal when the
run ended, a report the sums of its files. They show damage by disks, copies and editors; whoever
may write to the store may write new digests as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.reading import regular
from nephoscope.store.files import translating_os_errors

KEY = "sha256"
"""First key of a manifest."""
_NONE = "0" * 64
"""What stands in the digest's place while it is computed."""

_OWN = re.compile(rb'\{\s*"sha256": "([0-9a-f]{64})"')


def digest_of(content: bytes) -> str:
    """Returns the SHA-256 digest in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def digest_of_file(path: Path, largest: int) -> str:
    """Returns the digest of a file of at most so many bytes, read in parts. Raises OSError."""
    with regular.open_regular(path, largest) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def with_own_digest(document: Mapping[str, Any]) -> bytes:
    """Returns the JSON text of a document whose first key holds the digest of that text.

    It has a line for each key: indented values would take several times as long to write.
    """
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, allow_nan=False, default=str)}"
        for key, value in {KEY: _NONE, **document}.items()
    )
    text = ("{\n  " + ",\n  ".join(lines) + "\n}").encode()
    return text.replace(_NONE.encode(), digest_of(text).encode(), 1)


def has_own_digest(text: bytes) -> bool:
    """States whether a text is as `with_own_digest` returned it, or has no digest at all."""
    match = _OWN.match(text)
    if match is None:
        return True
    start, end = match.span(1)
    return digest_of(text[:start] + _NONE.encode() + text[end:]) == match[1].decode()


def changed_reports(folder: Path) -> list[str]:
    """Returns a sentence for each file of a run's reports that is not as it was written."""
    problems = []
    for sums in sorted(folder.glob("*.sha256")):
        with translating_os_errors(sums, "read"):
            for line in regular.read_text(sums, errors="replace").splitlines():
                digest, _, name = line.partition("  ")
                path = folder / Path(name).name
                with contextlib.suppress(OSError):
                    if digest_of_file(path, limits.REPORT_BYTES) == digest:
                        continue
                problems.append(f"{path} is not as it was written.")
    return problems
