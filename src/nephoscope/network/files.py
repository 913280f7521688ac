"""Series of a network path in files: CSV, JSON columns, the reports of iperf3 and ping.

docs/how-to/network-paths.md describes the columns.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nephoscope.analysis.statistics.values import Array
from nephoscope.errors import UsageError
from nephoscope.network.loss import Flags
from nephoscope.network.series import PathSeries
from nephoscope.reading import textfile

_TIME_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_QUANTITIES = ("rtt", "delay", "sent", "received", "time", "interval")
COLUMNS = (
    *(f"{quantity}_{unit}" for quantity in _QUANTITIES for unit in _TIME_NS),
    "sequence",
    "loaded",
    "bytes",
    "bytes_per_s",
    "bits_per_s",
)
_LOST = frozenset({"", "lost", "*", "-", "nan", "timeout"})
"""Cells of a packet that did not arrive."""

_MOST_PACKETS = 10_000_000
"""Packets between the lowest and the highest sequence number."""

Columns = Mapping[str, Sequence[float]]
"""Column -> a number for each row, not a number where the cell is empty."""


def read(file: Path, protocol: str = "tcp") -> PathSeries:
    """Returns the series in a file. UsageError with file and line for whatever is wrong."""
    text = _text(file)
    if not text.strip():
        raise UsageError(f"{file}: the file is empty.", _hint())
    if re.search(r"icmp_seq[= ]\d", text):
        return _ping(file, text)
    if text.lstrip()[0] in "{[":
        return _json(file, text, protocol)
    return _series(str(file), _csv(file, text), protocol)


def _text(file: Path) -> str:
    raw = textfile.large_bytes(file, "Use a part of the series.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(
            f"{file} is not a text file.",
            "Captures (pcap) are read by `nephoscope network traffic`.",
        ) from None


def _hint() -> str:
    return "Use CSV with a column such as rtt_ms or bits_per_s, `iperf3 --json` or `ping` output."


def _csv(file: Path, text: str) -> dict[str, list[float]]:
    columns: dict[str, list[float]] = defaultdict(list)
    for where, row in textfile.csv_records(text, str(file), COLUMNS):
        for name, cell in row.items():
            columns[name].append(_number(cell, where, name))
    return columns


def _number(cell: Any, where: str, name: str) -> float:
    if cell is None or (isinstance(cell, str) and cell.lower() in _LOST):
        return math.nan
    try:
        value = float(cell)
    except (TypeError, ValueError):
        value = math.inf
    if not math.isfinite(value) or isinstance(cell, bool):
        raise UsageError(
            f"{where}: {name} '{str(cell)[:40]}' is not a number.",
            "Leave the cell of a lost packet empty.",
        )
    return value


def _json(file: Path, text: str, protocol: str) -> PathSeries:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        raise UsageError(f"{file}: invalid JSON: {reason}.", "Check the file.") from None
    if isinstance(document, dict) and "intervals" in document:
        return _iperf(file, document)
    if isinstance(document, list):  # of rows
        rows = document
        if not rows or not all(isinstance(row, dict) for row in rows):
            raise UsageError(f"{file}: the JSON array is no list of rows (objects).", _hint())
        names = list(dict.fromkeys(name for row in rows for name in row))
        document = {name: [row.get(name) for row in rows] for name in names}
    if not isinstance(document, dict) or not all(isinstance(v, list) for v in document.values()):
        raise UsageError(f"{file}: the JSON object has no lists of numbers by column.", _hint())
    lengths = {len(column) for column in document.values()}
    if len(lengths) != 1:
        raise UsageError(f"{file}: the columns have different lengths.", "Use null for lost.")
    head = [str(name) for name in document]
    textfile.check_columns(head, str(file), COLUMNS)
    columns = {
        name: [_number(cell, f"{file}, row {at}", name) for at, cell in enumerate(cells, 1)]
        for name, cells in zip(head, document.values(), strict=True)
    }
    return _series(str(file), columns, protocol)


def _series(source: str, columns: Columns, protocol: str) -> PathSeries:
    rows = len(next(iter(columns.values()), ()))
    if not rows:
        raise UsageError(f"{source}: no rows of numbers.", _hint())
    delays, one_way = _delays(source, columns)
    rates, lengths = _rates(source, columns)
    if delays is None and rates is None:
        raise UsageError(f"{source}: no column with delays or rates.", _hint())
    loaded = columns.get("loaded")
    flags = None if loaded is None else np.nan_to_num(np.asarray(loaded)) != 0
    times = _in_ns(columns, "time")
    times = _in_ns(columns, "sent") if times is None else times
    if delays is not None and "sequence" in columns:
        delays, flags, times = _by_sequence(source, columns["sequence"], delays, flags, times)
    spacing = None
    if times is not None and times.size > 1 and not np.isnan(times).any():
        spacing = float(np.median(np.diff(np.sort(times)))) / 1e9 or None
    return PathSeries(
        source=source,
        delays_ns=delays,
        one_way=one_way,
        spacing_s=spacing,
        loaded=flags if delays is not None else None,
        bytes_per_s=rates,
        interval_s=lengths,
        protocol=protocol,
    )


def _in_ns(columns: Columns, quantity: str) -> Array | None:
    for unit, factor in _TIME_NS.items():
        if (delay_columns := columns.get(f"{quantity}_{unit}")) is not None:
            return np.asarray(delay_columns, dtype=float) * factor
    return None


def _delays(source: str, columns: Columns) -> tuple[Array | None, bool]:
    """The delay of each packet, and whether it is of one direction."""
    sent, received = _in_ns(columns, "sent"), _in_ns(columns, "received")
    delay_columns = [
        (values, one_way)
        for values, one_way in (
            (_in_ns(columns, "rtt"), False),
            (_in_ns(columns, "delay"), True),
            (received - sent if sent is not None and received is not None else None, True),
        )
        if values is not None
    ]
    if len(delay_columns) > 1:
        raise UsageError(f"{source}: several columns of delays.", "Keep one of them.")
    if not delay_columns:
        return None, False
    values, one_way = delay_columns[0]
    if received is None and np.nanmin(np.append(values, 0)) < 0:
        raise UsageError(f"{source}: a delay is below 0.", "Check the column.")
    if not np.isnan(values).all() and np.nanmin(values) < 0:
        # Clocks of two machines differ; the variation is right, the delay is not known.
        values = values - np.nanmin(values)
    return values, one_way


def _rates(source: str, columns: Columns) -> tuple[Array | None, Array | None]:
    """Payload rate and length of each interval."""
    names = [name for name in ("bytes_per_s", "bits_per_s", "bytes") if name in columns]
    if not names:
        return None, None
    if len(names) > 1:
        raise UsageError(f"{source}: {' and '.join(names)} exclude each other.", "Keep one.")
    values = np.asarray(columns[names[0]], dtype=float)
    lengths, times = _in_ns(columns, "interval"), _in_ns(columns, "time")
    if lengths is None and times is not None and times.size > 1:
        steps = np.diff(times)
        lengths = np.append(steps, steps[-1])  # times are those of the intervals' starts
    if lengths is None:
        raise UsageError(
            f"{source}: the lengths of the intervals are not known.",
            "Add a column interval_s, or time_s with the start of each interval.",
        )
    if np.isnan(values).any() or np.isnan(lengths).any() or not (lengths > 0).all():
        raise UsageError(
            f"{source}: a rate is missing, or an interval is not longer than 0.",
            "Give every row a rate, and times in ascending order.",
        )
    if (values < 0).any():
        raise UsageError(f"{source}: a rate is below 0.", "Check the column.")
    seconds = lengths / 1e9
    factor = {"bytes_per_s": 1.0, "bits_per_s": 1 / 8, "bytes": 1 / seconds}[names[0]]
    return values * factor, seconds


def _by_sequence(
    source: str, numbers: Sequence[float], delays: Array, flags: Flags | None, times: Array | None
) -> tuple[Array, Flags | None, Array | None]:
    """The delays by sequence number; a number that is missing is a lost packet."""
    order = np.asarray(numbers, dtype=float)
    if np.isnan(order).any() or (order != np.floor(order)).any():
        raise UsageError(f"{source}: a sequence number is no whole number.", "Check the column.")
    places = (order - order.min()).astype(np.int64)
    size = int(places.max()) + 1
    if size > _MOST_PACKETS:
        raise UsageError(
            f"{source}: the sequence numbers span {size:,} packets.",
            f"Use at most {_MOST_PACKETS:,} packets.",
        )
    # Of duplicates the first counts.
    unique, first = np.unique(places, return_index=True)
    out = np.full(size, np.nan)
    out[unique] = delays[first]
    if flags is not None:
        spread = np.zeros(size, dtype=bool)
        spread[unique] = flags[first]
        flags = spread
    if times is not None and size != delays.size:
        span = float(np.nanmax(times) - np.nanmin(times))
        times = np.array([0.0, span / (size - 1)]) if size > 1 else None
    return out, flags, times


def _ping(file: Path, text: str) -> PathSeries:
    """The round trips that ping printed, by sequence number."""
    answers: dict[int, float] = {}
    for number, time, unit in re.findall(
        r"icmp_seq[= ](\d{1,9}).*?time[=<]([\d.]+) ?(us|ms|s)", text
    ):
        answers.setdefault(int(number), float(time) * _TIME_NS[unit])
    summary = re.search(r"(\d{1,9}) packets transmitted", text)
    if not answers and summary is None:
        raise UsageError(f"{file}: no answers with a time.", "Use the output of `ping`.")
    # Without its summary the output may be a part that begins later.
    first = min(min(answers, default=1), 1) if summary else min(answers)
    last = max(max(answers, default=1), first + int(summary[1]) - 1 if summary else 0)
    if last - first >= _MOST_PACKETS:
        raise UsageError(
            f"{file}: the sequence numbers span more than {_MOST_PACKETS:,} packets.", "Use a part."
        )
    delays = np.array([answers.get(number, math.nan) for number in range(first, last + 1)])
    return PathSeries(source=str(file), delays_ns=delays)


def _iperf(file: Path, document: Mapping[str, Any]) -> PathSeries:
    """The intervals' rates, retransmissions, round trips, and losses of UDP of `iperf3 --json`."""
    if error := document.get("error"):
        raise UsageError(f"{file}: iperf3 failed: {str(error)[:200]}.", "Run it again.")
    try:
        return _iperf_series(str(file), document)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{file}: the report of iperf3 lacks {error}.", "Use `iperf3 --json`."
        ) from None


