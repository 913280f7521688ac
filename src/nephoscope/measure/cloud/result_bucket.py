"""Where machines that nobody logs in to put their results: a bucket with the interface of S3.

A machine gets addresses that were signed here, one for each object, and no credentials: an address
allows one request for one key until it expires. https://docs.aws.amazon.com/AmazonS3/latest/userguide/
ShareObjectPreSignedURL.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from nephoscope.core.errors import Lacking, UsageError
from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.model import Tags
from nephoscope.measure.cloud.provider import CONNECT_S, READ_S, Cause, CloudError

LONGEST_ADDRESS_S = 7 * 86_400.0
"""Longest life of a signed address: "604800 (seven days)", in the page on query parameters of
Signature Version 4."""

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9!_.*'()/-]{0,512}")
_ADVICE = "Write s3://NAME or s3://NAME/PREFIX."
_GOOGLE = (
    "Google's storage has that interface too, with HMAC keys: s3://NAME and "
    "--bucket-endpoint https://storage.googleapis.com."
)


@dataclass(frozen=True, slots=True)
class BucketSettings:
    """Which bucket, and as whom. prefix: in front of every key, '' or with its slash. endpoint: ''
    for Amazon's. profile: AWS profile, '' for the default. region: '' to be looked up."""

    name: str
    prefix: str = ""
    endpoint: str = ""
    profile: str = ""
    region: str = ""

    @classmethod
    def parse(cls, url: str, endpoint: str = "", profile: str = "") -> Self:
        """Returns the bucket of an address s3://NAME/PREFIX. Raises UsageError."""
        scheme, separator, rest = url.partition("://")
        if not separator or scheme.lower() != "s3":
            hint = _GOOGLE if scheme in ("gs", "gcs") else _ADVICE
            raise UsageError(
                f"Results go to a bucket with the interface of S3, and '{url[:80]}' names none.",
                hint,
            )
        name, _, prefix = rest.partition("/")
        prefix = prefix.strip("/")
        if not _NAME.fullmatch(name) or not _PREFIX.fullmatch(prefix):
            raise UsageError(f"'{url[:80]}' is no name of a bucket of S3.", _ADVICE)
        return cls(name, f"{prefix}/" if prefix else "", endpoint, profile)

    def __str__(self) -> str:
        return f"s3://{self.name}/{self.prefix}"


@dataclass(frozen=True, slots=True)
class BucketObject:
    """An object in a list. modified_s: seconds since the epoch, by the bucket's clock."""

    key: str
    size_bytes: int
    modified_s: float


@dataclass(frozen=True, slots=True)
class SignedAddress:
    """A permission to make one request. headers: that have to be sent with it, as they are signed.
    The address is secret until it expires."""

    url: str
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return "SignedAddress(…)"

    def document(self) -> dict[str, Any]:
        """Returns it for the machine's job."""
        return {"url": self.url, "headers": dict(self.headers)}


