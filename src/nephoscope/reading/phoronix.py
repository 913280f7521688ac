"""Result files of the Phoronix Test Suite (composite.xml)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.etree import ElementTree

from nephoscope.reading import jsontext

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


def read_composite(text: str) -> tuple[list[SuiteResult], int]:
    """Returns the results, and how many graphs are left out because they are no single figures.

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
    graphs = list(root.iter("Result"))
    single = [
        graph for graph in graphs if graph.findtext("DisplayFormat", _ONE_RESULT) == _ONE_RESULT
    ]
    results = [result for graph in single for result in _results(graph, at_s)]
    return results, len(graphs) - len(single)


def _results(graph: ElementTree.Element, at_s: dict[str, float | None]) -> Iterator[SuiteResult]:
    test = _text(graph, "Identifier") or _text(graph, "Title")
    for entry in graph.iter("Entry"):
        system = _text(entry, "Identifier")
        # The mean stands alone where single runs are not in the file.
        words = _text(entry, "RawString") or _text(entry, "Value")
        if not words:
            raise ValueError(f"{test} on {system} has no result{_reason(entry)}")
        yield SuiteResult(
            test=test,
            arguments=_text(graph, "Description"),
            system=system,
            scale=_text(graph, "Scale") or "result",
            proportion=_text(graph, "Proportion"),
            values=tuple(_number(word, f"{test} on {system}") for word in words.split(":")),
            at_s=at_s.get(system),
        )


def _reason(entry: ElementTree.Element) -> str:
    """Returns the suite's words for a missing result, where it has any."""
    try:
        words = jsontext.parse(_text(entry, "JSON"))["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f" ('{str(words)[:120]}')"


def _number(word: str, where: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"{where} has '{word[:40]}' for a result") from None


def _text(element: ElementTree.Element, tag: str) -> str:
    return (element.findtext(tag) or "").strip()


def _time(system: ElementTree.Element) -> float | None:
    try:
        moment = datetime.fromisoformat(_text(system, "TimeStamp"))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC).timestamp()
