"""Several machines share a store on object storage."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.factory import SPEC, filled, record, samples

from nephoscope.core.errors import StoreError, UnpublishedRun
from nephoscope.features.compaction.compact import Policy, compact
from nephoscope.store import FINISHED, Store, StoredRun, day_files
from nephoscope.store.objects import days, object_index, opening
from nephoscope.store.objects.address import folder_of

from .conftest import ADDRESS, Machine
from .s3_double import S3Double

YEAR_S = 366 * 86_400


def measured(store: Store, rounds: int = 3, *, state: str = FINISHED) -> StoredRun:
    """A run that was measured on this machine and published."""
    run, _ = filled(store.path, rounds)
    with run.lock():
        if state == FINISHED:
            run.finish(state)
    return run


def labelled(store: Store, name: str, value: str) -> None:
    run = store.open(name)
    with run.lock():
        run.update(labels={"label": value})


def values(run: StoredRun) -> list[tuple[str, list[float]]]:
    return [(record.key.name, table["value"].to_pylist()) for record, table in run.tables()]


def test_a_run_is_the_same_on_another_machine(machine: Machine, s3: S3Double) -> None:
    here = measured(machine("a"))
    before, stamp = values(here), sorted(here.path.rglob("*"))
    there = machine("b").open("latest")
    assert there.id == here.id
    assert [record.key.name for record in there.records()] == [name for name, _ in before]
    assert values(there) == before
    assert there.integrity().verified == len(before)
    names = [path.name for path in stamp if not path.name.startswith(".")]
    assert sorted(p.name for p in there.path.rglob("*") if not p.name.startswith(".")) == sorted(
        names
    )


def test_a_run_is_two_objects_and_nobody_lists(machine: Machine, s3: S3Double) -> None:
    run = measured(machine("a"))
    keys = [key for key in s3.objects if run.id in key]
    assert len(keys) == 2, keys
    machine("b").open(run.id).integrity()
    assert not [key for method, key in s3.requests if method == "GET" and not key]


def test_samples_are_fetched_when_they_are_read(machine: Machine, s3: S3Double) -> None:
    run = measured(machine("a"))
    other = machine("b").open(run.id)
    s3.requests.clear()
    assert other.trial_count() == 8
    assert not [key for _, key in s3.requests if key.endswith(".parquet")]
    list(other.tables())
    assert [key for _, key in s3.requests if key.endswith(".parquet")]


def test_samples_are_fetched_of_a_run_that_is_named_by_its_folder(machine: Machine) -> None:
    """As the workers of an engine name it: nothing has listed the store on their machine."""
    run = measured(machine("a"))
    there = StoredRun(machine("b").runs_path / run.id)
    assert values(there) == values(run)


def test_labels_of_two_machines_are_put_together(machine: Machine) -> None:
    run = measured(machine("a"))
    at_b = machine("b").open(run.id)
    with at_b.lock():
        at_b.update(labels={"b": "1"})
        # Meanwhile, on the machine that measured it.
        at_a = machine("a").open(run.id)
        with at_a.lock():
            at_a.update(labels={"a": "1"})
    for name in ("a", "b", "c"):
        assert machine(name).open(run.id).labels == {"a": "1", "b": "1"}, name


def test_a_run_that_another_machine_removed_is_not_labelled(machine: Machine) -> None:
    run = measured(machine("a"))
    at_b = machine("b").open(run.id)

    def label_while_it_is_removed() -> None:
        with at_b.lock():
            at_b.update(labels={"b": "1"})
            store = machine("a")
            store.remove(store.open(run.id))

    with pytest.raises(StoreError, match="was removed by another machine"):
        label_while_it_is_removed()
    assert machine("b").ids() == []


def test_what_was_measured_outlives_a_removal_elsewhere(machine: Machine, s3: S3Double) -> None:
    run, settings = filled(machine("a").path)
    with run.lock():
        pass
    with run.lock():
        store = machine("b")
        store.remove(store.open(run.id))
        run.append(record(settings[0], 9, 99), samples(1.0), SPEC)
    assert len(machine("b").open(run.id).records()) == 9


def test_an_unfinished_run_is_resumed_where_it_began(machine: Machine) -> None:
    store = machine("a")
    run = measured(store, state="running")
    assert store.resumable(run.manifest.plan_hash) is not None
    elsewhere = machine("b")
    assert elsewhere.resumable(run.manifest.plan_hash) is None
    with pytest.raises(StoreError, match="was begun on machine"), elsewhere.open(run.id).lock():
        pass


def test_removal_leaves_no_object(machine: Machine, s3: S3Double) -> None:
    store = machine("a")
    store.remove(measured(store))
    assert not [key for key in s3.objects if key.startswith("runs/runs/")]
    assert machine("b").ids() == []


def test_two_machines_compact_at_once(machine: Machine, s3: S3Double) -> None:
    first, second = measured(machine("a")), measured(machine("b"))
    policy = Policy(keep_raw_s=1.0)
    done = compact(machine("a"), policy, now_s=time.time() + YEAR_S)
    assert set(done.compacted) == {first.id, second.id}
    assert not [key for key in s3.objects if key.startswith("runs/runs/")]
    third = measured(machine("b"))
    compact(machine("b"), policy, now_s=time.time() + YEAR_S)
    problems: list[str] = []
    lines = [run.run for run in day_files.summaries(machine("c").path, problems)]
    assert sorted(lines) == sorted([first.id, second.id, third.id])
    assert problems == []
    assert len([key for key in s3.objects if key.startswith("runs/days/")]) == 1


def test_a_run_waits_while_the_service_is_down(machine: Machine, s3: S3Double) -> None:
    store = machine("a")
    run, _ = filled(store.path)
    s3.fault = "AccessDenied"
    with pytest.raises(StoreError, match="permission is denied"), run.lock():
        pass
    s3.fault = ""
    with pytest.warns(UnpublishedRun, match=f"Run {run.id}, which an earlier command left here"):
        assert machine("a").ids() == [run.id]
    assert len(machine("b").open(run.id).records()) == 8


class _Kill(BaseException):
    pass


@pytest.mark.parametrize("is_entered", [False, True])
@pytest.mark.parametrize("is_labelled", [False, True])
def test_publishing_that_is_killed_leaves_no_object(
    is_entered: bool,
    is_labelled: bool,
    machine: Machine,
    s3: S3Double,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kill before the index has a run, or right after; and once more in the command after it."""
    run = measured(machine("a"))
    for number in range(2):
        store = machine("a")
        mirror = opening.mirror_of(store.path)
        assert mirror is not None
        put = mirror.index.put

        def kill(*entry: object, put: Callable[..., None] = put) -> None:
            if is_entered:
                put(*entry)
            raise _Kill

        monkeypatch.setattr(mirror.index, "put", kill)
        with pytest.raises(_Kill):
            labelled(store, run.id, f"{number}") if is_labelled else measured(store)
    with pytest.warns(UnpublishedRun, match="was published"):
        names = machine("a").ids()
    assert len(names) == (1 if is_labelled else 2)
    assert len([key for key in s3.objects if key.startswith("runs/runs/")]) == 2 * len(names)
    assert [machine("b").open(name).integrity().verified for name in names]


