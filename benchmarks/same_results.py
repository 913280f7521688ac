"""Analyses the same stored runs with an earlier version and this one, and compares every answer.

usage: same_results.py --store DIR --baseline DIR [--python FILE] [--write]

Asks for each run `show --json` and `export`, for each pair of runs of one plan `compare --json`,
for each metric that several runs have `history --json`. Values of JSON documents are compared as
they are printed, to the last digit, at each place of the document; exports cell by cell. Prints
each place that differs, with the number of times, an example, and whether words or values differ or
something is stated that the other version does not. Both versions read a copy of the store.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import _paired
from large_stores import Version

HISTORIES = 40
"""Metrics whose history is compared, those of most runs first."""


def answers(store: Path) -> dict[str, str]:
    """Returns what each command prints, by this process's version of the program."""
    folders = sorted(path for path in (store / "runs").iterdir() if not path.name.startswith("."))
    plans: dict[str, list[str]] = {}
    for folder in folders:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        plans.setdefault(str(manifest.get("plan_name")), []).append(folder.name)
    result, metrics = {}, Counter[str]()
    for folder in folders:
        text = answer("show", folder.name, "--json", f"--store={store}")
        result[f"show {folder.name}"] = text
        if text.startswith("{"):
            metrics.update({line["metric"] for line in json.loads(text)["metrics"]})
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch, "samples.csv")
            text = answer("export", folder.name, "-o", str(file), f"--store={store}")
            result[f"export {folder.name}"] = file.read_text() if file.exists() else text
    for names in plans.values():
        for a, b in pairwise(names):
            result[f"compare {a} {b}"] = answer("compare", a, b, "--json", f"--store={store}")
    for metric, runs in sorted(metrics.items(), key=lambda pair: (-pair[1], pair[0]))[:HISTORIES]:
        if runs > 1:
            result[f"history {metric}"] = answer("history", metric, "--json", f"--store={store}")
    return result


def answer(*words: str) -> str:
    """Returns what a command prints; its error where it fails."""
    from nephoscope import command_line

    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = command_line.main(words)
        except SystemExit as exit:
            code = exit.code if isinstance(exit.code, int) else 1
    return out.getvalue() or f"exit code {code}: {errors.getvalue()}"


