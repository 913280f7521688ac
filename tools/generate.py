"""Writes what follows from the code: contracts, reference pages, and pages of measured figures.

Built into the package and into docs/reference/generated/, and not committed: all contracts, all
reference pages. Committed: contracts/benchmarks.json, contracts/digests.json (of the contracts that
are not), and the pages whose figures were measured. With --built only the first are written, with
--check the second are compared and nothing is written.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Of this tree, whichever package is installed.
sys.path.insert(0, str(ROOT / "src"))

from contract_files import as_json, contracts, described, known  # noqa: E402
from reference_pages import pages  # noqa: E402

BUILT = ("src/nephoscope/_contracts", "docs/reference/generated")
COMMITTED = "contracts"
DIGESTS = f"{COMMITTED}/digests.json"


def built(programs: Mapping[str, Any], documents: Mapping[str, Any]) -> dict[str, str]:
    """Returns the text of every file that is built by its path."""
    schemas, reference = BUILT
    files = {f"{schemas}/{name}": as_json(document) for name, document in documents.items()}
    written = pages(known(programs), documents)
    return files | {f"{reference}/{name}": text for name, text in written.items()}


def committed(documents: Mapping[str, Any]) -> dict[str, str]:
    """Returns the text of every file that is committed by its path."""
    # Not needed for what set-up builds, and slow to import.
    import accuracy_map
    import change_points_table
    import coverage_table
    import growth_table
    import promises_table
    import store_capacity_page
    from contract_digests import digests

    return {
        f"{COMMITTED}/benchmarks.json": as_json(documents["benchmarks.json"]),
        DIGESTS: as_json(digests(documents)),
        **{
            table.PAGE: table.page(ROOT)
            for table in (
                coverage_table,
                change_points_table,
                growth_table,
                promises_table,
                store_capacity_page,
            )
        },
        **accuracy_map.pages(ROOT),
    }


def stale(files: Mapping[str, str], folders: tuple[str, ...]) -> list[str]:
    """Paths that differ from what the code says, and files that nothing generates any more."""
    wrong = [
        path
        for path, text in files.items()
        if not (ROOT / path).is_file() or (ROOT / path).read_text(encoding="utf-8") != text
    ]
    for folder in folders:
        present = {
            str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*") if path.is_file()
        }
        wrong += sorted(present - set(files))
    return wrong


def write(files: Mapping[str, str], folders: tuple[str, ...]) -> None:
    """Writes every file and removes those of the folders that nothing generates any more."""
    for path in stale(files, folders):
        target = ROOT / path
        if path not in files:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed: a program that reads the old file reads it to its end.
        aside = target.with_name(f"{target.name}.new")
        aside.write_text(files[path], encoding="utf-8")
        os.replace(aside, target)


def complaints(files: Mapping[str, str]) -> Iterator[str]:
    """Yields a sentence for each committed file that is not what the code says."""
    for path in stale(files, (COMMITTED,)):
        changed = ""
        if path == DIGESTS and (ROOT / path).is_file():
            before = json.loads((ROOT / path).read_text(encoding="utf-8"))
            changed = ", ".join(differences(before, json.loads(files[path])))
        if changed:
            yield f"{path}: these contracts changed: {changed}."
        else:
            yield f"{path} is not what the code says."


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yields the names of the contracts and parts that differ."""
    for name in sorted({*before, *after}):
        old, new = before.get(name, {}), after.get(name, {})
        parts = [part for part in sorted({*old, *new}) if old.get(part) != new.get(part)]
        if parts:
            yield f"{name} ({', '.join(parts)})"


def main() -> int:
    """Generates, or with --check says what is stale and returns 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the committed files only")
    parser.add_argument("--built", action="store_true", help="write what is not committed only")
    chosen = parser.parse_args()
    gc.disable()  # a tenth of the time, in a process that ends soon
    programs = described()
    documents = contracts(programs)
    if chosen.check:
        wrong = list(complaints(committed(documents)))
        advice = "If that was meant, run `make generate` and commit.\n"
        sys.stderr.write("".join(f"{line}\n" for line in wrong) + (advice if wrong else ""))
        return 1 if wrong else 0
    write(built(programs, documents), BUILT)
    if not chosen.built:
        write(committed(documents), (COMMITTED,))
    return 0


if __name__ == "__main__":
    sys.exit(main())
