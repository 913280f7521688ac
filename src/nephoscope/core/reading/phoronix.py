"""Result files of the Phoronix Test Suite: composite.xml and `result-file-to-json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

from nephoscope.core.reading import jsontext
from nephoscope.core.records import dataclass

_ONE_RESULT = "BAR_GRAPH"


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The runs of a test on a system.

    test: its identifier. arguments: its options in the suite's words; '' where it has none. scale:
    the suite's name of the unit. proportion: `HIB` (higher is better) or `LIB`; '' where the file
    does not state it. values: of each run, or their mean alone. at_s: seconds since 1970.
    """

    test: str
    arguments: str
    system: str
    scale: str
    proportion: str
    values: tuple[float, ...]
    at_s: float | None


@dataclass(slots=True)
class Suite:
    """The content of a result file.

    failed: 'test on system: reason' of each result that is missing. graphs: how many graphs are
    left out because they are no single figures.
    """

    results: list[SuiteResult] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    graphs: int = 0

    def add(self, where: str, words: str, reason: str, **fields: Any) -> None:
        """Adds the runs of a test on a system; words: their values, separated by colons."""
        if not words:
            self.failed.append(f"{where}: it has no result{reason}")
            return
        try:
            values = tuple(float(word) for word in words.split(":"))
        except ValueError:
            self.failed.append(f"{where}: its result '{words[:40]}' is no number")
            return
        self.results.append(SuiteResult(values=values, **fields))


def read_composite(text: str) -> Suite:
    """Returns the results of a composite.xml.

    ValueError, with a sentence without its end, for what is no such file.
    """
    # Neither does the suite write any; entities could make a short file endless.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("it has a document type declaration")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"it is no XML: {error}") from error
    if root.tag != "PhoronixTestSuite":
        raise ValueError(f"its root is <{root.tag[:40]}>, and not <PhoronixTestSuite>")
    at_s = {_text(system, "Identifier"): _time(system) for system in root.iter("System")}
    suite = Suite()
    for graph in root.iter("Result"):
        if graph.findtext("DisplayFormat", _ONE_RESULT) != _ONE_RESULT:
            suite.graphs += 1
            continue
        test = _text(graph, "Identifier") or _text(graph, "Title")
        for entry in graph.iter("Entry"):
            system = _text(entry, "Identifier")
            # The mean stands alone where single runs are not in the file.
            suite.add(
                f"{test} on {system}",
                _text(entry, "RawString") or _text(entry, "Value"),
                _reason(entry),
                test=test,
                arguments=_text(graph, "Description"),
                system=system,
                scale=_text(graph, "Scale") or "result",
                proportion=_text(graph, "Proportion"),
                at_s=at_s.get(system),
            )
    return suite


def is_json(document: Mapping[str, Any]) -> bool:
    """States whether a JSON object is what `result-file-to-json` writes, in either version."""
    tests = document.get("results")
    return (
        "title" in document
        and isinstance(tests, dict)
        and any(
            isinstance(test, dict) and isinstance(test.get("results"), dict)
            for test in tests.values()
        )
    )


def read_json(document: Mapping[str, Any]) -> Suite:
    """Returns the results of what `result-file-to-json` writes."""
    suite = Suite()
    for key, test in document["results"].items():
        systems = test.get("results") if isinstance(test, dict) else None
        if not isinstance(systems, dict):
            suite.graphs += 1
            continue
        name = str(test.get("identifier") or test.get("title") or key)
        for system, entry in systems.items():
            entry = entry if isinstance(entry, dict) else {}
            single = entry.get("all_results")
            words = ":".join(map(str, single)) if isinstance(single, list) else str(single or "")
            suite.add(
                f"{name} on {system}",
                words or str(entry.get("value") or ""),
                "",
                test=name,
                arguments=str(test.get("description") or test.get("arguments") or ""),
                system=str(system),
                scale=str(test.get("scale") or test.get("units") or "result"),
                proportion=str(test.get("proportion") or ""),
                at_s=_system_time(document, str(system)),
            )
    return suite


def _system_time(document: Mapping[str, Any], name: str) -> float | None:
    systems = document.get("systems")
    system = systems.get(name) if isinstance(systems, dict) else None
    return _moment(str(system.get("timestamp"))) if isinstance(system, dict) else None


def _reason(entry: ElementTree.Element) -> str:
    """Returns the suite's words for a missing result, where it has any."""
    try:
        words = jsontext.parse(_text(entry, "JSON"))["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f" ('{str(words)[:120]}')"


def _text(element: ElementTree.Element, tag: str) -> str:
    return (element.findtext(tag) or "").strip()


def _time(system: ElementTree.Element) -> float | None:
    return _moment(_text(system, "TimeStamp"))


def _moment(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC).timestamp()
