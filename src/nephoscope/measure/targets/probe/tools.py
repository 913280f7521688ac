"""Third-party tools on a target: how they are called, and how the output of `wrap` is read.

Pure: words and bytes, so that it can be tested on any.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.catalog.adapters import Adapter, Output, ToolError
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import ERRORS
from nephoscope.core.errors import BenchmarkFailed, Lacking, UsageError
from nephoscope.core.model import Sample, Shape
from nephoscope.measure.targets.base import Peer, TargetTrial
from nephoscope.measure.targets.channels.child import Ended
from nephoscope.measure.targets.probe.output import Parse, parse_output

ASK_S = 60.0
"""Time for a tool to print its version; the first start of an interpreter can take 20 s."""

USED = ("cpu_ns", "max_rss_bytes")
"""What the probe reports of every server."""

Split = tuple[TargetTrial, Output | None]
"""The probe's own lines as a trial, and the output of the program; None when it is missing."""

_LINE = b'{"tool":'


def wrap(probe: str, job: Mapping[str, Any], deadline_s: float) -> list[str]:
    """Returns the words that run a tool once under the probe."""
    words = json.dumps(job)
    return [probe, "wrap", "--job", words, "--deadline", f"{deadline_s:.3f}", "--with-parent"]


def client_job(adapter: Adapter, params: Mapping[str, Any], peer: Peer | None) -> dict[str, Any]:
    """Returns the job of the tool itself. Raises BenchmarkFailed for what it cannot be asked."""
    with _refusing():
        command = adapter.build_command(params)
    if adapter.server is not None and peer is None:
        raise BenchmarkFailed(
            "usage",
            f"{adapter.spec.id} has two sides, and no target serves the far one.",
            "Name it: `peer: NAME`.",
            2,
        )
    return command.job(adapter.spec.tool)


