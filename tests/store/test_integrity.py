"""What was stored is what is read: every change of a file afterwards is noticed and named."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nephoscope import command_line
from nephoscope.core.errors import NephoscopeError, StoreError
from nephoscope.core.model import TrialStatus
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.store import Store, StoredRun
from nephoscope.store.export import flat_table
from nephoscope.store.trialfile import DAMAGED

from .factory import SPEC, filled, new_run, record, samples


def content(store: Path) -> tuple[Any, ...]:
    """All that analyses and exports see of the only run of a store, and its reports."""
    (run,) = Store(store).runs()
    reports = {path.name: path.read_bytes() for path in sorted(run.report_path.glob("*"))}
    return run.manifest, run.records(), flat_table(run).to_pylist(), run.events(), reports


def finished(path: Path) -> StoredRun:
    """A whole run: trials, journal, report and manifest."""
    run, _ = filled(path, rounds=1)
    run.event({"event": "session_ended", "why": "measured"})
    report_files.write(analyse_run.build(run), run.report_path)
    run.finish("finished")
    return run


def without_digests(run: StoredRun) -> None:
    """Makes it a run of an earlier version."""
    manifest = run.path / "manifest.json"
    values = json.loads(manifest.read_text())
    del values["sha256"]
    manifest.write_text(json.dumps(values))
    journal = run.path / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if "trials_stored" not in line))


def test_whole_runs_are_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = filled(tmp_path)
    assert command_line.main(["verify", "--store", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{run.id}: 8 trials verified\n"


def test_earlier_runs_are_read_and_said_to_be_unverified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = filled(tmp_path)
    before = content(tmp_path)
    without_digests(run)
    assert content(tmp_path)[1:3] == before[1:3]
    assert command_line.main(["verify", run.id, "--store", str(tmp_path), "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["runs"]
    assert (result["verified"], result["unverified"], result["damaged"]) == (0, 8, [])


def flip(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def attack(store: Path, damage: Callable[[bytearray, random.Random], None], cases: int) -> str:
    """Damages a file of a whole run so often; returns how many cases were named, by file."""
    run = finished(store)
    whole = content(store)
    files = [path for path in sorted(run.path.rglob("*")) if path.is_file()]
    rng = random.Random(7)
    named: Counter[str] = Counter()
    for number in range(cases):
        path = files[number % len(files)]
        original = path.read_bytes()
        data = bytearray(original)
        damage(data, rng)
        path.write_bytes(data)
        problems = problems_of(store, path)
        # A flip inside the name of the key that holds the digest of a file or a report loses the
        # digest alone.
        assert problems or content(store)[1:4] == whole[1:4]
        assert problems or path.name in ("manifest.json", "report.sha256"), path
        assert all(str(path) in one or path.suffix == ".sha256" for one in problems)
        named[path.name if path.suffix != ".parquet" else "trials"] += bool(problems)
        path.write_bytes(original)
    assert content(store) == whole
    return ", ".join(f"{name} {count}" for name, count in sorted(named.items()))


def problems_of(store: Path, path: Path) -> list[str]:
    """What reading the store says is damaged."""
    unreadable: list[str] = []
    runs = list(Store(store).each(unreadable.append))
    if not runs:
        return unreadable
    (now,) = runs
    damaged = [one for one in now.records() if one.failure_name == DAMAGED]
    assert [str(path) in one.reasons[0] for one in damaged] == [True] * len(damaged)
    assert all(one.status is TrialStatus.INVALID for one in damaged)
    return list(now.integrity().damaged)


@pytest.mark.parametrize("damage", [flip, cut])
def test_no_change_of_a_file_is_silent(
    tmp_path: Path, damage: Callable[[bytearray, random.Random], None]
) -> None:
    attack(tmp_path, damage, 120)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [flip, cut])
def test_no_change_of_five_thousand_is_silent(
    tmp_path: Path, damage: Callable[[bytearray, random.Random], None]
) -> None:
    sys.stdout.write(f"named of 5,000: {attack(tmp_path, damage, 5000)}\n")


def test_a_damaged_line_of_the_journal_is_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = filled(tmp_path, rounds=1)
    lines = run.journal_path.read_text().splitlines(keepends=True)
    changed = [lines[0], lines[1].replace("w0000", "w0001", 1), *lines[2:]]
    run.journal_path.write_text("".join(changed))
    again = Store(tmp_path).open(run.id)
    assert again.events()[1] == {"at": None, "event": "line_damaged", "line": 2}
    sentence = f"{run.journal_path}: line 2 is damaged and left out."
    assert again.integrity().damaged == (sentence,)
    assert again.integrity().unverified == 1, "its trial has no digest any more"
    assert command_line.main(["show", run.id, "--store", str(tmp_path)]) == 0
    assert sentence in capsys.readouterr().err
    assert command_line.main(["show", run.id, "--journal", "--store", str(tmp_path)]) == 0
    assert "line damaged: line 2" in capsys.readouterr().out


def test_a_journal_that_lost_whole_lines_is_named_once_the_run_ended(tmp_path: Path) -> None:
    run = finished(tmp_path)
    lines = run.journal_path.read_text().splitlines(keepends=True)
    run.journal_path.write_text("".join(lines[:-1]))
    (sentence,) = Store(tmp_path).open(run.id).integrity().damaged
    assert "is not what was stored when the run ended" in sentence
    run.journal_path.unlink()
    assert Store(tmp_path).open(run.id).integrity().damaged == (sentence,)


def test_a_line_that_a_kill_cut_off_is_no_damage(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    run.event({"event": "one"})
    with run.journal_path.open("a") as stream:
        stream.write('{"at": "2026')
    assert not Store(tmp_path).open(run.id).integrity().damaged
    run.event({"event": "two"})
    again = Store(tmp_path).open(run.id)
    assert [event["event"] for event in again.events()] == ["one", "two"]
    assert not again.integrity().damaged


def test_a_changed_report_is_named_and_written_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished(tmp_path)
    page = run.report_path / "report.md"
    page.write_text(page.read_text() + "1")
    assert command_line.main(["verify", "--store", str(tmp_path)]) == 1
    assert f"{page} is not as it was written" in capsys.readouterr().out
    assert command_line.main(["show", run.id, "--store", str(tmp_path)]) == 0
    assert command_line.main(["verify", "--store", str(tmp_path)]) == 0


def test_damage_exits_with_1_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = filled(tmp_path)
    changed, gone = (run.trials_path / f"r000{number}-s000-local.parquet" for number in (1, 2))
    data = bytearray(changed.read_bytes())
    data[-100] ^= 1
    changed.write_bytes(data)
    gone.unlink()
    assert command_line.main(["verify", "latest", "--store", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "6 trials verified, 2 damaged" in out
    assert f"{changed} is damaged (its content is not what was stored)" in out
    assert f"{gone} is missing" in out
    (run.path / "manifest.json").write_text("{}")
    assert command_line.main(["verify", "--store", str(tmp_path)]) == 1
    assert "manifest.json" in capsys.readouterr().out


def test_a_kill_between_file_and_journal_is_mended_by_the_next_session(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=1)
    journal = run.path / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-1]) + lines[-1][:40])
    resumed = Store(tmp_path).open(run.id)
    assert resumed.integrity().unverified == 1
    with resumed.lock():
        pass
    assert Store(tmp_path).open(run.id).integrity().verified == 4


def test_a_trial_that_is_measured_again_has_its_new_digest(tmp_path: Path) -> None:
    run, settings = new_run(tmp_path)
    for value in (1.0, 2.0):
        run.append(record(settings[0], 1, 0), samples(value), SPEC)
    assert run.integrity().verified == 1
    assert not run.integrity().damaged


def test_a_journal_names_files_of_its_own_run_only(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=1)
    run.event({"event": "trials_stored", "sha256": {"../../r0001-s000-local.parquet": "0"}})
    assert len(run.records()) == 4


STRANGE = [None, True, -1, 1e300, 2**70, "\ud800", "../x", [], {}, [None], {"a": None}, "\x1b[2J"]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for step, part in inside:
        yield (*at, step)
        if isinstance(part, dict | list):
            yield from places(part, (*at, step))


def test_a_manifest_without_digest_is_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    """Cases drawn from all values of an earlier version's manifest; never another exception."""
    run, _ = filled(tmp_path, rounds=2)
    run.finish("finished")
    without_digests(run)
    manifest = json.loads((run.path / "manifest.json").read_text())
    rng = random.Random(3)
    known = list(places(manifest))
    refused = 0
    for _ in range(60):
        mutated = copy.deepcopy(manifest)
        *steps, last = rng.choice(known)
        node = mutated
        for step in steps:
            node = node[step]
        node[last] = copy.deepcopy(rng.choice(STRANGE))
        (run.path / "manifest.json").write_text(json.dumps(mutated))
        with contextlib.suppress(NephoscopeError):
            analyse_run.build(Store(tmp_path).open(run.id))
            refused -= 1
        refused += 1
    assert 10 < refused < 60


