"""JSON from outside to plain values that can be computed with, stored and printed."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse(text: str | bytes, *, finite: bool = True) -> Any:
    """Returns the value of a JSON text. finite: False where the caller checks each number itself.

    Raises ValueError with a few words also for what Python's own reader takes and nothing after it
    does: numbers that are not finite, half of a surrogate pair, nesting without end.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        check = _finite if finite else float
        value = json.loads(text, parse_float=check, parse_constant=check)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise ValueError("it is no UTF-8 text") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text:.40} is no finite number")
    return value
