"""Duets: pairs become a ratio with its verdict; slowdown and shared cores become findings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.results.made import make_run

from nephoscope.cli.commands.command_lines import failing, plan
from nephoscope.cli.commands.command_lines.plan import CommandLine
from nephoscope.core.errors import UsageError
from nephoscope.core.model import RunResult, Sample, Setting
from nephoscope.features.duet import section
from nephoscope.features.duet.result import Duet, Duets
from nephoscope.results import analyse_run

PLAN = """version: 1
name: bench-duet
benchmarks:
  - benchmark: command.duet
    params: {argv: [a], label: old, second_argv: [b], second_label: new}
repeat: {min: 10, max: 10}
margin: 5%
"""
LINES = [CommandLine(text, number, text, {}) for number, text in enumerate(("old", "new"))]


def run(folder: Path, ratio: float, slowdown: float | None = 1.02, rounds: int = 10) -> RunResult:
    """A machine that slows both by up to 80 % from trial to trial, which the pairs do not show."""

    def answers(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        disturbed = 1e8 * (1 + 0.2 * (number % 5))
        own = ratio * (1 + 0.002 * (number % 3 - 1))
        walls = [("old", disturbed), ("new", disturbed * own)]
        return [
            Sample("relative_time_ratio", own),
            *(Sample("wall_mean_ns", ns, factors={"label": label}) for label, ns in walls),
            *([Sample("slowdown_ratio", slowdown + number / 1000)] if slowdown else []),
        ]

    return analyse_run.build(make_run(folder, PLAN, answers, rounds=rounds))


def duet_of(result: RunResult) -> Duet:
    part = result.part(Duets)
    assert part is not None
    (duet,) = part.duets
    return duet


@pytest.mark.parametrize(
    ("ratio", "word"),
    [(1.0, "equivalent"), (1.1, "worse"), (0.9, "better"), (1.05, "inconclusive")],
)
def test_the_verdict_is_that_of_the_pairs_whatever_slows_both(
    tmp_path: Path, ratio: float, word: str
) -> None:
    result = run(tmp_path, ratio)
    duet = duet_of(result)
    found = duet.comparison.ratio
    assert (duet.first, duet.second, duet.comparison.n_a) == ("old", "new", 10)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.value == pytest.approx(ratio, rel=0.002)
    assert found.high - found.low < 0.01
    assert duet.comparison.verdict.word == word
    assert duet.comparison.margin == 0.05
    assert duet.comparison.difference is not None
    assert duet.comparison.difference.unit == "ns"
    (sentence,) = section.answer(result)
    assert "new" in sentence
    built = section.build(result)
    assert built is not None


@pytest.mark.parametrize(("slowdown", "warned"), [(None, False), (1.02, False), (1.5, True)])
def test_commands_that_slow_each_other_are_a_finding(
    tmp_path: Path, slowdown: float | None, warned: bool
) -> None:
    result = run(tmp_path, 1.1, slowdown)
    assert (duet_of(result).slowdown is None) is (slowdown is None)
    found = [one for one in result.findings if one.id == "duet_slowdown"]
    assert bool(found) is warned
    for finding in found:
        assert "1.5" in finding.sentence
        assert "--command" in finding.next_step


@pytest.mark.parametrize(
    ("ratio", "conditions", "code"),
    [
        (1.1, ["worse"], 1),
        (0.9, ["worse"], 0),
        (0.9, ["different"], 1),
        (1.0, ["worse", "undecided"], 0),
        (1.05, ["undecided"], 1),
    ],
)
def test_a_condition_fails_by_the_verdict(
    tmp_path: Path, ratio: float, conditions: list[str], code: int
) -> None:
    outcome = failing.check(run(tmp_path, ratio), LINES, conditions)
    assert outcome.exit_code == code
    assert ("failed, by 1 of 1 command: new" if code else "none of 1 command") in outcome.sentence


def test_too_few_pairs_pass_no_condition(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"5 repetitions cannot show .* 1 command"):
        failing.check(run(tmp_path, 1.5, rounds=5), LINES, ["worse"])
    with pytest.raises(UsageError, match="there is one command"):
        plan.require_several(LINES[:1])