def test_a_damaged_pack_is_named_and_the_others_are_read(machine: Machine, s3: S3Double) -> None:
    store = machine("a")
    damaged, whole = measured(store), measured(store)
    (key,) = [key for key in s3.objects if damaged.id in key and key.endswith(".gz")]
    s3.objects[key] = b"half-written"
    other = machine("b")
    (sentence,) = other.damaged()
    assert sentence.startswith(f"s3://lab/runs/runs/{damaged.id}/run-")
    assert [run.id for run in other.each(lambda _: None)] == [whole.id]
    other.remove(other.find(damaged.id))
    assert other.ids() == [whole.id]
    assert other.damaged() == []


def test_damaged_samples_are_named(machine: Machine, s3: S3Double) -> None:
    run = measured(machine("a"))
    (key,) = [key for key in s3.objects if key.endswith(".parquet")]
    content = bytearray(s3.objects[key])
    content[100] ^= 1
    s3.objects[key] = bytes(content)
    integrity = machine("b").open(run.id).integrity()
    assert integrity.damaged
    assert integrity.verified < 8


def test_foreign_objects_in_the_prefix_are_not_read(machine: Machine, s3: S3Double) -> None:
    run = measured(machine("a"))
    for key in ("runs/runs/20260101-000000-x-0000/run.tar.gz", "runs/index/99.json", "runs/x"):
        s3.objects[key] = b"half"
    assert machine("b").ids() == [run.id]


def test_a_damaged_index_is_one_sentence(machine: Machine, s3: S3Double) -> None:
    measured(machine("a"))
    (key,) = [key for key in s3.objects if key.startswith("runs/index/")]
    s3.objects[key] = s3.objects[key][:-10]
    with pytest.raises(StoreError, match="is damaged, or no object of a store"):
        machine("b").ids()


def test_a_later_format_is_refused(machine: Machine, s3: S3Double) -> None:
    from nephoscope.store.digests import with_own_digest

    s3.objects["runs/store.json"] = with_own_digest(
        {"version": 99, "nephoscope": "9.9", "shards": 16}
    )
    with pytest.raises(StoreError, match=r"has format version 99, written by nephoscope 9\.9"):
        machine("a").ids()


def test_a_folder_of_a_mirror_is_the_store(machine: Machine) -> None:
    run = measured(machine("a"))
    machine("b")
    assert Store(folder_of(ADDRESS)).open(run.id).id == run.id
    assert Store(folder_of(Path(ADDRESS))).address == ADDRESS


def test_equal_content_that_is_written_again_has_another_tag(machine: Machine) -> None:
    """Google's tags are digests, and its versions are not: the earlier tag would hide the later."""
    mirror = opening.mirror_of(machine("a").path)
    assert mirror is not None
    first = days._write(mirror, {}, "")
    assert days._write(mirror, {}, first) != first
    head = object_index._Head()
    assert head.content() != head.content()
