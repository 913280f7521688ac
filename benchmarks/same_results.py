"""Analyses the same stored runs with an earlier version and this one, and compares every answer.

usage: same_results.py --store DIR --baseline DIR [--python FILE] [--write]

Asks for each run `show --json` and `export`, for each pair of runs of one plan `compare --json`,
for each metric that several runs have `history --json`. Values of JSON documents are compared as
they are printed, to the last digit, at each place of the document; exports byte by byte. Prints
each place at which values differ, with their number and an example. Both versions read a copy of
the store of their own.
"""

from __future__ import annotations

import argparse
import contextlib
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

    `absent` stands for a value that one of them does not state. Lists of unequal length are
    compared as sets.
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
            texts = [Counter(map(_text, own)) for own in (document, other)]
            for own in (texts[0] - texts[1]).elements():
                yield f"{path}[]", own, "absent"
            for own in (texts[1] - texts[0]).elements():
                yield f"{path}[]", "absent", own
            return
        for own, others in zip(document, other, strict=True):
            yield from places(own, others, f"{path}[]")
    elif _text(document) != _text(other):
        yield path, _text(document), _text(other)


def _text(value: Any) -> str:
    return value if value == "absent" else json.dumps(value, sort_keys=True)


def compared(earlier: Mapping[str, str], this: Mapping[str, str]) -> dict[str, Any]:
    """Returns how many answers and values are equal, and what differs, by command and place."""
    equal, differences = Counter[str](), {}
    for name, text in earlier.items():
        command = name.split()[0]
        own = this.get(name, "absent")
        if text == own:
            equal[command] += 1
            continue
        pairs = [("(text)", text[:300], own[:300])]
        if text.startswith("{") and own.startswith("{"):
            pairs = list(places(json.loads(text), json.loads(own)))
        equal[command] += not pairs
        for place, before, after in pairs:
            entry = differences.setdefault(
                f"{command}{place}", {"count": 0, "answers": [], "examples": []}
            )
            entry["count"] += 1
            entry["answers"] = [*dict.fromkeys([*entry["answers"], name])][:5]
            entry["examples"] = [*entry["examples"], [before[:300], after[:300]]][:3]
    commands = Counter(name.split()[0] for name in earlier)
    return {"answers": commands, "equal": equal, "differences": differences}


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
        print(f"{command}: {result['equal'][command]} of {number} answers are equal")
    for place, entry in result["differences"].items():
        before, after = entry["examples"][0]
        print(f"  {place} ({entry['count']}): {before[:120]} -> {after[:120]}")
    if options.write:
        record = {"versions": revisions, "load_average_1min": os.getloadavg()[0], **result}
        _paired.write_result("same-results", record)
    return 1 if result["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
