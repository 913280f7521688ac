"""Something else in place of a stored file is named in a sentence, at once, and costs its run only.

Pipes, devices, loops of links and sparse files: whoever reads them waits, or fills the memory.
"""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.core.reading.test_regular import a_device, a_folder, a_loop, a_pipe
from tests.e2e.conftest import Done, run_inside
from tests.waiting import failing_after

from nephoscope.features.compaction import summarise
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.store import Store, StoredRun, day_files, index
from nephoscope.store.day_files import DayWriter

from .factory import filled

FILES = {
    "manifest.json": True,
    "journal.jsonl": True,
    "trials/records.jsonl": True,
    "trials/samples.parquet": True,
    "trials": True,
    "report/result.json": True,
    "report/report.sha256": True,
    "summary.json": False,
    "../.index.jsonl": False,
    "../../days/2026-01-02.jsonl": True,
}
"""Files as seen from the folder of a run, and whether `verify` has to name them. The others are
copies of what can be read elsewhere."""
METRIC = "null_ns"


def a_sparse_file(path: Path) -> None:
    """300 MB of zeros, on no disk."""
    with path.open("wb") as file:
        file.truncate(300 << 20)


REPLACEMENTS = [a_pipe, a_device, a_loop, a_folder, a_sparse_file]


def finished(store: Path) -> StoredRun:
    run, _ = filled(store, rounds=6)
    report_files.write(analyse_run.build(run), run.report_path)
    run.finish("finished")
    return run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two runs, and of one that became a line of a day file."""
    store = tmp_path_factory.mktemp("whole")
    compacted, damaged, neighbour = (finished(store) for _ in range(3))
    DayWriter(store).put(summarise.summary_of(compacted))
    Store(store).remove(compacted)
    (day,) = day_files.day_files(store)
    day.path.rename(day.path.with_name("2026-01-02.jsonl"))
    index.RunIndex(Store(store)).whole()
    (store / "names").write_text(json.dumps([damaged.id, neighbour.id]))
    return store


@pytest.fixture(autouse=True)
def _no_wait() -> Iterator[None]:
    with failing_after(300):
        yield


def attacked(whole: Path, store: Path, file: str, replace: Callable[[Path], None]) -> Path:
    """Puts something else in place of a file of a copy of the store; returns its path."""
    shutil.copytree(whole, store)
    damaged, _ = json.loads((store / "names").read_text())
    path = (store / "runs" / damaged / file).resolve()
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    replace(path)
    return path


def checked(done: Done) -> Done:
    """Every sentence says what is wrong, and none is a defect."""
    assert "defect" not in done.err + done.out
    assert "Traceback" not in done.err + done.out
    assert all(line.startswith("nephoscope: ") for line in done.err.splitlines() if done.code == 3)
    return done


@pytest.mark.parametrize("file", FILES)
def test_a_replaced_file_is_named_and_costs_its_run_only(
    file: str, whole: Path, tmp_path: Path
) -> None:
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for replace in REPLACEMENTS:
        store = tmp_path / replace.__name__
        path = attacked(whole, store, file, replace)
        _, neighbour = json.loads((store / "names").read_text())
        done = checked(run_inside(["verify", "--store", str(store)]))
        if replace is not a_folder or path.suffix:
            assert done.code == int(FILES[file]), (replace, done)
            assert (path.name in done.out) == FILES[file], (replace, done)
        done = checked(run_inside(["verify", neighbour, "--store", str(store)]))
        assert done.code == 0, (replace, done)
        done = checked(run_inside(["runs", "--json", "--store", str(store)]))
        assert neighbour in done.out
        assert len(StoredRun(store / "runs" / neighbour).records()) == 14
        snapshot = index.RunIndex(Store(store)).whole()
        assert neighbour in snapshot.by_id
        assert len(snapshot.damaged) == int(file == "manifest.json")
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert grown_kib < 100 << 10  # a sparse file has three times as much


@pytest.mark.slow
@pytest.mark.contradicting  # a damaged warm-up trial is listed, and no count of trials has it
@pytest.mark.parametrize("replace", REPLACEMENTS)
@pytest.mark.parametrize("file", FILES)
def test_every_command_that_reads_a_store_ends(
    file: str, replace: Callable[[Path], None], whole: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    path = attacked(whole, store, file, replace)
    damaged, neighbour = json.loads((store / "names").read_text())
    for words in (
        ["runs"],
        ["verify"],
        ["show", damaged],
        ["show", neighbour],
        ["show", "--journal", damaged],
        ["history", METRIC],
        ["compare", damaged, neighbour],
        ["export", damaged],
        ["export", neighbour],
        ["compact", "--keep-raw", "1d", "--dry-run"],
        ["runs", "label", neighbour, "a=b"],
    ):
        done = checked(run_inside([*words, "--store", str(store)]))
        assert done.code in (0, 1, 2, 3, 5), (words, done)
        if neighbour in words and damaged not in words:
            assert done.code == 0, (words, done)
        if damaged in words and done.code == 3:
            assert path.name in done.out + done.err, (words, done)
