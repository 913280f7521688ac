"""The page's files, read once: a request can name these and no others."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable

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
    return dict(_walk(resources.files("nephoscope.serve").joinpath("static"), ""))


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, StaticFile]]:
    files = []
    for entry in folder.iterdir():
        path = prefix + entry.name
        if entry.is_dir():
            files += _walk(entry, path + "/")
        else:
            content = entry.read_bytes()
            kind = mimetypes.guess_type(entry.name, strict=True)[0] or "application/octet-stream"
            if kind.startswith("text/"):
                kind += "; charset=utf-8"
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            files.append((path, StaticFile(content, kind, etag, prefix == "assets/")))
    return files
