"""storage.durability: planted losses, flipped bits and silent stores are counted exactly."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from storage_servers import BUCKET, KEYS, needs_s3, needs_storage, s3
from trials import Trial, command, refused, run

from nephoscope.core.programs import find_storage

pytestmark = pytest.mark.together

ID = "storage.durability"
OBJECTS, OBJECT_BYTES = 20, 4099
YEAR_S = 31_557_600
COUNTS = ("intact_count", "lost_count", "damaged_count", "unreachable_count")


class Checked:
    """A set of objects in a folder, and its ledger."""

    def __init__(self, root: Path) -> None:
        self.store, self.ledgers = root / "store", root / "ledgers"
        self.store.mkdir(parents=True)
        self.params: dict[str, Any] = {
            "name": "photos",
            "directory": str(self.store),
            "ledger_directory": str(self.ledgers),
            "objects": OBJECTS,
            "object_bytes": OBJECT_BYTES,
        }

    def check(self, **more: Any) -> Trial:
        return run(ID, {**self.params, **more})

    @property
    def files(self) -> list[Path]:
        """The objects by number, without the mark of the place."""
        return sorted(path for path in self.store.rglob("*") if path.name.isdecimal())

    @property
    def ledger(self) -> Path:
        return self.ledgers / "photos.ledger"

    def age(self, seconds: int) -> None:
        """Sets the times of all objects back, as if they had been written so long ago."""
        content = json.loads(self.ledger.read_text("utf-8").splitlines()[0])
        for entry in content["objects"]:
            entry["written_s"] -= seconds
        line = json.dumps(content, separators=(",", ":"))
        digest = hashlib.sha256(line.encode()).hexdigest()
        self.ledger.write_text(f"{line}\n{digest}\n", "utf-8")


def counts(trial: Trial) -> tuple[float, ...]:
    return tuple(trial.one(metric) for metric in COUNTS)


@pytest.fixture
def checked() -> Iterator[Checked]:
    """A directory on a disk: /tmp may lie in memory."""
    root = Path("/var/tmp") / f"nephoscope-test-{os.getpid()}-{time.time_ns()}"
    yield Checked(root)
    shutil.rmtree(root)


@pytest.mark.truth(
    ID, "intact_count", "lost_count", "damaged_count", "returned_count", "written_count"
)
def test_lost_and_damaged_objects_are_counted_and_replaced(checked: Checked) -> None:
    first = checked.check()
    assert first.one("written_count") == OBJECTS
    assert counts(first) == (OBJECTS, 0, 0, 0)
    assert all(path.stat().st_size == OBJECT_BYTES for path in checked.files)
    removed, *flipped, cut, longer = checked.files[3:8]
    content = removed.read_bytes()
    removed.unlink()
    for path in flipped:
        damaged = bytearray(path.read_bytes())
        damaged[1000] ^= 1
        path.write_bytes(damaged)
    os.truncate(cut, OBJECT_BYTES - 1)
    longer.write_bytes(longer.read_bytes() + b"x")
    # One is removed; two have another bit, one is short, one is long. Five are written anew.
    second = checked.check()
    assert counts(second) == (OBJECTS, 1, 4, 0)
    assert second.one("written_count") == 5
    assert f"Lost: {removed.name} below" in second.notes
    removed.write_bytes(content)
    third = checked.check()
    assert third.one("returned_count") == 1
    assert counts(third) == (OBJECTS + 1, 0, 4, 0)
    assert third.one("written_count") == 0


@pytest.mark.truth(ID, "exposure_ns", "lost_count")
def test_exposure_is_the_time_from_writing_to_the_last_intact_answer(checked: Checked) -> None:
    began_s = time.time()
    checked.check()
    checked.age(10 * YEAR_S)
    checked.files[0].unlink()
    trial = checked.check()
    assert trial.one("lost_count") == 1
    # The one that is lost was seen intact when it was written, ten years later by the ledger.
    years = trial.one("exposure_ns") / 1e9 / YEAR_S
    slack = OBJECTS * (time.time() - began_s + 1) / YEAR_S
    assert 10 * OBJECTS <= years <= 10 * OBJECTS + slack


@pytest.mark.truth(ID, "removed_count")
def test_removing_leaves_nothing(checked: Checked) -> None:
    checked.check()
    assert checked.check(operation="remove").one("removed_count") == OBJECTS
    assert list(checked.store.iterdir()) == []
    assert [path.name for path in checked.ledgers.iterdir()] == ["photos.lock"]


def test_a_place_that_is_not_there_is_no_loss_until_somebody_says_so(checked: Checked) -> None:
    checked.check()
    (place,) = checked.store.iterdir()
    place.rename(checked.store / "elsewhere")
    assert refused(ID, checked.params) == (3, "place_missing")
    trial = checked.check(counts_total_loss=True)
    assert trial.one("lost_count") == OBJECTS


@pytest.mark.truth(ID, "unreachable_count")
def test_objects_that_cannot_be_read_are_unreachable_and_not_lost(checked: Checked) -> None:
    checked.check()
    removed, looping = checked.files[:2], checked.files[2:4]
    for path in removed:
        path.unlink()
    # A link to itself: the answer is neither "no such object" nor the object's bytes.
    for path in looping:
        path.unlink()
        path.symlink_to(path)
    trial = checked.check()
    assert trial.one("unreachable_count") == 2
    assert trial.one("lost_count") == 2
    assert "Unreachable: 2 objects" in trial.notes


def test_a_kill_at_any_moment_loses_neither_objects_nor_the_ledger(checked: Checked) -> None:
    params = {**checked.params, "objects": 400}
    for number in range(6):
        pipe = subprocess.PIPE
        process = subprocess.Popen(command(ID, params), stdout=pipe, stderr=pipe)
        end = time.monotonic() + 30
        # Each is killed with more objects written than the one before.
        while len(checked.files) < 40 * number and time.monotonic() < end:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    trial = run(ID, params)
    assert counts(trial) == (400, 0, 0, 0)
    assert len(checked.files) == 400


def test_what_cannot_be_done_is_one_sentence(checked: Checked) -> None:
    assert refused(ID, {**checked.params, "name": "../x"}) == (2, "usage")
    assert refused(ID, {**checked.params, "service": "s3", "bucket": "b"}) == (
        4,
        "no_storage_services",
    )
    checked.check()
    other = {**checked.params, "directory": str(checked.ledgers)}
    assert refused(ID, other) == (2, "usage")
    checked.ledger.write_bytes(checked.ledger.read_bytes().replace(b"intact", b"lost", 1))
    assert refused(ID, checked.params) == (3, "ledger_damaged")


@pytest.mark.slow
@needs_storage
@needs_s3
@pytest.mark.truth(ID, "unreachable_count", "damaged_count", "lost_count", "intact_count")
def test_a_service_that_is_stopped_loses_nothing(checked: Checked, tmp_path: Path) -> None:
    def check(url: str) -> Trial:
        where = {"service": "s3", "endpoint": url, "bucket": BUCKET, "directory": "", "retries": 0}
        words = [str(find_storage()), *command(ID, {**checked.params, **where}, 120)[1:]]
        env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **KEYS}
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=150)
        assert done.returncode == 0, done.stdout[-500:] + done.stderr
        return Trial(done.stdout)

    with s3(tmp_path) as server:
        assert counts(check(server.url)) == (OBJECTS, 0, 0, 0)
        server.kill()
        assert counts(check(server.url)) == (OBJECTS, 0, 0, OBJECTS)
        server.start()
        stored = sorted(p for p in server.folder.rglob("*") if p.name.isdecimal())
        stored[0].unlink()
        stored[1].write_bytes(stored[1].read_bytes()[::-1])
        assert counts(check(server.url)) == (OBJECTS, 1, 1, 0)
