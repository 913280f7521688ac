"""Inputs of boundaries, and readers of bytes as text or as a file."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[3]


def text_of(data: bytes) -> str:
    return data.decode(errors="replace")


@functools.cache
def contents(*patterns: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for one in patterns for path in sorted(ROOT.glob(one)))


def in_file(read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def reading(case: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "case")
            file.write_bytes(case)
            return read(file)

    return reading
