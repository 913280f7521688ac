"""`make fuzz`: mutates the input of every boundary for a time, and keeps what was found.

    python -m tests.fuzz [--time SECONDS | --cases N] [--seed N] [--keep FOLDER] [BOUNDARY…]

Exits with 1 when a case ended otherwise than by a result or a sentence.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import sys
import tempfile
import time
from pathlib import Path

from .boundaries import BOUNDARIES
from .boundary import MEMORY_BYTES, Boundary

MEMORY = Path("/dev/shm")
"""Folder of the cases that are read from files: on a disk, most of the time goes into that."""


def main() -> int:
    """Runs the boundaries in turn, each for its share of the time."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    names = [boundary.name for boundary in BOUNDARIES]
    parser.add_argument("boundaries", nargs="*", metavar="BOUNDARY", help=", ".join(names))
    parser.add_argument("--time", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument(
        "--cases", type=int, metavar="N", help="of each boundary, instead of a time"
    )
    parser.add_argument("--seed", type=int, help="of the mutations [default: drawn]")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), metavar="FOLDER")
    options = parser.parse_args()
    if unknown := set(options.boundaries) - set(names):
        parser.error(f"no boundary {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    chosen = [one for one in BOUNDARIES if not options.boundaries or one.name in options.boundaries]
    if MEMORY.is_dir():
        tempfile.tempdir = str(MEMORY)
    seconds = options.time / len(chosen)
    found = sum(_run(one, seconds, options.cases, seed, options.keep) for one in chosen)
    used_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"seed {seed}; memory {used_bytes >> 20} MiB; {found} findings")
    return 1 if found or used_bytes > MEMORY_BYTES else 0


def _run(boundary: Boundary, seconds: float, wanted: int | None, seed: int, folder: Path) -> int:
    draw = random.Random(f"{seed} {boundary.name}")
    until_s, cases, kinds = time.monotonic() + seconds, 0, set()
    while time.monotonic() < until_s if wanted is None else cases < wanted:
        case = boundary.case(draw)
        cases += 1
        wrong = boundary.attack(case)
        kind = re.sub(r"/\S+", "", wrong or "")[:60]  # folders of cases have random names
        if wrong is None or kind in kinds:
            continue
        kinds.add(kind)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{boundary.name.replace(' ', '-')}-{len(kinds)}"
        file.write_bytes(case)
        print(f"{boundary.name}: {wrong}\n  case in {file}", flush=True)
    print(f"{boundary.name}: {cases} cases, {len(kinds)} kinds of findings", flush=True)
    return len(kinds)


if __name__ == "__main__":
    sys.exit(main())
