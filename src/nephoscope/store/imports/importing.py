"""Imports results of other tools as finished runs; a file's content tells its format.

Each format of formats.py has a reader that returns Figures: what is good in a file, what had to be
left out, and sentences on what its files do not tell. Copies count once, parallel parts are summed,
and only what ran again is a repetition. Nothing else is computed: what a file lacks stays missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from nephoscope.core.errors import StoreError, UsageError
from nephoscope.store.imports import checks, copies, formats
from nephoscope.store.imports.arrangement import Arrangement, combine
from nephoscope.store.imports.copies import EarlierImports, Note
from nephoscope.store.imports.formats import Format
from nephoscope.store.imports.rows import ImportedFigures, meets, with_percentiles
from nephoscope.store.imports.source import DATABASE, Source
from nephoscope.store.imports.writing import left_out_sentence, write_run
from nephoscope.store.run import StoredRun
from nephoscope.store.store import Store


def import_files(
    paths: Sequence[Path],
    store: Store,
    conditions: Mapping[str, str] | None = None,
    *,
    arrangement: Arrangement | None = None,
    value_unit: str = "",
    note: Note = lambda sentence: None,
    earlier: EarlierImports | None = None,
) -> StoredRun:
    """Reads files of one tool into a new finished run; returns the earlier one of the same files.

    conditions: `test`, `metric` or a factor -> the value that figures have to have. arrangement:
    how files of one setting belong together; by default as their times tell. value_unit: of files
    that do not state it (hdr_log.VALUE_UNITS). note: gets a sentence on each file that counts once
    or was imported before, and on what was left out. earlier: of the store, where several calls
    share them.

    Raises UsageError that names the file and the reason where nothing can be imported, and where
    the arrangement has to be asked for; StoreError for a file that cannot be read.
    """
    conditions = conditions or {}
    sources = copies.without_copies([Source.read(path, value_unit) for path in paths], note)
    read, unusable = _read_all(sources, conditions)
    prefixes = {format_.prefix for format_, _, _ in read}
    if len(prefixes) > 1:
        raise UsageError(
            f"These are files of several tools: {', '.join(sorted(prefixes))}.",
            "Import those of each tool by themselves.",
        )
    format_ = read[0][0]
    parts = [_usable(figures, source, conditions, len(sources)) for _, figures, source in read]
    figures = combine(parts, arrangement, may_be_parallel=format_.may_be_parallel)
    if figures.is_sum and unusable:
        raise UsageError(
            f"{unusable[0]}. Without it, the sum of the other files is not that of the run.",
            "Name files of the whole run, all of which can be read.",
        )
    figures.left_out = [*unusable, *figures.left_out]
    copies.count_once(figures)
    with_percentiles(figures)
    checks.with_one_unit(figures)
    if not figures.rows:
        raise _nothing(sources, figures, conditions)
    settings = {
        "where": dict(conditions),
        "arrangement": arrangement.value if arrangement else None,
        **({"value_unit": value_unit} if value_unit else {}),
    }
    used = [source for _, _, source in read]
    earlier = earlier or EarlierImports(store)
    same = earlier.same(used, format_.prefix, settings, note)
    if left_out := left_out_sentence(figures.left_out):
        note(left_out)
    if same is not None:
        note(f"These files were imported before, as run {same.id}: nothing was added.")
        return same
    run = write_run(used, figures, format_.prefix, settings, store)
    earlier.add(run, format_.prefix)
    return run


def import_series(
    paths: Sequence[Path],
    store: Store,
    conditions: Mapping[str, str] | None = None,
    *,
    value_unit: str = "",
    note: Note = lambda sentence: None,
) -> list[StoredRun]:
    """Reads files into a run each, and returns those in the order of the files.

    A file that cannot be imported is named in a note. Raises the error of the first one where none
    can be imported; otherwise as `import_files`.
    """
    earlier = EarlierImports(store)
    runs: dict[str, StoredRun] = {}
    errors: list[UsageError | StoreError] = []
    for path in paths:
        try:
            run = import_files(
                [path],
                store,
                conditions,
                value_unit=value_unit,
                note=partial(_note_of_file, note, path.name),
                earlier=earlier,
            )
        except (UsageError, StoreError) as error:
            errors.append(error)
            note(f"{error.message} It is left out of the series.")
        else:
            runs.setdefault(run.id, run)
    if not runs:
        raise errors[0]
    return list(runs.values())


def _note_of_file(note: Note, name: str, sentence: str) -> None:
    note(f"{name}: {sentence}")


def _read_all(
    sources: Sequence[Source], conditions: Mapping[str, str]
) -> tuple[list[tuple[Format, ImportedFigures, Source]], list[str]]:
    """Returns the files that can be read, and a sentence for each other one."""
    read: list[tuple[Format, ImportedFigures, Source]] = []
    unusable: list[str] = []
    for source in sources:
        try:
            format_ = formats.recognise(source)
            figures = read_figures(format_, source, conditions)
        except ValueError as error:
            if len(sources) == 1:
                raise source.refused(str(error)) from error
            unusable.append(f"{source.path.name}: {error}")
        else:
            read.append((format_, figures, source))
    if not read:
        first = unusable[0].partition(": ")[2]
        raise UsageError(
            f"None of the {len(sources)} files can be imported. {sources[0].path}: {first}.",
            "Nothing was imported.",
        )
    return read, unusable


def read_figures(
    format_: Format, source: Source, conditions: Mapping[str, str] | None = None
) -> ImportedFigures:
    """Returns the figures of a file that can be true. ValueError for a broken file."""
    try:
        figures = format_.read(source, conditions or {})
    except KeyError as error:
        raise ValueError(f"'{error.args[0]}' is missing") from error
    checks.check(figures, from_zero=not format_.signed)
    line = None if source.content == DATABASE else source.documents.cut_off_at
    words = f"Line {line}: the JSON ends in the middle"
    if line is not None and format_.reads_json and words not in figures.left_out:
        figures.left_out.append(words)
    return figures


def _usable(
    figures: ImportedFigures, source: Source, conditions: Mapping[str, str], files: int
) -> ImportedFigures:
    """Returns the figures that meet the conditions, with the file's name in their places."""
    where = f"{source.path.name}: " if files > 1 else ""
    figures.rows = [
        replace(row, place=f"{where}{row.place}") for row in figures.rows if meets(row, conditions)
    ]
    figures.left_out = [f"{where}{sentence}" for sentence in figures.left_out]
    return figures


def _nothing(
    sources: Sequence[Source], figures: ImportedFigures, conditions: Mapping[str, str]
) -> UsageError:
    path = sources[0].path
    if conditions:
        return UsageError(f"{path}: there are no figures to import.", "Check --where.")
    if figures.left_out:
        return UsageError(
            f"{path}: nothing in it can be used. {left_out_sentence(figures.left_out)}",
            "Nothing was imported.",
        )
    return UsageError(f"{path}: there are no figures to import.", "Name a file with results.")
