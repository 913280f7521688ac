"""Limits on the address space: a command ends as without one, or in a sentence, and never hangs."""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path

import pytest
from tests.e2e.conftest import PROGRAM, run_inside

LIMITS_KIB = tuple(range(300_000, 1_000_001, 36_000))
"""20 limits between 300 MB and 1 GB."""
EVENTS = "time,ok\n2026-01-01T00:00:00Z,true\n2026-01-01T00:01:00Z,false\n"
COMMANDS = (
    ("sla", "verdict", "ec2-region", "events.csv"),
    ("sla", "export", "ec2-region"),
    ("bench", "null", "--repetitions", "6"),
    ("survey", "--dry-run"),
    ("simulate", "scheduler", "linux-quota-150"),
    ("network", "series", "rtt.csv"),
    ("compare", "a.txt", "b.txt"),
    ("rank", "figures.csv"),
    ("census", "--import", "none.csv"),
    ("credits", "rates.csv"),
    ("show",),
    ("history", "null_ns"),
    ("runs",),
    ("verify",),
    ("export", "latest", "--format", "parquet", "-o", "x.parquet"),
    ("import", "missing.json"),
    ("list",),
    ("doctor",),
    ("version",),
    ("cloud", "policy", "ec2"),
)
ALL_LIMITS = 1
"""Commands of the list that are run at every limit; each other one at a fifth of them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("limited")
    (top / "events.csv").write_text(EVENTS)
    numbers = [f"{100 + i / 7}" for i in range(30)]
    (top / "a.txt").write_text("\n".join(numbers))
    (top / "b.txt").write_text("\n".join(reversed(numbers)))
    (top / "rtt.csv").write_text("rtt_ms\n" + "\n".join(numbers))
    rates = (f"{i},{number}" for i, number in enumerate(numbers))
    (top / "rates.csv").write_text("time,rate\n" + "\n".join(rates))
    rows = (f"m,{'ab'[i % 2]},{number},lower" for i, number in enumerate(numbers))
    (top / "figures.csv").write_text("metric,alternative,value,better\n" + "\n".join(rows))
    done = run_inside(["bench", "null", "--repetitions", "6", "--store", str(top / "store")])
    assert done.code == 0, done.err
    return top


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_limit_on_addresses_ends_in_a_result_or_a_sentence(
    words: tuple[str, ...], folder: Path
) -> None:
    offset = zlib.crc32(" ".join(words).encode()) % 5
    limits = LIMITS_KIB if COMMANDS.index(words) < ALL_LIMITS else LIMITS_KIB[offset::5]
    for kib in limits:
        done = subprocess.run(
            ["sh", "-c", f'ulimit -v {kib}; exec "$@"', "sh", *PROGRAM, *words],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "NEPHOSCOPE_STORE": "store"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode in (0, 1, 2, 3, 4, 5), (kib, done)
        for word in ("defect", "Traceback", "OpenBLAS", "Fatal Python error"):
            assert word not in done.stderr, (kib, done)
        if done.returncode == 3:
            assert "nephoscope: " in done.stderr, (kib, done)
