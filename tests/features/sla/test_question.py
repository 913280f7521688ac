"""`sla verdict --engine`: the same document as without, and the same sentences for bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.features.sla.made import JUNE_S, agreement, refused, run

from nephoscope.features.sla import events, files, question, result
from nephoscope.store.engines.local import LocalEngine

Capture = pytest.CaptureFixture[str]
COUNT = 3000
FAST = "measure: response_time, target: 0.9, under: 60ms"


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    """Rows of two services and two observers in a Parquet file of several row groups, and in a CSV
    file without response times; some rows twice, times not in order."""
    rng = np.random.default_rng(5)
    rows = rng.permutation(np.r_[np.arange(COUNT), np.arange(20)])
    columns: dict[str, Any] = {
        "time": JUNE_S + 60 * (rows // 4),
        "service": np.where(rows % 2, "web", "api"),
        "observer": np.where(rows // 2 % 2, "east", "west"),
        "ok": np.random.default_rng(6).random(COUNT)[rows] > 0.02,
        "response_time_ms": np.random.default_rng(7).lognormal(3, 1, COUNT)[rows],
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=500)
    later = (f"{JUNE_S + 60 * (COUNT + at)},web,east,{int(at % 50 > 0)}" for at in range(200))
    (tmp_path / "b.csv").write_text("time,service,observer,ok\n" + "\n".join(later) + "\n")
    return [tmp_path / "a.parquet", tmp_path / "b.csv"]


def terms(
    folder: Path, objective: str = "measure: response_time, target: 0.9, under: 60ms"
) -> Path:
    return agreement(folder / "terms.yaml", objective)


@pytest.mark.parametrize(
    "objective",
    [
        FAST,
        "measure: response_time, mean: 30ms",
        "measure: availability, target: 0.99, failed_at_least: 0.5",
    ],
)
def test_the_document_is_the_same_as_without_an_engine(
    objective: str, sources: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    words = ("verdict", terms(tmp_path, objective), *sources, "--now", "2023-07-01T00:00Z")
    document = run(capsys, *words)
    assert document["events"] == COUNT + 20 + 200
    notes = " ".join(document["notes"])
    assert "duplicate events were counted once" in notes
    assert "earlier than the row before" in notes
    assert run(capsys, *words, "--engine", "local:1") == document
    one = run(capsys, *words, "--service", "web")
    assert one["services"] == ["web"]
    assert run(capsys, *words, "--service", "web", "--engine", "local:1") == one


def test_row_groups_that_are_read_by_several_processes_give_the_same_bits(
    sources: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "_PART_ROWS", 700)
    own = files.load(str(terms(tmp_path, "measure: response_time, mean: 30ms")))
    settings = result.VerdictSettings(now_ns=(JUNE_S + 2_600_000) * 10**9)
    asked = question.question_of(own, sources, settings)
    assert [part.groups for part in asked.scan.parts[:2]] == [(0,), (1,)]
    assert asked.scan.parts[5].groups == (5, 6)
    assert len(asked.scan.parts) == 7
    engine = LocalEngine(2)
    judged = question.judge(own, sources, settings, engine)
    engine.close()
    assert judged == result.judge(own, events.read(sources), settings)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("none.csv", None, "there is no such file"),
        ("bad.csv", "time,ok\n0,maybe\n", "'ok' is 'maybe'"),
        ("bad.csv", "time,state\n0,1\n", "the column 'ok' of events is missing"),
        ("bad.parquet", "PAR1 but no more", "the events cannot be read"),
        ("empty.csv", "time,ok\n", "there are no events"),
        ("twice.csv", f"time,ok\n{JUNE_S},1\n{JUNE_S},0\n", "contradict each other"),
    ],
)
def test_bad_events_are_refused_in_the_same_words(
    name: str, content: str | None, sentence: str, tmp_path: Path, capsys: Capture
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    words = ("verdict", terms(tmp_path), tmp_path / name)
    plain = refused(capsys, *words)
    assert sentence in plain
    assert refused(capsys, *words, "--engine", "local:1") == plain


def test_an_unknown_service_is_refused_in_the_same_words(
    sources: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    words = ("verdict", terms(tmp_path), *sources, "--service", "mail")
    plain = refused(capsys, *words)
    assert "They have: api, web." in plain
    assert refused(capsys, *words, "--engine", "local:1") == plain
