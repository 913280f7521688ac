"""The command: a real plan in the foreground, its list, signals, bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.features.watch.made import plan_file
from tests.serve.made import listening

from nephoscope import command_line
from nephoscope.store import FINISHED, Store

Capture = pytest.CaptureFixture[str]
LIMIT_S = 120.0


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return plan_file(tmp_path / "plan.yaml")


def watches(capsys: Capture) -> list[dict[str, object]]:
    assert command_line.main(["watch", "--list", "--json"]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["watches"]
    return found


def test_real_repetitions_are_ordinary_runs_and_stand_in_the_list(
    plan: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert command_line.main(["watch", "plan.yaml", "--every", "1s", "--runs", "2"]) == 0
    assert "fine" not in capsys.readouterr().out
    runs = Store(tmp_path / "store").runs()
    assert [run.state for run in runs] == [FINISHED, FINISHED]
    assert [run.manifest.labels["watch"] for run in runs] == ["web", "web"]
    (status,) = watches(capsys)
    assert (status["name"], status["running"], status["schedule"]) == ("web", False, "every 1 s")
    assert status["last_run"] == runs[-1].id
    assert status["events"]["repetition_ended"] == 2  # type: ignore[index]
    assert command_line.main(["watch", "--list"]) == 0
    assert "stopped" in capsys.readouterr().out
    assert command_line.main(["runs", "--label", "watch=web"]) == 0
    assert capsys.readouterr().out.count(runs[0].id) == 1


def test_no_watches_are_a_sentence(capsys: Capture) -> None:
    assert command_line.main(["watch", "--list"]) == 0
    assert "There are no watches." in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_waiting_watch_and_the_list_shows_what_it_is(
    number: signal.Signals, plan: Path, capsys: Capture
) -> None:
    words = [sys.executable, "-m", "nephoscope", "watch", "plan.yaml", "--every", "30d"]
    process = subprocess.Popen(
        [*words, "--listen", "0"], env={**os.environ}, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        lines = []
        while not lines or not lines[-1].startswith("Next start"):
            lines.append(process.stderr.readline())
            assert lines[-1], lines
        assert lines[0].startswith("Metrics: http://127.0.0.1:")
        assert listening(process.pid) == {("tcp", "0100007F")}
        (status,) = watches(capsys)
        assert (status["running"], status["measuring"]) == (True, False)
        assert status["next_start"] is not None
        # The second process of the same watch, in the same store.
        assert command_line.main(["watch", "plan.yaml", "--every", "30d"]) == 3
        assert "The watch 'web' is running already" in capsys.readouterr().err
        process.send_signal(number)
        assert process.wait(LIMIT_S) == 130
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()
    (status,) = watches(capsys)
    assert not status["running"]
    assert status["events"]["watch_stopped"] == 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Name a PLAN, or use --list."),
        (["plan.yaml"], "A watch has one schedule."),
        (["plan.yaml", "--every", "5m", "--cron", "* * * * *"], "A watch has one schedule."),
        (["plan.yaml", "--every", "5 apples"], "--every: '5 apples' is no duration."),
        (["plan.yaml", "--every", "1ms"], "--every: '1ms' is out of range"),
        (["plan.yaml", "--cron", "* *"], "--cron: '* *' is no usable cron expression"),
        (["plan.yaml", "--every", "5m", "--keep", "soon"], "--keep: 'soon' is no duration."),
        (["plan.yaml", "--every", "5m", "--keep-raw", "0d"], "--keep-raw: '0d' is out of range"),
        (["plan.yaml", "--every", "5m", "--max-size", "big"], "--max-size: 'big' is no size."),
        (["plan.yaml", "--every", "5m", "--name", "../x"], "'../x' is no name of a watch."),
        (["plan.yaml", "--every", "5m", "--listen", "x"], "--listen: 'x' is no address"),
        (["plan.yaml", "--every", "5m", "--otlp", "x"], "--otlp takes the address"),
        (["plan.yaml", "--every", "5m", "--token-file", "x"], "--token-file is for --listen."),
        (["plan.yaml", "--every", "5m", "--otlp-headers", "x"], "--otlp-headers is for --otlp."),
        (
            ["plan.yaml", "--every", "5m", "--otlp", "http://[::1]:9", "--otlp-headers", "x"],
            "--otlp-headers: x cannot be read: No such file or directory. Name a file",
        ),
        (["no.yaml", "--every", "5m"], "no.yaml: there is no such file."),
        (["plan.yaml", "--list"], "take no PLAN"),
    ],
)
def test_bad_words_are_one_sentence(
    words: list[str], sentence: str, plan: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert command_line.main(["watch", *words]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "store").exists()


def test_a_damaged_definition_is_a_sentence(plan: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "store" / "watches" / "web"
    folder.mkdir(parents=True)
    (folder / "watch.json").write_text('{"name": 3}')
    assert command_line.main(["watch", "--list"]) == 3
    assert "watch.json is damaged." in capsys.readouterr().err
