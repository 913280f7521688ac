"""Fixtures of several files of truths, and the check of the mark `truth`."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import truth_marks


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    """A test reads each metric that its mark names, and accepts no other value of it."""
    claims = truth_marks.of_item(item)
    truth_marks.forget()
    result = yield
    missing = truth_marks.unread(claims)
    assert not missing, f"the mark `truth` names what the test never reads: {missing}"
    if os.environ.get("NEPHOSCOPE_FALSIFY"):
        accepted = truth_marks.survivors(item)
        assert not accepted, f"the test accepts wrong values: {accepted}"
    return result


@pytest.fixture
def disk() -> Iterator[Path]:
    """An empty directory on a disk; /tmp may lie in memory."""
    path = Path(f"/var/tmp/nephoscope-test-{os.getpid()}-{random.getrandbits(32):08x}")
    path.mkdir()
    yield path
    assert list(path.iterdir()) == [], "something was left behind"
    path.rmdir()
