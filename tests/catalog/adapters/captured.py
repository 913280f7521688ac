"""What real tools said, from tests/golden/<tool>/: written by the probe's `wrap`, unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nephoscope.catalog.adapters import Output

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


def captures(tool: str) -> list[Path]:
    """All captures of a tool."""
    return sorted((GOLDEN / tool).glob("*.json"))


def record(tool: str, name: str) -> dict[str, Any]:
    """One capture: params, elapsed_ns, tool (the probe's line)."""
    values: dict[str, Any] = json.loads((GOLDEN / tool / f"{name}.json").read_text("utf-8"))
    return values


def output(values: dict[str, Any]) -> Output:
    """The same as an adapter sees it."""
    said = values["tool"]
    return Output(
        stdout=said["stdout"],
        stderr=said["stderr"],
        exit_code=said["exit"],
        signal=said["signal"],
        marks=tuple((at_ns, there) for at_ns, there in said["marks"]),
        elapsed_ns=values["elapsed_ns"],
    )
