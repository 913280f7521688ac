"""`isolate` as it is typed: what it takes, what it refuses, what it prints before and after."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nephoscope import command_line
from nephoscope.measure.lab import needs


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = command_line.main(["isolate", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def preview(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> dict[str, object]:
    code, out, _ = run(capsys, *words, "--dry-run", "--json", "--store", str(path))
    assert code == 0
    found: dict[str, object] = json.loads(out)
    assert not list(path.iterdir())
    return found


def test_the_preview_shows_the_quiet_trials_between_the_noisy_ones(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("cpu", "--aggressor", "cpu", "--intensity", "25%,1", "--neighbours", "1", "--quick")
    found = preview(capsys, tmp_path, *words)
    settings = found["settings"]
    assert isinstance(settings, list)
    levels = [(one["factors"]["resource"], one["factors"]["intensity"]) for one in settings]
    assert levels == [("none", 0), ("cpu", 0.25), ("cpu", 1.0), ("idle", 1.0)]
    schedule = found["schedule"]
    assert isinstance(schedule, list)
    order = [number for number, _ in next(one for one in schedule if one["round"] == 1)["order"]]
    assert order[::2] == [0, 0, 0, 0]
    assert sorted(order[1::2]) == [1, 2, 3]
    estimate = found["estimate"]
    assert isinstance(estimate, dict)
    # Warm-up: four. Six rounds: four quiet and three noisy.
    assert estimate["trials_least"] == 4 + 6 * 7


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ((), 2, "Name at least one victim"),
        (("cpuu",), 2, "did you mean"),
        (("cpu", "--aggressor", "memroy"), 2, "no resource 'memroy'"),
        (("cpu", "--intensity", "half"), 2, "--intensity: 'half' is no ratio"),
        (("cpu", "--intensity", "0"), 2, "0 is out of range"),
        (("cpu", "--neighbours", "0"), 2, "--neighbours"),
        (("cpu", "--placement", "here"), 2, "--placement"),
        (("cpu", "--target", "local"), 2, "one victim and at least one aggressor"),
        (("cpu", "--target", "friend=local"), 2, "'friend' is not a role"),
        (("cpu", "--target", "victim=moon"), 2, "'moon' is no target"),
        (("cpu", "--target", "ssh:a", "--target", "ssh:a"), 2, "The same target"),
        (("cpu", "--a-a", "--aggressor", "cpu"), 2, "exclude each other"),
        (("cpu", "--budget", "soon"), 2, "--budget"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    words: tuple[str, ...],
    code: int,
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    found, out, err = run(capsys, *words, "--store", str(tmp_path))
    assert (found, out) == (code, "")
    assert sentence in err
    assert len(err.splitlines()) <= 2, err
    assert "Traceback" not in err


def test_a_lab_without_root_is_a_lack(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "missing_capabilities", lambda: ["CAP_NET_ADMIN"])
    code, out, err = run(capsys, "cpu", "--aggressor", "cpu", "--store", str(tmp_path))
    assert (code, out) == (4, "")
    assert "needs root" in err
    program = Path(sys.executable).with_name("nephoscope")
    assert f"`sudo {program} isolate cpu --store {tmp_path}`" in err


def test_more_neighbours_than_cpus_are_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("cpu", "--aggressor", "cpu", "--neighbours", "32", "--dry-run")
    code, _, err = run(capsys, *words, "--store", str(tmp_path))
    assert code == 0
    assert "neighbours" in err
