"""S3, Azure Blob Storage and Google Cloud Storage through obstore, with errors as sentences.

Retries are few and short here: a write that is repeated after a lost answer finds its own object,
which the callers tell from another writer's.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotModifiedError,
    PreconditionError,
)

from nephoscope.core.errors import StoreError
from nephoscope.store.files import writing_atomically
from nephoscope.store.objects.address import ObjectAddress
from nephoscope.store.objects.credentials import NO_CREDENTIALS, gs_settings, s3_settings
from nephoscope.store.objects.primitives import ConditionFailed, ListedObject, StoredObject

CONNECT_S, ANSWER_S, GIVE_UP_S = 5, 60, 20
RANGE_BYTES = 16 << 20
"""Bytes of an object that are asked for at once."""

_CODE = re.compile(r"<Code>(\w+)</Code>|\"(?:reason|code)\": ?\"(\w+)\"|x-ms-error-code\W+(\w+)")
_STATUS = re.compile(r"status: (\d{3})")
_LATER = "What was measured is kept on this machine; any command on the store publishes it later."


def open_service(address: ObjectAddress) -> Obstore:
    """Returns the service of an address; nothing is asked of it yet. Raises StoreError."""
    makers: Mapping[str, Callable[..., Any]] = {
        "s3": obstore.store.S3Store,
        "az": obstore.store.AzureStore,
        "abfs": obstore.store.AzureStore,
        "abfss": obstore.store.AzureStore,
        "gs": obstore.store.GCSStore,
    }
    container, _, host = address.bucket.partition("@")
    config: dict[str, Any] = {}
    if address.scheme == "s3":
        config = {**s3_settings(), "disable_bulk_delete": True}  # which few other services have
        if address.endpoint:
            config["endpoint"] = address.endpoint
    elif address.scheme == "gs":
        config = gs_settings(address.endpoint)
    else:
        if host:
            config["account_name"] = host.partition(".")[0]
        if address.endpoint:
            config["endpoint"] = address.endpoint
    provider = config.pop("credential_provider", None)
    try:
        store = makers[address.scheme](
            container,
            prefix=address.prefix or None,
            config=config,
            client_options={
                "allow_http": address.endpoint.startswith("http://"),
                "connect_timeout": timedelta(seconds=CONNECT_S),
                "timeout": timedelta(seconds=ANSWER_S),
            },
            retry_config={
                "max_retries": 4,
                "retry_timeout": timedelta(seconds=GIVE_UP_S),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(seconds=2),
                    "base": 2,
                },
            },
            **({} if provider is None else {"credential_provider": provider}),
        )
    except (BaseError, ValueError):
        raise StoreError(
            f"{address.text} cannot be opened: the account or its credentials are not known.",
            NO_CREDENTIALS[address.scheme],
        ) from None
    return Obstore(address, store)


class Obstore:
    """A bucket and a prefix of one of the services; see `ObjectService`."""

    def __init__(self, address: ObjectAddress, store: Any) -> None:
        self._address, self._store = address, store

    def get(self, key: str, known: str = "") -> StoredObject | None:
        """Returns an object; None where there is none."""
        options: Any = {"if_none_match": known.partition(" ")[0]} if known else None
        with self._translating("read"):
            try:
                answer = obstore.get(self._store, key, options=options)
                return StoredObject(bytes(answer.bytes()), _version(answer.meta))
            except NotModifiedError:
                return StoredObject(b"", known)
            except FileNotFoundError as error:
                self._refuse_missing_bucket(error)
                return None

    def download(self, key: str, path: Path) -> bool:
        """Writes an object to a file, part by part; returns whether there is one."""
        try:
            with self._translating("read"):
                size = int(obstore.head(self._store, key)["size"])
        except FileNotFoundError:
            return False
        with writing_atomically(path) as stream:
            for start in range(0, size, RANGE_BYTES):
                end = min(start + RANGE_BYTES, size)
                with self._translating("read"):
                    stream.write(obstore.get_range(self._store, key, start=start, end=end))
        return True

    def put(self, key: str, content: bytes | Path) -> None:
        """Writes an object; a large file in parts."""
        with self._translating("written"):
            obstore.put(self._store, key, content)

    def create(self, key: str, content: bytes) -> str:
        """Writes an object that does not exist."""
        return self._conditional_put(key, content, "create")

    def replace(self, key: str, content: bytes, version: str) -> str:
        """Writes an object that still has this version."""
        tag, _, generation = version.partition(" ")
        known = {"e_tag": tag, "version": generation}
        mode = {name: value for name, value in known.items() if value}
        return self._conditional_put(key, content, mode)

    def _conditional_put(self, key: str, content: bytes, mode: Any) -> str:
        with self._translating("written"):
            try:
                answer = obstore.put(self._store, key, content, mode=mode, use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                raise ConditionFailed(key) from None
            except FileNotFoundError as error:
                self._refuse_missing_bucket(error)
                raise ConditionFailed(key) from None  # removed since it was read
            except BaseError as error:
                if _status(str(error)) in (409, 412):
                    raise ConditionFailed(key) from None
                raise
        return _version(answer)

    def delete(self, key: str) -> None:
        """Removes an object."""
        with self._translating("removed"), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._store, key)

    def listed(self, prefix: str) -> Iterator[ListedObject]:
        """Yields the objects under a prefix."""
        with self._translating("listed"):
            for chunk in obstore.list(self._store, prefix=prefix):
                for each in chunk:
                    modified_s = each["last_modified"].timestamp()
                    yield ListedObject(str(each["path"]), int(each["size"]), modified_s)

    def _refuse_missing_bucket(self, error: Exception) -> None:
        text = str(error)
        if "NoSuchBucket" in text or "ContainerNotFound" in text or "bucket does not" in text:
            bucket, at = self._address.bucket, self._address.endpoint
            raise StoreError(
                f"There is no bucket '{bucket}'{f' at {at}' if at else ''}.",
                "Create it with the service's own tool, or name another one with --store.",
            ) from None

    @contextlib.contextmanager
    def _translating(self, doing: str) -> Iterator[None]:
        """Turns an error of a service into a StoreError of one sentence.

        What the library prints is not repeated: it may show parts of requests.
        """
        try:
            yield
        except (BaseError, ValueError, PermissionError) as error:
            reason, step = _reason(self._address, str(error))
            raise StoreError(f"{self._address.text} cannot be {doing}: {reason}.", step) from None


def _version(answer: Mapping[str, Any]) -> str:
    """Returns tag and generation; the services need one or the other for a conditional write."""
    return f"{answer.get('e_tag') or ''} {answer.get('version') or ''}".rstrip()


def _reason(address: ObjectAddress, text: str) -> tuple[str, str]:
    code = next(filter(None, itertools.chain(*_CODE.findall(text))), "")
    status = _status(text)
    at = address.endpoint or "the service"
    if any(mark in text for mark in _METADATA):
        return "there are no credentials", NO_CREDENTIALS[address.scheme]
    if code == "RequestTimeTooSkewed" or "RequestTimeTooSkewed" in text:
        return (
            "the clock of this machine differs from that of the service",
            "Set the clock, for example with `chronyc makestep`.",
        )
    if code in _REFUSED or status == 401:
        return f"the credentials are refused ({code or status})", NO_CREDENTIALS[address.scheme]
    if status == 403 or "PermissionDenied" in text:
        return (
            f"permission is denied ({code or 'status 403'})",
            f"Allow reading and writing objects there, or name another --store. {_LATER}",
        )
    if "NoSuchBucket" in text:
        return "there is no such bucket", "Create it, or name another one with --store."
    if "kind: Connect" in text or "kind: Timeout" in text or "operation timed out" in text:
        return f"{at} does not answer", f"Check the endpoint and the network. {_LATER}"
    if status:
        return f"{at} answers {code or 'with'} {status}", f"Try again later. {_LATER}"
    return _first_line(text), f"Check the address. {_LATER}"


_METADATA = ("169.254.", "/latest/api/token", "/latest/meta-data", "metadata.google.internal")
"""Of the service that gives a machine its role, which is asked last: there is no other place."""
_REFUSED = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidToken",
    "ExpiredToken",
    "AuthenticationFailed",
    "AuthorizationFailure",
    "InvalidAuthenticationInfo",
)


def _status(text: str) -> int:
    match = _STATUS.search(text) or re.search(r"status code: (\d{3})", text)
    return int(match[1]) if match else 0


def _first_line(text: str) -> str:
    return text.splitlines()[0].rstrip(".")[:200] if text else "an unknown error"
