"""Digests of what a run stored, so that a change of a file afterwards is noticed.

The journal has the digest of each trial file, the manifest its own. They show damage by disks,
copies and editors; whoever may write to the store may write new digests as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nephoscope.store.files import translating_os_errors

KEY = "sha256"
"""First key of a manifest."""
_NONE = "0" * 64
"""What stands in the digest's place while it is computed."""

_EVENT = "trials_stored"
_OWN = re.compile(rb'\{\s*"sha256": "([0-9a-f]{64})"')


def digest_of(content: bytes) -> str:
    """Returns the SHA-256 digest in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def with_own_digest(document: Mapping[str, Any]) -> bytes:
    """Returns the JSON text of a document whose first key holds the digest of that text."""
    text = json.dumps({KEY: _NONE, **document}, indent=2, allow_nan=False, default=str).encode()
    return text.replace(_NONE.encode(), digest_of(text).encode(), 1)


def has_own_digest(text: bytes) -> bool:
    """States whether a text is as `with_own_digest` returned it, or has no digest at all."""
    match = _OWN.match(text)
    if match is None:
        return True
    start, end = match.span(1)
    return digest_of(text[:start] + _NONE.encode() + text[end:]) == match[1].decode()


def stored_event(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Returns the event of trial files (name -> content) that were put into their place."""
    return {"event": _EVENT, "sha256": {name: digest_of(text) for name, text in files.items()}}


def removed_event(names: Iterable[str]) -> dict[str, Any]:
    """Returns the event of trial files that were taken away again."""
    return {"event": _EVENT, "sha256": dict.fromkeys(names)}


class DigestLog:
    """The digests of one journal; a later reading continues where the one before ended."""

    def __init__(self) -> None:
        self._offset = 0
        self._digests: dict[str, str | None] = {}

    def read(self, journal: Path) -> Mapping[str, str]:
        """Returns the digest of each trial file by its name; the last one where it was rewritten.

        A line that was cut off or damaged leaves its trials without a digest.
        """
        with translating_os_errors(journal, "read"):
            try:
                with journal.open("rb") as stream:
                    stream.seek(self._offset)
                    whole, newline, _ = stream.read().rpartition(b"\n")
            except FileNotFoundError:
                return {}
        self._offset += len(whole) + len(newline)
        for line in whole.split(b"\n"):
            if _EVENT.encode() in line:
                with contextlib.suppress(ValueError, AttributeError, RecursionError):
                    digests = json.loads(line).get("sha256")
                    # A name is of this folder, whatever else a damaged line may hold.
                    self._digests |= {name: one for name, one in digests.items() if "/" not in name}
        return {name: str(digest) for name, digest in self._digests.items() if digest}
