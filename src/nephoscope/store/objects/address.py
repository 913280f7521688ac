"""Addresses of stores on object storage, such as s3://bucket/prefix?endpoint=https://host."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

from nephoscope.core import limits
from nephoscope.core.errors import StoreError, UsageError
from nephoscope.core.reading import regular
from nephoscope.core.records import dataclass
from nephoscope.store.digests import digest_of
from nephoscope.store.files import translating_os_errors, write_atomically

FILE = ".object_store.json"
"""File by which a folder is known as the mirror of a store on object storage."""

_SCHEMES: Mapping[str, tuple[str, ...]] = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "az": ("AZURE_STORAGE_ENDPOINT",),
    "abfs": ("AZURE_STORAGE_ENDPOINT",),
    "abfss": ("AZURE_STORAGE_ENDPOINT",),
    "gs": ("STORAGE_EMULATOR_HOST",),
}
"""Scheme -> environment variables that name another endpoint, as the services' own tools do."""
_IS_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(/?)")
_BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,220}[a-z0-9])?(?:@[a-z0-9.-]+)?")
_EXAMPLE = "Write s3://BUCKET/PREFIX, az://CONTAINER/PREFIX or gs://BUCKET/PREFIX."


@dataclass(frozen=True, slots=True)
class ObjectAddress:
    """Where a store is. bucket: also CONTAINER@HOST of an abfs address. endpoint: URL of the
    service, empty for its provider's own."""

    scheme: str
    bucket: str
    prefix: str
    endpoint: str

    @property
    def text(self) -> str:
        """Returns the address as a user writes it; credentials are never part of it."""
        prefix = f"/{self.prefix}" if self.prefix else ""
        is_usual = self.endpoint == _usual_endpoint(self.scheme)
        endpoint = "" if is_usual else f"?endpoint={self.endpoint}"
        return f"{self.scheme}://{self.bucket}{prefix}{endpoint}"


def parse_address(text: str) -> ObjectAddress | None:
    """Returns the address of a text; None where it names a folder. Raises UsageError."""
    match = _IS_ADDRESS.match(text)
    # A path of this machine may contain a colon; only known schemes are taken with one slash, since
    # pathlib makes one of two.
    if match is None or not (match[2] or match[1] in _SCHEMES):
        return None
    scheme = match[1].lower()
    if scheme not in _SCHEMES:
        raise UsageError(f"'{scheme}://' is no place of a store.", f"{_EXAMPLE} Or name a folder.")
    parts = urlsplit(f"{scheme}://{text[match.end() :]}")
    bucket = parts.netloc
    if ":" in bucket or ("@" in bucket and not scheme.startswith("abfs")):
        raise UsageError(
            "The address of a store holds no credentials.",
            "Set the variables of the service's own tools, such as AWS_ACCESS_KEY_ID.",
        )
    if not _BUCKET.fullmatch(bucket):
        raise UsageError(f"'{bucket}' is no name of a bucket.", _EXAMPLE)
    prefix = "/".join(part for part in parts.path.split("/") if part)
    if any(part in (".", "..") for part in prefix.split("/")) or not prefix.isprintable():
        raise UsageError(f"'{prefix}' is no prefix of a store.", _EXAMPLE)
    return ObjectAddress(scheme, bucket, prefix, _endpoint(scheme, parts.query))


def _endpoint(scheme: str, query: str) -> str:
    options = dict(parse_qsl(query, keep_blank_values=True))
    endpoint = options.pop("endpoint", "")
    if options:
        raise UsageError(
            f"The address of a store has no option '{min(options)[:40]}'.",
            "Write, for example, s3://BUCKET/PREFIX?endpoint=https://HOST:PORT.",
        )
    endpoint = re.sub(r"^(https?):/+", r"\1://", endpoint) or _usual_endpoint(scheme)
    parts = urlsplit(endpoint)
    if endpoint and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise UsageError(f"'{endpoint[:80]}' is no endpoint.", "Write https://HOST or HOST:PORT.")
    if parts.username or parts.password:
        raise UsageError("An endpoint holds no credentials.", "Write https://HOST:PORT.")
    return endpoint.rstrip("/")


def _usual_endpoint(scheme: str) -> str:
    """Returns the endpoint that the environment names; empty for the provider's own."""
    endpoint = next(filter(None, (os.environ.get(name, "") for name in _SCHEMES[scheme])), "")
    if scheme == "gs" and endpoint and "://" not in endpoint:
        endpoint = f"http://{endpoint}"  # as STORAGE_EMULATOR_HOST has it
    return endpoint.rstrip("/")


def data_folder() -> Path:
    """Returns $XDG_DATA_HOME/nephoscope, else ~/.local/share/nephoscope."""
    data = os.environ.get("XDG_DATA_HOME")
    # The base directory specification says that a relative path there is to be ignored.
    if data and Path(data).is_absolute():
        return Path(data) / "nephoscope"
    try:
        return Path.home() / ".local" / "share" / "nephoscope"
    except RuntimeError as error:
        raise StoreError("There is no home directory.", "Name one with --store DIR.") from error


def folder_of(place: Path | str) -> Path:
    """Returns the folder of a store: of a path itself, of an address its mirror, which is made.

    Raises UsageError for an address that is none.
    """
    address = parse_address(str(place))
    if address is None:
        return Path(place)
    name = quote(address.bucket, safe="")
    known = f"{address.text} {address.endpoint}"
    folder = data_folder() / "objects" / f"{name}-{digest_of(known.encode())[:12]}"
    if not (folder / FILE).exists():
        with translating_os_errors(folder, "created"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        values = {
            "scheme": address.scheme,
            "bucket": address.bucket,
            "prefix": address.prefix,
            "endpoint": address.endpoint,
        }
        write_atomically(folder / FILE, json.dumps(values).encode())
    return folder


@lru_cache(maxsize=64)
def address_of(folder: Path) -> ObjectAddress | None:
    """Returns the address that a folder mirrors; None for a local store."""
    path = folder / FILE
    try:
        content = regular.read_regular(path, limits.STATE_BYTES)
    except OSError:
        return None
    try:
        values = json.loads(content)
        return ObjectAddress(
            **{key: str(values[key]) for key in ("scheme", "bucket", "prefix", "endpoint")}
        )
    except (ValueError, LookupError, TypeError) as error:
        raise StoreError(f"{path} is damaged.", "Remove it and name the store again.") from error
