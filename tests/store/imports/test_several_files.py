"""Several files: parts are summed, copies count once, repetitions are only what ran again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.store import Store, StoredRun, query
from nephoscope.store.imports.arrangement import Arrangement
from nephoscope.store.imports.copies import without_copies
from nephoscope.store.imports.importing import import_files, import_series
from nephoscope.store.imports.parts import merge_parts
from nephoscope.store.imports.rows import BYTES_PER_S, MS, PER_S, PLAIN, ImportedRow, Merge
from nephoscope.store.imports.source import Source


class Folder:
    """A folder of files to import, and a store."""

    def __init__(self, path: Path) -> None:
        self.path, self.store, self.notes = path, Store(path / "store"), list[str]()

    def write(self, name: str, content: Any) -> Path:
        file = self.path / name
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def take(self, *files: Path, arrangement: Arrangement | None = None) -> StoredRun:
        self.notes.clear()
        return import_files(files, self.store, arrangement=arrangement, note=self.notes.append)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def values(run: StoredRun, metric: str) -> list[float]:
    return [row.value for row in query.trial_medians(run) if row.metric == metric]


def said(run: StoredRun) -> str:
    return " ".join(run.manifest.refused)


def k6(rate: float) -> dict[str, Any]:
    times = {"avg": rate / 10, "med": 1, "max": rate, "min": 1, "p(95)": 3}
    counter = {"count": 60 * rate, "rate": rate}
    return {"metrics": {"http_reqs": counter, "http_req_duration": times}}


def iperf3(at: float, rate: float, seconds: float = 10.0) -> dict[str, Any]:
    total = {"bits_per_second": rate, "seconds": seconds}
    start = {
        "version": "iperf 3.12",
        "timestamp": {"timesecs": at},
        "test_start": {"protocol": "TCP"},
    }
    return {"start": start, "intervals": [], "end": {"sum_sent": total, "sum_received": total}}


def test_parts_are_merged_by_what_they_are() -> None:
    def part(rate: float, mean: float, weight: float) -> list[ImportedRow]:
        return [
            ImportedRow("p", "", "rate", rate, PER_S),
            ImportedRow("p", "", "bytes_per_s", rate, BYTES_PER_S),
            ImportedRow("p", "", "mean", mean, MS, merge=Merge.WEIGHTED_MEAN, weight=weight),
            ImportedRow("p", "", "max", mean, MS, merge=Merge.MAXIMUM),
            ImportedRow("p", "", "min", mean, MS, merge=Merge.MINIMUM),
            ImportedRow("p", "", "p95", mean, MS),
            ImportedRow("p", "", "own", mean, PLAIN),
        ]

    merged = merge_parts([part(1, 2, 1), part(3, 6, 3)])
    assert {row.metric: row.value for row in merged.rows} == {
        "rate": 4,
        "bytes_per_s": 4,
        "mean": 5,
        "max": 6,
        "min": 2,
    }
    assert merged.left_out == ["p95", "own"]
    without_weight = merge_parts([part(1, 2, 1), part(3, 6, 0)])
    assert "mean" in without_weight.left_out
    incomplete = merge_parts([part(1, 2, 1), part(3, 6, 3)[1:]])
    assert "rate" in incomplete.left_out


def test_generators_without_times_are_asked_about(folder: Folder) -> None:
    files = [folder.write(f"r{n}.json", k6(100.0 + n)) for n in range(6)]
    with pytest.raises(UsageError, match=r"6 files of k6 do not state when.*--parallel.*--repetit"):
        folder.take(*files)
    total = folder.take(*files, arrangement=Arrangement.PARALLEL)
    assert values(total, "http_reqs.rate") == [615.0]
    assert values(total, "http_req_duration.max") == [105e6]
    assert values(total, "http_req_duration.avg")[0] == pytest.approx(63_055 / 615 * 1e5)
    assert "http_req_duration.p(95)" in said(total)
    repeated = folder.take(*files, arrangement=Arrangement.REPETITIONS)
    assert len(values(repeated, "http_reqs.rate")) == 6


def test_times_tell_parallel_from_repeated(folder: Folder) -> None:
    """Two rounds of two clients at the same time: each round is one repetition."""
    starts = (1000.0, 1001.0, 1011.0, 1012.0)
    files = [folder.write(f"{n}.json", iperf3(at, 1e6 + n)) for n, at in enumerate(starts)]
    run = folder.take(*files)
    assert values(run, "goodput_bits_per_s") == [2e6 + 1, 2e6 + 5]
    assert said(run).count("2 files are parallel parts of one run") == 2
    forced = folder.take(*files, arrangement=Arrangement.REPETITIONS)
    assert len(values(forced, "goodput_bits_per_s")) == 4
    part = folder.write("late.json", iperf3(1006, 2e6))
    with pytest.raises(UsageError, match="at the same time for 4 s of 10 s"):
        folder.take(files[0], part)


def test_a_sum_without_one_part_is_refused(folder: Folder) -> None:
    files = [folder.write(f"{n}.json", iperf3(1000, 1e6 + n)) for n in range(2)]
    failed = folder.write("failed.json", {"start": {"version": "3"}, "end": {}, "error": "refused"})
    with pytest.raises(UsageError, match=r"failed\.json: iperf3 reports.*not that of the run"):
        folder.take(*files, failed)
    later = folder.write("later.json", iperf3(2000, 3e6))
    run = folder.take(files[0], later, failed)
    assert values(run, "goodput_bits_per_s") == [1e6, 3e6]
    assert "1 record was left out: failed.json: iperf3 reports the error 'refused'" in said(run)


def test_other_settings_are_no_question(folder: Folder) -> None:
    reports = [
        f'"test","rps"\n"{name}","{rate}.00"\n'.partition("\n")[2]
        for name, rate in (("a", 1), ("b", 2))
    ]
    files = [folder.write(f"{n}.csv", text) for n, text in enumerate(reports)]
    assert sorted(values(folder.take(*files), "requests_per_s")) == [1.0, 2.0]


def test_repetitions_by_default_are_stated(folder: Folder) -> None:
    one, two = ({"results": [{"command": "x", "times": [time]}]} for time in (1.0, 2.0))
    run = folder.take(folder.write("1.json", one), folder.write("2.json", two))
    assert "The 2 files are taken as repetitions" in said(run)
    assert run.manifest.imported["time_from"] == "mtime"


def test_copies_count_once(folder: Folder) -> None:
    files = [folder.write(f"{n}.json", iperf3(1000, 1e6)) for n in range(6)]
    run = folder.take(*files)
    assert values(run, "goodput_bits_per_s") == [1e6]
    assert len(folder.notes) == 5
    assert folder.notes[0] == f"{files[1]} is a copy of {files[0]}, and counts once."
    again = folder.take(files[3])
    assert again.id == run.id
    assert folder.notes == [
        f"These files were imported before, as run {run.id}: nothing was added."
    ]
    assert len(folder.store.ids()) == 1
    other = folder.write("other.json", iperf3(5000, 2e6))
    more = folder.take(files[0], other)
    assert more.id != run.id
    assert folder.notes == [
        f"{files[0]} was imported before, as run {run.id}: the two runs are not independent."
    ]


def test_a_longer_version_of_a_file(folder: Folder) -> None:
    line = {"test": "t", "metric": "m", "value": 1, "unit": "s", "timestamp": 1, "run_uri": "r"}
    texts = [json.dumps({**line, "sample_uri": str(n)}) + "\n" for n in range(4)]
    short, long = folder.write("a", "".join(texts[:2])), folder.write("b", "".join(texts))
    together = folder.take(short, long)
    assert len(values(together, "m")) == 4
    assert folder.notes == [f"{short} is the beginning of {long}, and counts once."]
    first = folder.take(short)
    folder.write("c", "".join([*texts, texts[0].replace('"0"', '"9"')]))
    folder.take(folder.path / "c")
    assert any(
        f"c is a longer version of a file that was imported before, as run {first.id}" in note
        for note in folder.notes
    )


def test_the_manifest_says_what_was_imported_and_when(folder: Folder) -> None:
    file = folder.write("r.json", iperf3(1000, 1e6))
    run = folder.take(file)
    record = run.manifest.imported
    assert (record["time_from"], record["left_out"]) == ("content", 0)
    assert record["files"][0]["name"] == "r.json"
    assert record["files"][0]["bytes"] == file.stat().st_size
    assert record["at"] > 1.7e9
    assert run.manifest.started_at == 1000


def test_each_file_of_a_series_is_a_run_and_the_store_is_read_once(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [folder.write(f"{day}.json", iperf3(86_400.0 * day, 1e9 + day)) for day in range(1, 9)]
    broken = folder.write("broken.json", '{"start": 1}')
    listed: list[Store] = []
    ids = Store.ids
    monkeypatch.setattr(Store, "ids", lambda store: listed.append(store) or ids(store))
    runs = import_series([*files[:4], broken, *files[4:]], folder.store, note=folder.notes.append)
    assert len(listed) == 1
    assert [run.started_s for run in runs] == [86_400.0 * day for day in range(1, 9)]
    assert [values(run, "sent_bits_per_s") for run in runs] == [[1e9 + day] for day in range(1, 9)]
    (note,) = folder.notes
    assert note.startswith(str(broken))
    assert note.endswith("It is left out of the series.")
    folder.notes.clear()
    again = import_series(files[:2], folder.store, note=folder.notes.append)
    assert [run.id for run in again] == [run.id for run in runs[:2]]
    assert folder.notes[1].startswith("2.json: These files were imported before, as run ")
    with pytest.raises(UsageError, match=r"broken\.json"):
        import_series([broken], folder.store)


def test_beginnings_of_many_files_are_found_by_sorting(folder: Folder) -> None:
    contents = ["a", "ab", "abc", "b", "abd", "ba", "c"]
    sources = [Source.read(folder.write(f"{text}.txt", text)) for text in contents]
    left = without_copies(sources, folder.notes.append)
    assert [source.path.stem for source in left] == ["abc", "abd", "ba", "c"]
    for short, long in ("a", "abc"), ("ab", "abc"), ("b", "ba"):
        paths = [folder.path / f"{text}.txt" for text in (short, long)]
        note = "{} is the beginning of {}, and counts once.".format(*paths)
        assert note in folder.notes
    assert len(folder.notes) == 3
