"""`runs`: filters, labels, and removal of runs that nobody measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.results.made import NULL_PLAN, TWO_TARGETS, make_run
from tests.store.factory import filled

from nephoscope import command_line
from nephoscope.core.model import Sample
from nephoscope.store import Store, StoredRun


def steady(*_: object) -> list[Sample]:
    return [Sample("null_ns", 100.0)]


@pytest.fixture
def stored(tmp_path: Path) -> list[StoredRun]:
    """A finished run of 2026-11-01, one of two targets of 2026-11-03, and one that was killed."""
    store = tmp_path / "store"
    first = make_run(store, NULL_PLAN, steady, rounds=1)
    first.update(started_at=1793491200.0, labels={"commit": "abc", "branch": "main"})
    second = make_run(store, TWO_TARGETS, steady, rounds=1)
    second.update(started_at=1793750399.0, labels={"commit": "def"})
    third, _ = filled(store, rounds=1)
    third.update(started_at=1793836800.0)
    return [first, second, third]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], [0, 1, 2]),
        (["--label", "commit=abc"], [0]),
        (["--label", "commit=abc", "--label", "branch=main"], [0]),
        (["--label", "commit=abc", "--label", "branch=x"], []),
        (["--target", "two"], [1]),
        (["--target", "two", "--target", "local"], [0, 1, 2]),
        (["--benchmark", "null"], [0, 1, 2]),
        (["--benchmark", "cpu.pi"], []),
        (["--state", "killed"], [2]),
        (["--since", "2026-11-02"], [1, 2]),
        (["--until", "2026-11-03"], [0, 1]),
        (["--since", "2026-11-02", "--until", "2026-11-03", "--state", "finished"], [1]),
    ],
)
def test_runs_are_selected(
    options: list[str],
    expected: list[int],
    stored: list[StoredRun],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command_line.main(["runs", "--ids", *options]) == 0
    assert set(capsys.readouterr().out.split()) == {stored[number].id for number in expected}


def test_labels_are_set_and_shown(
    stored: list[StoredRun], capsys: pytest.CaptureFixture[str]
) -> None:
    run = stored[1].id
    assert command_line.main(["runs", "label", run, "commit=", "machine=m5.large"]) == 0
    assert capsys.readouterr().out == f"{run}: machine=m5.large\n"
    assert command_line.main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("LABELS")
    assert next(line for line in lines if run in line).endswith("machine=m5.large")


def test_a_measured_run_has_the_labels_of_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "null", "--repetitions", "1", "--label", "commit=abc", "--label", "a/b=c d"]
    assert command_line.main(words) == 0
    capsys.readouterr()
    assert command_line.main(["runs", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert row["labels"] == {"commit": "abc", "a/b": "c d"}


def test_removed_runs_are_gone_and_the_others_stay(
    stored: list[StoredRun], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = stored
    (third.path / "manifest.json").write_text("damaged")
    assert command_line.main(["runs", "rm", first.id, first.id, third.id, "--yes"]) == 0
    assert capsys.readouterr().out == f"Removed: {first.id}\nRemoved: {third.id}\n"
    assert [path.name for path in first.path.parent.iterdir()] == [second.id]


def test_a_run_that_is_being_measured_is_kept(
    stored: list[StoredRun], capsys: pytest.CaptureFixture[str]
) -> None:
    with StoredRun(stored[0].path).lock():
        assert command_line.main(["runs", "rm", stored[0].id, stored[1].id, "--yes"]) == 3
    captured = capsys.readouterr()
    assert f"Run {stored[0].id} is being measured" in captured.err
    assert captured.out == f"Removed: {stored[1].id}\n"
    assert stored[0].path.exists()


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_is_asked(
    answer: bool,
    stored: list[StoredRun],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    questions: list[str] = []

    def confirm(text: str, **_: object) -> bool:
        questions.append(text)
        return answer

    monkeypatch.setattr("click.confirm", confirm)
    assert command_line.main(["runs", "rm", stored[0].id]) == 0
    assert questions == ["Remove 1 run for good?"]
    assert stored[0].path.exists() is not answer


def test_what_a_killed_removal_left_is_removed_by_the_next_run(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=1)
    left = run.path.with_name(f".{run.id}.4194999.removed")
    run.path.rename(left)
    assert Store(tmp_path).ids() == []
    filled(tmp_path, rounds=1)
    assert not left.exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["runs", "rm", "latest"], "Confirm with --yes."),
        (["runs", "rm", "nothing", "--yes"], "There is no run 'nothing'"),
        (["runs", "rm"], "RUN"),
        (["runs", "label", "latest", "x"], "A label is KEY=VALUE, not 'x'."),
        (["runs", "label", "latest", "=x"], "A label is KEY=VALUE, not '=x'."),
        (["runs", "--label", "x"], "A label is KEY=VALUE, not 'x'."),
        (["runs", "--since", "soon"], "--since: 'soon' is not a date."),
        (["runs", "--state", "finishd"], "did you mean 'finished'"),
        (["runs", "--ids", "rm", "latest"], "Write options behind `rm`."),
        (["bench", "null", "--label", "x"], "A label is KEY=VALUE, not 'x'."),
    ],
)
def test_bad_words_are_one_sentence(
    words: list[str],
    expected: str,
    stored: list[StoredRun],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert command_line.main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert expected in captured.err


def test_several_runs_are_exported_together(
    stored: list[StoredRun], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ids = [run.id for run in stored]
    assert command_line.main(["export", *ids, ids[0], "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert list(dict.fromkeys(row["run"] for row in rows)) == ids
    counts = [sum(row["run"] == run_id for row in rows) for run_id in ids]
    assert counts[0] == 2
    assert counts[1] == 4
    assert {"factor_op", "factor_value"} <= rows[0].keys()
    assert rows[0]["factor_op"] is None
