"""A file with twice as many mistakes takes twice the work, and is answered with the first of them.

Work is counted in calls of functions, which no other program on the machine changes.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from nephoscope import catalog
from nephoscope.core.errors import PlanError, PlanErrors, UsageError
from nephoscope.core.reading import foreign, recordfile, yamltext
from nephoscope.features.advise import answers
from nephoscope.features.cost import work
from nephoscope.features.sla import files as agreements
from nephoscope.measure.lab import files as topologies
from nephoscope.measure.plans.files.load import from_text

MISTAKES = 250
GROWTH = 2.3
"""Of the calls when the mistakes are doubled: 2 and a logarithm; quadratic readers have 4."""
BENCHMARK = "benchmarks: [{benchmark: 'null'}]\n"


def many(line: str, head: str = "name: x\n") -> Callable[[int], str]:
    """A text of so many lines, each with its number for @."""
    return lambda count: head + "".join(line.replace("@", str(i)) for i in range(count))


def plan(text: str) -> object:
    return from_text(text, "x.yaml", {}, catalog.load())


def topology(text: str) -> object:
    return topologies.from_text(text, "x.yaml", Path(), here=False)


def agreement(text: str) -> object:
    return agreements.from_text(text, "x.yaml")


TEXTS: Mapping[str, tuple[Callable[[str], object], Callable[[int], str]]] = {
    "unknown keys of a plan": (plan, many("k@: 1\n", "name: x\n" + BENCHMARK)),
    "unknown benchmarks": (plan, many("- {benchmark: nul@}\n", "name: x\nbenchmarks:\n")),
    "entries with unknown keys": (
        plan,
        many("- {benchmark: 'null', parms: {}}\n", "name: x\nbenchmarks:\n"),
    ),
    "unknown parameters": (
        plan,
        many("    vlue@: 1\n", "name: x\nbenchmarks:\n- benchmark: 'null'\n  params:\n"),
    ),
    "unknown headline metrics": (
        plan,
        many("  - m@\n", "name: x\nbenchmarks:\n- benchmark: 'null'\n  headline:\n"),
    ),
    "misspelt keys of targets": (
        plan,
        many("- {name: a@, kind: ssh, adress: b}\n", f"name: x\n{BENCHMARK}targets:\n"),
    ),
    "targets that miss a key": (
        plan,
        many("- {kind: ssh}\n", f"name: x\n{BENCHMARK}targets:\n"),
    ),
    "factors of no parameter": (
        plan,
        many(
            "  f@: {path: benchmarks.0.params.v@, levels: [1]}\n", f"name: x\n{BENCHMARK}factors:\n"
        ),
    ),
    "unknown keys of hosts": (topology, many("  h@: {cpus: 1}\n", "name: x\nhosts:\n")),
    "links to no host": (
        topology,
        many("- {ends: [a@, b@]}\n", "name: x\nhosts: {a: {}}\nlinks:\n"),
    ),
    "unknown keys of an agreement": (agreement, many("k@: 1\n", "sla: 1\n")),
    "wrong objectives": (agreement, many("- {metric: x@}\n", "sla: 1\nname: x\nobjectives:\n")),
    "a mapping of another kind": (
        lambda text: foreign.mapping_in(text, "x", "plan", topologies.Topology),
        many("k@: 1\n"),
    ),
    "a list of mappings": (
        lambda text: yamltext.parse(text, "x"),
        many("- {a: &a@ [1], b: *a@}\n", ""),
    ),
    "documents": (lambda text: yamltext.parse_all(text, "x"), many("---\na: 1\n", "")),
}


def calls(read: Callable[[str], object], text: str) -> int:
    """Calls of functions until a text is read or refused."""
    profile = cProfile.Profile()
    profile.enable()
    try:
        read(text)
    except UsageError:
        pass
    finally:
        profile.disable()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", TEXTS)
def test_work_doubles_with_the_mistakes(kind: str) -> None:
    read, text = TEXTS[kind]
    calls(read, text(1))  # imports
    one, two = (calls(read, text(count)) for count in (MISTAKES, 2 * MISTAKES))
    assert two < GROWTH * one, f"{one} calls, then {two}"


def test_options_and_answers_double_too(tmp_path: Path) -> None:
    for read, head in (
        (lambda file: recordfile.load(file, work.WorkFile, "list of options"), "unit: request\n"),
        (lambda file: answers.read(file, {}), "name: x\n"),
    ):
        counted = []
        for count in (1, MISTAKES, 2 * MISTAKES):
            file = tmp_path / "x.yaml"
            file.write_text(many("k@: 1\n", head)(count))
            counted.append(calls(lambda _, read=read, file=file: read(file), ""))
        assert counted[2] < GROWTH * counted[1], counted


def test_the_first_mistakes_of_the_file_are_printed_and_the_others_counted() -> None:
    text = "k0: 1\n" + many("k@: 1\n", "name: X\nbenchmarks: [{benchmark: 'null'}]\n")(3000)[:-1]
    text = text.replace("k0: 1\n", "", 1) + "\nseed: x\nk_0: 1\n"
    with pytest.raises(PlanErrors) as error:
        plan(text)
    *first, last = error.value.sentences
    assert len(first) == PlanErrors.PRINTED
    assert first[0].startswith("x.yaml:1:1: name must begin")
    assert first[1].startswith("x.yaml:3:1: unknown key 'k0'")
    assert first[-1].startswith("x.yaml:21:1: ")
    assert last == "2,983 more errors are not shown."
    assert last in str(error.value)


def test_checks_end_early_and_say_that_there_may_be_more() -> None:
    with pytest.raises(PlanErrors) as error:
        plan(many("- {benchmark: nul@}\n", "name: x\nbenchmarks:\n")(1000))
    assert error.value.sentences[-1] == "At least 180 more errors are not shown."


def test_twenty_mistakes_are_all_printed() -> None:
    with pytest.raises(PlanErrors) as error:
        plan(many("k@: 1\n", "name: x\n" + BENCHMARK)(20))
    assert len(error.value.sentences) == 20
    with pytest.raises(PlanErrors, match=r"\n1 more error is not shown\.$"):
        plan(many("k@: 1\n", "name: x\n" + BENCHMARK)(21))


def test_a_missing_key_is_found_beside_few_or_many_misspelt_ones() -> None:
    text = "nam: x\n" + BENCHMARK + many("k@: 1\n", "")(1000)
    with pytest.raises(PlanError) as error:
        plan(text)
    assert "'name' is missing" not in str(error.value)
    assert "did you mean 'name'?" in str(error.value)
