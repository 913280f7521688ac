"""Versions on which the digits of an engine's answers depend, and whether it sees a store.

This module is sent to workers as its own text, since `nephoscope` may be missing there: it imports
nothing of it at its top.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import socket
from collections.abc import Iterable, Iterator
from typing import Any

MIRROR_FILE = ".object_store.json"
"""As `address.FILE`."""
LIBRARIES = ("numpy", "scipy", "pyarrow")


def worker_facts(folder: str, mirror: str = "") -> dict[str, Any]:
    """Returns versions by name, '' for what is missing, and whether a folder is there.

    mirror: content of the file that makes a folder the mirror of a store on object storage. Such a
    folder is made where it is missing: it is filled from the store by who reads it.
    """
    if mirror:
        _make_mirror(folder, mirror)
    facts = {"host": socket.gethostname(), "Python": platform.python_version()}
    for name in LIBRARIES:
        facts[name] = _version(name)
    facts["nephoscope"] = _source_of("nephoscope")
    return {**facts, "sees": not folder or os.path.isdir(folder)}


def _make_mirror(folder: str, mirror: str) -> None:
    path = os.path.join(folder, MIRROR_FILE)
    with contextlib.suppress(OSError):  # the folder is then found missing
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.path.exists(path):
            aside = f"{path}.{os.getpid()}"
            with open(aside, "w", encoding="utf-8") as stream:
                stream.write(mirror)
            os.replace(aside, path)


def facts_in_batches(folder: str, mirror: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Yields one batch with the facts as JSON: a function of Spark's `mapInArrow`."""
    import json

    import pyarrow as pa

    for _ in batches:
        text = json.dumps(worker_facts(folder, mirror))
        yield pa.RecordBatch.from_arrays([pa.array([text])], ["facts"])


def _version(name: str) -> str:
    try:
        return str(importlib.import_module(name).__version__)
    except ImportError:
        return ""


def _source_of(name: str) -> str:
    """Returns version and digest of the source of a package; '' where it is missing."""
    import hashlib

    version = _version(name)
    if not version:
        return ""
    digest = hashlib.sha256()
    top = os.path.dirname(str(importlib.import_module(name).__file__))
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(own for own in folders if not own.startswith("_"))
        for file in sorted(files):
            if file.endswith(".py"):
                digest.update(f"{os.path.relpath(folder, top)}/{file}\n".encode())
                with open(os.path.join(folder, file), "rb") as stream:
                    digest.update(stream.read())
    return f"{version} (source {digest.hexdigest()[:8]})"
