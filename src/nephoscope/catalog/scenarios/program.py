"""The simulator's program: where it is, and what it says to a question that takes no time."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from nephoscope.core.errors import BenchmarkFailed, RunFailed
from nephoscope.core.programs import find_simulator

_ASK_S = 60.0
"""Checking a scenario takes milliseconds; a busy machine is given a minute."""


def scenarios() -> Mapping[str, Mapping[str, Any]]:
    """The built-in scenarios: benchmark -> name -> values."""
    by_kind: Mapping[str, Mapping[str, Any]] = _ask(["scenarios"])
    return by_kind


def check(benchmark: str, params: Mapping[str, Any]) -> None:
    """Raises BenchmarkFailed with the simulator's own words for what it would refuse to run."""
    _ask(["check", benchmark, "--params", "@/dev/stdin"], json.dumps(dict(params)))


def _ask(words: list[str], input_text: str = "") -> Any:
    program = find_simulator()
    try:
        done = subprocess.run(
            [str(program), *words],
            input=input_text,
            capture_output=True,
            encoding="utf-8",
            timeout=_ASK_S,
            check=False,
        )
        answer = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise RunFailed(
            f"{program} does not answer `{words[0]}`.", "Build it again: `make survey`."
        ) from error
    if done.returncode != 0:
        details = answer.get("error", {})
        raise BenchmarkFailed(
            str(details.get("name", "")),
            str(details.get("message", "")),
            str(details.get("hint", "")),
            done.returncode,
        )
    return answer
