"""The page's files, read once: a request can name these and no others."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from nephoscope.core.records import dataclass

INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the page. name_has_digest: its content never changes under its name."""

    content: bytes
    content_type: str
    etag: str
    name_has_digest: bool


@lru_cache(maxsize=1)
def load() -> Mapping[str, StaticFile]:
    """Returns the files by their paths."""
    folder = Path(__file__).with_name("static")
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _read(path) for path in files}


def _read(path: Path) -> StaticFile:
    content = path.read_bytes()
    kind = mimetypes.guess_type(path.name, strict=True)[0] or "application/octet-stream"
    if kind.startswith("text/"):
        kind += "; charset=utf-8"
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return StaticFile(content, kind, etag, path.parent.name == "assets")
