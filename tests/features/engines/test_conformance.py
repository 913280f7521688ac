from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

from nephoscope.command_line import program
from nephoscope.features.engines import command, conformance, synthetic
from nephoscope.store.engines.local import LocalEngine
from nephoscope.store.engines.question import Question


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> synthetic.KnownStore:
    return synthetic.made(tmp_path_factory.mktemp("store"), 20_000, levels=2, runs=3)


def test_several_processes_answer_every_question_as_this_one(known: synthetic.KnownStore) -> None:
    result = conformance.check(LocalEngine(2), known)
    assert [(entry.question, entry.difference) for entry in result.questions] == [
        (name, "") for name in conformance.QUESTIONS
    ]
    assert all(entry.answers for entry in result.questions)
    assert result.sentence == (
        "local:2 gives the same results as this process, to the last bit, in all 7 questions "
        "(20,016 samples, 8 series, 4 runs)."
    )


class _Careless(LocalEngine):
    """An engine whose floats are off by the last bit, and whose results are in another order."""

    def __init__(self) -> None:
        super().__init__(1)

    def answers(self, question: Question) -> pa.Table:
        table = super().answers(question)
        if "value" not in table.column_names:
            return table
        place = table.column_names.index("value")
        return table.set_column(place, "value", pc.multiply(table["value"], 1 + 2**-52))

    def each(self, function: Callable[..., Any], items: Sequence[Any], **_: Any) -> Iterator[Any]:
        yield from super().each(function, list(items)[::-1])


def test_one_bit_and_another_order_are_seen(known: synthetic.KnownStore) -> None:
    result = conformance.check(_Careless(), known)
    different = {entry.question for entry in result.questions if entry.difference}
    assert {"percentiles", "fleet", "census"} <= different
    assert "history" not in different
    assert result.sentence.startswith("local:1 differs from this process in ")


def test_the_command_prints_the_verdict_and_removes_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(folder: Path, samples: int) -> synthetic.KnownStore:
        assert samples == 1_000_000
        return made(folder, 20_000, levels=1, runs=3)

    made = synthetic.made
    monkeypatch.setattr(synthetic, "made", small)
    arguments = ["engine", "check", "local", "--folder", str(tmp_path)]
    printed = CliRunner().invoke(program, arguments, standalone_mode=False)
    assert printed.return_value == 0, printed.output
    assert printed.output.startswith("local gives the same results as this process, to the last")
    assert not list(tmp_path.iterdir())
    document = CliRunner().invoke(program, [*arguments, "--json"], standalone_mode=False)
    assert {row["question"] for row in json.loads(document.output)["questions"]} == set(
        conformance.QUESTIONS
    )


def test_a_difference_is_exit_code_1(
    known: synthetic.KnownStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthetic, "made", lambda *_: known)
    monkeypatch.setattr("nephoscope.store.engines.opened", lambda *_: _Careless())
    arguments = ["engine", "check", "local:2", "--folder", str(tmp_path)]
    printed = CliRunner().invoke(program, arguments, standalone_mode=False)
    assert printed.return_value == command.DIFFERENT
    assert "instead of" in printed.output
