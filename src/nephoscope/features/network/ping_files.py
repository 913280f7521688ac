"""Round trips in what ping and fping print: of Linux, BSD and Windows, in any language."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.numbers import NumberRange
from nephoscope.features.network.series import PathSeries

MOST_PACKETS = 10_000_000
"""Packets between the lowest and the highest sequence number."""
_SEQUENCES = 65_536
"""Numbers after which the 16 bits of an ICMP sequence number begin again."""
_NS = {"us": 1e3, "ms": 1e6, "s": 1e9}

_TIME = r"(?P<sign>[=<]) ?(?P<time>\d{1,12}(?:[.,]\d+)?) ?(?P<unit>us|ms|s)\b"
_ANSWER = re.compile(rf"icmp_seq[= ](?P<number>\d{{1,9}})\b.*?\s\w+{_TIME}")
"""A line of Linux or BSD; the word before the time depends on the language."""
_SUMMARY = re.compile(
    r"^(?P<sent>\d{1,9}) [^,\n]+, (?P<received>\d{1,9}) [^\n]*\d(?:[.,]\d+)? ?%", re.MULTILINE
)
_SUMMARY_HEAD = re.compile(r"^--- .* ---\s*$", re.MULTILINE)
_WINDOWS = re.compile(rf"\S+{_TIME} TTL=\d+", re.IGNORECASE)
_WINDOWS_SUMMARY = re.compile(r"= (?P<sent>\d{1,9}), [^=\n]+= (?P<received>\d{1,9}), [^=\n]+= \d+")
_RANGE_MS = NumberRange(0, 1e12)
_FPING = re.compile(
    r"^(?:\[[\d.]+\] )?(?P<host>\S+) +: \[(?P<number>\d{1,9})\], (?:(?P<late>timed out)|\d+ bytes, "
    r"(?P<time>\d+(?:\.\d+)?) ms)",
    re.MULTILINE,
)
_FPING_ROW = re.compile(
    r"^(?P<host>\S+) +: (?P<times>(?:\d+(?:\.\d+)?|-)(?: (?:\d+(?:\.\d+)?|-))*) *$", re.M
)


def read(source: str, text: str) -> PathSeries | None:
    """Returns the round trips of an output by sequence number; None where it is no such output.

    UsageError for the outputs of several runs or hosts, and for one that has no figures.
    """
    text = text.replace("\r", "")
    if text.lstrip().startswith("{"):
        return _fping_json(source, text)
    if _FPING.search(text) or _FPING_ROW.search(text):
        return _fping(source, text)
    if re.search(r"icmp_seq[= ]\d", text) or _SUMMARY_HEAD.search(text):
        return _unix(source, text)
    return (
        _windows(source, text) if _WINDOWS.search(text) or _WINDOWS_SUMMARY.search(text) else None
    )


def _unix(source: str, text: str) -> PathSeries:
    answers: dict[int, float] = {}
    latest = rounded = 0
    for line in _ANSWER.finditer(text):
        # Of the numbers with these 16 bits, the one that is nearest to the answer before; the
        # first numbers are none that began again, even after a long outage.
        number = int(line["number"])
        if number < _SEQUENCES:
            number += max(0, round((latest - number) / _SEQUENCES)) * _SEQUENCES
        latest = max(latest, number)
        rounded += line["sign"] == "<"
        answers.setdefault(number, _ns(line))
    summaries = list(_SUMMARY.finditer(text))
    if len(summaries) > 1:
        raise UsageError(
            f"{source}: the outputs of {len(summaries)} runs of ping.", "Use one file for each run."
        )
    sent = int(summaries[0]["sent"]) if summaries else None
    if sent == 0 or (sent is None and not answers):
        raise UsageError(
            f"{source}: this output of ping has no answer with a time.",
            "Use the whole output of `ping`, with its summary.",
        )
    received = int(summaries[0]["received"]) if summaries else len(answers)
    if sent and not answers and received:
        return _counts(source, sent, received)
    # Without its summary the output may be a part that begins later.
    first = min(answers, default=1) if sent is None else min(min(answers, default=1), 1)
    last = max(max(answers, default=1), 0 if sent is None else first + sent - 1)
    if last - first >= MOST_PACKETS:
        raise UsageError(
            f"{source}: the sequence numbers span more than {MOST_PACKETS:,} packets.",
            "Use a part.",
        )
    delays = np.array([answers.get(number, math.nan) for number in range(first, last + 1)])
    arrival_order = np.argsort(np.argsort(list(answers)))  # their ranks by number
    return PathSeries(
        source=source, delays_ns=delays, arrival_order=arrival_order, notes=_rounded(rounded)
    )


def _counts(source: str, sent: int, received: int) -> PathSeries:
    note = "The output has no single answers (ping -q), so that the delays are not known."
    return PathSeries(source=source, sent=sent, lost=max(0, sent - received), notes=(note,))


def _windows(source: str, text: str) -> PathSeries:
    """One line a packet, in order, between the head and the statistics: an answer or a loss."""
    summaries = list(_WINDOWS_SUMMARY.finditer(text))
    if len(summaries) > 1:
        raise UsageError(
            f"{source}: the outputs of {len(summaries)} runs of ping.", "Use one file for each run."
        )
    body = text[: text.rfind("\n\n", 0, summaries[0].start())] if summaries else text
    lines = [line for line in body.splitlines() if line.strip()]
    if lines and not _WINDOWS.search(lines[0]):
        del lines[0]  # the head, which names the address
    answers = [_WINDOWS.search(line) for line in lines]
    if summaries and len(answers) != int(summaries[0]["sent"]):
        sent, received = int(summaries[0]["sent"]), int(summaries[0]["received"])
        if any(answers):
            raise UsageError(
                f"{source}: {len(answers)} answers and losses are listed, and {sent} packets sent.",
                "Use the whole output of one run of ping.",
            )
        return _counts(source, sent, received)
    delays = np.array([math.nan if line is None else _ns(line) for line in answers])
    rounded = sum(line is not None and line["sign"] == "<" for line in answers)
    return PathSeries(source=source, delays_ns=delays, notes=_rounded(rounded))


def _rounded(answers: int) -> tuple[str, ...]:
    if not answers:
        return ()
    return (
        f"{answers} answer{'s' if answers > 1 else ''} of less than the resolution of ping "
        f"{'count' if answers > 1 else 'counts'} with that resolution: an upper bound.",
    )


def _ns(line: re.Match[str]) -> float:
    return float(line["time"].replace(",", ".")) * _NS[line["unit"]]


def _fping(source: str, text: str) -> PathSeries:
    """The lines of each answer; without them the row of all times of a host."""
    by_host: dict[str, dict[int, float]] = {}
    for line in _FPING.finditer(text):
        times = by_host.setdefault(line["host"], {})
        times[int(line["number"])] = math.nan if line["late"] else float(line["time"])
    for row in () if by_host else _FPING_ROW.finditer(text):
        cells = row["times"].split()
        values = (math.nan if cell == "-" else float(cell) for cell in cells)
        by_host[row["host"]] = dict(enumerate(values))
    return _of_one_host(source, by_host)


def _fping_json(source: str, text: str) -> PathSeries | None:
    """The JSON lines of `fping -J`: the values of a host, or its single answers and losses."""
    by_host: dict[str, dict[int, float]] = {}
    answers: dict[str, dict[int, float]] = {}
    for document in _json_lines(text):
        match document:
            case {"vSum": {"host": str() as host, "values": list() as values}}:
                by_host[host] = {at: _milliseconds(value) for at, value in enumerate(values)}
            case {"resp": {"host": str() as host, "seq": int() as number, "rtt": value}}:
                answers.setdefault(host, {})[number] = _milliseconds(value)
            case {"timeout": {"host": str() as host, "seq": int() as number}}:
                answers.setdefault(host, {})[number] = math.nan
    hosts = by_host or answers
    return _of_one_host(source, hosts) if hosts else None


def _json_lines(text: str) -> Iterable[Any]:
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            return  # another JSON document


def _milliseconds(value: Any) -> float:
    """Returns a round trip, not a number of one that was lost. UsageError for anything else."""
    if value is None:
        return math.nan
    try:
        return _RANGE_MS.read(value)
    except ValueError as error:
        raise UsageError(
            f"A round trip of fping '{str(value)[:40]}' {error}.", "Use the output as it is."
        ) from None


def _of_one_host(source: str, by_host: Mapping[str, Mapping[int, float]]) -> PathSeries:
    if len(by_host) > 1:
        raise UsageError(
            f"{source}: the answers of {len(by_host)} hosts ({', '.join(list(by_host)[:3])}, …).",
            "Use one file for each host.",
        )
    (times,) = by_host.values()
    first, last = min(times), max(times)
    if last - first >= MOST_PACKETS:
        raise UsageError(
            f"{source}: the sequence numbers span more than {MOST_PACKETS:,} packets.",
            "Use a part.",
        )
    numbers = range(first, last + 1)
    return PathSeries(
        source=source, delays_ns=1e6 * np.array([times.get(at, math.nan) for at in numbers])
    )
