"""An answer of a check, and what every check uses."""

from __future__ import annotations

from pathlib import Path

from nephoscope.core.records import dataclass

WORKS, LIMITED, LACKS = "works", "limited", "lacks"


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """One answer: state is works, limited or lacks; `fix` is the one command that changes it."""

    name: str
    state: str
    detail: str
    fix: str = ""
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Places:
    """Directories that the checks look at."""

    store: Path
    temporary: Path


def read(path: str) -> str | None:
    """Text of a file of the kernel's; None where it is hidden."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
