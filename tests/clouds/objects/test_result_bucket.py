"""A bucket of results against a store that checks every signature."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.measure.cloud.bucket_listing import WithBuckets
from nephoscope.measure.cloud.model import Kind, Tags
from nephoscope.measure.cloud.provider import Cause, CloudError
from nephoscope.measure.cloud.providers.ec2_policy import policy
from nephoscope.measure.cloud.result_bucket import BucketSettings, ResultBucket, SignedAddress

from .server import ObjectStore

TAGS = Tags("night", "somebody", 1_900_000_000)
FOLDER = f"{TAGS.as_name()}/"


@pytest.fixture
def bucket(objects: ObjectStore) -> ResultBucket:
    return ResultBucket(BucketSettings.parse("s3://results/a/b", objects.endpoint))


def status(address: SignedAddress, method: str, url: str = "", body: bytes | None = None) -> int:
    asked = urllib.request.Request(url or address.url, body, dict(address.headers), method=method)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_an_address_stores_one_object_once(objects: ObjectStore, bucket: ResultBucket) -> None:
    bucket.check()
    address = bucket.signed(f"{FOLDER}m/b001", 60, is_upload=True)
    assert status(address, "PUT", address.url.replace("b001", "b002"), b"x") == 403
    assert status(address, "GET") == 403
    assert status(address, "DELETE") == 403
    assert status(address, "PUT", body=b"first") == 200
    assert status(address, "PUT", body=b"second") == 412
    assert bucket.get(f"{FOLDER}m/b001", 10) == b"first"
    assert objects.keys == [f"a/b/{FOLDER}m/b001"]
    assert "Signature" not in repr(address)


def test_an_address_ends_by_the_clock_of_the_store(
    objects: ObjectStore, bucket: ResultBucket
) -> None:
    address = bucket.signed("k", 60, is_upload=True)
    objects.ahead_s = 61
    assert status(address, "PUT", body=b"late") == 403
    objects.ahead_s = 50
    assert status(address, "PUT", body=b"in time") == 200


def test_a_store_without_conditions_is_used_without_them(
    objects: ObjectStore, bucket: ResultBucket
) -> None:
    objects.knows_conditions = False
    bucket.put("k", b"1")
    address = bucket.signed("m", 60, is_upload=True)
    assert not address.headers
    assert status(address, "PUT", body=b"2") == 200


def test_what_is_there_is_listed_to_the_end_and_removed(
    objects: ObjectStore, bucket: ResultBucket
) -> None:
    for number in range(120):
        bucket.put(f"{FOLDER}m/b{number:03d}", b"x")
    bucket.put(f"{FOLDER}m/b000", b"x")
    bucket.put("another/object", b"x")
    assert len(bucket.objects(FOLDER)) == 120
    assert list(bucket.folders()) == [(FOLDER, TAGS)]
    bucket.remove(FOLDER)
    assert objects.keys == ["a/b/another/object"]


class Nothing:
    """A provider that has nothing."""

    def resources(self, *_: object) -> list[object]:
        return []


def test_results_are_resources_of_their_rental_in_its_region(bucket: ResultBucket) -> None:
    bucket.put(f"{FOLDER}fleet.json", b"{}")
    cloud = WithBuckets(Nothing(), [(bucket, "here")])  # type: ignore[arg-type]
    (listed,) = cloud.resources("here", "night")
    assert (listed.kind, listed.tags) == (Kind.RESULT_FOLDER, TAGS)
    assert cloud.resources("there") == []
    assert cloud.resources("here", "day") == []
    assert cloud.resources("here", kinds=[Kind.MACHINE]) == []
    cloud.delete(listed)
    assert cloud.resources("here") == []


def test_what_cannot_be_used_is_one_sentence(
    objects: ObjectStore, bucket: ResultBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.keeps_versions = True
    with pytest.raises(UsageError, match="keeps versions"):
        bucket.check()
    missing = ResultBucket(BucketSettings.parse("s3://missing", objects.endpoint))
    with pytest.raises(CloudError, match="There is no bucket missing") as caught:
        missing.check()
    assert caught.value.cause is Cause.UNKNOWN
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    closed = ResultBucket(BucketSettings.parse("s3://results", objects.endpoint))
    with pytest.raises(CloudError, match="not open to these credentials"):
        closed.check()


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("gs://results", "HMAC keys"),
        ("https://account.blob.core.windows.net/results", "s3://NAME"),
        ("results", "s3://NAME"),
        ("s3://", "s3://NAME"),
        ("s3://Results", "s3://NAME"),
        ("s3://results/a?b", "s3://NAME"),
    ],
)
def test_what_names_no_bucket_is_refused(url: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        BucketSettings.parse(url)
    assert hint in caught.value.hint


def test_the_policy_opens_the_folders_of_fleets_and_nothing_else() -> None:
    without, whole = policy(), policy(bucket="results", prefix="a/")
    added = [entry for entry in whole["Statement"] if entry not in without["Statement"]]
    assert not [action for entry in added for action in entry["Action"] if "*" in action]
    reached = {place for entry in added for place in entry["Resource"]}
    assert reached == {"arn:aws:s3:::results", "arn:aws:s3:::results/a/nephoscope.*"}
    assert "s3:" not in str(without)
