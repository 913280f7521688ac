"""Writes a golden capture: what a real tool printed, and which version it was.

    .venv/bin/python tools/capture_tool.py wrk usual connections=4
    .venv/bin/python tools/capture_tool.py wrk refused --arguments http://127.0.0.1:1/
    .venv/bin/python tools/capture_tool.py wrk version --look

A tool with a server measures one on loopback, which is started for it; `--arguments` calls the tool
alone, with these words.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from nephoscope.catalog.adapters import ADAPTERS, Output, ToolCommand
from nephoscope.core.programs import find_probe
from nephoscope.measure.targets import parse, session
from nephoscope.measure.targets.base import TargetTrial
from nephoscope.measure.targets.probe import target as target_module
from nephoscope.measure.targets.probe.tools import wrap, wrapped_by

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"
DEADLINE_S = 120


def output_of(tool: str, command: ToolCommand) -> dict[str, Any]:
    """Returns the probe's line about a tool that is called alone."""
    words = wrap(str(find_probe()), command.job(tool), DEADLINE_S)
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    done_line: dict[str, Any] = lines[-1]["done"]
    return {**lines[0], "elapsed_ns": done_line["elapsed_ns"]}


async def measured(benchmark: str, params: dict[str, Any]) -> dict[str, Any]:
    """Returns the probe's line about a trial, with its server where it has one."""
    seen: list[bytes] = []
    adapter = ADAPTERS[benchmark]

    def keep(*made: Any) -> Any:
        def read(stdout: bytes, returncode: int, stderr_tail: str) -> TargetTrial:
            seen.append(stdout)
            return wrapped_by(*made)(stdout, returncode, stderr_tail)

        return read

    target_module.wrapped_by = keep  # type: ignore[assignment, attr-defined]
    target = parse("local").make()
    await target.open()
    try:
        if adapter.server is None:
            trial = await target.run(benchmark, params, DEADLINE_S)
        else:
            trial, served = await session.run_pair(target, target, benchmark, params, DEADLINE_S)
            print(served.done.served if served.done else served.failure)
    finally:
        await target.close()
    print(trial.failure or [(sample.metric, sample.value) for sample in trial.samples])
    line = next(line for line in seen[0].splitlines() if line.startswith(b'{"tool":'))
    elapsed_ns = trial.done.elapsed_ns if trial.done else 0
    return {**json.loads(line), "elapsed_ns": elapsed_ns}


def main(benchmark: str, name: str, *words: str) -> None:
    """Runs the tool under the probe and writes what came back."""
    adapter = ADAPTERS[benchmark]
    params: dict[str, Any] = {}
    if words[:1] == ("--look",):
        line = output_of(adapter.spec.tool, adapter.version_command)
    elif words[:1] == ("--arguments",):
        line = output_of(adapter.spec.tool, replace(adapter.version_command, arguments=words[1:]))
    else:
        pairs = (word.partition("=") for word in words)
        defaults = {param.id: param.default for param in adapter.spec.params}
        for key, _, text in pairs:
            params[key] = text if isinstance(defaults[key], str) else json.loads(text)
        line = asyncio.run(measured(benchmark, params))
    answer = output_of(adapter.spec.tool, adapter.version_command)
    tool = answer["tool"]
    version = adapter.version(Output(tool["stdout"], tool["stderr"]))
    values = {"version": version, "params": params, **line}
    path = GOLDEN / benchmark / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(values["tool"]["stdout"], values["tool"]["stderr"], file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
