"""The probe without a controller, against a store that refuses, loses and cuts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.programs import find_probe
from nephoscope.measure.cloud.result_bucket import BucketSettings, ResultBucket
from nephoscope.measure.runs.unattended_results import UnreadableBatch, read_batch

from .server import ObjectStore

pytestmark = pytest.mark.usefixtures("probe")

Fault = Callable[[str, str], int | str | None]


def trial(name: str, benchmark: str = "null", **params: Any) -> dict[str, Any]:
    return {
        "name": name,
        "benchmark": benchmark,
        "params": params,
        "timeout_s": 5,
        "gap_meter": False,
    }


def worked(
    objects: ObjectStore, folder: Path, batches: dict[str, list[dict[str, Any]]]
) -> subprocess.CompletedProcess[str]:
    bucket = ResultBucket(BucketSettings.parse("s3://results", objects.endpoint))

    def to(name: str) -> dict[str, Any]:
        return bucket.signed(f"m/{name}", 60, is_upload=True).document()

    job = {
        "machine": "m",
        "work_s": 60,
        "report": to("report"),
        "batches": [
            {"name": name, "to": to(name), "trials": trials} for name, trials in batches.items()
        ],
    }
    file = folder / "job"
    file.write_text(json.dumps(job))
    command = [str(find_probe()), "unattended", "--job", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def once(name: str, what: int | str) -> Fault:
    struck: list[str] = []

    def fault(method: str, key: str) -> int | str | None:
        if key.endswith(name) and method == "PUT" and not struck:
            struck.append(key)
            return what
        return None

    return fault


def report(objects: ObjectStore) -> Any:
    return json.loads(objects.objects["m/report"][0])["report"]


def test_each_batch_has_the_output_of_its_trials(objects: ObjectStore, tmp_path: Path) -> None:
    done = worked(
        objects,
        tmp_path,
        {"b1": [trial("good"), trial("bad", samples="x")], "b2": [trial("more", samples=3)]},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = (read_batch(objects.objects[f"m/{name}"][0]) for name in ("b1", "b2"))
    assert [entry.name for entry in first.trials] == ["good", "bad"]
    assert [entry.ended.returncode for entry in first.trials] == [0, 2]
    assert b'"done"' in second.trials[0].ended.stdout
    told = report(objects)
    assert (told["planned"], told["run"], told["failed"]) == (3, 3, 1)
    assert [entry["missing"] for entry in told["batches"]] == [None, None]
    assert "Signature" not in done.stdout + done.stderr


@pytest.mark.parametrize("what", [503, "lost", "lost-before"])
def test_an_upload_that_fails_is_repeated(
    objects: ObjectStore, tmp_path: Path, what: int | str
) -> None:
    objects.fault = once("b1", what)
    done = worked(objects, tmp_path, {"b1": [trial("t")]})
    assert done.returncode == 0, done.stdout
    assert read_batch(objects.objects["m/b1"][0]).trials[0].name == "t"
    assert report(objects)["batches"][0]["missing"] is None


@pytest.mark.slow
def test_what_the_store_refuses_is_named_and_the_rest_is_stored(
    objects: ObjectStore, tmp_path: Path
) -> None:
    objects.fault = lambda method, key: 403 if key.endswith("b1") else None
    done = worked(objects, tmp_path, {"b1": [trial("t")], "b2": [trial("u")]})
    assert done.returncode == 3
    assert "status 403" in done.stdout
    assert objects.keys == ["m/b2", "m/report"]
    missing = [entry["missing"] for entry in report(objects)["batches"]]
    assert missing == ["the object store answered with status 403", None]


def test_a_batch_that_was_cut_is_refused_as_a_whole(objects: ObjectStore, tmp_path: Path) -> None:
    objects.fault = once("b1", "cut")
    worked(objects, tmp_path, {"b1": [trial("t"), trial("u")]})
    with pytest.raises(UnreadableBatch, match="cut"):
        read_batch(objects.objects["m/b1"][0])


def test_a_changed_batch_is_refused(objects: ObjectStore, tmp_path: Path) -> None:
    worked(objects, tmp_path, {"b1": [trial("t")]})
    content = objects.objects["m/b1"][0]
    for changed, why in (
        (content.replace(b'"null_ns"', b'"null_xx"', 1), "SHA-256"),
        (content[:-1], "cut"),
        (b"", "cut"),
        (b"\n", "cut"),
        (b"{}\n", "cut"),
        (b"\xff\xfe", "cut"),
    ):
        with pytest.raises(UnreadableBatch, match=why):
            read_batch(changed)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"machine": "m"}', "null"])
def test_what_is_no_job_is_one_sentence_without_its_content(tmp_path: Path, text: str) -> None:
    file = tmp_path / "job"
    file.write_text(text)
    command = [str(find_probe()), "unattended", "--job", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "The job cannot be read" in done.stdout + done.stderr
