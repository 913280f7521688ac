"""`nephoscope history`: text, JSON, pages, --check and --confirm on a drawn store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.features.history.drawn import DAY_S, START_S, append_run, machine
from tests.results.made import make_run

from nephoscope import command_line
from nephoscope.core.model import Sample
from nephoscope.features.history.series import read
from nephoscope.store import Store

CHANGE = 24
RUNS = 46


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Daily runs whose null_ns rises from 100 ns to what the probe really measures, 120 ns."""
    path = tmp_path_factory.mktemp("drawn")
    rng = np.random.default_rng(1)
    for day in range(RUNS):
        level = 100 if day < CHANGE else 120
        values = {"null_ns": level * (1 + 0.01 * rng.standard_normal())}
        append_run(path, START_S + day * DAY_S, values, target="local", parameter=120.0)
    return str(path)


def test_a_regression_is_printed_and_checked(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["history", "null_ns", "--store", store]) == 0
    text = capsys.readouterr().out
    assert "1 change point in 1 series of 46 runs; 1 regression." in text
    assert command_line.main(["history", "null_ns", "--store", store, "--check"]) == 1
    checked = capsys.readouterr().out
    assert checked.count("\n") == 1
    assert "(worse, suspected)" in checked


def test_nothing_is_certain_before_a_repetition(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["history", "null_ns", "--store", store, "--json"]) == 0
    (series,) = json.loads(capsys.readouterr().out)["series"]
    assert [change["status"] for change in series["changes"]] == ["suspected"]
    command_line.main(["history", "null_ns", "--store", store, "--check"])
    text = capsys.readouterr().out
    assert "suspected" in text
    assert not {"confirmed", "certain"} & {*text.replace(")", " ").split()}


def test_a_check_without_a_regression_is_quiet(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--margin", "50%"]
    assert command_line.main(["history", "null_ns", "--store", store, "--check", *words]) == 0
    captured = capsys.readouterr()
    assert captured.out == "", "a pipeline gets nothing to read"
    assert captured.err.startswith("No regression in 1 series")


def test_a_check_of_too_few_runs_has_its_own_exit_code(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["history", "null_ns", "--store", store, "--until", "2026-10-10"]
    assert command_line.main([*words, "--check"]) == 5
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "are not tested: it takes 40 runs." in captured.err
    assert "No regression" not in captured.err
    assert command_line.main([*words, "--json"]) == 0
    (series,) = json.loads(capsys.readouterr().out)["series"]
    assert series["newest_is_tested"] is False
    assert command_line.main(words) == 0
    assert "1 series not tested" in capsys.readouterr().out


def test_json_and_page(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "history.html"
    words = ["--json", "--forecast", "--back-test", "-o", str(page)]
    assert command_line.main(["history", "null_ns", "--store", store, *words]) == 0
    document = json.loads(capsys.readouterr().out)
    (series,) = document["series"]
    assert len(series["points"]) == RUNS
    assert series["changes"][0]["direction"] == "worse"
    assert document["back_test"]["predictions"] > 0
    assert series["forecasts"]
    assert "plotly" in page.read_text(encoding="utf-8").lower()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["null_nss"], "did you mean 'null_ns'"),
        (["null_ns", "--target", "other"], "meets the conditions"),
        (["null_ns", "--against", "x"], "Add --confirm RUN"),
        (["null_ns", "--confirm", "x"], "There is no run 'x'"),
        (["null_ns", "--false-alarms", "50%"], "out of range"),
        (["null_ns", "--since", "yesterday"], "is not a date"),
    ],
)
def test_bad_input_is_one_sentence(
    store: str, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["history", *words, "--store", store]) == 2
    assert sentence in capsys.readouterr().err


def test_damage_is_named_although_no_run_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = tmp_path / "days" / "watch=w" / "2026-11-25.jsonl"
    day.parent.mkdir(parents=True)
    day.write_text("damaged\n")
    assert command_line.main(["history", "null_ns", "--store", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert f"{day}: line 1 is damaged" in printed
    assert "meets the conditions" in printed


def test_a_change_is_confirmed_by_a_measurement(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The probe measures 120 ns, as behind the step.
    store = str(shutil.copytree(store, tmp_path / "copy"))
    (series,), _ = read(Store(store).runs(), "null_ns")
    behind = series.points[CHANGE].run
    words = ["--confirm", behind, "--target", "local"]
    assert command_line.main(["history", "null_ns", "--store", store, *words]) == 0
    captured = capsys.readouterr()
    assert "(worse, confirmed)" in " ".join(captured.out.split())
    assert "has no reference" in captured.err
    assert command_line.main(["history", "null_ns", "--store", store, "--check"]) == 1
    assert "(worse, confirmed)" in capsys.readouterr().out


def test_a_target_is_selected_with_the_names_that_it_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day, (target, host) in enumerate([("old", "a"), ("new", "a"), ("other", "b")]):
        append_run(
            tmp_path,
            START_S + day * DAY_S,
            {"null_ns": 100.0 + day},
            target=target,
            fingerprint=machine(host=host),
        )
    words = ["history", "null_ns", "--store", str(tmp_path), "--target", "new", "--json"]
    assert command_line.main(words) == 0
    (series,) = json.loads(capsys.readouterr().out)["series"]
    assert [point["target"] for point in series["points"]] == ["old", "new"]


@pytest.mark.slow
def test_two_versions_of_a_command_are_measured_interleaved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The newer version sleeps five times as long, in the history as in truth.
    for day in range(RUNS):
        time_ms = 10 if day < CHANGE else 50
        plan = (
            "{version: 1, name: nightly, repeat: {min: 10, max: 10}, targets: [{name: web, kind: "
            "local}], benchmarks: [{benchmark: command, params: {label: app, duration_ns: 0, "
            f"argv: [sleep, '{time_ms / 1000}']}}}}]}}"
        )
        wall_ns = time_ms * 1e6 * (1 + 0.001 * (day % 7))
        run = make_run(tmp_path, plan, lambda *_, v=wall_ns: [Sample("wall_ns", v)], rounds=1)
        run.update(started_at=START_S + day * DAY_S)
    (series,), _ = read(Store(tmp_path).runs(), "wall_ns")
    before, behind = (series.points[index].run for index in (CHANGE - 1, CHANGE))
    words = ["history", "wall_ns", "--store", str(tmp_path)]
    assert command_line.main([*words, "--confirm", behind, "--against", before]) == 0
    assert "(worse, confirmed)" in " ".join(capsys.readouterr().out.split())
    assert command_line.main([*words, "--check"]) == 1
    assert "(worse, confirmed)" in capsys.readouterr().out
