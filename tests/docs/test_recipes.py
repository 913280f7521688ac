"""The recipes of the contributor's guide, followed to the letter in a copy of the repository."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator

import pytest
import recipe
from tests import hardware
from tests.conftest import ROOT
from tests.hardware import Feature
from tests.tools import needs

from nephoscope.measure.lab.provisioner import LABS

OVERVIEW = (recipe.FOLDER / "README.md").read_text("utf-8")
IN_LAB = (needs("ip", "tc"), hardware.needs(Feature.ROOT, os.geteuid() == 0))
LAB, OWN_LAB = "recipe-lab", f"r{os.getpid()}"
FAST = ("feature", "target-kind", "lab-platform")
"""Recipes that build nothing."""


def pages(names: tuple[str, ...]) -> list[object]:
    return [pytest.param(name, marks=IN_LAB if name == "lab-platform" else ()) for name in names]


NAMES = tuple(sorted(path.stem for path in recipe.FOLDER.glob("*.md") if path.stem != "README"))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> recipe.Copy:
    return recipe.Copy.make(tmp_path_factory.mktemp("repository"))


@pytest.fixture
def copy(repository: recipe.Copy) -> Iterator[recipe.Copy]:
    yield repository
    repository.reset()
    if LABS.remains(OWN_LAB):
        asyncio.run(LABS.remove(OWN_LAB))


def page(name: str) -> str:
    """The text of a recipe; the name of its lab is this process's own."""
    text = (recipe.FOLDER / f"{name}.md").read_text("utf-8")
    return text.replace(LAB, OWN_LAB)


@pytest.mark.parametrize("name", pages(FAST))
def test_a_recipe_leads_to_what_its_commands_print(copy: recipe.Copy, name: str) -> None:
    """Without its last part, which tests and generates."""
    text = page(name)
    first, last_part, _ = text.partition(recipe.LAST_PART)
    assert last_part
    assert copy.follow(first) >= 3
    copy.check_style()
    named = recipe.files_named(text)
    assert copy.touched() == [line for line in named if "contracts/" not in line]


@pytest.mark.slow
@pytest.mark.parametrize("name", pages(NAMES))
def test_a_whole_recipe_passes_its_tests_and_names_every_file(copy: recipe.Copy, name: str) -> None:
    if name == "benchmark":
        # So that cargo builds only what the recipe changes.
        copy.add_built("target/static")
    assert copy.follow(page(name)) >= 4
    copy.check_style()


def test_a_recipe_touches_two_places_of_the_program() -> None:
    for name in NAMES:
        lines = recipe.files_named(page(name))
        own = [line for line in lines if not line[3:].startswith(("tests/", "contracts/"))]
        new = {re.sub(r"(/features/\w+/).*", r"\1", line) for line in own if line[0] == "?"}
        changed = [line for line in own if line[0] != "?"]
        assert (len(new), len(changed)) == (1, 1), name


def test_the_overview_has_every_recipe() -> None:
    assert set(re.findall(r"\]\(([a-z-]+)\.md\)", OVERVIEW)) == set(NAMES)
    assert len(NAMES) == 5


def test_the_entry_points_of_the_overview_are_those_of_the_package() -> None:
    titled = [(title, body) for _, title, body in recipe.BLOCK.findall(OVERVIEW) if title]
    assert titled
    for title, body in titled:
        assert (ROOT / title).read_text("utf-8") == body
