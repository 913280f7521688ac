"""Storage services: which program measures them, and the credentials that it is given."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from nephoscope.catalog import instruments
from nephoscope.core.programs import PROBE, STORAGE

BENCHMARKS = (instruments.STORAGE_TRANSFER, instruments.STORAGE_DURABILITY)

CREDENTIALS = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    "webdav": ("WEBDAV_USERNAME", "WEBDAV_PASSWORD", "WEBDAV_TOKEN"),
    "azblob": (
        "AZURE_STORAGE_ACCOUNT_NAME",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
    ),
    "gcs": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_OAUTH_TOKEN"),
    "sftp": ("SFTP_KEY_FILE",),
    "webhdfs": ("HADOOP_USER_NAME", "HADOOP_DELEGATION_TOKEN"),
}
"""Service -> environment variables that are passed on for it."""


def program(benchmark: str, params: Mapping[str, Any]) -> str:
    """Returns the name of the program that runs a benchmark with these parameters."""
    return STORAGE if _needs_service(benchmark, params) else PROBE


def credentials(benchmark: str, params: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Returns the credentials in this environment; None for a benchmark that takes none.

    They travel on the control channel, so that no log, plan or list of processes has them.
    """
    if not _needs_service(benchmark, params):
        return None
    names = CREDENTIALS.get(params["service"], ())
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _needs_service(benchmark: str, params: Mapping[str, Any]) -> bool:
    return benchmark in BENCHMARKS and params.get("service", "local") != "local"
