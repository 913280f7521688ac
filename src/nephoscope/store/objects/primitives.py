"""What a store needs of a service that keeps objects: six operations, two of them conditional."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol


class ConditionFailed(Exception):
    """A conditional write was not made: the object exists already, or is another version."""


class StoredObject(NamedTuple):
    """An object. version: what tells its content from every other one of that name."""

    content: bytes
    version: str


class ListedObject(NamedTuple):
    """An object of a listing. modified_s: seconds since the epoch."""

    key: str
    size_bytes: int
    modified_s: float


class ObjectService(Protocol):
    """A bucket and a prefix. Every operation raises StoreError where the service refuses or does
    not answer; keys are relative to the prefix."""

    def get(self, key: str, known: str = "") -> StoredObject | None:
        """Returns an object; None where there is none.

        known: version that the caller has; its content is then not sent again, but empty.
        """
        ...

    def download(self, key: str, path: Path) -> bool:
        """Writes an object to a file; returns whether there is one."""
        ...

    def put(self, key: str, content: bytes | Path) -> None:
        """Writes an object whose name belongs to its content, so that it may be there already."""
        ...

    def create(self, key: str, content: bytes) -> str:
        """Writes an object that does not exist; returns its version. Raises ConditionFailed."""
        ...

    def replace(self, key: str, content: bytes, version: str) -> str:
        """Writes an object that still has this version; returns the new one. ConditionFailed."""
        ...

    def delete(self, key: str) -> None:
        """Removes an object; one that is gone is no error."""
        ...

    def listed(self, prefix: str) -> Iterator[ListedObject]:
        """Yields the objects under a prefix. Only repairs list."""
        ...
