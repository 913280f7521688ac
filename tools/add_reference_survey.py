"""Adds a stored survey to the reference values that reports compare machines with.

Usage: .venv/bin/python tools/add_reference_survey.py RUN --notes TEXT [--store DIR]

RUN is a run id, a unique prefix of one, or `latest`. One machine is to be added once: repeat its
surveys with benchmarks/repeated_surveys.py instead.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from nephoscope.core.errors import NephoscopeError
from nephoscope.report import reference_values
from nephoscope.results import analyse_run
from nephoscope.store import Store

FOLDER = Path(reference_values.__file__).parent / "reference_surveys"


def main() -> int:
    """Writes the document of the survey; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="run id, a unique prefix of one, or latest")
    parser.add_argument("--store", type=Path, help="directory of stored runs")
    parser.add_argument("--notes", required=True, help="type of the machine, and its other load")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write the document")
    options = parser.parse_args()
    try:
        run = Store(options.store).open(options.run)
        document = reference_values.document_of(analyse_run.build(run), options.notes)
    except NephoscopeError as error:
        print(error, file=sys.stderr)
        return 2
    options.folder.mkdir(exist_ok=True)
    path = options.folder / f"{document['date']}-{run.id[-4:]}.json"
    head = {name: value for name, value in document.items() if name != "lines"}
    lines = ",\n  ".join(json.dumps(line) for line in document["lines"])
    text = json.dumps(head, indent=1)[:-2] + ',\n "lines": [\n  ' + lines + "\n ]\n}\n"
    path.write_text(text, encoding="utf-8")
    print(f"{path}: {len(document['lines'])} metrics")
    return 0


if __name__ == "__main__":
    sys.exit(main())
