"""Writes what the contract suite over clouds exercises to docs/explanation/cloud-contract.md.

With --check it compares only. The table follows from `CLOUDS` and `TESTS` of the suite.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "cloud-contract.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of the table -->\n"

sys.path.insert(0, str(ROOT))


def table() -> str:
    """Returns the table and the reasons below it."""
    from tests.contract.cloud_cases import CLOUDS, TESTS

    numbers: dict[str, int] = {}
    lines = [
        "| call | " + " | ".join(f"`{name}`" for name in CLOUDS) + " |",
        "|---" * (1 + len(CLOUDS)) + "|",
    ]
    for test in TESTS:
        cells = []
        for line in CLOUDS.values():
            reason = line.not_exercised.get("all") or line.not_exercised.get(test)
            if reason is None:
                cells.append("real" if line.slow else "passed")
            else:
                cells.append(f"({numbers.setdefault(reason, len(numbers) + 1)})")
        lines.append(f"| {test.replace('_', ' ')} | " + " | ".join(cells) + " |")
    reasons = [f"{number}. {reason}" for reason, number in numbers.items()]
    return "\n".join([*lines, "", "Not exercised here, because:", "", *reasons]) + "\n"


def main() -> int:
    """Writes or compares the page; returns the exit code."""
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    new = f"{head}{BEGIN}{table()}{END}{rest.split(END)[1]}"
    if "--check" in sys.argv:
        if new != text:
            sys.stderr.write(f"{PAGE}: the table is old. Run tools/cloud_contract_table.py.\n")
        return int(new != text)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
