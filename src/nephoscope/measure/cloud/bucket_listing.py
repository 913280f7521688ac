"""A cloud with the buckets in which its rentals have results: what is listed and removed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, cast

from nephoscope.measure.cloud.intents import RentalFolder, folders
from nephoscope.measure.cloud.model import CloudResource, Kind, Tags
from nephoscope.measure.cloud.provider import Cause, CloudError, CloudSettings, Provider
from nephoscope.measure.cloud.result_bucket import BucketSettings, ResultBucket

BUCKET = "bucket"
"""Key of rental.json: the keys of `BucketSettings`, and `home`, the region of the rental."""


class WithBuckets:
    """A provider that lists and removes results too: everything else is the provider's.

    The results of a bucket are listed once, in the region of their rental.
    """

    def __init__(self, provider: Provider, buckets: Sequence[tuple[ResultBucket, str]]) -> None:
        self._provider = provider
        self._buckets = buckets

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def resources(
        self, region: str, run: str | None = None, kinds: Collection[Kind] | None = None
    ) -> Sequence[CloudResource]:
        """See `Provider.resources`. The buckets come last: when the machines are gone, nothing is
        put there any more."""
        listed = list(self._provider.resources(region, run, kinds))
        if kinds is not None and Kind.RESULT_FOLDER not in kinds:
            return listed
        for bucket in (bucket for bucket, home in self._buckets if home == region):
            listed += [
                CloudResource(
                    Kind.RESULT_FOLDER, f"{bucket.url}{folder}", region, tags, name=folder
                )
                for folder, tags in _folders(bucket)
                if run in (None, tags.run)
            ]
        return listed

    def delete(self, resource: CloudResource) -> None:
        """See `Provider.delete`."""
        if resource.kind is not Kind.RESULT_FOLDER:
            self._provider.delete(resource)
            return
        for bucket, _ in self._buckets:
            if resource.id == f"{bucket.url}{resource.name}":
                bucket.remove(resource.name)

    def extend(self, resource: CloudResource, expires_s: int) -> None:
        """See `Provider.extend`; the end of results is in their name and stays."""
        if resource.kind is not Kind.RESULT_FOLDER:
            self._provider.extend(resource, expires_s)


def _folders(bucket: ResultBucket) -> list[tuple[str, Tags]]:
    """Returns the folders of a bucket; none of one that is gone, and its objects with it."""
    try:
        return list(bucket.folders())
    except CloudError as error:
        if error.cause is Cause.UNKNOWN:
            return []
        raise


def with_buckets(
    provider: Provider,
    settings: CloudSettings,
    *,
    root: Path | None = None,
    more: Sequence[BucketSettings] = (),
) -> Provider:
    """Returns a provider with the buckets of the rentals of this machine on that cloud, and
    `more`."""
    wanted: dict[tuple[BucketSettings, str], None] = {}
    for folder in folders(root):
        known = bucket_of(folder, settings)
        if known is not None:
            wanted[known] = None
    known_buckets = {bucket for bucket, _ in wanted}
    for bucket in more:
        if bucket not in known_buckets:
            wanted[bucket, str(provider.regions()[0])] = None
    if not wanted:
        return provider
    opened = [(ResultBucket(bucket), home) for bucket, home in wanted]
    return cast("Provider", WithBuckets(provider, opened))


def bucket_of(
    folder: RentalFolder, settings: CloudSettings | None = None
) -> tuple[BucketSettings, str] | None:
    """Returns the bucket of a rental and its region; None for one without, and of another cloud."""
    known = folder.read()
    values = dict(known.get(BUCKET) or {})
    if not values or (settings is not None and CloudSettings(**known["cloud"]) != settings):
        return None
    home = str(values.pop("home"))
    return BucketSettings(**values), home
