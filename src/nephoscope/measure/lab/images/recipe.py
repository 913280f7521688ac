"""What guests are made of, and the key under which the result is kept."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from nephoscope.core.format_versions import LAB_IMAGE
from nephoscope.measure.lab.images.initramfs import DRIVERS, NFS_CLIENT

PACKAGES = ("busybox-static", "dropbear-bin", "sqlite3", "usr-is-merged")
"""What is added to Debian's essential packages; `db.sqlite` needs sqlite3."""
KERNEL = "linux-image-cloud-amd64"
DISK_BYTES = 1 << 30
"""Size of a guest's disk; the file is sparse."""

EXCLUDED = (
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/lintian/*",
    "/usr/share/bash-completion/*",
    "/usr/lib/*/gconv/*",
)
"""Files of packages that no guest of ours reads."""

SCRIPTS = ("init", "initramfs-init", "container-init", "clock", "offloads")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that an image is built from.

    Without the versions that apt names on this machine: its lists may be old, empty or half
    written, while the image is built from lists of its own.
    """

    machine: str
    sources: tuple[tuple[str, str], ...]
    """Files of the machine's apt sources, with their content."""
    scripts: Mapping[str, str]

    @property
    def key(self) -> str:
        """Hexadecimal digest of all of it: the name of the image's folder."""
        content = [
            LAB_IMAGE.version,
            self.machine,
            [hashlib.sha256(text.encode()).hexdigest() for _, text in self.sources],
            sorted(self.scripts.items()),
            [PACKAGES, KERNEL, DISK_BYTES, EXCLUDED, DRIVERS, NFS_CLIENT],
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def recipe() -> Recipe:
    """The recipe for this machine, as it is now."""
    texts = {name: script(name).decode("utf-8") for name in SCRIPTS}
    source_texts = tuple((str(path), path.read_text(encoding="utf-8")) for path in sources())
    return Recipe(platform.machine(), source_texts, texts)


def sources(root: Path = Path("/etc/apt")) -> list[Path]:
    """The files that apt takes its sources from."""
    parts = sorted([*root.glob("sources.list.d/*.list"), *root.glob("sources.list.d/*.sources")])
    main = root / "sources.list"
    return [path for path in (main, *parts) if path.is_file() and path.stat().st_size]


def script(name: str) -> bytes:
    """One of our own files for the inside of a guest."""
    return (resources.files("nephoscope.measure.lab.images") / "files" / name).read_bytes()
