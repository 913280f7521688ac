"""An import of 100,000 files that is killed ten times, and what it takes."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.store.imports.inspector_tree import dense, make_tree, many
from tests.store.imports.test_inspector import catalogue_of

from nephoscope.store.imports.inspector import import_tree
from nephoscope.store.market.catalogue import MarketCatalogue

TYPES = 1_900
MEMORY_BYTES = 500 << 20
_MEASURED = """
import json, resource, sys
from pathlib import Path
from nephoscope.store.imports.inspector import import_tree
from nephoscope.store.market.catalogue import MarketCatalogue
result = import_tree(Path(sys.argv[1]), Path(sys.argv[2]))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
print(json.dumps([result.read, result.resumed, result.files, peak, result.elapsed_s]))
"""


def started(tree: Path, store: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _MEASURED, str(tree), str(store)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> list[Any]:
    out, _ = process.communicate(timeout=900)
    assert process.returncode == 0
    values: list[Any] = json.loads(out)
    return values


@pytest.mark.slow
@pytest.mark.alone
def test_a_hundred_thousand_files_and_ten_kills(tmp_path: Path) -> None:
    make_tree(tmp_path, many(TYPES), dense)
    read, _, files, peak, whole_s = ended(started(tmp_path, tmp_path / "whole"))
    assert read == TYPES
    assert files > 100_000
    assert peak < MEMORY_BYTES
    draw = random.Random(1)
    killed = 0
    for _ in range(10):
        process = started(tmp_path, tmp_path / "store")
        time.sleep(draw.uniform(0.05, 0.3) * whole_s)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
    assert killed >= 3  # the last attempts may have ended before
    result = import_tree(tmp_path, tmp_path / "store")
    assert result.unchanged > 0
    assert_same(catalogue_of(tmp_path / "store"), catalogue_of(tmp_path / "whole"))


def assert_same(left: MarketCatalogue, right: MarketCatalogue) -> None:
    """Fails where two catalogues differ, or have a figure twice."""
    assert left.figures == right.figures
    assert len(left.metadata.launches) == len(right.metadata.launches) == len(left.types)
    assert left.metadata.metrics == right.metadata.metrics
    values = [each.values(each.metadata.metrics) for each in (left, right)]
    orders = [np.argsort(["/".join(t.key) for t in each.types]) for each in (left, right)]
    single = 0
    for metric in left.metadata.metrics:
        resumed, whole = (own[metric][order] for own, order in zip(values, orders, strict=True))
        np.testing.assert_array_equal(resumed, whole)
        single += int(np.isfinite(resumed).sum())
    assert single == left.figures
