"""Runs the tests of SECURITY.md's promises, the slow ones too, and stores how they ended.

    tools/promises.py [WORD…]     only promises in which one of the words occurs

The result is written into tests/promises.json after each promise; `make generate` puts it into the
page. Run it on a machine that does nothing else: some of these tests measure.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path

import promises_table as table

ROOT = Path(__file__).resolve().parents[1]
STARTED = (0, 1)
"""Exit codes of pytest when tests ran."""


def main() -> int:
    """Runs the tests of each chosen promise; returns 1 if one of them failed."""
    words = [word.lower() for word in sys.argv[1:]]
    rows = table.promises(ROOT)
    failed = 0
    for row in rows:
        if words and not any(word in row["promise"].lower() for word in words):
            continue
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *row["tests"]],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        if done.returncode not in STARTED:
            print(done.stdout, file=sys.stderr)
            print(f"No result of: {row['promise']}", file=sys.stderr)
            failed += 1
            continue
        lines = done.stdout.strip().splitlines()
        counts = table.outcome(lines[-1])
        if counts["failed"]:
            print(done.stdout, file=sys.stderr)
        failed += bool(counts["failed"])
        row["result"] = {"date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}", **counts}
        (ROOT / table.FILE).write_text(
            json.dumps({"promises": rows}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        print(f"{row['promise']}: {table.in_words(row['result'])}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
