"""xz compresses the text of `app.lzma`."""

from __future__ import annotations

import hashlib
import lzma
import subprocess
from pathlib import Path

from nephoscope.catalog.adapters import ADAPTERS


def test_the_text_is_that_of_the_native_benchmark(tmp_path: Path) -> None:
    (step,) = ADAPTERS["xz"].called({"corpus_bytes": 100_000}).prepare
    subprocess.run([step.program, *step.arguments], cwd=tmp_path, check=True)
    text = (tmp_path / "corpus").read_bytes()
    # The probe's own test has the same digest.
    assert hashlib.sha256(text).hexdigest()[:16] == "100100aeef33bc36"
    assert 0.25 < len(lzma.compress(text, preset=0)) / len(text) < 0.45
