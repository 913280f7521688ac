"""Outcomes of `--fail-on` in the forms that CI services show: JUnit XML and GitHub annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from nephoscope.cli.kit import output
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import clean
from nephoscope.features.comparison.failing import FailOnOutcome, JudgedResult
from nephoscope.report import files

MAX_ANNOTATIONS = 10
"""Annotations of a step that GitHub shows for each level."""


def require_condition(conditions: Sequence[str], to: Path | None, *, github: bool) -> None:
    """Raises UsageError where no verdict can fail. to: file of --junit; github: --github."""
    if not conditions and (to is not None or github):
        name = "--junit" if to is not None else "--github"
        raise UsageError(f"{name} states what failed.", "Add --fail-on worse.")


def state(outcome: FailOnOutcome, suite: str, to: Path | None, *, github: bool) -> None:
    """Writes the outcome into a JUnit file, and as annotations on stderr, as far as wanted.

    suite: name of the tests. Raises StoreError where the file cannot be written.
    """
    for line in github_annotations(outcome) if github else ():
        output.log(line)
    if to is not None:
        files.write_text(to, junit(outcome, suite), "Name another file.")
        output.log(f"Written: {to}")


def junit(outcome: FailOnOutcome, suite: str) -> str:
    """Returns JUnit XML with a test case for each comparison; an undecided one is skipped."""
    failures = sum(result.is_failing for result in outcome.results)
    skipped = sum(_is_open(result) for result in outcome.results)
    counts = {
        "tests": str(len(outcome.results)),
        "failures": str(failures),
        "errors": "0",
        "skipped": str(skipped),
    }
    root = ElementTree.Element("testsuites", {"name": "nephoscope", **counts})
    group = ElementTree.SubElement(root, "testsuite", {"name": clean(suite), **counts})
    for result in outcome.results:
        case = ElementTree.SubElement(
            group, "testcase", {"classname": clean(suite), "name": clean(result.name)}
        )
        verdict = result.comparison.verdict
        sentence = clean(verdict.sentence)
        if result.is_failing:
            failure = {"type": verdict.word, "message": sentence}
            ElementTree.SubElement(case, "failure", failure).text = sentence
        elif _is_open(result):
            ElementTree.SubElement(case, "skipped", {"message": sentence})
        else:
            ElementTree.SubElement(case, "system-out").text = sentence
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def github_annotations(outcome: FailOnOutcome) -> Iterator[str]:
    """Yields GitHub's workflow commands: an error for a failure, a notice for what is better."""
    for level, own in (
        ("error", [result for result in outcome.results if result.is_failing]),
        (
            "notice",
            [result for result in outcome.results if result.comparison.verdict.word == "better"],
        ),
    ):
        listed = own if len(own) <= MAX_ANNOTATIONS else own[: MAX_ANNOTATIONS - 1]
        for result in listed:
            yield _annotation(level, result.name, result.comparison.verdict.sentence)
        if own[len(listed) :]:
            names = ", ".join(clean(result.name) for result in own[len(listed) :])
            yield _annotation(level, f"{len(own) - len(listed)} more", names)


def _is_open(result: JudgedResult) -> bool:
    return not result.is_failing and result.comparison.verdict.word == "inconclusive"


def _annotation(level: str, title: str, message: str) -> str:
    title = _escaped(clean(title)).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={title}::{_escaped(clean(message))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
