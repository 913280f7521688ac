"""The files of a small machine: a static busybox under all its names, as a tar."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.tools import find

PROGRAMS = ("busybox",)
FOLDERS = ("bin", "dev", "etc", "proc", "root", "run", "sbin", "sys", "tmp", "usr/bin", "var")
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}


@cache
def tree(**files: str) -> bytes:
    """A tar of the root. files: more of them, by path with `__` for `/`; scripts are executable."""
    busybox = find("busybox")
    assert busybox
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for folder in FOLDERS:
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(member)
        _add(tar, "bin/busybox", Path(busybox).read_bytes(), 0o755)
        names = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
        for name in names.stdout.split():
            if name != "busybox":
                member = tarfile.TarInfo(f"bin/{name}")
                member.type, member.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(member)
        for path, text in {**FILES, **_paths(files)}.items():
            _add(tar, path, text.encode(), 0o755 if text.startswith("#!") else 0o644)
    return made.getvalue()


def _paths(files: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("__", "/"): text for name, text in files.items()}


def _add(tar: tarfile.TarFile, path: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(path)
    member.size, member.mode = len(content), mode
    tar.addfile(member, io.BytesIO(content))
