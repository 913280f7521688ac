"""load.merging: equal pages that a program offers are merged, pages that differ are not."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests import hardware
from tests.attempts import attempt
from tests.hardware import Feature
from trials import needs_root, refused, run

KSM = Path("/sys/kernel/mm/ksm")
SETTINGS = ("run", "pages_to_scan", "sleep_millisecs")
# The kernel lets no more than 256 pages share one (max_page_sharing).
PAGE, EQUAL, DIFFERENT = mmap.PAGESIZE, 200, 300
MS = 1_000_000

needs_merging = hardware.needs(Feature.PAGE_MERGING, (KSM / "run").exists())


def kernel(name: str) -> int:
    return int((KSM / name).read_text())


def settings() -> list[int]:
    return [kernel(name) for name in SETTINGS]


@contextmanager
def observed_scans() -> Iterator[list[int]]:
    """The kernel's count of scans, read again and again: it is 0 again when merging ends."""
    counts, is_over = [0], threading.Event()

    def observe() -> None:
        while not is_over.wait(0.005):
            counts.append(kernel("full_scans"))

    thread = threading.Thread(target=observe)
    thread.start()
    try:
        yield counts
    finally:
        is_over.set()
        thread.join()


@needs_root
@needs_merging
@pytest.mark.slow
@pytest.mark.truth(
    "load.merging", "merged_pages_count", "interval_merged_pages_count", "full_scans_count"
)
def test_equal_pages_are_merged_and_no_others() -> None:
    before = settings()
    assert before[0] == 0, "somebody else has pages merged: echo 2 > /sys/kernel/mm/ksm/run"

    def once() -> tuple[str, bool]:
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        with mmap.mmap(-1, (EQUAL + DIFFERENT) * PAGE, flags=private) as offered:
            # Not of zeros, which the kernel may treat apart.
            offered[: EQUAL * PAGE] = b"nephoscope merge" * (EQUAL * PAGE // 16)
            offered[EQUAL * PAGE :] = os.urandom(DIFFERENT * PAGE)
            offered.madvise(mmap.MADV_MERGEABLE)
            with observed_scans() as counts:
                trial = run("load.merging", {"duration_ns": 1500 * MS, "interval_ns": 250 * MS})
            scans = max(counts)
        merged = trial.one("merged_pages_count")
        last = trial.series("interval_merged_pages_count")[-1]
        told = trial.one("full_scans_count")
        # Scans of so few pages take some 15 ms, readings are 5 ms apart.
        near = scans >= 20 and abs(scans - told) <= 3
        exact = merged == last == EQUAL - 1
        return f"{merged:.0f} and {last:.0f} merged, {told:.0f} of {scans} scans", near and exact

    attempt(f"{EQUAL} equal pages", once)
    assert settings() == before
    assert kernel("pages_sharing") == 0


@needs_root
@needs_merging
@pytest.mark.slow
def test_merging_that_is_on_already_is_left_alone() -> None:
    before = settings()
    try:
        (KSM / "run").write_text("1")
        assert refused("load.merging", {"duration_ns": 100 * MS}) == (4, "no_page_merging")
        assert kernel("run") == 1
    finally:
        (KSM / "run").write_text(str(before[0]))