@pytest.mark.parametrize(
    ("key", "value"), [("entry", 10**30), ("entry", -1), ("entry", 1), ("headline", 5)]
)
def test_a_setting_that_its_plan_does_not_have_is_refused(
    tmp_path: Path, key: str, value: int
) -> None:
    run, _ = filled(tmp_path, rounds=1)
    settings = [{**setting, key: value} for setting in run.manifest.settings]
    run.update(settings=settings)
    with pytest.raises(StoreError, match="its 'settings'"):
        Store(tmp_path).open(run.id)


def test_a_trial_file_without_digest_is_held_to_its_types(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    run, _ = filled(tmp_path, rounds=1)
    without_digests(run)
    path = run.trials_path / "r0001-s000-local.parquet"
    table = pq.read_table(path, partitioning=None)
    own = json.loads(table.schema.metadata[b"nephoscope.trial"])
    for key, value in [
        ("started_at", 1e300),
        ("beside", []),
        ("reasons", [1]),
        ("key", {"round": "1"}),
        ("position", None),
        ("status", "fine"),
    ]:
        metadata = {b"nephoscope.trial": json.dumps({**own, key: value}).encode()}
        pq.write_table(table.replace_schema_metadata(metadata), path)
        (damaged,) = (one for one in run.records() if one.failure_name == DAMAGED)
        assert damaged.key.name == path.stem
    for name, cells in [("value", [float("nan")]), ("factors", ["[]"]), ("trial", ["x"])]:
        column = table.schema.get_field_index(name)
        rows = table.slice(0, 1).set_column(column, table.schema.field(name), [cells])
        pq.write_table(rows, path)
        assert [one.key.name for one in run.records() if one.failure_name == DAMAGED] == [path.stem]


def test_a_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    new_run(tmp_path / "store")
    assert (tmp_path / "store" / "runs").stat().st_mode & 0o777 == 0o700


def test_a_manifest_of_an_impossible_time_is_refused(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    run.update(created_at=1e300)
    with pytest.raises(StoreError, match="its 'created_at' cannot be read"):
        Store(tmp_path).open(run.id)


def test_a_journal_without_checksums_names_files_that_can_exist(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=1)
    without_digests(run)
    for name in ("r1-s\0.parquet", f"r1-s{'x' * 300}.parquet", "../r1-s1.parquet", "x"):
        line = json.dumps({"event": "trials_stored", "sha256": {name: "0"}})
        run.journal_path.write_text(line + "\n")
        assert Store(tmp_path).open(run.id).integrity().unverified == 4
