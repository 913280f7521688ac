"""Writes a data set into a folder: its tables, their descriptions and their checksums."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nephoscope.core.errors import UsageError
from nephoscope.features.datasets import metadata
from nephoscope.features.datasets.metadata import About, DataFile
from nephoscope.features.datasets.tables import DataTable, samples_table, tables
from nephoscope.store import StoredRun
from nephoscope.store import export as exporting
from nephoscope.store.digests import digest_of
from nephoscope.store.engines.question import Engine
from nephoscope.store.files import make_durable, sync_directory, translating_os_errors

CHECKSUMS = "SHA256SUMS"
FORMATS = ("csv", "parquet")
"""Of the samples; the other tables are small, and CSV."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{1,63}|https?://\S{4,200}")


def check_about(about: About) -> None:
    """Raises UsageError for what makes no description."""
    if not _NAME.fullmatch(about.name):
        raise UsageError(
            f"'{about.name[:80]}' is no name of a data set.",
            "Name the folder with lower-case letters, digits and '-'.",
        )
    if not about.licence:
        raise UsageError(
            "A data set without a licence cannot be used by others.",
            "Add --license CC-BY-4.0, or another SPDX identifier or address.",
        )
    if not _LICENCE.fullmatch(about.licence):
        raise UsageError(
            f"'{about.licence[:80]}' is no licence.",
            "Write an SPDX identifier, such as CC-BY-4.0, or the address of its text.",
        )
    if not about.creators:
        raise UsageError("A data set has a creator.", "Add --creator 'NAME'.")
    if about.url and not re.fullmatch(r"https?://\S+", about.url):
        raise UsageError(f"'{about.url[:80]}' is no address.", "Write https://HOST/PATH.")


def write_dataset(
    runs: Sequence[StoredRun],
    folder: Path,
    about: About,
    file_format: str,
    engine: Engine | None = None,
) -> list[DataFile]:
    """Writes a data set of runs; the folder appears whole, or not at all. Returns its files.

    Raises UsageError for a folder that is there already and for what makes no description.
    """
    check_about(about)
    if file_format not in FORMATS:
        raise UsageError(
            f"A data set has no format '{file_format}'.", f"Use one of {', '.join(FORMATS)}."
        )
    folder = folder.absolute()
    if folder.exists():
        raise UsageError(f"{folder} is there already.", "Name a folder that is not.")
    if not folder.parent.is_dir():
        raise UsageError(
            f"{folder} cannot be written: there is no directory {folder.parent}.",
            f"Create it: `mkdir -p {folder.parent}`.",
        )
    aside = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        with translating_os_errors(folder, "written"):
            aside.mkdir()
            files = list(_data_files(runs, aside, file_format, engine))
            _write_descriptions(aside, about, files)
            make_durable(aside.iterdir())
            aside.rename(folder)
            sync_directory(folder.parent)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return files


def _data_files(
    runs: Sequence[StoredRun], aside: Path, file_format: str, engine: Engine | None
) -> Iterator[DataFile]:
    schema = exporting.schema_of(runs)
    samples = samples_table(runs, schema)
    path = aside / f"{samples.name}.{file_format}"
    exporting.write(runs, file_format, path, engine)
    yield _file(samples, path)
    for table in tables(runs, schema):
        path = aside / f"{table.name}.csv"
        path.write_text(_csv(table), encoding="utf-8")
        yield _file(table, path)


def _csv(table: DataTable) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(column.name for column in table.columns)
    writer.writerows([exporting.cell(value) for value in row] for row in table.rows)
    return text.getvalue()


def _file(table: DataTable, path: Path) -> DataFile:
    content = path.read_bytes()
    return DataFile(table, path.suffix.removeprefix("."), len(content), digest_of(content))


def _write_descriptions(aside: Path, about: About, files: Sequence[DataFile]) -> None:
    documents: dict[str, dict[str, Any]] = {
        metadata.CROISSANT: metadata.croissant(about, files),
        metadata.DATA_PACKAGE: metadata.data_package(about, files),
    }
    sums = {file.name: file.sha256 for file in files}
    for name, document in documents.items():
        content = (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
        (aside / name).write_bytes(content)
        sums[name] = digest_of(content)
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    (aside / CHECKSUMS).write_text(lines, encoding="ascii")
