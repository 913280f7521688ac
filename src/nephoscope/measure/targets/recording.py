"""Recordings: what the probe answered on the targets of a stored run, one JSON object a line.

The first line is the head; then the targets with their fingerprints, then the trials in the order
of execution. `answer` has the lines that the probe prints for such a trial: samples, documents and
a last `done`, or one `error`. `store.recording` writes them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.errors import UsageError
from nephoscope.core.format_versions import PROBE_PROTOCOL, RECORDING
from nephoscope.core.model import factors_key
from nephoscope.core.reading import jsontext, textfile
from nephoscope.core.records import dataclass

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


def line_of(values: Mapping[str, Any]) -> bytes:
    """Returns a line of a recording."""
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
    digest = hashlib.sha256(text.encode()).hexdigest()
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
    return RecordedAnswer(*times, b"".join(map(line_of, lines)), last)
