"""Credentials of the services, from the places that their own tools use; none is stored or logged.

obstore reads the environment, the roles of machines and containers, and the files of Azure's and
Google's tools. The profiles of the AWS tools are read here: by boto3 where it is installed, which
knows single sign-on and roles, else the keys of the shared file.
"""

from __future__ import annotations

import configparser
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_AZURE = "Set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or run `az login`."
NO_CREDENTIALS: Mapping[str, str] = {
    "s3": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE for a profile.",
    "az": _AZURE,
    "abfs": _AZURE,
    "abfss": _AZURE,
    "gs": "Set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`.",
}
"""Scheme -> what to do where there are no credentials, or wrong ones."""


def s3_settings() -> dict[str, Any]:
    """Returns region and credentials where the environment does not name them itself."""
    settings: dict[str, Any] = {}
    profile = os.environ.get("AWS_PROFILE") or "default"
    values = _profile(profile)
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    settings["region"] = region or values.get("region", "us-east-1")
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        return settings
    if values.get("aws_access_key_id") and values.get("aws_secret_access_key"):
        settings["access_key_id"] = values["aws_access_key_id"]
        settings["secret_access_key"] = values["aws_secret_access_key"]
        if values.get("aws_session_token"):
            settings["session_token"] = values["aws_session_token"]
    elif values:
        provider = _by_boto3(profile)
        if provider is not None:
            settings["credential_provider"] = provider
    return settings


def gs_settings(endpoint: str) -> dict[str, Any]:
    """Returns the settings for an endpoint; empty for Google's own.

    One without encryption is an emulator: it gets no credentials, and none are looked for.
    """
    if not endpoint:
        return {}
    if endpoint.startswith("https://"):
        return {"base_url": endpoint}
    # `skip_signature` would still ask the service that gives a machine its role.
    unsigned = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
    return {"service_account_key": json.dumps({"gcs_base_url": endpoint, **unsigned})}


def _by_boto3(profile: str) -> Any:
    """Returns what asks boto3 for credentials; None without boto3 or without credentials."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        return None
    try:
        session = boto3.session.Session(profile_name=profile)
        return Boto3CredentialProvider(session) if session.get_credentials() else None
    except (BotoCoreError, ValueError):
        return None


def _profile(name: str) -> dict[str, str]:
    """Returns the keys of a profile in both files of the AWS tools; empty without any."""
    home = Path("~/.aws").expanduser()
    files = (
        (os.environ.get("AWS_CONFIG_FILE") or home / "config", f"profile {name}"),
        (os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials", name),
    )
    values: dict[str, str] = {}
    for path, section in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeError):
            continue
        for wanted in {section, name}:
            if parser.has_section(wanted):
                values |= parser.items(wanted)
    return values
