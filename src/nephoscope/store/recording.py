"""Recordings: what the probe answered on the targets of a stored run, one JSON object a line.

The first line is the head; then the targets with their fingerprints, then the trials in the order
of execution. `answer` has the lines that the probe prints for such a trial: samples, documents and
a last `done`, or one `error`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.errors import StoreError, UsageError
from nephoscope.core.format_versions import PROBE_PROTOCOL, RECORDING
from nephoscope.core.model import TrialRecord, TrialStatus, factors_key
from nephoscope.core.reading import jsontext, textfile
from nephoscope.store.digests import digest_of
from nephoscope.store.run import StoredRun

LOST = "target_lost"
"""Failure name of a trial whose target did not answer, in records and in answers."""

UNMATCHED = "seed"
"""The parameter in which an answer may differ from what is asked: each trial draws its own."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """Answer of the probe to one trial. lines: as it prints them, all but the last; last: that one.

    ready_s: until it was ready. elapsed_s: of the measured part.
    """

    ready_s: float
    elapsed_s: float
    lines: bytes
    last: Mapping[str, Any]

    @property
    def failure(self) -> str:
        """Returns the name of its failure; empty where it has samples."""
        return str(self.last["error"]["name"]) if "error" in self.last else ""


@dataclass(frozen=True, slots=True)
class Recording:
    """Answers of the targets of one run. measured_at: seconds since the epoch.

    fingerprints: target -> document of sys.fingerprint. answers: target -> benchmark and
    parameters (`question`) -> answers in the order of execution.
    """

    path: str
    digest: str
    run: str
    measured_at: float
    fingerprints: Mapping[str, Mapping[str, Any]]
    answers: Mapping[str, Mapping[tuple[str, str], list[RecordedAnswer]]] = field(repr=False)

    @property
    def targets(self) -> tuple[str, ...]:
        """Returns the names of the recorded targets, in their order."""
        return tuple(self.answers)

    @property
    def benchmarks(self) -> frozenset[str]:
        """Returns the benchmarks to which it has answers."""
        return frozenset(key[0] for own in self.answers.values() for key in own)


def question(benchmark: str, params: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the key of an answer: the benchmark with its parameters, but for the seed."""
    own = {name: value for name, value in params.items() if name != UNMATCHED}
    return benchmark, factors_key(own)


def lines_of(run: StoredRun) -> Iterator[bytes]:
    """Yields the lines of a recording of a run. UsageError for one that has nothing to record."""
    manifest = run.manifest
    if manifest.recorded_targets:
        raise UsageError(
            f"Run {run.id} answered from a recording and measured nothing to record.",
            "Export the run that was recorded.",
        )
    if manifest.imported is not None:
        raise UsageError(
            f"Run {run.id} was imported, and no probe answered in it.",
            "Export a run that was measured here.",
        )
    head = {
        RECORDING.id: RECORDING.version,
        "run": run.id,
        "measured_at": run.started_s,
        "nephoscope": manifest.nephoscope,
        "protocol": manifest.protocol,
    }
    yield _line(head)
    for name in manifest.target_names:
        fingerprint = dict(manifest.fingerprints.get(name, {}))
        yield _line({"target": name, "fingerprint": fingerprint})
    for record, table in run.tables():
        if record.failure_name and record.status is not TrialStatus.FAILED:
            continue  # what ran beside it failed, which is no answer of this probe
        yield _line(_trial(run, record, table))


def _trial(run: StoredRun, record: TrialRecord, table: Any) -> dict[str, Any]:
    spec = run.spec(record.benchmark)
    params = {param.id: record.params.get(param.id, param.default) for param in spec.params}
    start = record.timeline.get("start", (0, 0))
    return {
        "target": record.key.target,
        "trial": record.key.name,
        "benchmark": record.benchmark,
        "params": params,
        "ready_s": round((start[1] - start[0]) / 1e9, 6),
        "elapsed_s": round(record.elapsed_ns / 1e9, 9),
        "answer": [*_answer(record, table)],
    }


