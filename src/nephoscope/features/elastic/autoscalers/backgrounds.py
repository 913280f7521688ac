"""What observes an autoscaler of others in a plan: a command, or a program that asks its API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

from nephoscope.catalog import instruments
from nephoscope.features.elastic.autoscalers.names import AutoscalerName

OBSERVED = "observed"
"""Name of a background that observes by a command."""


def own_command(command: str) -> dict[str, Any]:
    """Returns the background that calls a command for the number of instances."""
    return {
        "name": OBSERVED,
        "benchmark": instruments.AUTOSCALER_OBSERVED,
        "params": {"command": command},
    }


def own_api(
    scaler: AutoscalerName, endpoint: str, url: str, flags: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the background that follows an autoscaler. url: of its service; flags: parameters of
    its controller."""
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return {
        "name": scaler.kind,
        "benchmark": instruments.AUTOSCALER_MANAGED,
        "params": {**asdict(scaler), "endpoint": endpoint, "path": path, **flags},
    }
