from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from nephoscope.core.errors import RunFailed, UsageError
from nephoscope.store.engines import opened, parsed, using
from nephoscope.store.engines.local import POOL_FROM_BYTES, LocalEngine
from nephoscope.store.engines.question import Question, Scan, split

ROWS = pa.schema([("series", pa.string()), ("place", pa.int64()), ("value", pa.float64())])
SUMS = pa.schema([("series", pa.string()), ("sum", pa.float64()), ("process", pa.int64())])

LARGE_AND_SMALL = (1e16, 1.0, -1e16, 1.0, 3e-9)
"""Numbers whose sum depends on their order."""


def rows_of(part: int) -> Iterator[pa.Table]:
    """Rows of two series, in another order in each part."""
    order = [(part + place) % len(LARGE_AND_SMALL) for place in range(len(LARGE_AND_SMALL))]
    for series in ("b", "a"):
        yield pa.table(
            {
                "series": [series] * len(order),
                "place": [10 * part + place for place in order],
                "value": [LARGE_AND_SMALL[place] for place in order],
            },
            schema=ROWS,
        )
    yield ROWS.empty_table()


def added(rows: pa.Table) -> pa.Table:
    total = 0.0
    for value in rows["value"].to_pylist():
        total += value
    return pa.table(
        {"series": [rows["series"][0].as_py()], "sum": [total], "process": [os.getpid()]},
        schema=SUMS,
    )


def question(parts: int, size_bytes: int = 0) -> Question:
    return Question(
        Scan(range(parts), rows_of, ROWS, ("series",), ("place",), size_bytes), added, SUMS
    )


def test_a_pool_gives_the_bits_of_this_process_whatever_the_order_of_rows() -> None:
    here = LocalEngine(1).answers(question(5))
    pool = LocalEngine(2).answers(question(5))
    assert pool.drop(["process"]).equals(here.drop(["process"]))
    assert here["series"].to_pylist() == ["a", "b"]
    expected = 0.0
    for value in LARGE_AND_SMALL * 5:
        expected += value
    assert here["sum"].to_pylist() == [expected, expected]
    assert set(here["process"].to_pylist()) == {os.getpid()}
    assert os.getpid() not in pool["process"].to_pylist()


def test_a_task_has_its_own_part_only(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def mapped(_: LocalEngine, function: partial[object], items: object) -> Iterator[object]:
        sizes.append(len(function.args[0]))
        return iter(())

    monkeypatch.setattr(LocalEngine, "_mapped", mapped)
    for parts in (2, 2000):
        paths = [f"run-{number}" for number in range(parts)]
        scan = Scan(paths, rows_of, ROWS, ("series",), ("place",), POOL_FROM_BYTES)
        LocalEngine(2).answers(Question(scan, added, SUMS))
    assert sizes[:2] == sizes[2:]


def test_small_files_are_read_by_this_process() -> None:
    engine = LocalEngine()
    engine._processes = 2
    assert not engine.is_worth(10, POOL_FROM_BYTES - 1)
    assert engine.is_worth(10, POOL_FROM_BYTES)
    assert not engine.is_worth(1, POOL_FROM_BYTES)
    assert set(engine.answers(question(2))["process"].to_pylist()) == {os.getpid()}


def test_no_parts_have_no_answers() -> None:
    assert LocalEngine(2).answers(question(0)).equals(SUMS.empty_table())
    assert list(LocalEngine(2).each(abs, [])) == []


def test_results_come_in_the_order_of_the_items() -> None:
    with using("local:2") as engine:
        assert list(engine.each(partial(pow, 2), range(20))) == [2**n for n in range(20)]


def test_a_process_that_is_killed_is_a_sentence() -> None:
    with pytest.raises(RunFailed, match="A process that reads the store was killed"):
        list(LocalEngine(2).each(killed, [1, 2]))


def test_processes_end_with_the_one_that_asks_even_within_a_task(tmp_path: Path) -> None:
    module = "tests.store.engines.slow_question"
    asking = subprocess.Popen([sys.executable, "-m", module, "local:2", str(tmp_path), "4", "600"])
    try:
        at_most_s(20, lambda: len(list(tmp_path.glob("read-*"))) == 2)
        readers = [int(path.name.rpartition("-")[2]) for path in tmp_path.glob("read-*")]
        assert all(Path(f"/proc/{reader}").exists() for reader in readers)
    finally:
        asking.kill()
        asking.wait()
    at_most_s(20, lambda: not any(Path(f"/proc/{reader}").exists() for reader in readers))


def at_most_s(seconds: float, holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def killed(number: int) -> int:
    os.kill(os.getpid(), 9)
    return number


def test_series_are_split_whatever_their_texts() -> None:
    table = pa.table({"a": ["x", "xy", "x", "xy"], "b": ["yz", "z", "yz", "y"], "n": [1, 2, 3, 4]})
    parts = {key: rows["n"].to_pylist() for key, rows in split(table, ("a", "b"))}
    assert parts == {("x", "yz"): [1, 3], ("xy", "z"): [2], ("xy", "y"): [4]}


def test_a_column_in_many_chunks_is_copied_once() -> None:
    """Taking the rows of each series out of the whole column copied all of it for each of them."""
    chunk = pa.table({"a": [str(n) for n in range(50)], "n": [b"x" * 20_000] * 50})
    table = pa.concat_tables([chunk] * 20)
    before = pa.total_allocated_bytes()
    parts = [rows for _, rows in split(table, ("a",))]
    copied = pa.total_allocated_bytes() - before
    assert sum(rows.num_rows for rows in parts) == table.num_rows
    # The parts are views of what was moved: as many bytes as there are, and a few of keys.
    assert copied <= 1.1 * table.nbytes


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("kusto://x", "'kusto://x' is no engine. Use local, local:N"),
        ("local:0", "'local:0' is no engine"),
        ("spark", "'spark' is no engine"),
        ("spark://", "'spark://' is no address of a Spark cluster. Use spark://HOST:PORT"),
        ("spark://a:0", "'spark://a:0' is no address"),
        ("spark://a:70000", "'spark://a:70000' is no address"),
        ("spark://a/b", "'spark://a' is no address"),
        ("sc://a b", "'sc://a b' is no address"),
        ("spark://a?speed=2", "An engine has no setting 'speed'."),
        ("sc://a?cores=2", "An engine has no setting 'cores'."),
        ("spark://a?cores=many", "'many' is no number of cores."),
        ("spark://a?timeout=0s", "The timeout 0s is not within 1 s and 30 d."),
        ("spark://a?timeout=soon", "soon"),
    ],
)
def test_a_url_of_no_engine_is_refused_in_one_sentence(url: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed(url)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_has_no_token() -> None:
    engine = opened("sc://host/;token=secret?timeout=2min")
    assert engine.name == "sc://host:15002"
    assert opened("spark://a,b:7078?cores=4").name == "spark://a:7077,b:7078"
