"""Fixtures of several files of truths."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def disk() -> Iterator[Path]:
    """An empty directory on a disk; /tmp may lie in memory."""
    path = Path(f"/var/tmp/nephoscope-test-{os.getpid()}-{random.getrandbits(32):08x}")
    path.mkdir()
    yield path
    assert list(path.iterdir()) == [], "something was left behind"
    path.rmdir()
