"""Several sides compared with one base, on samples that the test set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests import schemas
from tests.results.made import NULL_PLAN, make_run

from nephoscope import command_line
from nephoscope.core import documents
from nephoscope.core.documents import schema_of
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample, Setting
from nephoscope.features.comparison.page import section
from nephoscope.features.comparison.result import ComparisonRules, Comparisons
from nephoscope.features.comparison.stored import of_stored_runs
from nephoscope.report import terminal_output
from nephoscope.store import Store

RULES = ComparisonRules(margin=0.03, confidence=0.95)
FACTORS = {"one": 1.0, "two": 1.1, "three": 1.0, "four": 0.8}
PLAN = NULL_PLAN + f"targets: [{', '.join(f'{{name: {name}}}' for name in FACTORS)}]\n"


def measured(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    own = 1 + ((number + list(FACTORS).index(target)) * 7 % 11 - 5) / 1000
    return [Sample("null_ns", 100 * own * FACTORS[target])]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("several")
    make_run(path, PLAN, measured, rounds=20)
    return Store(path)


def text_of(comparisons: Comparisons) -> str:
    page = section(comparisons, RULES, "", every=False)
    return terminal_output.render(page.title, [page], colour=False, width=100)


def test_every_target_of_a_run_is_compared_with_the_first(store: Store) -> None:
    told = of_stored_runs(store, ["latest"], RULES)
    schemas.validate(documents.versioned(told), schema_of(Comparisons, "comparison"))
    assert {line.a for line in told.comparisons} == {"one"}
    words = {line.b: line.comparison.verdict.word for line in told.comparisons}
    assert words == {"two": "worse", "three": "equivalent", "four": "better"}
    text = text_of(told)
    assert [f"B{number}  " in text for number in (1, 2, 3, 4)] == [True, True, True, False]
    assert text.count("base") == 1, "the base stands once for the one result"


def test_verdicts_are_corrected_over_all_sides(store: Store) -> None:
    several = of_stored_runs(store, ["latest"], RULES)
    run = store.open("latest").id
    for line in several.comparisons:
        pair = of_stored_runs(store, [f"{run}:one", f"{run}:{line.b}"], RULES)
        (alone,) = pair.comparisons
        assert line.comparison.ratio == alone.comparison.ratio
        assert line.comparison.p == alone.comparison.p
        assert alone.comparison.p_holm == alone.comparison.p
    # Holm: the smallest p times the number of comparisons.
    smallest = min(several.comparisons, key=lambda line: line.comparison.p or 1.0)
    p, corrected = smallest.comparison.p, smallest.comparison.p_holm
    assert p is not None
    assert corrected == pytest.approx(3 * p)


def test_a_side_is_named_once_and_there_are_not_too_many(store: Store) -> None:
    run = store.open("latest").id
    with pytest.raises(UsageError, match="A side is named twice"):
        of_stored_runs(store, [f"{run}:one", f"{run}:two", f"{run}:two"], RULES)
    with pytest.raises(UsageError, match="17 sides; at most 16"):
        of_stored_runs(store, [f"{run}:{number}" for number in range(17)], RULES)


def test_files_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = [102, 98, 101, 97, 103, 99, 100, 104, 96, 100]
    names = []
    for name, factor in (("a.txt", 1.0), ("b.txt", 1.3), ("c.txt", 0.7)):
        names.append(str(tmp_path / name))
        (tmp_path / name).write_text("\n".join(str(value * factor) for value in values))
    page = tmp_path / "page.html"
    assert command_line.main(["compare", *names, "-o", str(page), "--fail-on", "worse"]) == 1
    out, err = capsys.readouterr()
    assert "Comparison of 2 sides with A" in out
    assert "+30 %" in out
    assert "-30 %" in out
    assert "failed, by 1 of 2 metrics" in err
    assert "Comparison of 2 sides" in page.read_text()
