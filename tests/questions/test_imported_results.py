"""Questions about results that other tools wrote."""

from __future__ import annotations

import json

from tests.questions.conftest import Asking


def hyperfine_export(command: str, times_s: list[float]) -> str:
    return json.dumps({"results": [{"command": command, "times": times_s}]})


def test_how_long_did_my_build_take(ask: Asking) -> None:
    """I have ten executions in an export of hyperfine: how long does my build take?"""
    ask.write("r.json", hyperfine_export("make", [1.0, 1.01, 1.02, 0.99, 0.98] * 2))
    answer = ask("nephoscope import r.json")
    answer.says(r"1\.00 s")