def server_job(adapter: Adapter, params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the job of the tool's server. Raises BenchmarkFailed when it has none."""
    with _refusing():
        command = adapter.build_command(params, serving=True)
    assert adapter.server is not None
    server = adapter.server
    ready = {"protocol": server.protocol, "ready_text": server.ready_text}
    port = {"port": params.get("port", 0)} if adapter.spec.load else {}
    return {**command.job(server.tool), **ready, **port}


def server_search(adapter: Adapter) -> dict[str, Any]:
    """Returns the job that looks for the program of the tool's server, where it will be started."""
    assert adapter.server is not None
    search = ("-c", 'command -v "$0"', adapter.server.tool)
    return ToolCommand(search, paths=adapter.build_command({}, serving=True).paths).job("sh")


def check_server(adapter: Adapter, ended: Ended, target: str) -> None:
    """Raises Lacking where that job did not find the program."""
    assert adapter.server is not None
    trial, output = _split(adapter, ended.stdout, ended.returncode, ended.stderr_tail)
    if trial.failure is not None or output is None or output.exit_code == 0:
        return  # where it cannot be looked for, the start of the server tells
    raise Lacking(
        f"{target}: the server of {adapter.spec.id}, the program {adapter.server.tool}, is not "
        "installed.",
        _install(adapter.server.install or adapter.spec.install),
    )


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Makes of what a tool cannot be asked the trial's failure, as the probe does."""
    try:
        yield
    except UsageError as error:
        raise BenchmarkFailed("usage", error.message, error.hint, error.exit_code) from error


def version_of(adapter: Adapter, ended: Ended, target: str) -> str:
    """Returns the tool's version from what it answered; Lacking when it is missing or too old."""
    spec, install = adapter.spec, _install(adapter.spec.install)
    trial, output = _split(adapter, ended.stdout, ended.returncode, ended.stderr_tail)
    if trial.failure is not None or output is None:
        reason = trial.failure.message if trial.failure else f"{spec.tool} does not answer."
        raise Lacking(f"{target}: {reason}", install)
    try:
        version = adapter.version(output)
    except ToolError as error:
        raise Lacking(
            f"{target}: what answers as {spec.tool} is another program: {error}", install
        ) from error
    if not adapter.recent(version):
        raise Lacking(
            f"{target}: {spec.tool} is version {version}, and {spec.minimum} or newer is needed.",
            install,
        )
    return version


def wrapped_by(adapter: Adapter, version: str) -> Parse:
    """Returns the parser of what the probe prints around the tool of this version.

    Besides the failures of `parse_output`: `no_program` with the command that installs it;
    `tool_failed` when the tool's output is no measurement; `bad_output` when the adapter makes of
    it what it did not declare.
    """
    spec = adapter.spec

    def read(trial: TargetTrial, output: Output) -> TargetTrial:
        samples = tuple(adapter.parse(output))
        if undeclared := _undeclared(adapter, samples):
            return replace(trial, done=None, failure=undeclared)
        assert trial.done is not None
        document = _document(spec.tool, version, output)
        notes = (*trial.done.notes, *_notes(spec, samples))
        done = replace(trial.done, samples=len(samples) + 1, notes=notes)
        return replace(trial, samples=samples, documents={"tool": document}, done=done)

    return _parser(spec.id, spec.tool, spec.install, partial(_split, adapter), read)


def _notes(spec: BenchmarkSpec, samples: Iterable[Sample]) -> Iterator[str]:
    """Says that requests failed, and that a tool's latencies are those of answered ones only."""
    failed = sum(sample.value for sample in samples if sample.metric == ERRORS)
    if failed and any(metric.id.startswith("latency_") for metric in spec.metrics):
        yield (
            f"{failed:,.0f} requests failed or had no answer in time; the latencies of {spec.tool} "
            "are those of answered requests, and would be longer with the others."
        )


def served_by(adapter: Adapter) -> Parse:
    """Returns the parser of what the probe prints around the tool's server."""
    server = adapter.server
    assert server is not None

    def read(trial: TargetTrial, output: Output) -> TargetTrial:
        assert trial.done is not None
        used = {key: trial.done.served.get(key) for key in USED}
        return replace(trial, done=replace(trial.done, served={**used, **server.counters(output)}))

    split = partial(_split_served, adapter)
    return _parser(adapter.spec.id, server.tool, server.install, split, read)


def serving_alone(adapter: Adapter, version: str) -> Parse:
    """Returns the parser of a server that is a load: its counters are its samples.

    Moments on the wall clock (`at_ns` of its samples) become times since it began to serve.
    """
    spec = adapter.spec
    assert adapter.server is not None

    def read(trial: TargetTrial, output: Output) -> TargetTrial:
        assert trial.done is not None
        done = trial.done
        started_ns = done.started_wall_ns or 0
        samples = tuple(
            replace(sample, at_ns=sample.at_ns - started_ns) if sample.at_ns else sample
            for sample in adapter.parse(output)
        )
        if undeclared := _undeclared(adapter, samples):
            return replace(trial, done=None, failure=undeclared)
        own = (
            Sample("cpu_ns", float(done.served["cpu_ns"])),
            Sample("started_wall_ns", float(started_ns)),
        )
        document = _document(spec.tool, version, output)
        return replace(trial, samples=samples + own, documents={"tool": document})

    split = partial(_split_served, adapter)
    return _parser(spec.id, adapter.server.tool, spec.install, split, read)


def _parser(
    name: str,
    tool: str,
    install: str,
    split: Callable[[bytes, int, str], Split],
    read: Callable[[TargetTrial, Output], TargetTrial],
) -> Parse:
    """Returns a parser that has `read` make the trial of what the program printed."""

    def parse(stdout: bytes, returncode: int, stderr_tail: str) -> TargetTrial:
        trial, output = split(stdout, returncode, stderr_tail)
        failure = trial.failure
        if failure is not None and failure.name == "no_program":
            hint = _install(install)
            failure = BenchmarkFailed(failure.name, failure.message, hint, failure.exit_code)
        if failure is None and output is None:
            failure = BenchmarkFailed(
                "bad_output",
                f"{name}: the probe did not bring back what {tool} printed.",
                "Check NEPHOSCOPE_PROBE: it must be of this package's version.",
            )
        if failure is not None or output is None:
            return replace(trial, failure=failure)
        try:
            return read(trial, output)
        except ToolError as error:
            words = f"{name}: {tool} failed: {error}"
            failed = BenchmarkFailed("tool_failed", words, "Run it by hand to see its output.")
            return replace(trial, done=None, failure=failed)

    return parse


def _split(adapter: Adapter, stdout: bytes, returncode: int, stderr_tail: str) -> Split:
    """Returns the probe's own lines as a trial without samples, and the tool's output."""
    lines = stdout.split(b"\n")
    own = [line for line in lines if line.startswith(_LINE)]
    rest = b"\n".join(line for line in lines if not line.startswith(_LINE))
    trial = parse_output(adapter.spec, rest, returncode, stderr_tail)
    if trial.failure is not None or len(own) != 1 or trial.done is None:
        return trial, None
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return trial, _output(json.loads(own[0])["tool"], trial.done.elapsed_ns)
    return trial, None


def _split_served(adapter: Adapter, stdout: bytes, returncode: int, stderr_tail: str) -> Split:
    """Returns the probe's lines as a trial, and the output of the server in its last one."""
    trial = parse_output(adapter.spec, stdout, returncode, stderr_tail)
    return trial, _output(trial.done.served, 0) if trial.done else None


def _output(values: Mapping[str, Any], elapsed_ns: int) -> Output | None:
    """Returns what the probe reports of a program; None when it is another report."""
    try:
        return Output(
            stdout=values["stdout"],
            stderr=values["stderr"],
            exit_code=values["exit"],
            signal=values["signal"],
            marks=tuple((int(at_ns), int(there)) for at_ns, there in values.get("marks", ())),
            elapsed_ns=elapsed_ns,
        )
    except (ValueError, KeyError, TypeError):
        return None


def _document(program: str, version: str, output: Output) -> dict[str, str]:
    """Returns what is kept of a tool: its version, and its report in its own words."""
    return {
        "program": program,
        "version": version,
        "stdout": output.stdout,
        "stderr": output.stderr,
    }


def _undeclared(adapter: Adapter, samples: tuple[Sample, ...]) -> BenchmarkFailed | None:
    declared = {m.id for m in adapter.spec.metrics if m.shape is not Shape.DOCUMENT}
    odd = next((sample.metric for sample in samples if sample.metric not in declared), None)
    if odd is None and samples:
        return None
    what = f"a metric {odd!r} that is not declared" if odd else "no sample"
    return BenchmarkFailed(
        "bad_output", f"{adapter.spec.id}: its adapter made {what}.", "Report this."
    )


def _install(command: str) -> str:
    return f"Install it there: `{command}`."
