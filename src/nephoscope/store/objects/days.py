"""Day files of a store on object storage: a manifest names them, so that nobody lists.

Each file is an object whose name has its digest; the manifest is replaced only while it is the one
that was read. Where two machines compact at once, the lines of both are put together.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.errors import StoreError
from nephoscope.core.format_versions import OBJECT_STORE
from nephoscope.core.reading import regular
from nephoscope.core.records import dataclass
from nephoscope.store import digests
from nephoscope.store.files import translating_os_errors, write_atomically
from nephoscope.store.objects.mirror import Mirror, name_of, new_name
from nephoscope.store.objects.object_index import REQUESTS_AT_ONCE, new_writing, parse_document
from nephoscope.store.objects.primitives import ConditionFailed

FOLDER, MANIFEST = "days", "days.json"
_FILE = re.compile(r"(?:watch=[A-Za-z0-9%._~-]{1,200}/)?[a-z0-9-]{1,40}\.jsonl")
_RUN = re.compile(rb'\{"run": "([0-9a-z_-]{1,200})"')

Files = dict[str, str]
"""Name of a day file below the folder -> name of its content; see `new_name`."""


@dataclass(slots=True)
class _Manifest:
    version: str
    files: Files


def refresh_days(mirror: Mirror) -> None:
    """Brings day files into the mirror that others changed. Raises StoreError."""
    synced = _synced(mirror)
    remote = _read(mirror, synced.version)
    if remote.version == synced.version:
        return
    changed = [name for name, own in remote.files.items() if synced.files.get(name) != own]
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as threads:
        list(threads.map(lambda name: _bring(mirror, name, remote.files[name]), changed))
    for name in synced.files.keys() - remote.files.keys():
        (mirror.folder / FOLDER / name).unlink(missing_ok=True)
    _set_synced(mirror, remote)


def publish_days(mirror: Mirror) -> None:
    """Publishes the day files that changed here. Raises StoreError."""
    while True:
        synced, local = _synced(mirror), _local(mirror)
        changed = {
            name
            for name in local.keys() | synced.files.keys()
            if local.get(name) != synced.files.get(name, "").partition(".")[0]
        }
        if not changed:
            return
        remote = _read(mirror, synced.version)
        if remote.version == synced.version:
            remote = synced
        files = dict(remote.files)
        for name in changed:
            _put(mirror, name, files, synced.files.get(name))
        try:
            version = _write(mirror, files, remote.version)
        except ConditionFailed:
            continue
        for name, content in remote.files.items():
            if files.get(name) != content:
                with contextlib.suppress(StoreError):
                    mirror.service.delete(_key(name, content))
        for name in files.keys() - changed:
            if files[name] != synced.files.get(name):
                _bring(mirror, name, files[name])
        _set_synced(mirror, _Manifest(version, files))
        return


def _put(mirror: Mirror, name: str, files: Files, synced: str | None) -> None:
    """Puts a file that changed here into `files`, or takes it out, and stores its object.

    files: as others published them. synced: the content that the file had before it changed here.
    """
    path = mirror.folder / FOLDER / name
    published = files.get(name)
    if not path.exists():
        if published == synced:
            files.pop(name, None)
        return
    if published is not None and published != synced:
        own = regular.read_regular(path, limits.DAY_FILE_BYTES)
        _bring(mirror, name, published)
        write_atomically(path, merged_lines(regular.read_regular(path, limits.DAY_FILE_BYTES), own))
    content = regular.read_regular(path, limits.DAY_FILE_BYTES)
    files[name] = new_name(digests.digest_of(content))
    mirror.service.put(_key(name, files[name]), content)


def merged_lines(published: bytes, own: bytes) -> bytes:
    """Returns the lines of two versions of a day file; of a run that both have, the second's."""
    lines: dict[bytes, bytes] = {}
    for line in (*published.splitlines(keepends=True), *own.splitlines(keepends=True)):
        if line.endswith(b"\n"):
            match = _RUN.match(line)
            lines[match[1] if match else line] = line
    return b"".join(lines.values())


def _bring(mirror: Mirror, name: str, own: str) -> None:
    key = _key(name, own)
    path = mirror.folder / FOLDER / name
    if not _FILE.fullmatch(name):
        raise StoreError(f"{mirror.address}/{MANIFEST} names a file that is no day file.")
    answer = mirror.service.get(key)
    if answer is None:
        raise StoreError(
            f"{mirror.address}/{key} is missing.", "Restore it from a copy; or try again."
        )
    with translating_os_errors(path, "written"):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Damaged lines have checksums of their own, and are named by whoever reads them.
    write_atomically(path, answer.content)


def _local(mirror: Mirror) -> Files:
    top = mirror.folder / FOLDER
    with translating_os_errors(top, "read"):
        names = [path.relative_to(top).as_posix() for path in top.rglob("*.jsonl")]
        return {
            name: digests.digest_of(regular.read_regular(top / name, limits.DAY_FILE_BYTES))
            for name in names
            if _FILE.fullmatch(name)
        }


def _key(name: str, own: str) -> str:
    return f"{FOLDER}/{name.removesuffix('.jsonl')}-{name_of(own)}.jsonl"


def _read(mirror: Mirror, known: str) -> _Manifest:
    answer = mirror.service.get(MANIFEST, known)
    if answer is None:
        return _Manifest("", {})
    if answer.version == known:
        return _Manifest(known, {})
    values = parse_document(f"{mirror.address}/{MANIFEST}", answer.content)
    return _Manifest(answer.version, {str(key): str(own) for key, own in values["files"].items()})


def _write(mirror: Mirror, files: Mapping[str, str], version: str) -> str:
    values = {"version": OBJECT_STORE.version, "files": dict(files), "writing": new_writing()}
    content = digests.with_own_digest(values)
    if version:
        return mirror.service.replace(MANIFEST, content, version)
    return mirror.service.create(MANIFEST, content)


def _synced_path(mirror: Mirror) -> Path:
    return mirror.folder / ".objects" / MANIFEST


def _synced(mirror: Mirror) -> _Manifest:
    """Returns the manifest whose day files are in the mirror."""
    try:
        values: dict[str, Any] = json.loads(
            regular.read_regular(_synced_path(mirror), limits.STATE_BYTES)
        )
        return _Manifest(values["at"], values["files"])
    except (OSError, ValueError, LookupError):
        return _Manifest("", {})


def _set_synced(mirror: Mirror, manifest: _Manifest) -> None:
    content = json.dumps({"at": manifest.version, "files": manifest.files}).encode()
    write_atomically(_synced_path(mirror), content, durable=False)
