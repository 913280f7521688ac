"""Series of a network path in files: CSV and JSON columns, and the reports of iperf3 and ping.

docs/how-to/network-paths.md describes the columns.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import numbers, textfile
from nephoscope.core.reading.numbers import NumberRange
from nephoscope.features.network import iperf3_files, ping_files
from nephoscope.features.network.delay import Order
from nephoscope.features.network.loss import Flags
from nephoscope.features.network.series import PathSeries
from nephoscope.stats.statistics.values import Array

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
_LOST = frozenset({"", "lost", "*", "-", "timeout"})
"""Cells of a packet that did not arrive."""

_MOST_PACKETS = ping_files.MOST_PACKETS
_DURATIONS = frozenset({"rtt", "delay", "interval"})
_SWITCH = NumberRange(0, 1, whole=True)
_AMOUNT = NumberRange(0, iperf3_files.LARGEST)
_IPERF_TEXT = re.compile(r"^\[ *(?:ID|SUM|\d+)\] .*\bbits/sec|^\[ *ID\] Interval", re.MULTILINE)

_HINT = (
    "Use CSV with a column such as rtt_ms or bits_per_s, `iperf3 --json`, or the output of "
    "`ping` or `fping`."
)

Columns = Mapping[str, Sequence[float]]
"""Column -> a number for each row, not a number where the cell is empty."""


def read(file: Path, protocol: str = "tcp") -> PathSeries:
    """Returns the series in a file. UsageError with file and line for whatever is wrong."""
    raw = textfile.large_bytes(file, "Use a part of the series.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(
            f"{file} is not a text file.",
            "Captures (pcap) are read by `nephoscope network traffic`.",
        ) from None
    if not text.strip():
        raise UsageError(f"{file}: the file is empty.", _HINT)
    if (series := ping_files.read(str(file), text)) is not None:
        return series
    if _IPERF_TEXT.search(text):
        raise UsageError(
            f"{file}: this is the text output of iperf3, whose figures are rounded.",
            "Run `iperf3 --json` and name its output.",
        )
    if text.lstrip()[0] in "{[":
        return _json(file, text, protocol)
    return _series(str(file), _csv(file, text), protocol)


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
        return _range(name).read(cell)
    except ValueError as error:
        raise UsageError(
            f"{where}: {name} '{str(cell)[:40]}' {error}.",
            "Leave the cell of a lost packet empty.",
        ) from None


def _range(name: str) -> NumberRange:
    """Returns the numbers that a column may have."""
    quantity, _, unit = name.rpartition("_")
    if quantity not in _QUANTITIES:
        return {"sequence": numbers.COUNT, "loaded": _SWITCH}.get(name, _AMOUNT)
    seconds = numbers.DURATION_S if quantity in _DURATIONS else numbers.MOMENT_S
    return NumberRange(0, seconds.high * 1e9 / _TIME_NS[unit])


def _json(file: Path, text: str, protocol: str) -> PathSeries:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and error.pos >= len(text.rstrip()) - 1:
            raise UsageError(
                f"{file}:{error.lineno}: the JSON is cut off here.",
                "Use the whole file; a client that was killed does not write all of it.",
            ) from None
        reason = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        raise UsageError(f"{file}: invalid JSON: {reason}.", "Check the file.") from None
    if isinstance(document, dict) and "intervals" in document:
        return iperf3_files.read(str(file), document)
    if isinstance(document, dict) and {"x_values", "results"} <= document.keys():
        raise UsageError(
            f"{file}: this is a data file of flent, which is not read.",
            "Export the series with `flent -f csv` and name its column rtt_ms or bits_per_s.",
        )
    payload = document.get("data") if isinstance(document, dict) else None
    if isinstance(payload, dict) and payload.get("resultType") == "matrix":
        raise UsageError(
            f"{file}: this is a range query of Prometheus, which is not read here.",
            "Write its values as CSV under a column such as rtt_s (with time_s).",
        )
    if isinstance(document, list):  # of rows
        rows = document
        if not rows or not all(isinstance(row, dict) for row in rows):
            raise UsageError(f"{file}: the JSON array is no list of rows (objects).", _HINT)
        names = list(dict.fromkeys(name for row in rows for name in row))
        document = {name: [row.get(name) for row in rows] for name in names}
    if not isinstance(document, dict) or not all(isinstance(v, list) for v in document.values()):
        raise UsageError(f"{file}: the JSON object has no lists of numbers by column.", _HINT)
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
        raise UsageError(f"{source}: no rows of numbers.", _HINT)
    delays, one_way = _delays(source, columns)
    rates, lengths = _rates(source, columns)
    if delays is None and rates is None:
        raise UsageError(f"{source}: no column with delays or rates.", _HINT)
    loaded = columns.get("loaded")
    flags = None if loaded is None else np.nan_to_num(np.asarray(loaded)) != 0
    if loaded is not None and delays is not None and np.isnan(loaded)[~np.isnan(delays)].any():
        raise UsageError(f"{source}: 'loaded' is empty for a packet.", "Write 1 or 0.")
    times = _in_ns(columns, "time")
    times = _in_ns(columns, "sent") if times is None else times
    arrival_order = None
    if delays is not None:
        arrived = ~np.isnan(delays)
        arrivals = _in_ns(columns, "received")
        arrivals = np.arange(rows, dtype=float) if arrivals is None else arrivals
        if "sequence" in columns:
            sequence = columns["sequence"]
            delays, flags, times, first = _by_sequence(source, sequence, delays, flags, times)
            arrivals, arrived = arrivals[first], arrived[first]
        arrival_order = np.argsort(arrivals[arrived], kind="stable")
    spacing = None
    if times is not None and times.size > 1 and not np.isnan(times).any():
        spacing = float(np.median(np.diff(np.sort(times)))) / 1e9 or None
    return PathSeries(
        source=source,
        delays_ns=delays,
        one_way=one_way,
        arrival_order=arrival_order,
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
    if sent is not None and received is not None and np.isnan(sent[~np.isnan(received)]).any():
        raise UsageError(
            f"{source}: a packet has a time of arrival and none of sending.", "Add the time."
        )
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
    source: str,
    sequence: Sequence[float],
    delays: Array,
    flags: Flags | None,
    times: Array | None,
) -> tuple[Array, Flags | None, Array | None, Order]:
    """The delays by sequence number, and the row of each; a missing number is a lost packet."""
    order = np.asarray(sequence, dtype=float)
    if np.isnan(order).any() or (order != np.floor(order)).any():
        raise UsageError(f"{source}: a sequence number is no whole number.", "Check the column.")
    if (span := np.ptp(order) + 1) > _MOST_PACKETS:
        raise UsageError(
            f"{source}: the sequence numbers span {span:,.0f} packets.",
            f"Use at most {_MOST_PACKETS:,} packets.",
        )
    size, places = int(span), (order - order.min()).astype(np.int64)
    # Of duplicates the first counts.
    unique, first = np.unique(places, return_index=True)
    out = np.full(size, np.nan)
    out[unique] = delays[first]
    if flags is not None:
        spread = np.zeros(size, dtype=bool)
        spread[unique] = flags[first]
        flags = spread
    if times is not None and size != delays.size:
        lasted = np.ptp(times[~np.isnan(times)]) if not np.isnan(times).all() else np.nan
        times = np.array([0.0, lasted / (size - 1)]) if size > 1 else None
    return out, flags, times, first
