"""Which metrics a test holds to a truth: the mark `truth`, and whether a test earns it.

`@pytest.mark.truth("http.load", "connect_ns", "first_byte_ns")` says that the test compares these
metrics of this benchmark with values that it set, planted or counted itself. A test that never
reads the value of one of them fails. With NEPHOSCOPE_FALSIFY=1 each test with such a mark is
run again for every metric, with all its values doubled and then halved: it has to fail both times.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.attempts import attempt

FACTORS = (2.0, 0.5)
"""A test that accepts a value twice or half as large as the true one holds it to no truth."""


@dataclass
class Reading:
    """What the running test started and read, and which metric it is shown wrong values of."""

    benchmarks: set[str] = field(default_factory=set)
    metrics: set[str] = field(default_factory=set)
    false_metric: str = ""
    factor: float = 1.0
    is_falsified: bool = False


READING = Reading()


class Sample(dict[str, Any]):
    """A sample that notes when its value is read."""

    def __getitem__(self, key: str) -> Any:
        if key in ("value", "document"):
            READING.metrics.add(self["metric"])
        return super().__getitem__(key)

    def falsified(self) -> Sample:
        """Returns the sample, with another value where its metric is the one to falsify."""
        if self.get("metric") != READING.false_metric:
            return self
        wrong = {
            key: _wrong(value, READING.factor) if key in ("value", "document") else value
            for key, value in self.items()
        }
        READING.is_falsified |= wrong != self
        return Sample(wrong)


def _wrong(value: Any, factor: float) -> Any:
    """Returns a value, or all numbers of a document, times a factor; 1 instead of 0 is too much."""
    if isinstance(value, dict):
        return {key: _wrong(item, factor) for key, item in value.items()}
    if isinstance(value, list):
        return [_wrong(item, factor) for item in value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return value * factor if value else float(factor > 1)


def forget() -> None:
    """Begins the notes of another test."""
    READING.benchmarks.clear()
    READING.metrics.clear()


Claim = tuple[str, str]
"""A benchmark and one of its metrics."""


def of_item(item: pytest.Item) -> list[Claim]:
    """Returns the claims of a test; where a parameter names a benchmark, those of that one."""
    claims = [
        (mark.args[0], metric) for mark in item.iter_markers("truth") for metric in mark.args[1:]
    ]
    parameters = getattr(item, "callspec", None)
    chosen = set(map(str, parameters.params.values())) if parameters else set()
    named = {benchmark for benchmark, _ in claims} & chosen
    return [claim for claim in claims if not named or claim[0] in named]


def unread(claims: list[Claim]) -> list[str]:
    """Returns the claims whose benchmark was not started, or whose metric was not read."""
    return [
        f"{benchmark} {metric}"
        for benchmark, metric in claims
        if benchmark not in READING.benchmarks or metric not in READING.metrics
    ]


def survivors(item: pytest.Item) -> list[str]:
    """Runs a test with wrong values of each metric that it claims; returns those it accepted."""
    accepted = []
    # A disturbance explains none of these misses, so that no attempt is repeated.
    attempt.__kwdefaults__["pauses_s"] = ()
    for benchmark, metric in of_item(item):
        for factor in FACTORS:
            READING.false_metric, READING.factor, READING.is_falsified = metric, factor, False
            try:
                item.runtest()
            except (Exception, pytest.fail.Exception, pytest.skip.Exception):
                continue
            # Half of nothing is nothing.
            if READING.is_falsified:
                accepted.append(f"{benchmark} {metric} times {factor:g}")
    READING.false_metric = ""
    return accepted


def stated(folder: Path) -> Iterator[tuple[Claim, str]]:
    """Yields each claim of a folder's tests with its place, without importing them."""
    for path in sorted(folder.glob("test_*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        constants = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.truth":
                benchmark, *metrics = [word for arg in node.args for word in _words(arg, constants)]
                for metric in metrics:
                    yield (benchmark, metric), f"{path.name}:{node.lineno}"


def _words(argument: ast.expr, constants: dict[str, ast.expr]) -> list[str]:
    """Returns the texts of an argument: a literal, a constant of the module, or `*` and a tuple."""
    if isinstance(argument, ast.Starred):
        return list(ast.literal_eval(_resolved(argument.value, constants)))
    return [str(ast.literal_eval(_resolved(argument, constants)))]


def _resolved(node: ast.expr, constants: dict[str, ast.expr]) -> ast.expr:
    return constants[node.id] if isinstance(node, ast.Name) else node
