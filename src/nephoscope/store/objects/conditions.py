"""Checks that a service honours conditional writes, which take the place of locks."""

from __future__ import annotations

import contextlib
import os

from nephoscope.core.errors import StoreError
from nephoscope.store.files import write_atomically
from nephoscope.store.objects.mirror import Mirror
from nephoscope.store.objects.primitives import ConditionFailed, ObjectService


def require_conditional_writes(mirror: Mirror) -> None:
    """Tries conditional writes before the first write of a mirror. Raises StoreError.

    A service that ignores the conditions would let two writers replace each other's runs.
    """
    passed = mirror.folder / ".objects" / "conditions"
    if passed.exists():
        return
    ignored = ignored_condition(mirror.service)
    if ignored:
        raise StoreError(
            f"{mirror.address} ignores the condition {ignored} of a write, so that two writers "
            "would replace each other's runs.",
            "Use a service that honours conditional writes (Amazon S3, MinIO, Azure, Google Cloud "
            "Storage), or a local store and copy it.",
        )
    write_atomically(passed, b"", durable=False)


def ignored_condition(service: ObjectService) -> str:
    """Returns the condition that a service ignores; empty where it honours both."""
    key = f"checks/{os.urandom(8).hex()}"
    version = service.create(key, b"1")
    try:
        with contextlib.suppress(ConditionFailed):
            service.create(key, b"2")
            return "If-None-Match"
        newer = service.replace(key, b"3", version)
        with contextlib.suppress(ConditionFailed):
            service.replace(key, b"4", version)
            # An equal version of other content would let a change be lost just as well.
            return "If-Match"
        return "" if newer != version else "If-Match"
    finally:
        with contextlib.suppress(StoreError):  # it holds nothing
            service.delete(key)
