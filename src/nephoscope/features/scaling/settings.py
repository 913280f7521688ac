"""Settings of a simulated service: `--set NAME=VALUE`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.stats.instance_demand import ScaledService

_DURATIONS = {
    "boot": "boot_s",
    "warm_up": "warm_up_s",
    "lag": "lag_s",
    "window": "window_s",
    "interval": "interval_s",
    "billed": "billed_s",
}
_COUNTS = {"backlog": "backlog", "start": "start_count"}
_VARIATIONS = ("arrivals_cv", "service_cv")
_QUEUES = {"shared": True, "instances": False}
NAMES = (*_DURATIONS, *_COUNTS, *_VARIATIONS, "cpu_ratio", "queue")
_LONGEST_S = 30 * 86_400.0
_SHORTEST_S = 1e-3
_LARGEST_COUNT = 100_000
_LARGEST_VARIATION = 10.0
_LARGEST_RATIO = 10.0


def with_settings(service: ScaledService, settings: Mapping[str, str]) -> ScaledService:
    """Returns the service with settings as text. Raises UsageError for a wrong name or value."""
    changes: dict[str, Any] = {}
    for written, text in settings.items():
        name = written.replace("-", "_")
        if name in _DURATIONS:
            least_s = _SHORTEST_S if name in ("window", "interval") else 0.0
            changes[_DURATIONS[name]] = _seconds(name, text, least_s)
        elif name in _COUNTS:
            changes[_COUNTS[name]] = _count(name, text)
        elif name in _VARIATIONS:
            changes[name] = _variation(name, text)
        elif name == "cpu_ratio":
            changes[name] = _ratio(name, text)
        elif name == "queue":
            changes["shared_queue"] = _is_shared(text)
        else:
            raise UsageError(
                f"--set: '{written:.40}' is no setting of the service"
                f"{did_you_mean(written, NAMES)}.",
                f"Settings: {', '.join(NAMES)}. Those of a rule belong to --rule.",
            )
    return replace(service, **changes)


def _seconds(name: str, text: str, least_s: float) -> float:
    seconds = units.parse_duration_ns(text, likely=("s", "min")) / 1e9
    if not least_s <= seconds <= _LONGEST_S:
        raise UsageError(f"--set {name}: '{text:.40}' is out of range.", f"Use {name}=60s.")
    return seconds


def _count(name: str, text: str) -> int:
    least = 1 if name == "start" else 0
    if not text.isascii() or not text.isdigit() or not least <= int(text[:9]) <= _LARGEST_COUNT:
        raise UsageError(f"--set {name}: '{text:.40}' is no count.", f"Use, e.g., {name}=10.")
    return int(text[:9])


def _is_shared(text: str) -> bool:
    if text not in _QUEUES:
        raise UsageError(f"--set queue: '{text:.40}' is none.", f"Use {' or '.join(_QUEUES)}.")
    return _QUEUES[text]


def _variation(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= _LARGEST_VARIATION:
        raise UsageError(
            f"--set {name}: '{text:.40}' is no coefficient of variation.",
            f"Use 0 for equal times, 1 for exponential ones, at most {_LARGEST_VARIATION:g}.",
        )
    return value


def _ratio(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 / _LARGEST_RATIO <= value <= _LARGEST_RATIO:
        raise UsageError(
            f"--set {name}: '{text:.40}' is no ratio.", f"Use, e.g., {name}=1.05; 1 is without."
        )
    return value


def as_text(service: ScaledService) -> dict[str, str]:
    """Returns the settings as users write them."""
    texts = {
        name: units.written(getattr(service, field) * 1e9, "ns")
        for name, field in _DURATIONS.items()
    }
    if math.isfinite(service.backlog):
        texts["backlog"] = f"{service.backlog:g}"
    if service.start_count is not None:
        texts["start"] = str(service.start_count)
    texts |= {name: f"{getattr(service, name):g}" for name in _VARIATIONS}
    if service.cpu_ratio != 1:
        texts["cpu_ratio"] = f"{service.cpu_ratio:.4g}"
    return texts | {"queue": "shared" if service.shared_queue else "instances"}
