"""Writes a report in the form that each file's ending names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nephoscope.core import documents
from nephoscope.core.errors import StoreError
from nephoscope.report import html_output, markdown_output
from nephoscope.report.blocks import Section


def write(
    paths: Sequence[Path],
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    document: Any,
    next_step: str,
) -> None:
    """Writes .html, .md and .json files of one folder, made if need be, each whole or not at all.

    Their digests go into a file for `sha256sum --check`, which `nephoscope verify` reads.

    Raises StoreError with this next step where they cannot be written.
    """
    folder = paths[0].parent
    with _refusals(folder, next_step):
        folder.mkdir(parents=True, exist_ok=True)
        sums = paths[0].with_suffix(".sha256")
        sums.unlink(missing_ok=True)  # after a kill among the files, none is better than old ones
        for path in paths:
            if path.suffix == ".html":
                text = html_output.render(title, subtitle, sections)
            elif path.suffix == ".md":
                text = markdown_output.render(title, sections)
            else:
                text = documents.to_text(documents.versioned(document)) + "\n"
            _replace(path, text)
        digests = [(hashlib.sha256(path.read_bytes()).hexdigest(), path.name) for path in paths]
        _replace(sums, "".join(f"{digest}  {name}\n" for digest, name in digests))


def write_text(path: Path, text: str, next_step: str) -> None:
    """Writes a file that is no report, whole or not at all, and makes its folder if need be.

    Raises StoreError with this next step where it cannot be written.
    """
    with _refusals(path.parent, next_step):
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text)


@contextmanager
def _refusals(folder: Path, next_step: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"Cannot write the report to '{folder}': {error.strerror or error}.", next_step
        ) from error


def _replace(path: Path, text: str) -> None:
    # Under a fixed name, so that the rest of a killed write is overwritten next time.
    aside = path.with_name(f".{path.name}.part")
    try:
        with aside.open("w", encoding="utf-8", errors="replace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