def places(document: Any, other: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Yields place, value and the other document's value where two documents differ.

    `absent` stands for a value that one of them does not state. Elements of lists of unequal length
    are compared with those of the same name.
    """
    if isinstance(document, Mapping) and isinstance(other, Mapping):
        for key in {**document, **other}:
            if key not in document or key not in other:
                texts = (_text(own.get(key, "absent")) for own in (document, other))
                yield f"{path}.{key}", *texts
            else:
                yield from places(document[key], other[key], f"{path}.{key}")
    elif isinstance(document, list) and isinstance(other, list):
        if len(document) != len(other):
            by_name = [_by_name(own) for own in (document, other)]
            for name in {**by_name[0], **by_name[1]}:
                pair = [own.get(name) for own in by_name]
                if None in pair:
                    yield f"{path}[]", *("absent" if own is None else name for own in pair)
                else:
                    yield from places(*pair, f"{path}[]")
            return
        for own, others in zip(document, other, strict=True):
            yield from places(own, others, f"{path}[]")
    elif _text(document) != _text(other):
        yield path, _text(document), _text(other)


NAMES = ("id", "counter", "run", "benchmark", "metric", "target", "factors", "params", "unit")
"""Keys that name an element of a list."""


def _by_name(elements: list[Any]) -> dict[str, Any]:
    """Returns elements by name, and by their order among those of one name."""
    result: dict[str, Any] = {}
    for own in elements:
        named = {key: own[key] for key in NAMES if key in own} if isinstance(own, Mapping) else own
        name, number = _text(named), 0
        while f"{name} {number}" in result:
            number += 1
        result[f"{name} {number}"] = own
    return result


def columns(earlier: str, this: str) -> Iterator[tuple[str, str, str]]:
    """Yields what differs in two exports: columns that one of them lacks, and cells."""
    tables = [list(csv.reader(io.StringIO(text))) for text in (earlier, this)]
    heads = [table[0] for table in tables]
    for name in dict.fromkeys([*heads[0], *heads[1]]):
        if name not in heads[0] or name not in heads[1]:
            yield ".columns", *(name if name in head else "absent" for head in heads)
            continue
        own = [
            [row[head.index(name)] for row in table]
            for table, head in zip(tables, heads, strict=True)
        ]
        if own[0] != own[1]:
            yield f".{name}", f"{len(own[0])} rows", f"{len(own[1])} rows"


def numbers_in(value: Any) -> int:
    """Counts the numbers of a document."""
    if isinstance(value, Mapping | list):
        return sum(map(numbers_in, value.values() if isinstance(value, Mapping) else value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def kind_of(before: str, after: str) -> str:
    """Returns what kind of difference two values are."""
    if "absent" in (before, after):
        return "added" if before == "absent" else "removed"
    is_text = before.startswith('"') and after.startswith('"')
    return "words" if is_text else "values"


def _text(value: Any) -> str:
    return value if value == "absent" else json.dumps(value, sort_keys=True)


def compared(earlier: Mapping[str, str], this: Mapping[str, str]) -> dict[str, Any]:
    """Returns how many answers and values are equal, and what differs, by command and place."""
    equal, differences, numbers = Counter[str](), {}, 0
    for name, text in earlier.items():
        command = name.split()[0]
        own = this.get(name, "absent")
        is_document = text.startswith("{") and own.startswith("{")
        numbers += numbers_in(json.loads(text)) if text.startswith("{") else 0
        if text == own:
            pairs = []
        elif is_document:
            pairs = list(places(json.loads(text), json.loads(own)))
        elif command == "export" and not text.startswith("exit"):
            pairs = list(columns(text, own))
        else:
            pairs = [("(whole answer)", f"({text[:300]})", f"({own[:300]})")]
        equal[command] += all(kind_of(*pair[1:]) in ("added", "words") for pair in pairs)
        for place, before, after in pairs:
            key = f"{kind_of(before, after)}: {command}{place}"
            entry = differences.setdefault(key, {"count": 0, "answers": [], "examples": []})
            entry["count"] += 1
            entry["answers"] = [*dict.fromkeys([*entry["answers"], name])][:5]
            entry["examples"] = [*entry["examples"], [before[:300], after[:300]]][:3]
    commands = Counter(name.split()[0] for name in earlier)
    return {
        "answers": commands,
        "same_numbers": equal,
        "numbers": numbers,
        "differences": dict(sorted(differences.items())),
    }


def main() -> int:
    """Compares and prints; returns 1 where anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--baseline", type=Path, help="work tree of the earlier version")
    parser.add_argument("--python", default=sys.executable, help="the earlier version's Python")
    parser.add_argument("--write", action="store_true", help="store under benchmarks/results")
    parser.add_argument("--answers", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answers:
        options.answers.write_text(json.dumps(answers(options.store)), encoding="utf-8")
        return 0
    versions = {
        "earlier": Version(options.baseline.resolve(), options.python),
        "this": Version(_paired.ROOT, sys.executable),
    }
    texts, revisions = {}, {}
    with tempfile.TemporaryDirectory(prefix="nephoscope-same-") as folder:
        store = Path(folder, "store")
        for name, version in versions.items():
            tree = str(version.tree)
            revisions[name] = _paired.version("git", "-C", tree, "describe", "--always", "--dirty")
            shutil.copytree(options.store, store)  # in one place: answers name it
            file = Path(folder, name)
            words = [__file__, "--store", str(store), "--answers", str(file)]
            environment = {**version.environment(), "COLUMNS": "100"}
            subprocess.run([version.python, *words], env=environment, check=True)
            texts[name] = json.loads(file.read_text(encoding="utf-8"))
            shutil.rmtree(store)
    result = compared(texts["earlier"], texts["this"])
    for command, number in result["answers"].items():
        same = result["same_numbers"][command]
        print(f"{command}: {same} of {number} answers state all that they stated, in figures")
    for place, entry in result["differences"].items():
        before, after = entry["examples"][0]
        print(f"  {place} ({entry['count']}): {before[:120]} -> {after[:120]}")
    print(f"{result['numbers']:,} numbers in documents")
    if options.write:
        record = {"versions": revisions, "load_average_1min": os.getloadavg()[0], **result}
        _paired.write_result("same-results", record)
    return 0 if result["same_numbers"] == result["answers"] else 1


if __name__ == "__main__":
    sys.exit(main())
