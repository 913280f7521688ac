"""Analyses a stored run with two versions of Nephoscope and compares what both state.

    python tests/compare_versions.py STORE RUN --old COMMAND --new COMMAND

Compares every estimate (value, low, high, confidence, n) by section, benchmark, metric and target,
every verdict, and the ids of all findings. Keys of the JSON documents may differ.
The new document may state more. Prints the differences; exits with 1 where there are any.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ESTIMATE = ("value", "low", "high", "confidence", "n")
IDENTITY = ("benchmark", "metric", "target")
LINE, CAPABILITIES = "metrics", ("experiment", "isolation", "simulation", "scheduler")
DIGITS = 12
"""Significant digits that have to agree: a sum in another order may change the last ones."""

Statements = Counter[tuple[Any, ...]]


def analyse(command: str, store: Path, run: str) -> dict[str, Any]:
    """Returns the document that `show --json` of a version prints."""
    words = [*shlex.split(command), "show", run, "--store", str(store), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise SystemExit(f"{shlex.join(words)} exits with {done.returncode}:\n{done.stderr}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def statements(document: Mapping[str, Any]) -> Statements:
    """Counts every estimate and verdict of a document, and the ids of its findings."""
    found: Statements = Counter()
    for finding in document["findings"]:
        found["finding", finding["id"]] += 1
    for section in (LINE, *CAPABILITIES):
        content = document.get(section) or document.get(f"{section}s")
        found.update(_statements(content, (section,)))
    return found


def _statements(content: Any, context: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(content, Mapping):
        identity = {**content, **(content.get("victim") or {}), **(content.get("line") or {})}
        if all(isinstance(identity.get(name), str) for name in IDENTITY):
            context = (context[0], *(identity[name] for name in IDENTITY))
        if all(name in content for name in ESTIMATE):
            yield (*context, "estimate", *(rounded(content[name]) for name in ESTIMATE))
            return
        if isinstance(content.get("word"), str) and "sentence" in content:
            yield (*context, "verdict", content["word"])
        # The estimates that carry a verdict stand beside it already.
        children = [value for name, value in content.items() if name != "verdict"]
        if isinstance(content.get("verdict"), Mapping):
            yield (*context, "verdict", content["verdict"]["word"])
    else:
        children = content if isinstance(content, list) else []
    for child in children:
        yield from _statements(child, context)


def rounded(number: float | None) -> str | None:
    """Returns a number as text with as many digits as have to agree."""
    return None if number is None else f"{number:.{DIGITS}g}"


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Returns a line for each statement of the old document that the new one lacks, and for each
    new finding. Further estimates are no difference: documents may state more than they did."""
    before, after = statements(old), statements(new)
    further = (one for one in (after - before) if one[0] == "finding")
    return [f"- {one}" for one in before - after] + [f"+ {one}" for one in further]


def main() -> int:
    """Compares two versions and prints what differs; returns 1 where anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("run")
    parser.add_argument("--old", required=True, help="command of the earlier version")
    parser.add_argument("--new", required=True, help="command of this version")
    given = parser.parse_args()
    old, new = (analyse(command, given.store, given.run) for command in (given.old, given.new))
    lines = differences(old, new)
    kinds = Counter(
        "findings" if one[0] == "finding" else "verdicts" if "verdict" in one else "estimates"
        for one in statements(old).elements()
    )
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    told = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    sys.stdout.write(f"{told or 'nothing'} compared, {len(lines)} differences\n")
    return 1 if lines or not kinds else 0


if __name__ == "__main__":
    sys.exit(main())
