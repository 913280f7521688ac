"""Faults that a test switches on: each at a rate with a seed, or for the next calls."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

FAULTS = {
    "throttle": "RequestLimitExceeded, nothing done",
    "unavailable": "503 Unavailable, nothing done",
    "internal-before": "500 InternalError, nothing done",
    "internal-after": "500 InternalError, but it was done",
    "drop-before": "the connection ends without an answer, nothing done",
    "drop-after": "the connection ends without an answer, but it was done",
    "truncate": "the answer ends in the middle; it was done",
    "delay": "the answer comes late, by `seconds`",
    "no-capacity": "InsufficientInstanceCapacity",
    "partial": "only part of the machines that a call would take are free",
    "expired": "RequestExpired: the credentials have expired",
    "skew": "RequestExpired: the clocks differ",
    "boot-failure": "a machine goes from pending to terminated",
    "late-failure": "a machine fails some seconds after it runs",
    "interruption": "a spot machine is interrupted",
    "silent": "a machine never answers: its ssh server does not start",
    "region-down": "503 for everything in a region",
    "no-device": "a volume is attached, and its device never shows",
    "mounted-device": "a volume shows formatted and mounted, as by a program of the image",
    "rotten-snapshot": "a volume from a snapshot differs from what was written",
    "stuck": "a machine stays shutting-down ten times as long",
}
"""Fault -> what happens."""


@dataclass
class Faults:
    """Which faults are on, and how often each has happened."""

    seed: int = 0
    rates: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)
    coming: list[dict[str, Any]] = field(default_factory=list)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    happened: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        # Each fault draws for itself: to switch one on does not move the draws of the others.
        self._draws = {name: random.Random(f"{self.seed}:{name}") for name in FAULTS}

    def set(
        self, name: str, *, rate: float = 0.0, next: int = 0, actions: Any = (), **values: Any
    ) -> None:
        """rate: of the calls (or machines) concerned, 0..1. next: so many calls, at once.
        actions: of the API, that it concerns; none for all. values: e.g. seconds, region."""
        if name not in FAULTS:
            raise ValueError(f"{name} is no fault. There are {', '.join(FAULTS)}.")
        self.rates[name] = (rate, frozenset(actions))
        self.coming = [each for each in self.coming if each["name"] != name]
        if next:
            self.coming.append({"name": name, "left": next, "actions": frozenset(actions)})
        self.values[name] = values

    def strikes(self, name: str, action: str) -> bool:
        """Whether it happens to this call; counts it."""
        struck = self._strikes(name, action)
        if struck:
            self.happened[name] += 1
        return struck

    def _strikes(self, name: str, action: str) -> bool:
        for each in self.coming:
            if (
                each["name"] == name
                and each["left"]
                and (not each["actions"] or action in each["actions"])
            ):
                each["left"] -= 1
                return True
        rate, actions = self.rates.get(name, (0.0, frozenset()))
        return rate > 0 and (not actions or action in actions) and self._draws[name].random() < rate

    def value(self, name: str, key: str, default: Any) -> Any:
        return self.values.get(name, {}).get(key, default)
