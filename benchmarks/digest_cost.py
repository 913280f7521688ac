"""Time that digests and checksums add to a trial: stored and read again, with and without them.

Both alternate in pairs, in random order, over trials of the shape that a survey stores. Without
means: no digest of the file, no line of the journal for it, and no verification when it is read.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

from _paired import ROOT, alternate, machine, paired_difference, within, write_result

sys.path.insert(0, str(ROOT))

from tests.store.factory import SPEC, new_run, record

from nephoscope.core.model import Sample
from nephoscope.store import StoredRun, trialfile
from nephoscope.store import run as runs

BOUND_MS = (None, 1.0)


def spent_ms(run: StoredRun, setting: Any, number: int, samples: list[Sample]) -> float:
    """Stores one trial and reads it; returns the CPU time of both, file operations included."""
    trial = record(setting, number, number)
    path = run.trials_path / f"{trial.key.name}.parquet"
    began_ns = time.process_time_ns()
    run.append(trial, samples, SPEC)
    stored_ns = time.process_time_ns() - began_ns
    digest = trialfile.digest_of(path.read_bytes())
    began_ns = time.process_time_ns()
    trialfile.read(path, digest)
    return (stored_ns + time.process_time_ns() - began_ns) / 1e6


def _same(*_: object) -> str:
    """Stands for what computes or writes a digest."""
    return "0"


def main() -> int:
    """Prints the median of the differences with its interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--samples", type=int, default=100, help="of a trial")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="store the dated result")
    options = parser.parse_args()
    facts, numbers = machine(), iter(range(1, 10**9))
    samples = [Sample("null_ns", 100.0 + number) for number in range(options.samples)]
    with tempfile.TemporaryDirectory() as folder:
        # A run each, so that the journal of the other is not read.
        (one, settings), (other, _) = new_run(Path(folder, "a")), new_run(Path(folder, "b"))
        # The syncs that store trials make once a second are the same for both.
        one._synced_s = other._synced_s = float("inf")

        def with_digests() -> float:
            return spent_ms(one, settings[0], next(numbers), samples)

        def without() -> float:
            # Plain functions: those of a mock take longer than what is measured.
            with (
                mock.patch.object(StoredRun, "event", _same),
                mock.patch.object(runs, "stored_event", _same),
                mock.patch.object(trialfile, "digest_of", _same),
            ):
                return spent_ms(other, settings[0], next(numbers), samples)

        with_digests(), without()
        values = alternate({"with": with_digests, "without": without}, options.pairs, options.seed)
    cost = paired_difference(values["with"], values["without"])
    held = within(cost.high, BOUND_MS)
    print(f"digests add {cost.value:.3f} ms a trial ({cost.low:.3f} to {cost.high:.3f} ms,")
    print(f"{cost.confidence:.1%} confidence, {cost.n} pairs); bound {BOUND_MS[1]} ms: {held}")
    if options.write:
        write_result(
            "digest-cost", {"machine": facts, "pairs": values, "difference_ms": asdict(cost)}
        )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
