"""`nephoscope elastic --url` on a server whose rate and growth are planted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.attempts import attempt
from tests.e2e.conftest import run_inside

pytestmark = [pytest.mark.slow, pytest.mark.alone]
ROUNDS, RAMP_S = 12, 15.0


@contextmanager
def growing(rate: float, grows_s: float, later_rate: float) -> Iterator[str]:
    """The URL of a server that serves a rate, and another one from so many seconds on."""
    program = Path(__file__).with_name("growing_server.py")
    words = [sys.executable, program, "0", str(rate), str(grows_s), str(later_rate)]
    server = subprocess.Popen(
        [*map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/"
    finally:
        server.stdin.close()
        try:
            server.wait(timeout=10)
        finally:
            server.kill()
            server.wait()
            server.stdout.close()


def growth_of(url: str, store: Path, *more: str) -> dict[str, Any]:
    done = run_inside(
        [
            *("elastic", "--url", url, "--low", "50", "--high", "300", "-d", f"{RAMP_S:g}s"),
            *("--objective", "p50 < 50ms", "--rounds", str(ROUNDS)),
            *("--store", str(store), "--fresh", "--json", *more),
        ]
    )
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)["growth"]
    return found


def test_planted_growth_is_recovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 requests a second, from 97 s on 200: in the seventh of twelve ramps. A knee is known to
    a step of the ramp, of 13 %."""
    monkeypatch.chdir(tmp_path)

    def measure() -> tuple[str, bool]:
        with growing(100, 97, 200) as url:
            growth = growth_of(url, tmp_path)
        assert growth["has_moved"], growth
        first, last = growth["levels"][0], growth["levels"][-1]
        step = 1 + growth["step_ratio"]
        for level, rate in ((first, 100), (last, 200)):
            assert rate / step <= level["knee"]["value"] <= rate * step, growth["levels"]
        # The server's clock begins with the first request, a moment after that of the ramps.
        assert last["since_s"]["low"] - 2 <= 97 <= last["since_s"]["high"] + 2, growth["levels"]
        return str(growth["levels"]), True

    attempt("growth of a service", measure)


def test_what_does_not_grow_is_not_elastic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def measure() -> tuple[str, bool]:
        with growing(100, 0, 100) as url:
            growth = growth_of(url, tmp_path, "--generators", "3")
        assert not growth["has_moved"], growth
        assert growth["generators"] == 3
        ratio = growth["generators_compared"]["ratio"]
        assert ratio["low"] <= 1 <= ratio["high"], ratio
        return str(growth["generators_compared"]), True

    attempt("a service that stays as it is", measure)