class ResultBucket:
    """A bucket. Every method raises CloudError; each is one call, or the pages of one."""

    def __init__(self, settings: BucketSettings) -> None:
        self.settings = settings
        self._client: Any = None
        self._session: Any = None
        self._stores_once = True

    @property
    def url(self) -> str:
        """Returns its address, s3://NAME/PREFIX."""
        return str(self.settings)

    def _connected(self) -> Any:
        if self._client is None:
            self._client = self._connect(self.settings.region)
        return self._client

    def _connect(self, region: str) -> Any:
        try:
            boto3: Any = import_module("boto3")
            config: Any = import_module("botocore.config").Config
        except ImportError:
            raise Lacking(
                "Buckets with the interface of S3 need the Python library boto3.",
                "Install it with `pip install 'nephoscope[aws]'`.",
            ) from None
        with self._translating("opening the bucket"):
            self._session = boto3.Session(profile_name=self.settings.profile or None)
            region = region or self._session.region_name or "us-east-1"
            # What only some stores know, such as checksums in trailers, is left off.
            return self._session.client(
                "s3",
                region_name=region,
                endpoint_url=self.settings.endpoint or None,
                config=config(
                    signature_version="s3v4",
                    connect_timeout=CONNECT_S,
                    read_timeout=READ_S,
                    retries={"total_max_attempts": 1},
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                    s3={"addressing_style": "path" if self.settings.endpoint else "auto"},
                ),
            )

    def _translating(self, doing: str) -> Any:
        errors: Any = import_module("nephoscope.measure.cloud.providers.ec2_errors")
        return errors.translating(f"{doing} {self.url}", "S3")

    def check(self) -> None:
        """Finds the bucket's region. Raises CloudError where there is no such bucket, UsageError
        where it keeps what is removed."""
        region = self._region()
        if region and not self.settings.endpoint and region != self._connected().meta.region_name:
            self.settings = replace(self.settings, region=region)
            self._client = self._connect(region)
            self._region()
        if self._has_versions():
            raise UsageError(
                f"The bucket {self.settings.name} keeps versions of its objects, so that what is "
                "removed stays stored and is billed.",
                "Name a bucket without versioning.",
            )

    def _region(self) -> str:
        """Returns where the bucket is; '' where its store does not say."""
        errors: Any = import_module("botocore.exceptions")
        with self._translating("HeadBucket of"):
            client = self._connected()
            try:
                answer = client.head_bucket(Bucket=self.settings.name)
            except errors.ClientError as error:
                answer = error.response
        metadata = answer.get("ResponseMetadata", {})
        status = int(metadata.get("HTTPStatusCode", 200))
        region = str(metadata.get("HTTPHeaders", {}).get("x-amz-bucket-region", ""))
        if status == 404:
            text = f"There is no bucket {self.settings.name} at {self._place()}."
            raise CloudError(Cause.UNKNOWN, text, "Create it first.")
        if status in (401, 403):
            raise CloudError(
                Cause.CREDENTIALS,
                f"The bucket {self.settings.name} is not open to these credentials.",
                f"Check the permissions against `nephoscope cloud policy ec2 --bucket {self.url}`.",
            )
        if status >= 400 or (status >= 300 and not region):
            text = f"S3: HeadBucket of {self.url}: status {status}."
            raise CloudError(Cause.UNANSWERED if status >= 500 else Cause.REFUSED, text)
        return region

    def _place(self) -> str:
        return self.settings.endpoint or "Amazon"

    def _has_versions(self) -> bool:
        try:
            with self._translating("GetBucketVersioning of"):
                answer = self._connected().get_bucket_versioning(Bucket=self.settings.name)
        except CloudError as error:
            if error.cause in (Cause.REFUSED, Cause.UNANSWERED) and "NotImpl" in error.message:
                return False
            raise
        return bool(answer.get("Status") == "Enabled")

    def put(self, key: str, content: bytes | Path) -> None:
        """Stores an object, which may be there already with the same content.

        The first one shows whether the store keeps an object that is there from being replaced.
        """
        body = content.read_bytes() if isinstance(content, Path) else content
        once = {"IfNoneMatch": "*"} if self._stores_once else {}
        try:
            with self._translating(f"PutObject {_last(key)} in"):
                self._connected().put_object(
                    Bucket=self.settings.name, Key=self._whole(key), Body=body, **once
                )
        except CloudError as error:
            if once and "NotImplemented" in error.message:
                self._stores_once = False
                self.put(key, content)
            elif "PreconditionFailed" not in error.message:
                raise

    def get(self, key: str, at_most_bytes: int) -> bytes:
        """Returns an object's content. Raises CloudError also for one that is too long."""
        with self._translating(f"GetObject {_last(key)} in"):
            answer = self._connected().get_object(Bucket=self.settings.name, Key=self._whole(key))
            content: bytes = answer["Body"].read(at_most_bytes + 1)
        if len(content) > at_most_bytes:
            raise CloudError(
                Cause.REFUSED,
                f"S3: {_last(key)} in {self.url} has more than {at_most_bytes} bytes.",
            )
        return content

    def objects(self, folder: str) -> list[BucketObject]:
        """Returns the objects below a folder, to the end."""
        whole, cut = self._whole(folder), len(self.settings.prefix)
        with self._translating(f"ListObjects of {_last(folder)} in"):
            pages = self._connected().get_paginator("list_objects_v2")
            return [
                BucketObject(
                    entry["Key"][cut:], int(entry["Size"]), entry["LastModified"].timestamp()
                )
                for page in pages.paginate(Bucket=self.settings.name, Prefix=whole)
                for entry in page.get("Contents", ())
            ]

    def folders(self) -> Iterator[tuple[str, Tags]]:
        """Yields the folders of rentals, with their tags, which are in the name."""
        with self._translating("ListObjects of"):
            pages = (
                self._connected()
                .get_paginator("list_objects_v2")
                .paginate(Bucket=self.settings.name, Prefix=self.settings.prefix, Delimiter="/")
            )
            names = [entry["Prefix"] for page in pages for entry in page.get("CommonPrefixes", ())]
        for name in dict.fromkeys(names):
            folder = name[len(self.settings.prefix) :]
            tags = Tags.from_name(folder.rstrip("/"))
            if tags is not None:
                yield folder, tags

    def remove(self, folder: str) -> None:
        """Removes every object below a folder, one by one where the store takes no batch."""
        if not folder.rstrip("/"):
            raise ValueError("a folder is needed")
        keys = [entry.key for entry in self.objects(folder)]
        for first in range(0, len(keys), 1000):
            part = keys[first : first + 1000]
            try:
                self._remove_batch(part)
            except CloudError as error:
                if error.cause is Cause.CREDENTIALS:
                    raise
                for key in part:
                    self._remove_object(key)

    def _remove_batch(self, keys: Sequence[str]) -> None:
        named = [{"Key": self._whole(key)} for key in keys]
        with self._translating("DeleteObjects in"):
            answer = self._connected().delete_objects(
                Bucket=self.settings.name, Delete={"Objects": named, "Quiet": True}
            )
        for error in answer.get("Errors", ()):
            raise CloudError(
                Cause.REFUSED, f"S3: DeleteObjects in {self.url}: {error.get('Message')}."
            )

    def _remove_object(self, key: str) -> None:
        with self._translating(f"DeleteObject {_last(key)} in"):
            self._connected().delete_object(Bucket=self.settings.name, Key=self._whole(key))

    def signed(self, key: str, expires_s: float, *, is_upload: bool) -> SignedAddress:
        """Returns an address for one object that expires after so many seconds."""
        named: dict[str, Any] = {"Bucket": self.settings.name, "Key": self._whole(key)}
        headers = {}
        if is_upload and self._stores_once:
            # Whoever learns the address later cannot replace what is there.
            named["IfNoneMatch"] = headers["If-None-Match"] = "*"
        with self._translating(f"signing the address of {_last(key)} in"):
            url = self._connected().generate_presigned_url(
                "put_object" if is_upload else "get_object",
                Params=named,
                ExpiresIn=int(min(expires_s, LONGEST_ADDRESS_S)),
            )
        return SignedAddress(url, headers)

    def credentials_end_s(self) -> float | None:
        """Returns when the credentials expire, in seconds since the epoch; None where they do not
        say. An address that they signed expires with them."""
        with self._translating("reading the credentials for"):
            self._connected()
            credentials = self._session.get_credentials()
            if credentials is None:
                raise CloudError(
                    Cause.CREDENTIALS,
                    f"There are no credentials for {self.url}.",
                    "Write some with `aws configure`, or name a profile with --bucket-profile.",
                )
            credentials.get_frozen_credentials()  # They are renewed by it where they can be.
        end = getattr(credentials, "_expiry_time", None)
        return None if end is None else float(end.timestamp())

    def _whole(self, key: str) -> str:
        return f"{self.settings.prefix}{key}"


def _last(key: str) -> str:
    """Returns the end of a key: its beginning is the same for all objects of a rental."""
    return key.rstrip("/").rpartition("/")[2] or key
