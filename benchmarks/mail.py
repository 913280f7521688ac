"""disk.files beside PostMark: the same mail server's work, in turn, on the same disk.

Both make 3,000 files of 1 to 20 KiB in ten folders, do 15,000 transactions (half read, half add;
half make, half delete) and delete what is left, in blocks of 4 KiB without buffers of a library,
through the page cache and without any sync. Before each trial everything is written to the disk, so
that neither pays for the other. Both run under the probe; PostMark's phases are those that its own
words mark (it counts whole seconds). Draws differ, so that the numbers of operations agree only
within chance (a percent).

Bound: transactions and files made a second from 0.8 to 1.25 times PostMark's. Both do little but
call the kernel; what differs is how names are made and how data are prepared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from _paired import (
    ROOT,
    Row,
    arguments,
    finish,
    interleave,
    machine,
    needed,
    paired_ratio,
    parse,
    print_table,
    probe_path,
    run_probe,
)

sys.path.insert(0, str(ROOT / "src"))

from nephoscope.catalog.adapters import ADAPTERS, Output

BOUND = (0.8, 1.25)
WORK = {"files": 3_000, "transactions": 15_000, "min_bytes": 1_024, "max_bytes": 20_480}
SAME = {"directories": 10, "block_bytes": 4_096}
ROWS = (
    ("transactions_per_s", None, "transactions", "per_s", BOUND),
    ("files_created_per_s", "create", "files made", "per_s", BOUND),
    ("files_deleted_per_s", "delete", "files deleted", "per_s", (None, None)),
    ("elapsed_ns", "all", "elapsed", "ns", (None, None)),
)

Values = dict[tuple[str, str | None], float]


def ours(directory: str, seed: int) -> Values:
    """The figures of one trial of disk.files."""
    os.sync()
    lines = run_probe("disk.files", {**WORK, **SAME, "directory": directory, "seed": seed})
    scalars = [line for line in lines if line["metric"] != "transaction_latency_ns"]
    return {
        (line["metric"], line.get("factors", {}).get("phase")): line["value"]
        for line in scalars
        if "value" in line
    }


def theirs(directory: str, seed: int) -> Values:
    """The figures of one run of PostMark with the same numbers."""
    os.sync()
    adapter = ADAPTERS["postmark"]
    job = adapter.build_command({**WORK, **SAME, "directory": directory, "seed": seed}).job(
        "postmark"
    )
    command = [probe_path(), "wrap", "--job", json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    said = lines[0]["tool"]
    marks = tuple((at_ns, there) for at_ns, there in said["marks"])
    output = Output(said["stdout"], said["stderr"], said["exit"], said["signal"], marks)
    return {(one.metric, one.factors.get("phase")): one.value for one in adapter.parse(output)}


def compared(directory: str, args: argparse.Namespace) -> list[Row]:
    """All rows, of one series of rounds."""
    seen: dict[str, list[Values]] = {"ours": [], "theirs": []}

    def trial(who: str) -> float:
        run = ours if who == "ours" else theirs
        seen[who].append(run(directory, 1 + len(seen[who])))
        return seen[who][-1]["transactions_per_s", None]

    interleave(
        {"ours": lambda: trial("ours"), "theirs": lambda: trial("theirs")},
        args.rounds,
        args.seed,
        "mail",
    )
    rows = []
    for metric, phase, name, unit, bound in ROWS:
        mine = [values[metric, phase] for values in seen["ours"]]
        other = [values[metric, phase] for values in seen["theirs"]]
        rows.append(Row(name, unit, mine, other, paired_ratio(mine, other), bound))
    return rows


def main() -> int:
    """Runs the comparison; 0 when the bounds hold."""
    parser = arguments("disk.files beside PostMark: a mail server's files")
    parser.add_argument("--directory", default="/var/tmp", help="a directory on the disk")
    args = parse(parser)
    needed("postmark", "postmark")
    facts = machine()
    with tempfile.TemporaryDirectory(dir=args.directory, prefix="nephoscope-") as directory:
        rows = compared(directory, args)
    print_table(rows, "PostMark")
    settings = {"rounds": args.rounds, "seed": args.seed, **WORK, **SAME}
    versions = {"postmark": ADAPTERS["postmark"].spec.minimum}
    return finish("mail", rows, versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
