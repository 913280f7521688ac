"""Something else in place of a file of this machine's rentals is named at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.core.reading.test_regular import a_device, a_folder, a_loop, a_pipe
from tests.waiting import failing_after

from nephoscope.core.errors import NephoscopeError
from nephoscope.measure.cloud import ended_rentals, machine_lives
from nephoscope.measure.cloud.intents import RentalFolder


@pytest.fixture(autouse=True)
def _no_wait() -> Iterator[None]:
    with failing_after(60):
        yield


@pytest.mark.parametrize("replace", [a_pipe, a_device, a_loop, a_folder])
@pytest.mark.parametrize("name", ["machine-lives.jsonl", "ended-rentals.jsonl", "intents.jsonl"])
def test_it_is_named(name: str, replace: object, tmp_path: Path) -> None:
    rental = tmp_path / "rentals" / "r1"
    rental.mkdir(parents=True)
    path = rental / name if name == "intents.jsonl" else tmp_path / name
    replace(path)  # type: ignore[operator]
    readers = {
        "machine-lives.jsonl": lambda: machine_lives.read(path),
        "ended-rentals.jsonl": lambda: ended_rentals.read(tmp_path / "rentals"),
        "intents.jsonl": lambda: RentalFolder("r1", tmp_path / "rentals").intents(),
    }
    with pytest.raises(NephoscopeError) as error:
        readers[name]()
    assert name in error.value.message


@pytest.mark.parametrize("replace", [a_pipe, a_device, a_loop, a_folder])
def test_what_is_known_of_a_rental_is_then_nothing(replace: object, tmp_path: Path) -> None:
    (tmp_path / "r1").mkdir()
    replace(tmp_path / "r1" / "rental.json")  # type: ignore[operator]
    assert RentalFolder("r1", tmp_path).read() == {}
    replace(tmp_path / "r1" / "intents.jsonl")  # type: ignore[operator]
    with pytest.raises(OSError, match=r"regular|levels|directory"):
        RentalFolder("r1", tmp_path).note("create", "server", "here")
