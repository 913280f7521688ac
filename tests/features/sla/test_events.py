"""Files of events: their forms, and what is refused."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.features.sla.made import JUNE_S, agreement, month, refused, run

from nephoscope.features.sla.events import FAILED, OK, UNNAMED, read
from nephoscope.features.sla.leap_seconds import LeapSeconds

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "there is no header"),
        ("ok\n1\n", "the column 'time' of events is missing; there are: ok"),
        ("time,up\n1,1\n", "the column 'ok' of events is missing"),
        ("Date Time,Status\n1,Up\n", "the columns 'time' and 'ok' of events are missing"),
        ("time,ok,response_ms\n1,1,5\n", "unknown column 'response_ms'"),
        ("time,ok\n1,1\n2\n", "cannot be read"),
        ("time,ok\n", "there are no events"),
        ("time,ok\n1,maybe\n", "'ok' is 'maybe'"),
        ("time,ok\n2023-06-01T00:00:00,1\n", "State the offset from UTC"),
        ("time,ok\n-5,1\n", "outside the years"),
        ("time,ok\n1e30,1\n", "after the year 2100"),
        ("time,ok\nnan,1\n", "an event has no time"),
        ("time,ok\n1,1\n4000000000,1\n", "more than 10,000 periods"),
        ("time,ok\n,1\n", "an event has no time"),
        ("time,ok,response_time_ms\n1,1,-4\n", "'response_time_ms' is negative"),
        ("time,ok\n1,1\n1,0\n", "contradict each other"),
        ("time,ok,ok\n1,1,1\n", "duplicate column"),
    ],
)
def test_bad_files_are_one_sentence(
    text: str, expected: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "e.csv").write_text(text)
    terms = tmp_path / "a.yaml"
    terms.write_text(
        "sla: 1\nname: a\ntitle: a\nsource: t\nperiod: day\n"
        "objectives: [{measure: response_time, target: 90%, under: 1s}]\n"
    )
    assert expected in refused(capsys, "verdict", terms, tmp_path / "e.csv")


def test_files_that_are_no_files(tmp_path: Path, capsys: Capture) -> None:
    assert "no such file" in refused(capsys, "verdict", "ec2-region", tmp_path / "none.csv")
    (tmp_path / "e.parquet").write_bytes(b"PAR1 no")
    assert "cannot be read" in refused(capsys, "verdict", "ec2-region", tmp_path / "e.parquet")


def test_duplicates_order_and_splitting_do_not_matter(tmp_path: Path, capsys: Capture) -> None:
    whole = month(tmp_path / "e.csv", range(7), minutes=2000)
    rows = whole.read_text().splitlines()[1:]
    parts = [rows[1500:], rows[:1600:-1], rows[:1000], rows[900:1600]]
    files = []
    for number, part in enumerate(parts):
        files.append(tmp_path / f"{number}.csv")
        files[-1].write_text("time,ok\n" + "\n".join(part) + "\n")
    one = run(capsys, "verdict", "ec2-region", whole)
    split = run(capsys, "verdict", "ec2-region", *files)
    assert split["periods"] == one["periods"]
    assert any("duplicate events were counted once" in note for note in split["notes"])
    assert any("earlier than the row before" in note for note in split["notes"])


def test_parquet_and_text_times_give_the_same(tmp_path: Path, capsys: Capture) -> None:
    file = month(tmp_path / "e.csv", range(9), minutes=3000)
    expected = run(capsys, "verdict", "ec2-region", file)["periods"]
    times = [JUNE_S + 60 * at for at in range(3000)]
    ok = [at >= 9 for at in range(3000)]
    moments = [datetime.fromtimestamp(at, UTC) for at in times]
    for name, column in (("int", times), ("stamp", moments)):
        pq.write_table(pa.table({"time": column, "ok": ok}), tmp_path / f"{name}.parquet")
        found = run(capsys, "verdict", "ec2-region", tmp_path / f"{name}.parquet")
        assert found["periods"] == expected
    text = tmp_path / "text.csv"
    rows = (f"{m.isoformat()},{int(o)}" for m, o in zip(moments, ok, strict=True))
    text.write_text("time,ok\n" + "\n".join(rows) + "\n")
    assert run(capsys, "verdict", "ec2-region", text)["periods"] == expected


def test_files_with_and_without_numbers_are_joined(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.csv").write_text(f"time,ok,response_time_ms\n{JUNE_S},1,5\n")
    (tmp_path / "b.csv").write_text(f"time,ok\n{JUNE_S + 60},1\n")
    terms = agreement(tmp_path / "a.yaml", "measure: response_time, target: 90%, under: 1s")
    for files in (("a.csv", "b.csv"), ("b.csv", "a.csv")):
        document = run(capsys, "verdict", terms, *(tmp_path / name for name in files))
        (objective,) = document["periods"][0]["objectives"]
        assert (objective["good"], objective["bad"]) == (1, 0)


def test_empty_lines_and_quoted_commas(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "e.csv").write_text(
        f'service,time,ok\n\n"a,b",{JUNE_S},1\n\n"a,b",{JUNE_S + 60},0\n'
    )
    document = run(capsys, "verdict", "ec2-region", tmp_path / "e.csv")
    assert document["services"] == ["a,b"]


def test_an_outcome_beyond_a_byte_is_refused(tmp_path: Path, capsys: Capture) -> None:
    pq.write_table(pa.table({"time": [JUNE_S], "ok": [256]}), tmp_path / "e.parquet")
    sentence = refused(capsys, "verdict", "ec2-region", tmp_path / "e.parquet")
    assert "'ok' is neither 0 nor 1" in sentence


def test_services_and_rows_without_an_outcome(tmp_path: Path, capsys: Capture) -> None:
    rows = "".join(f"{JUNE_S + 60 * at},{'ab'[at % 2]},{'' if at == 4 else 1}\n" for at in range(6))
    (tmp_path / "e.csv").write_text("time,service,ok\n" + rows)
    document = run(capsys, "verdict", "ec2-region", tmp_path / "e.csv")
    assert document["services"] == ["a", "b"]
    good = [period["objectives"][0]["good"] for period in document["periods"]]
    assert good == [2, 3]
    words = ["verdict", "ec2-region", tmp_path / "e.csv", "--service", "c"]
    assert "no service 'c'" in refused(capsys, *words)


@pytest.mark.parametrize("leap", ["2016-12-31T23:59:60Z", "2017-01-01T05:29:60.25+05:30"])
def test_an_event_of_a_leap_second_is_between_its_neighbours(leap: str, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    rows = ["2016-12-31T23:59:59Z,1", f"{leap},0", "2017-01-01T00:00:00Z,1"]
    path.write_text("time,ok\n" + "\n".join(rows))
    stream = read([path]).observers(UNNAMED)[""]
    end_ns = int(datetime(2017, 1, 1, tzinfo=UTC).timestamp()) * 10**9
    before, during, behind = stream.times_ns.tolist()
    assert (before, behind) == (end_ns - 10**9, end_ns)
    assert end_ns - 1000 <= during < end_ns
    assert [int(state) for state in stream.states] == [OK, FAILED, OK]


def test_leap_seconds_are_found_across_blocks() -> None:
    line = b"2016-12-31T23:59:60Z,1\n"
    whole = io.BufferedReader(LeapSeconds(io.BytesIO(line * 100_000))).read()
    assert whole == b"2016-12-31T23:59:59.999999Z,1\n" * 100_000
