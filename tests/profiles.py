"""The two profiles of the tests: `make test` takes the quick one, `make test-all` the whole one."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

NAME = os.environ.get("NEPHOSCOPE_TEST_PROFILE", "whole")
"""Whoever calls pytest without saying which has the whole one."""


def by_profile(*, quick: T, whole: T) -> T:
    """Returns how many cases, or which, the profile in use looks at."""
    return quick if NAME == "quick" else whole