def _answer(record: TrialRecord, table: Any) -> Iterator[dict[str, Any]]:
    from nephoscope.store.trialfile import column_lists, is_auxiliary

    if record.status is TrialStatus.FAILED:
        message = record.reasons[0] if record.reasons else "It failed."
        name = record.failure_name or "failed"
        yield {"error": {"name": name, "message": message, "hint": ""}}
        return
    names = ("metric", "value", "count", "at_ns", "factors")
    printed = 0
    for metric, value, count, at_ns, text in zip(*column_lists(table, names), strict=True):
        if is_auxiliary(text):
            continue
        levels = json.loads(text)
        own = {name: level for name, level in levels.items() if name not in record.factors}
        printed += 1
        yield {"metric": metric, "value": value, "count": count, "at_ns": at_ns, "factors": own}
    for metric, document in record.documents.items():
        if "/" in metric:
            continue  # of a load or a hook
        printed += 1
        yield {"metric": metric, "document": document}
    yield {
        "done": {
            "elapsed_ns": record.elapsed_ns,
            "samples": printed,
            "counters": dict(record.counters),
            "notes": list(record.notes),
            "started_wall_ns": round(record.started_at * 1e9),
        }
    }


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def read(path: str) -> Recording:
    """Returns the recording in a file; one that was read and has not changed is not read again.

    Raises UsageError with the line of what is wrong.
    """
    try:
        stat = Path(path).stat()
        version = stat.st_ino, stat.st_size, stat.st_mtime_ns
    except OSError:
        version = (0, 0, 0)  # the sentence is the reader's
    return _read(path, version)


@lru_cache(maxsize=8)
def _read(path: str, version: tuple[int, int, int]) -> Recording:
    text = textfile.read(Path(path), "recording", UsageError, largest=limits.RECORDING_BYTES)
    head: Mapping[str, Any] = {}
    fingerprints: dict[str, Mapping[str, Any]] = {}
    answers: dict[str, dict[tuple[str, str], list[RecordedAnswer]]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{path}:{number}"
        try:
            values = jsontext.parse(line)
            if number == 1:
                head = _head(where, values)
            elif "fingerprint" in values:
                fingerprints[values["target"]] = dict(values["fingerprint"])
                answers.setdefault(values["target"], {})
            else:
                key = question(values["benchmark"], values["params"])
                answers[values["target"]].setdefault(key, []).append(_answer_of(values))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{where}: this is no line of a recording.",
                "Make one with `nephoscope export RUN --format recording --output FILE`.",
            ) from error
    if not any(answers.values()):
        raise UsageError(
            f"{path}: the recording has no trial.", "Record a run that has measured something."
        )
    digest = digest_of(text.encode())
    return Recording(path, digest, head["run"], head["measured_at"], fingerprints, answers)


def _head(where: str, values: Any) -> Mapping[str, Any]:
    version = values[RECORDING.id]
    if not RECORDING.is_readable(version):
        raise UsageError(*RECORDING.refusal(where, version, str(values.get("nephoscope") or "")))
    if not PROBE_PROTOCOL.is_readable(values["protocol"]):
        raise UsageError(
            f"{where}: the recorded probe speaks protocol {values['protocol']!s:.20}, and this "
            f"program protocol {PROBE_PROTOCOL.version}.",
            "Record a run of this version.",
        )
    return {"run": str(values["run"]), "measured_at": float(values["measured_at"])}


def _answer_of(values: Mapping[str, Any]) -> RecordedAnswer:
    *lines, last = values["answer"]
    if ("done" in last) == ("error" in last) or not isinstance(next(iter(last.values())), dict):
        raise ValueError("the last line is neither `done` nor `error`")
    if "error" in last and not isinstance(last["error"].get("name"), str):
        raise ValueError("the error has no name")
    times = float(values["ready_s"]), float(values["elapsed_s"])
    if not all(0 <= time <= limits.SECONDS for time in times):
        raise ValueError("a time is out of range")
    return RecordedAnswer(*times, b"".join(map(_line, lines)), last)


def write(run: StoredRun, path: Path) -> None:
    """Writes a recording of a run: whole, or not at all. Raises UsageError and StoreError."""
    from nephoscope.store.files import writing_atomically

    with writing_atomically(path) as stream:
        size = 0
        for line in lines_of(run):
            size += len(line)
            if size > limits.RECORDING_BYTES:
                raise StoreError(
                    f"The recording of run {run.id} is larger than "
                    f"{limits.RECORDING_BYTES >> 20} MiB.",
                    "Record a run of fewer trials or smaller answers.",
                )
            stream.write(line)
