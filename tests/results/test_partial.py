"""A run that has a part of what its plan asked for says so; wide intervals make none partial."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.store.factory import filled

from nephoscope.cli.kit import metric_table
from nephoscope.report import feature_sections, first_screen, terminal_output
from nephoscope.results.partial import partial_reasons
from nephoscope.store import FINISHED, StoredRun
from report import made

TEXT = "Partial results: the run was killed; 1 of 9 settings has no valid trial."


def ended(word: str, n: int, needed: int = 6) -> dict[str, Any]:
    return {"word": word, "n": n, "needed": needed}


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    return filled(tmp_path)[0]


@pytest.mark.parametrize(
    ("outcomes", "reasons"),
    [
        ([ended("converged", 8), ended("max_reached", 6), ended("budget", 6)], ()),
        (
            [ended("budget", 3), ended("budget", 7)],
            ("the budget ended before 1 of 2 settings had enough repetitions",),
        ),
        (
            [ended("no_valid", 0), ended("target_lost", 2), ended("converged", 6)],
            ("2 of 3 settings have no valid trial",),
        ),
    ],
)
def test_outcomes_make_an_ended_run_partial(
    run: StoredRun, outcomes: list[dict[str, Any]], reasons: tuple[str, ...]
) -> None:
    run.update(state=FINISHED, outcomes=outcomes)
    assert partial_reasons(run) == reasons


def test_a_run_that_nobody_measures_any_more_is_partial(run: StoredRun) -> None:
    (reason,) = partial_reasons(run)
    assert reason in ("the run was killed", "the run was interrupted")


def test_terminal_and_report_label_partial_results() -> None:
    whole = made.result()
    reasons = ("the run was killed", "1 of 9 settings has no valid trial")
    partial = replace(whole, run=replace(whole.run, partial=reasons))
    for result, is_labelled in ((whole, False), (partial, True)):
        screen = first_screen.render("T", result, colour=False, width=100)
        page = terminal_output.render(
            "T", feature_sections.build_all(result), colour=False, width=100
        )
        for shown in (metric_table.table(result), " ".join(screen.split()), " ".join(page.split())):
            assert (TEXT in shown) == is_labelled
        assert ("(partial)" in page) == is_labelled
