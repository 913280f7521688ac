"""`run --dry-run`: the real order, the real estimate, and nothing made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nephoscope import catalog, command_line
from nephoscope.measure import plans
from nephoscope.store import Store

PLAN = """\
name: dry
question: What would happen?
seed: 11
warmup: 1
repeat: {min: 3, max: 5}
targets:
  - {name: here, roles: [victim]}
  - {name: far, kind: ssh, address: vm.example, roles: [client], per_hour: 2}
benchmarks:
  - benchmark: "null"
    factors: {samples: [1, 2], seed: [0, 1], value: [1, 2]}
design: {fraction: 1/2, baseline: {target: here}}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN, encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = command_line.main(["run", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(capsys: pytest.CaptureFixture[str], plan: Path, *more: str) -> dict[str, Any]:
    store = plan.parent / "store"
    code, out, _ = run(capsys, str(plan), "--dry-run", "--json", "--store", str(store), *more)
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_nothing_is_made(capsys: pytest.CaptureFixture[str], plan: Path) -> None:
    before = sorted(plan.parent.iterdir())
    code, out, err = run(capsys, str(plan), "--dry-run", "--store", str(plan.parent / "store"))
    assert (code, err) == (0, "")
    assert sorted(plan.parent.iterdir()) == before
    for words in (
        "nothing is run",
        "victim",
        "regular fraction 1/2 of resolution 3",
        "value is set to samples x seed",
        "Trials: 32 to 48 (8 alternatives, 4 to 6 rounds",
        "estimated from their parameters",
        "vm.example:~/.cache/nephoscope",
        "USD; without here, which no `per_hour` is given for.",
    ):
        assert words in out
    assert max(map(len, out.splitlines())) < 140


def test_the_order_is_that_of_the_run(capsys: pytest.CaptureFixture[str], plan: Path) -> None:
    found = document(capsys, plan)
    settings = plans.expand(plans.load(plan), catalog.load())
    pairs = [(one.index, target) for one in settings for target in one.targets]
    assert [one["round"] for one in found["schedule"]] == [0, 1, 2, 3]
    for one in found["schedule"]:
        order = plans.order_round(11, one["round"], pairs)
        assert one["order"] == [[index, [target]] for index, target in order]
    other = document(capsys, plan, "--seed", "12")
    assert other["schedule"] != found["schedule"]


def test_json_has_everything(capsys: pytest.CaptureFixture[str], plan: Path) -> None:
    found = document(capsys, plan)
    assert len(found["settings"]) == 4
    assert found["settings"][0]["baseline"] == {"far": [0, "here"]}
    assert found["designs"][0]["kind"] == "regular"
    assert found["estimate"]["trials_least"] == 32
    assert found["estimate"]["money_least"] == pytest.approx(
        found["estimate"]["least_s"] * 2 / 3600
    )
    assert {"kind": "ssh host", "what": "vm.example"}.items() <= next(
        one for one in found["side_effects"] if one["kind"] == "ssh host"
    ).items()


def test_an_interrupted_run_goes_on_in_its_own_order(
    capsys: pytest.CaptureFixture[str], plan: Path
) -> None:
    plan.write_text(PLAN.replace("seed: 11\n", ""), encoding="utf-8")
    loaded, known = plans.load(plan), catalog.load()
    store = Store(plan.parent / "store")
    store.create(loaded, 11, catalog=known, settings=plans.expand(loaded, known))
    found = document(capsys, plan)
    assert found["seed"] == 11


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (["--set", "repeat.min=9000000"], 2, "repeat.min"),
        (
            ["--set", "benchmarks.0.params.wait_ns=100s", "--set", "repeat={min: 999, max: 999}"],
            2,
            "--set benchmarks.0.params.wait_ns=100s: the least schedule of this plan lasts more "
            "than a week: 1000 rounds x 8 alternatives x 100 s are 9.3 days",
        ),
        (
            ["--set", "benchmarks.0.params.wait_ns=100s", "--set", "repeat={min: 150, max: 150}"],
            2,
            "more than a day",
        ),
        (
            [
                *("--set", "benchmarks.0.params.wait_ns=100s"),
                *("--set", "repeat={min: 150, max: 150}"),
                *("--budget", "30h"),
            ],
            0,
            "",
        ),
        (["--set", "money={limit: 1}"], 2, "--set money={limit: 1}: no `per_hour` for here"),
        (
            ["--set", "money={limit: 0.0001}", "--set", "targets.0.per_hour=0"],
            2,
            "--set money={limit: 0.0001}: the least schedule",
        ),
        (["--set", "design.fraction=1/8"], 2, "--set design.fraction=1/8: benchmarks.0: 1/8 of 3"),
    ],
)
def test_what_is_too_long_too_dear_or_wrong_is_refused_before_the_run(
    capsys: pytest.CaptureFixture[str], plan: Path, more: list[str], code: int, words: str
) -> None:
    for mode in (["--dry-run"], []):
        if code == 0 and not mode:
            continue  # it would be measured
        got, _, err = run(capsys, str(plan), *mode, "--store", str(plan.parent / "store"), *more)
        assert got == code, err
        assert words in err
        assert len(err.splitlines()) == (1 if code else 0)
    assert not (plan.parent / "store").exists()
