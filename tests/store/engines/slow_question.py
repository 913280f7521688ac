"""A question that takes long enough to kill a worker meanwhile; run as the driver of it.

usage: slow_question URL FOLDER PARTS SECONDS
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from nephoscope.store.engines import using
from nephoscope.store.engines.question import Question, Scan

ROWS = pa.schema([("series", pa.int64()), ("place", pa.int64()), ("values", pa.binary())])
ANSWERS = pa.schema([("series", pa.int64()), ("sum", pa.float64()), ("n", pa.int64())])
SERIES = 20


def rows_of(folder: str, seconds: float, part: int) -> Iterator[pa.Table]:
    """Rows of each series; a file in the folder says which process reads the part."""
    Path(folder, f"read-{part}-{os.getpid()}").touch()
    time.sleep(seconds)
    rng = np.random.default_rng(part)
    columns: dict[str, list[object]] = {name: [] for name in ROWS.names}
    for series in range(SERIES):
        columns["series"].append(series)
        columns["place"].append(part)
        columns["values"].append(rng.lognormal(0, 8, 1000).tobytes())
    yield pa.table(columns, schema=ROWS)


def added(folder: str, rows: pa.Table) -> pa.Table:
    """The sum of the values in the order of the parts, which decides its last bits."""
    total, n = 0.0, 0
    series = rows["series"][0].as_py()
    for content in rows["values"].to_pylist():
        for value in np.frombuffer(content).tolist():
            total += value
            n += 1
    Path(folder, f"answered-{series}-{os.getpid()}").touch()
    return pa.table({"series": [series], "sum": [total], "n": [n]}, schema=ANSWERS)


def question(folder: str, parts: int, seconds: float) -> Question:
    read = partial(rows_of, folder, seconds)
    scan = Scan(range(parts), read, ROWS, ("series",), ("place",))
    return Question(scan, partial(added, folder), ANSWERS)


def lines(table: pa.Table) -> list[str]:
    return [f"{row['series']} {row['sum'].hex()} {row['n']}" for row in table.to_pylist()]


if __name__ == "__main__":
    from tests.store.engines import slow_question

    url, folder, parts, seconds = sys.argv[1:]
    with using(url, folder) as engine:
        asked = slow_question.question(folder, int(parts), float(seconds))
        print("\n".join(lines(engine.answers(asked))))  # noqa: T201
