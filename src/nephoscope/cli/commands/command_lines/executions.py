"""The single executions of each command of a run, and their file in hyperfine's format."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.catalog import DUET
from nephoscope.cli.commands.command_lines.plan import LABEL, CommandLine
from nephoscope.cli.kit import output
from nephoscope.cli.kit.measuring import NOTHING_VALID
from nephoscope.core.errors import StoreError
from nephoscope.core.model import TrialStatus
from nephoscope.core.naming import failure_text

if TYPE_CHECKING:
    from nephoscope.store import StoredRun

DOCUMENT = "executions"
_LEFT = re.compile(r"The commands left (\d+) process")
"""Note of a trial of which the probe killed what was left running."""
COLUMNS = ("wall_ns", "user_ns", "system_ns", "max_rss_bytes", "exit_codes")


@dataclass(slots=True)
class Executions:
    """All executions of one command in valid trials: one value each, in order.

    Times without those of the shell. exit_codes: 128 and the signal's number where one ended it.
    """

    wall_ns: list[float] = field(default_factory=list)
    user_ns: list[float] = field(default_factory=list)
    system_ns: list[float] = field(default_factory=list)
    max_rss_bytes: list[int] = field(default_factory=list)
    exit_codes: list[int] = field(default_factory=list)
    failed_trials: list[str] = field(default_factory=list)
    """Reason of each trial that failed or does not count."""
    left_behind: int = 0
    """Processes that were left running and killed after the trials, in all rounds."""


def by_label(run: StoredRun) -> dict[str, Executions]:
    """Returns the executions of the measured rounds; label -> its executions."""
    by_name: dict[str, Executions] = {}
    for record in sorted(run.records(), key=lambda record: record.position):
        labels = [str(record.params.get(LABEL, ""))]
        if is_duet := record.benchmark == DUET:
            labels.append(str(record.params.get(f"second_{LABEL}", "")))
        for label in labels:
            own = by_name.setdefault(label, Executions())
            own.left_behind += sum(int(left[1]) for left in map(_LEFT.match, record.notes) if left)
            if record.key.round < 1:
                continue
            if record.status is not TrialStatus.VALID:
                own.failed_trials += record.reasons[:1]
                continue
            document = record.documents[DOCUMENT]
            columns = document[label] if is_duet else document
            for name in COLUMNS:
                getattr(own, name).extend(columns[name])
    return by_name


def report_failures(lines: Sequence[CommandLine], of_label: Mapping[str, Executions]) -> int:
    """Returns 0, or 3 with a sentence for each command that has no result."""
    sentences = []
    for line in lines:
        own = of_label.get(line.label)
        if own is None or not own.wall_ns:
            reason = own.failed_trials[0] if own and own.failed_trials else "it was not measured."
            # The trial of a duet is of both commands, and its reason names the one that failed.
            is_named = any(f": {label}: " in reason for label in of_label)
            if output.was_printed(reason):
                sentences.append(f"{line.label}: no result, for the reason above.")
            else:
                text = failure_text(reason)
                sentences.append(text if is_named else f"{line.label}: {text}")
    for sentence in dict.fromkeys(sentences):
        output.warn(sentence)
    return NOTHING_VALID if sentences else 0


def document(
    lines: Sequence[CommandLine], of_label: Mapping[str, Executions]
) -> dict[str, list[dict[str, Any]]]:
    """Returns the content of the file: times in seconds, as hyperfine's scripts read them."""
    return {
        "results": [
            _result(line, of_label[line.label])
            for line in lines
            if line.label in of_label and of_label[line.label].wall_ns
        ]
    }


def write(path: Path, lines: Sequence[CommandLine], of_label: Mapping[str, Executions]) -> None:
    """Writes the file. StoreError with a sentence where that is impossible."""
    text = json.dumps(document(lines, of_label), indent=2, ensure_ascii=False) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}.",
            "Name a file in an existing directory; the run itself is stored.",
        ) from error


def _result(line: CommandLine, executions: Executions) -> dict[str, Any]:
    times = [ns / 1e9 for ns in executions.wall_ns]
    result: dict[str, Any] = {
        "command": line.label,
        "mean": statistics.fmean(times),
        "stddev": statistics.stdev(times) if len(times) > 1 else None,
        "median": statistics.median(times),
        "user": statistics.fmean(executions.user_ns) / 1e9,
        "system": statistics.fmean(executions.system_ns) / 1e9,
        "min": min(times),
        "max": max(times),
        "times": times,
        "memory_usage_byte": executions.max_rss_bytes,
        "exit_codes": executions.exit_codes,
    }
    return {**result, "parameters": dict(line.parameters)} if line.parameters else result
