"""One suite over every provisioner: created, refused twice, found by others, removed, after a kill.

To add a provisioner: a fixture that yields its `Case`, and its name in `CASES`.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.tools import needs

from nephoscope.core.errors import UsageError
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.provisioning import UP, Provisioner

from . import toy_cloud, toy_provisioner
from .toy_cloud import SETTINGS, ToyCloud
from .toy_provisioner import ToyProvisioner, Toys

CASES = ("lab", "toy", "rental")


@dataclass(frozen=True)
class Case:
    """A provisioner, and what a test has to know about it.

    spec: name -> two machines, `a` and `b`. creating: name -> the command of another process that
    creates them. listing: the command that prints the names of what it finds, as JSON. remains:
    name -> what is left.
    """

    provisioner: Provisioner[Any, Any, Any]
    spec: Callable[[str], Any]
    creating: Callable[[str], Sequence[str]]
    listing: Sequence[str]
    remains: Callable[[str], Sequence[object]]


@pytest.fixture
def toy(tmp_path: Path) -> Case:
    """A case of toys in a folder of its own."""
    program = str(Path(toy_provisioner.__file__))
    provisioner = ToyProvisioner(tmp_path)
    script = f"import json,os; print(json.dumps(os.listdir({str(tmp_path)!r})))"
    return Case(
        provisioner,
        lambda name: Toys(name, ("a", "b")),
        lambda name: [sys.executable, program, str(tmp_path), name, "a", "b"],
        [sys.executable, "-c", script],
        provisioner.remains,
    )


@pytest.fixture
def rental(tmp_path: Path, probe: Path) -> Case:
    """A case of machines that are rented from a cloud of files."""
    (tmp_path / "cloud").mkdir()
    cloud = ToyCloud(tmp_path / "cloud")
    provisioner = Rentals(cloud, SETTINGS, root=tmp_path / "rentals")
    lines = (
        "import json",
        "from pathlib import Path",
        "from nephoscope.measure.cloud.rental import Rentals",
        "from tests.contract.toy_cloud import SETTINGS, ToyCloud",
        f"cloud = ToyCloud(Path({str(tmp_path / 'cloud')!r}))",
        "rentals = Rentals(cloud, SETTINGS, root=Path('/nowhere'))",
        "print(json.dumps([one.name for one in rentals.existing()]))",
    )
    script = "; ".join(lines)
    return Case(
        provisioner,
        toy_cloud.spec,
        lambda name: [sys.executable, "-m", "tests.contract.toy_cloud", str(tmp_path), name, "0"],
        [sys.executable, "-c", script],
        lambda name: [one for one in cloud.all() if one.tags.run == name],
    )


@pytest.fixture
def lab(tmp_path: Path, root_only: None) -> Case:
    """A case of labs of two bare hosts."""
    from nephoscope.measure.lab import files
    from nephoscope.measure.lab.provisioner import LABS

    def values(name: str) -> dict[str, Any]:
        wide = {"between": ["a", "lan"], "delay": "1ms"}
        return {"version": 1, "name": name, "hosts": {"a": {}, "b": {}}, "links": {"wan": wide}}

    def creating(name: str) -> Sequence[str]:
        file = tmp_path / f"{name}.yaml"
        file.write_text(json.dumps(values(name)))
        return [sys.executable, "-m", "nephoscope", "lab", "up", str(file)]

    script = (
        "import json; from nephoscope.measure.lab.provisioner import LABS; "
        "print(json.dumps([one.name for one in LABS.existing()]))"
    )
    return Case(
        LABS,
        lambda name: files.from_values(values(name)),
        creating,
        [sys.executable, "-c", script],
        LABS.remains,
    )


@pytest.fixture(
    params=[pytest.param(case, marks=needs("ip", "tc") if case == "lab" else ()) for case in CASES]
)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def name(case: Case) -> Iterator[str]:
    """A name of this test; whatever is left of it goes."""
    made = f"p{secrets.token_hex(4)}"
    yield made
    remove(case, made)


def create(case: Case, name: str) -> Any:
    return asyncio.run(case.provisioner.create(case.spec(name), say=lambda line: None))


def remove(case: Case, name: str) -> Any:
    return asyncio.run(case.provisioner.remove(name))


def states(case: Case) -> dict[str, str]:
    return {one.name: one.state for one in case.provisioner.existing()}


def test_it_is_created_found_opened_and_removed(case: Case, name: str) -> None:
    create(case, name)
    (one,) = [one for one in case.provisioner.existing() if one.name == name]
    assert (one.state, one.hosts) == (UP, ("a", "b"))
    assert list(case.provisioner.open(name).hosts) == ["a", "b"]
    remove(case, name)
    assert name not in states(case)
    assert list(case.remains(name)) == []


def test_creating_it_twice_is_refused_in_one_sentence(case: Case, name: str) -> None:
    create(case, name)
    with pytest.raises(UsageError) as caught:
        create(case, name)
    assert name in caught.value.message
    assert "\n" not in str(caught.value)
    assert states(case)[name] == UP


def test_another_process_finds_it(case: Case, name: str) -> None:
    create(case, name)
    seen = subprocess.run(case.listing, capture_output=True, text=True, check=True).stdout
    assert name in json.loads(seen)


def test_removing_it_twice_and_what_never_was_is_fine(case: Case, name: str) -> None:
    create(case, name)
    for _ in range(2):
        remove(case, name)
    remove(case, "pneverwas")
    with pytest.raises(UsageError):
        case.provisioner.open(name)


@pytest.mark.parametrize("after_s", [0.0, 0.03, 0.1])
def test_killed_in_the_middle_it_is_found_and_removed(
    case: Case, name: str, after_s: float
) -> None:
    child = subprocess.Popen(
        case.creating(name), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 120
    while name not in states(case):
        assert time.monotonic() < until
        time.sleep(0.002)
    time.sleep(after_s)
    child.kill()
    child.wait()
    assert name in states(case)
    remove(case, name)
    assert list(case.remains(name)) == []
    assert name not in states(case)


def test_a_cancelled_creation_leaves_nothing(case: Case, name: str) -> None:
    async def cancelled() -> None:
        task = asyncio.ensure_future(
            case.provisioner.create(case.spec(name), say=lambda line: task.cancel())
        )
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert list(case.remains(name)) == []


def test_what_others_made_stays(case: Case, name: str) -> None:
    other = f"{name}x"
    create(case, other)
    try:
        create(case, name)
        remove(case, name)
        assert states(case)[other] == UP
        assert case.remains(other)
    finally:
        remove(case, other)
