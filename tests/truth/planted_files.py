"""Files of /proc and /sys with other contents, for a program in a mount namespace of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def seeing(files: Mapping[str, Path]) -> list[str]:
    """Words that run a program to which each path shows the content of another file.

    The content may change while the program runs, as that of a counter does.
    """
    mounts = "".join(f"mount --bind '{file}' '{path}' && " for path, file in files.items())
    return ["unshare", "--mount", "sh", "-c", f'{mounts}exec "$@"', "sh"]
