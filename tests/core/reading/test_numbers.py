"""Numbers of files are finite and in the range of their quantity, or named with file and line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import run_inside

from nephoscope.core.reading import numbers
from nephoscope.core.reading.numbers import LARGEST, SMALLEST, NumberRange


@pytest.mark.parametrize(
    ("numbers_of", "value", "words"),
    [
        (numbers.ANY, "nan", "is not a number"),
        (numbers.ANY, math.nan, "is not a number"),
        (numbers.ANY, "inf", "is not a number"),
        (numbers.ANY, math.inf, "is too large"),
        (numbers.ANY, -math.inf, "is below"),
        (numbers.ANY, "1_000", "is not a number"),
        (numbers.ANY, "１２", "is not a number"),
        (numbers.ANY, "0x10", "is not a number"),
        (numbers.ANY, "", "is not a number"),
        (numbers.ANY, "1,5", "is not a number"),
        (numbers.ANY, True, "is not a number"),
        (numbers.ANY, None, "is not a number"),
        (numbers.ANY, [1], "is not a number"),
        (numbers.ANY, "1e308", r"is too large \(at most 1e\+60\)"),
        (numbers.ANY, 10**400, "is too large"),
        (numbers.ANY, "-1e308", "is below"),
        (numbers.ANY, "1e-320", "is too near to 0"),
        (numbers.ANY, -1e-308, "is too near to 0"),
        (numbers.POSITIVE, 0, "is not above 0"),
        (numbers.FROM_ZERO, "-5", "is below 0"),
        (numbers.COUNT, "-1", "is below 0"),
        (numbers.COUNT, 1.5, "is not a whole number"),
        (numbers.MOMENT_S, "-5", "is below 0"),
        (numbers.MOMENT_S, 1e300, "is too large"),
        (numbers.DURATION_S, 2_592_001, "is too large"),
    ],
)
def test_what_is_no_number_of_the_range_is_named(
    numbers_of: NumberRange, value: Any, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        numbers_of.read(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1.0), (" -2.5 ", -2.5), ("+3e4", 3e4), (".5", 0.5), ("5.", 5.0), ("0e0", 0.0)],
)
def test_numbers_are_read_as_they_are_written(text: str, value: float) -> None:
    assert numbers.ANY.read(text) == value
    assert numbers.ANY.read(value) == value


def compare(values: list[str], folder: Path) -> list[str]:
    (folder / "a.txt").write_text("\n".join(values))
    (folder / "b.txt").write_text("\n".join(str(100 + i / 7) for i in range(20)))
    return ["compare", str(folder / "a.txt"), str(folder / "b.txt")]


def table(command: list[str], head: str, row: str) -> Callable[[list[str], Path], list[str]]:
    """A command that reads a table with a row for each value."""

    def words(values: list[str], folder: Path) -> list[str]:
        rows = (row.replace("@", value).replace("#", str(i)) for i, value in enumerate(values))
        (folder / "x.csv").write_text("\n".join([head, *rows]))
        return [*command, str(folder / "x.csv")]

    return words


def hyperfine(values: list[str], folder: Path) -> list[str]:
    times = ",".join({"nan": "NaN"}.get(value, value) for value in values)
    text = json.dumps({"results": [{"command": "x", "exit_codes": [0] * 20, "times": "@"}]})
    (folder / "x.json").write_text(text.replace('"@"', f"[{times}]"))
    return ["import", str(folder / "x.json"), "--store", str(folder)]


READERS: dict[str, Callable[[list[str], Path], list[str]]] = {
    "a file of numbers": compare,
    "groups": table(["network", "groups"], "instance_type,rtt_ms", "t#,@\nt1,1.5\nt2,2.5"),
    "round trips": table(["network", "series"], "rtt_ms", "@"),
    "times of packets": table(["network", "series"], "time_s,rtt_ms", "@,1.5"),
    "sequence numbers": table(["network", "series"], "sequence,rtt_ms", "@,1.5"),
    "clocks": table(["network", "series"], "sent_ms,received_ms", "#,@"),
    "rates of a path": table(["network", "series"], "bytes_per_s,interval_s", "@,1"),
    "figures": table(["rank"], "metric,alternative,value,better", "m,a#,@,lower\nm,b,5,lower"),
    "credits": table(["credits"], "time,rate", "#,@"),
    "times of credits": table(["credits"], "time,rate", "@,5"),
    "an import": hyperfine,
}


@pytest.mark.contradicting
@pytest.mark.parametrize("kind", READERS)
def test_no_number_of_a_file_ends_in_a_defect(kind: str, tmp_path: Path) -> None:
    for value in ("nan", "-1", "1e308", "1e-320", f"{LARGEST}", f"{SMALLEST}", "1e40", "0"):
        values = [str(100 + (i if kind == "sequence numbers" else i / 7)) for i in range(19)]
        done = run_inside(READERS[kind]([*values, value], tmp_path))
        assert "defect" not in done.err, (value, done)
        assert "Warning" not in done.err, (value, done)
        assert "overflow" not in done.err, (value, done)
        assert "invalid value" not in done.err, (value, done)
        if value in ("nan", "1e308", "1e-320"):
            is_named = done.code == 2 and f"'{value}'" in done.err
            assert is_named or "left out" in done.err or "Not used: 1" in done.out, (value, done)
