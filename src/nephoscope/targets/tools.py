"""Adapters' tools on a target: how they are called, and what the probe's `wrap` brings back.

Pure: words and bytes, so that it can be tested on any.
"""

from __future__ import annotations

import json
from dataclasses import replace

from nephoscope.adapters import Adapter, Command, Output, ToolError
from nephoscope.errors import BenchmarkFailed, Lacking
from nephoscope.model import Sample, Shape
from nephoscope.targets.base import TargetTrial
from nephoscope.targets.output import parse_output
from nephoscope.targets.process import Ended

ASK_S = 20.0
"""A tool that does not say its version by then, on a busy machine, never will."""

_LINE = b'{"tool":'


def wrap(probe: str, adapter: Adapter, command: Command, deadline_s: float) -> list[str]:
    """The words that run the tool once under the probe."""
    job = json.dumps(command.job(adapter.spec.tool))
    return [probe, "wrap", "--job", job, "--deadline", f"{deadline_s:.3f}", "--with-parent"]


def version_of(adapter: Adapter, ended: Ended, target: str) -> str:
    """The tool's version from what it answered; Lacking when it is not there, or too old."""
    trial, said = _split(adapter, ended.stdout, ended.returncode, ended.stderr_tail)
    spec = adapter.spec
    if trial.failure is not None or said is None:
        reason = trial.failure.message if trial.failure else f"{spec.tool} does not answer."
        raise Lacking(f"{target}: {reason}", _install(adapter))
    try:
        version = adapter.version(said)
    except ToolError as error:
        raise Lacking(
            f"{target}: what answers as {spec.tool} is another program: {error}", _install(adapter)
        ) from error
    if not adapter.recent(version):
        raise Lacking(
            f"{target}: {spec.tool} is version {version}, and {spec.minimum} or newer is needed.",
            _install(adapter),
        )
    return version


def parse_wrapped(
    stdout: bytes, returncode: int, adapter: Adapter, stderr_tail: str = ""
) -> TargetTrial:
    """The trial that the probe's lines and the tool's words tell of.

    Besides the failures of `parse_output`: `no_program` with the command that installs it;
    `tool_failed` when the tool's words are no measurement; `bad_output` when the adapter makes of
    them what it did not declare.
    """
    trial, said = _split(adapter, stdout, returncode, stderr_tail)
    failure = trial.failure
    if failure is not None and failure.name == "no_program":
        hint = _install(adapter)
        failure = BenchmarkFailed(failure.name, failure.message, hint, failure.exit_code)
    if failure is not None or said is None or trial.done is None:
        return replace(trial, failure=failure or _no_words(adapter))
    try:
        version = adapter.version(said)
        samples = tuple(adapter.parse(said))
    except ToolError as error:
        words = f"{adapter.spec.id}: {adapter.spec.tool} failed: {error}"
        told = BenchmarkFailed("tool_failed", words, "Run it by hand to see more of its words.")
        return TargetTrial((), {}, None, told, stderr_tail)
    undeclared = _undeclared(adapter, samples)
    if undeclared:
        return TargetTrial((), {}, None, undeclared, stderr_tail)
    document = {
        "program": adapter.spec.tool,
        "version": version,
        "stdout": said.stdout,
        "stderr": said.stderr,
    }
    done = replace(trial.done, samples=len(samples) + 1)
    return TargetTrial(samples, {"tool": document}, done, None, stderr_tail)


def _split(
    adapter: Adapter, stdout: bytes, returncode: int, stderr_tail: str
) -> tuple[TargetTrial, Output | None]:
    """The probe's own lines as a trial without samples, and what the tool said."""
    lines = stdout.split(b"\n")
    said = [line for line in lines if line.startswith(_LINE)]
    rest = b"\n".join(line for line in lines if not line.startswith(_LINE))
    trial = parse_output(rest, returncode, adapter.spec, stderr_tail)
    if trial.failure is not None or len(said) != 1 or trial.done is None:
        return trial, None
    return trial, _output(said[0], trial.done.elapsed_ns)


def _output(line: bytes, elapsed_ns: int) -> Output | None:
    """What a `tool` line says; None when it is none of ours."""
    try:
        values = json.loads(line)["tool"]
        return Output(
            stdout=values["stdout"],
            stderr=values["stderr"],
            exit_code=values["exit"],
            signal=values["signal"],
            marks=tuple((int(at_ns), int(there)) for at_ns, there in values["marks"]),
            elapsed_ns=elapsed_ns,
        )
    except (ValueError, KeyError, TypeError):
        return None


def _undeclared(adapter: Adapter, samples: tuple[Sample, ...]) -> BenchmarkFailed | None:
    declared = {m.id for m in adapter.spec.metrics if m.shape is not Shape.DOCUMENT}
    odd = next((sample.metric for sample in samples if sample.metric not in declared), None)
    if odd is None and samples:
        return None
    what = f"a metric {odd!r} that is not declared" if odd else "no sample"
    return BenchmarkFailed(
        "bad_output", f"{adapter.spec.id}: its adapter made {what}.", "Report this."
    )


def _no_words(adapter: Adapter) -> BenchmarkFailed:
    return BenchmarkFailed(
        "bad_output",
        f"{adapter.spec.id}: the probe did not bring back what {adapter.spec.tool} said.",
        "Check NEPHOSCOPE_PROBE: it must be of this package's version.",
    )


def _install(adapter: Adapter) -> str:
    return f"Install it there: `{adapter.spec.install}`."