def _iperf_series(source: str, document: Mapping[str, Any]) -> PathSeries:
    start, end = document["start"], document["end"]
    protocol = str(start["test_start"]["protocol"]).lower()
    sums = [interval["sum"] for interval in document["intervals"]]
    # The last interval may be a sliver of a few ms.
    sums = [one for one in sums if float(one["seconds"]) > 0.01]
    if not sums:
        raise ValueError("intervals")
    lengths = np.array([float(one["seconds"]) for one in sums])
    series = PathSeries(
        source=source,
        bytes_per_s=np.array([float(one["bytes"]) for one in sums]) / lengths,
        interval_s=lengths,
        protocol=protocol,
    )
    if protocol == "udp":
        total = end["sum"]
        return replace(series, lost=int(total["lost_packets"]), sent=int(total["packets"]))
    retransmits = end["sum_sent"].get("retransmits")
    segment = float(start.get("tcp_mss_default") or 1448)
    senders = [stream.get("sender", {}) for stream in end.get("streams", ())]
    rtts = [
        max((float(one["rtt"]) for one in interval["streams"] if one.get("rtt")), default=0.0)
        for interval in document["intervals"][: len(sums)]
    ]
    least = [float(one["min_rtt"]) for one in senders if one.get("min_rtt")]
    return replace(
        series,
        sent_bytes=float(end["sum_sent"]["bytes"]),
        retransmitted_bytes=None if retransmits is None else float(retransmits) * segment,
        bulk_rtts_ns=np.array(rtts) * 1e3 if all(rtts) else None,
        base_rtt_ns=1e3 * min(least) if least else None,
    )
